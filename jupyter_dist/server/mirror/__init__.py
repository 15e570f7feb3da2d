"""The server's copy of one group: what its agent reports, kept up to date across lost connections."""
