"""Which cells of a group can be undone or done again, and the executions that do it."""

from .part import UndoOfGroup

__all__ = ["UndoOfGroup"]
