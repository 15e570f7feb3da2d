"""Parts: features that the core does not name. A folder each, which can be removed (docs/design/write-a-part.md)."""
