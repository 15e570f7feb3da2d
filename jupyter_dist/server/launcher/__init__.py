"""Starts agents: the available Pythons, the directories of groups, and detached agent processes."""
