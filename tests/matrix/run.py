"""Run the tests with many versions of Python, torch and IPython: `make matrix`, or by hand (--help).

Standard library only. What ran is kept in docs/compatibility.json, and docs/compatibility.md is made of it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import environments
import table
from environments import Combination, NotHere

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
# The oldest and the newest of 8 and 9; the newest of 9 is None, what pip gives.
# Every run of the tests has the first two beside the newest of 9.
IPYTHONS = ("ipython==8.6.0", "ipython<9", "ipython==9.0.0", None)
WITH_TORCH = ("compat", "rank", "agent", "client")
# The last for what differs between versions of asyncio.
WITHOUT_TORCH = ("protocol", "folding", "journal", "agent/test_server_link.py")
NOTHING_RAN = {"result": "failed", "passed": 0, "skipped": 0}
VERSIONS = """
import json, platform
from importlib import metadata
def version(name):
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return None
print(json.dumps({"python": platform.python_version(), "torch": version("torch"), "ipython": version("ipython")}))
"""


def main() -> int:
    """Return 1 when a test failed."""
    options = _options()
    is_good = True
    for combination, rooms in _chosen(options):
        print(f"== {combination}: {' '.join(rooms)}", flush=True)
        try:
            run = _run(environments.python_of(combination), rooms)
        except NotHere as err:
            if options.quick:
                raise SystemExit(f"{combination}: {err}") from err  # every run of the tests has these
            run = _not_run(combination, rooms, str(err))
        print(f"   {table.result(run)}", flush=True)
        is_good = is_good and run["result"] != "failed"
        if not options.quick:
            table.record(run)
            if "compat" in rooms and run["result"] != "not run":
                _note_internals(environments.python_of(combination))
        if options.torch and not options.keep:
            environments.remove(combination)
    return 0 if is_good else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="other versions of IPython alone, tests/compat, no record")
    parser.add_argument("--python", help="a minor version; all by default", choices=PYTHONS)
    parser.add_argument("--torch", help="install this one, which may take gigabytes; removed afterwards")
    parser.add_argument("--ipython", help="a requirement, for example 'ipython<9'")
    parser.add_argument("--tests", nargs="+", help="folders of tests/")
    parser.add_argument("--keep", action="store_true", help="keep the environment of --torch")
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> Iterator[tuple[Combination, tuple[str, ...]]]:
    own = environments.own()
    rooms = tuple(options.tests or ())
    if options.quick:
        for ipython in IPYTHONS[:2]:
            yield Combination(own.python, own.torch, ipython), ("compat",)
    elif options.torch or options.ipython:
        python, torch = options.python or own.python, options.torch or own.torch
        yield Combination(python, torch, options.ipython), rooms or WITH_TORCH
    else:
        if options.python in (None, own.python):
            for ipython in IPYTHONS:
                yield Combination(own.python, own.torch, ipython), rooms or WITH_TORCH
        for python in PYTHONS if options.python is None else (options.python,):
            if python != own.python:
                yield Combination(python, None), rooms or WITHOUT_TORCH


def _run(python: str, rooms: tuple[str, ...]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        tests = [f"tests/{room}" for room in rooms]
        options = ["-p", "no:cacheprovider", "--timeout", "300", f"--junitxml={report}", "-o", "addopts=-q"]
        env = {**os.environ, "PYTHONPATH": str(environments.ROOT), "PYTHONDONTWRITEBYTECODE": ""}
        command = [python, "-m", "pytest", *options, *tests]
        done = subprocess.run(command, cwd=environments.ROOT, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stdout[-20_000:], done.stderr[-20_000:])
        outcome = _outcome(ElementTree.parse(report).getroot().find("testsuite")) if report.exists() else {}
    if done.returncode not in (0, 1) or not outcome:  # for example, a test file that cannot be imported
        outcome = {**NOTHING_RAN, "failed": outcome.get("failed") or [f"pytest (exit status {done.returncode})"]}
    return {**_versions(python), "tests": " ".join(rooms), **outcome, "date": _today()}


def _outcome(suite: Any) -> dict[str, Any]:
    failed = [
        f"{(case.get('classname') or case.get('name')).replace('.', '/')}.py::{case.get('name')}"
        for case in suite.iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = int(suite.get("skipped"))
    passed = int(suite.get("tests")) - skipped - len(failed)
    return {"result": "failed" if failed else "passed", "passed": passed, "skipped": skipped, "failed": failed}


def _versions(python: str) -> dict[str, Any]:
    done = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def _note_internals(python: str) -> None:
    """Note which private names this torch has, in docs/torch-internals.md."""
    script = str(Path(__file__).with_name("internals.py"))
    subprocess.run([python, script], cwd=environments.ROOT, check=True)


def _not_run(combination: Combination, rooms: tuple[str, ...], reason: str) -> dict[str, Any]:
    versions = {"python": combination.python, "torch": combination.torch, "ipython": combination.ipython}
    return {
        **versions,
        "tests": " ".join(rooms),
        "result": "not run",
        "reason": reason.splitlines()[0],
        "date": _today(),
    }


def _today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


if __name__ == "__main__":
    sys.exit(main())
