"""HTTP and WebSocket: parse, ask the group manager, answer. docs/api.md is the contract."""
