"""Sends the output of a rank to the agent, in order: printed text and displays."""
