"""Without a Jupyter server: the first and the second group of a script, and a command that lists groups."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.driver import REPOSITORY
from benchmarks.options import Options
from benchmarks.tables import Table

FLOOR = "python -c 'import torch'"
FIRST, SECOND = "first: connect() to all_reduce on 2 ranks", "second: Group.start(2) to all_reduce"
SCRIPT = """
import json, time
began = time.perf_counter()
from jupyter_dist.client import connect, Group
CELL = "import torch, torch.distributed as dist; dist.all_reduce(torch.ones(1))"
with connect() as client:
    def start(name):
        group = Group.start(name, client=client, num_ranks=2, accelerator="cpu")
        group.run(CELL, check=True)
        return group
    first = start("first")
    used = time.perf_counter() - began
    began = time.perf_counter()
    second = start("second")
    print(json.dumps([used, time.perf_counter() - began]), flush=True)
    first.shutdown()
    second.shutdown()
"""
LIST = "from jupyter_dist.cli.main import main; main()"
PYTHON, WITHOUT, WITH = "python -c pass", "jupyter dist list, no server", "jupyter dist list, a server"
KEEPS = """
import sys
from jupyter_dist.client import connect
with connect(prepare=False) as client:
    print("ready", flush=True)
    sys.stdin.read()
"""
MAX_FIRST, MAX_SECOND, MAX_WITHOUT, MAX_WITH = 1.3, 0.4, 1.0, 0.5
SECONDS = 120


def measure(options: Options) -> list[Table]:
    """Both tables; the rounds alternate with those of the floor."""
    return [_groups(options), _listing(options)]


def _groups(options: Options) -> Table:
    table = Table("A script without a server: its groups of 2 CPU ranks", "s", FLOOR)
    for number in range(options.rounds + 1):  # the first one fills the page cache
        with tempfile.TemporaryDirectory(prefix="jdb-") as runtime:
            floor = _seconds([sys.executable, "-c", "import torch"], runtime)
            first, second = json.loads(_run([sys.executable, "-c", SCRIPT], runtime))
            _wait_for_end(runtime)
        if number:
            for system, seconds in ((FLOOR, floor), (FIRST, first), (SECOND, second)):
                table.row(system).values.append(seconds)
    ratio, least = table.ratio(FIRST), table.least_ratio(FIRST)
    text = f"at most {MAX_FIRST}x one import of torch: {ratio:.2f}x (least against least {least:.2f}x)"
    table.aim(text, min(ratio, least) <= MAX_FIRST)
    seconds = table.row(SECOND).median
    table.aim(f"the second one under {MAX_SECOND} s: {seconds:.2f} s", seconds < MAX_SECOND)
    return table


def _listing(options: Options) -> Table:
    table = Table("`jupyter dist list` where no group runs", "s", PYTHON)
    command = [sys.executable, "-c", LIST, "list"]
    with tempfile.TemporaryDirectory(prefix="jdb-") as empty, tempfile.TemporaryDirectory(prefix="jdb-") as served:
        keeper = subprocess.Popen(
            [sys.executable, "-c", KEEPS],
            env=_environ(served),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with keeper:
            assert keeper.stdout is not None
            keeper.stdout.readline()
            for number in range(options.rounds * 2 + 1):
                for system, words, runtime in (
                    (PYTHON, [sys.executable, "-c", "pass"], empty),
                    (WITHOUT, command, empty),
                    (WITH, command, served),
                ):
                    seconds = _seconds(words, runtime)
                    if number:
                        table.row(system).values.append(seconds)
            keeper.communicate()
        _wait_for_end(served)
    for system, limit in ((WITHOUT, MAX_WITHOUT), (WITH, MAX_WITH)):
        seconds = table.row(system).median
        table.aim(f"{system}: under {limit} s: {seconds:.2f} s", seconds < limit)
    return table


def _seconds(command: list[str], runtime: str) -> float:
    began = time.perf_counter()
    _run(command, runtime)
    return time.perf_counter() - began


def _run(command: list[str], runtime: str) -> str:
    done = subprocess.run(command, env=_environ(runtime), check=True, stdout=subprocess.PIPE, timeout=SECONDS)
    return done.stdout.decode()


def _environ(runtime: str) -> dict[str, str]:
    """Nothing of earlier rounds is there: no server, and no process that has imported torch."""
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "JUPYTER_RUNTIME_DIR": runtime, "PYTHONPATH": path}


def _wait_for_end(runtime: str) -> None:
    """Wait until the private server has ended, some seconds after its last client."""
    deadline = time.monotonic() + SECONDS
    while list(Path(runtime).glob("jpserver-*.json")) and time.monotonic() < deadline:
        time.sleep(0.1)
