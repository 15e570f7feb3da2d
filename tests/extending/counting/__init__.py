"""A part that uses all of the seams in the agent and on ranks."""
