"""What the server sends: groups, ranks, executions, devices, and what is computed from them."""
