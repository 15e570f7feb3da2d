"""Why a running cell is slow: judged from what ranks report of their pace, while the cell runs."""

from .pacewatch import PaceWatch

__all__ = ["PaceWatch"]
