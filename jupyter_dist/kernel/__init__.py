"""The kernel *Ranks*: a view of a group for any Jupyter client, which runs a whole notebook on ranks (decision 18)."""
