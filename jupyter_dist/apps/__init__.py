"""Apps: what sets a framework up on all ranks, and is looked up there by name. docs/client.md, Apps."""
