"""The agent: one process per group and node that owns the ranks and their journal, and outlives the server.

It runs in the group's Python and needs only the standard library.
"""
