"""The domain: groups of ranks, their executions and views. Independent of HTTP."""
