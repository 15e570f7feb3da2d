"""The folders of this package's own code: frames of ours are known by the names of their files."""

from __future__ import annotations

from .own import os

RANK = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
PACKAGE = os.path.dirname(os.path.dirname(RANK)) + os.sep
ON_RANKS = (RANK, os.path.join(PACKAGE, "parts") + os.sep)  # of the code that runs beside the user's
