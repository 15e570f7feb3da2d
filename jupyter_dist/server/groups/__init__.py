"""The domain: living groups of ranks, what they run, and what is shown of it. Knows nothing of HTTP."""
