"""Apps: set up a framework on all ranks, where they are looked up by name. docs/reference/magics.md, Apps."""
