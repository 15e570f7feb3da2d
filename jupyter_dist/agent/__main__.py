"""`python -m jupyter_dist.agent ROLE ARGUMENT`: start a process of a node from the installed package, or an archive."""

from __future__ import annotations

import importlib
import sys

from .boot import ROLES


def main() -> int:
    """Run the process until its end; return its exit code."""
    _, role, argument = sys.argv
    return int(importlib.import_module(ROLES[role]).main(argument))


if __name__ == "__main__":
    sys.exit(main())
