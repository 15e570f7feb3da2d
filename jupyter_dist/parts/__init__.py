"""Parts: features that the core does not name. A folder each, which can be removed."""
