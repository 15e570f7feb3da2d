"""Print the tests that come first: short ones of the core, and those of the parts that a change is in.

The change is the last commit, and what is not committed yet.
"""

from __future__ import annotations

import subprocess
import sys

from without import PAGE, PARTS, ROOT, SMOKE, parts, tests_of


def main() -> None:
    """Print the paths, each a file or folder of tests."""
    found = (path for name in sorted(changed_parts()) for path in tests_of(name))
    print(*SMOKE, *(path for path in found if (ROOT / path).is_file() or any((ROOT / path).glob("test_*.py"))))


def changed_parts() -> set[str]:
    """Return the names of parts with files that differ from the commit before the last; none where that is not here."""
    command = ["git", "diff", "--name-only", "HEAD~1", "--"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    folders = (f"{PARTS}/", f"{PAGE}/", "tests/")
    words = {path[len(folder) :].split("/")[0] for path in found for folder in folders if path.startswith(folder)}
    return words & set(parts.names())


if __name__ == "__main__":
    sys.exit(main())
