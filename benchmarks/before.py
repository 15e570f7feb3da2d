"""Figures before and after a change: `python -m benchmarks.before [COMMIT] [ROUNDS]` measures both trees in turn.

Each round begins each tree anew, in the order before, after, after, before: what else the machine does meets both. A
ratio is after by before, of medians; the interval has 95 % of the ratios of samples drawn again.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .driver import REPOSITORY

ROUNDS = 6
MOST = 1.03
DRAWS = 2000
PROBE_SECONDS = 300.0

Figures = dict[str, list[float]]


def main(arguments: list[str]) -> int:
    """Print a row for each figure; return 1 if one is slower beyond doubt."""
    commit, rounds = [*arguments, *("HEAD~1", str(ROUNDS))[len(arguments) :]]
    before: Figures = {}
    after: Figures = {}
    with _tree(commit) as earlier:
        for _ in range(int(rounds)):
            for tree, figures in ((earlier, before), (REPOSITORY, after), (REPOSITORY, after), (earlier, before)):
                for name, value in _probe(tree).items():
                    figures.setdefault(name, []).append(value)
    print(f"{'':<36}{commit:>12}{'now':>12}{'ratio':>8}   95 %")
    worse = [name for name in before if _row(name, before[name], after[name])]
    print(f"\nSlower by more than {MOST - 1:.0%}: {', '.join(worse) or 'none'}.")
    return 1 if worse else 0


@contextmanager
def _tree(commit: str) -> Iterator[Path]:
    """Check a commit out into a folder, with what a build adds."""
    with tempfile.TemporaryDirectory(prefix="jdb-") as folder:
        tree = Path(folder, "tree")
        git = ["git", "-C", str(REPOSITORY), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        version = Path("jupyter_dist", "_version.py")
        (tree / version).write_bytes((REPOSITORY / version).read_bytes())
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=False)


def _probe(tree: Path) -> dict[str, float]:
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "drivers" / "probe.py")]
    env = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        command, env=env, cwd=tree, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
    )
    if done.returncode:
        sys.exit(f"The probe failed in {tree}:\n{done.stderr[-3000:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _row(name: str, before: list[float], after: list[float]) -> bool:
    """Print a figure; return whether even the lower end of its interval is above the limit."""
    drawn = sorted(_ratio(_again(before), _again(after)) for _ in range(DRAWS))
    low, high = drawn[DRAWS // 40], drawn[-DRAWS // 40]
    values = f"{statistics.median(before):>12.3g}{statistics.median(after):>12.3g}{_ratio(before, after):>8.2f}"
    print(f"{name:<36}{values}   {low:.2f} to {high:.2f}")
    return low > MOST


def _again(values: list[float]) -> list[float]:
    return random.choices(values, k=len(values))


def _ratio(before: list[float], after: list[float]) -> float:
    return statistics.median(after) / statistics.median(before)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
