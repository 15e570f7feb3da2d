"""Remove parts from a copy of the repository, and run there the tests of the core and of all other parts.

`python .ci/without.py NAME ...`; without a name it is the set of parts whose turn is today: see `of_day`. Where all that
is removed is of the page alone, the tests are those of the page. The copy has what git knows, and new files.
"""

from __future__ import annotations

import datetime
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.house import parts  # noqa: E402

PARTS = "jupyter_dist/parts"
PAGE = "labextension/src/parts"
# Short, and of each process of the core.
SMOKE = (
    "tests/protocol",
    "tests/handlers/test_openapi.py",
    "tests/cli/test_listing.py",
    "tests/agent/test_agent.py",
    "tests/extending/test_seams.py",
)
# Of parts whose tests start engines, or import frameworks: the tests that do not.
TESTS = {
    "clusters": ("tests/clusters/test_options.py", "tests/clusters/test_following.py"),
    "frameworks": ("tests/frameworks/test_hook.py", "tests/frameworks/test_matrix.py"),
}


def main(arguments: list[str]) -> int:
    """Return the exit code of the tests."""
    names = parts.names()
    with_package = set(filter(parts.has_package, names))
    removed = arguments or of_day(names, datetime.date.today().weekday())
    if unknown := [name for name in removed if name not in names]:
        sys.exit(f"There is no part '{unknown[0]}': {', '.join(names)}.")
    with tempfile.TemporaryDirectory(prefix="without-") as folder:
        copy = Path(folder)
        copy_repository(copy)
        has_page = any((copy / PAGE / name).is_dir() for name in removed)
        for name in removed:
            for path in (copy / PARTS / name, copy / PAGE / name, copy / "tests" / name):
                shutil.rmtree(path, ignore_errors=True)
        env = {**os.environ, "PYTHONPATH": str(copy)}
        # The clients' methods and the documents of the operations that are left.
        subprocess.run([sys.executable, ".ci/generate.py"], cwd=copy, env=env, check=True)
        print(f"Without {', '.join(removed)}", flush=True)
        if has_page:
            subprocess.run([sys.executable, ".ci/catalogues.py"], cwd=copy, env=env, check=True)
            (copy / "node_modules").symlink_to(ROOT / "node_modules")
            for command in (["tsc", "--noEmit", "-p", "tsconfig.json"], ["vitest", "run", "--silent"]):
                subprocess.run(["npx", *command], cwd=copy, check=True)
        if with_package.isdisjoint(removed):
            return 0
        others = [of for other in sorted(with_package - set(removed)) for of in tests_of(other)]
        others = [path for path in others if (copy / path).exists()]
        print(f"Tests: {' '.join([*SMOKE, *others])}", flush=True)
        # As `make test-python`: tests of ranks wait as often as they compute.
        together = ["--numprocesses", os.environ.get("JOBS", "5"), "--dist", "loadfile"]
        tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *together, *SMOKE, *others]
        return subprocess.run(tests, cwd=copy, env=env, check=False).returncode


def of_day(names: list[str], day: int) -> list[str]:
    """Return the parts that are removed on a day of the week: three of seven parts on each.

    Each part is removed on three days, and no two on the same three. So a week has, for each two parts, a day on which
    one is there and the other is not.
    """
    days = list(itertools.combinations(range(7), 3))
    if len(names) > len(days):
        sys.exit(f"{len(days)} parts have days of their own, and there are {len(names)}: let a turn have more days.")
    # From both ends: else the first parts would all be removed on the first days.
    order = [days[(1 - 2 * (i % 2)) * ((i + 1) // 2)] for i in range(len(names))]
    return [name for name, own in zip(names, order, strict=True) if day in own]


def tests_of(name: str) -> tuple[str, ...]:
    """Return the files or folders with the tests of a part; a folder may not be there."""
    return TESTS.get(name, (f"tests/{name}",))


def copy_repository(copy: Path) -> None:
    """Copy the files that git knows or would add, and what an installation has written."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in [*found.rstrip("\0").split("\0"), "jupyter_dist/_version.py"]:
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
