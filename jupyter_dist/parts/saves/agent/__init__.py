"""The saves that a group makes by itself: every so often, and before its allocation ends."""

from .part import SavesAgent

__all__ = ["SavesAgent"]
