"""Who waits for whom: judged from looks at the ranks of a group."""

from .hangwatch import HangWatch

__all__ = ["HangWatch"]
