"""Running cells in IPython's shell, and calls of clients; interrupting both."""
