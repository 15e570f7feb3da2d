"""The operations on saves, and what groups of a server have of them."""

from .operations import SavesServer

__all__ = ["SavesServer"]
