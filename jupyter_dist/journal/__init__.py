"""The journal of a group: every output on disk, in order, before it travels (docs/messaging.md, The journal)."""
