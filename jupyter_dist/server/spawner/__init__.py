"""Starts agents: the code that groups run, their directories, forkservers, and detached processes."""
