"""`jupyter dist ...`: groups from a shell. docs/reference/cli.md."""
