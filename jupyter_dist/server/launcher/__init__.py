"""Starts agents: which Pythons there are, where groups live, and how an agent is set free."""
