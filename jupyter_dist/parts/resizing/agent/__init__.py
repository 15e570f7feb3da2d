"""Ranks leave a group or are added, while the others keep their variables."""

from .part import ResizingOfGroup

__all__ = ["ResizingOfGroup"]
