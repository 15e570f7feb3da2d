"""What a save and a restore do on a rank."""

from .part import SavesOnRank

__all__ = ["SavesOnRank"]
