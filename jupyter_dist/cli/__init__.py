"""`jupyter dist ...`: groups from a shell. docs/client.md."""
