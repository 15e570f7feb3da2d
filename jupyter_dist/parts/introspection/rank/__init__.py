"""What a rank knows at a cursor: from its shell while it is idle; during a cell, without running users' code."""

from .part import RankIntrospection

__all__ = ["RankIntrospection"]
