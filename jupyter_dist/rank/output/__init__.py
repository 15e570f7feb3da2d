"""Sends what a rank prints and displays to the agent, in order."""
