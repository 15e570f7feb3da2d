"""Undo of cells in place: what objects contained before a cell, and how it is written back."""

from .part import UndoOfRank

__all__ = ["UndoOfRank"]
