"""HTTP and WebSocket: parse, call the group manager, answer. docs/api.md is the contract."""
