"""The journal of a group: every output is on disk, in order, before it is sent (docs/messaging.md, The journal)."""
