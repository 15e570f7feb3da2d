"""1024 ranks on 128 nodes: the real head, server and page, with simulated ranks (tests/nodes/simulated.py).

CPU time is that of the head and of the server, each with all of its threads, from the request until both have been
idle for a moment: what a cell costs them in all, not only until its result is there. What they use in that time when no
cell runs, which is a figure of its own, is not counted.
"""

from __future__ import annotations

import json
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.browser import Page, chromium, server_for_pages
from benchmarks.driver import REPOSITORY
from benchmarks.options import Options
from benchmarks.ours import Client, Json, Server
from benchmarks.processes import scheduled_seconds, wait_until
from benchmarks.tables import Table

from .keystroke import IDLE, OPEN, code_cell, write_notebook

NODES, RANKS_PER_NODE = 128, 8
SAME, DIFFERENT = "print('step 100 done')", "print(rank * 7919)"
CODES = {SAME: SAME, DIFFERENT: DIFFERENT}  # by the name of the row
PROCESSES = 16
MOST_SAME_MS, MOST_DIFFERENT, MOST_FRAME_MS, MOST_IDLE_PERCENT = 40.0, 2.0, 100.0, 3.0
MOST_LATE_MS = 60.0
SPREAD_SECONDS = 0.5  # within which ranks answer that are not alike
WARM_UP_ROUNDS = 3
NUM_RUNS = 5  # of a cell in the page, which shares two cores with all simulated ranks
SETTLE_SECONDS, IDLE_SECONDS = 1.0, 10.0
STARTED_SECONDS = 5.0  # what a start leaves to do
START_SECONDS = 300.0
HEAD, SERVER = "head", "server"
OURS, JUPYTERLAB = "with the extension", "JupyterLab without the extension"
MOST_OPEN = 1.2
OPEN_ROUNDS = 5
QUIET_SECONDS, OPEN_SECONDS = 2.0, 1.5

_WATCH = """
(() => {
  window.jpdTasks = [];
  new PerformanceObserver(list => window.jpdTasks.push(...list.getEntries().map(task => task.duration)))
    .observe({ entryTypes: ['longtask'] });
})()
"""
# An observer hears about a task after it; two frames later all is drawn.
_TAKE = """
(async () => {
  await new Promise(resolve => setTimeout(resolve, SETTLE));
  await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  return Math.max(0, ...window.jpdTasks.splice(0));
})()
"""
_OPEN_PICKER = """
(async () => {
  jupyterapp.shell.currentWidget.content.activeCellIndex = 0;
  await new Promise(resolve => setTimeout(resolve, 500));
  window.jpdTasks.splice(0);
  document.querySelector('.jpd-RankPicker-button').click();
})()
"""
_OPEN_LOG = "jupyterapp.commands.execute('jupyter-dist:open-log', {{ group: '{group}', rank: 700 }}).then(() => 0)"
# Whatever panel is in front.
_SAVE = "jupyterapp.commands.execute('docmanager:open', {{ path: '{name}' }}).then(({{ context }}) => context.save())"
_SHUT_DOWN = "jupyterapp.shell.currentWidget.sessionContext.shutdown().then(() => 0)"
NOTEBOOK = "thousand.ipynb"


def measure(options: Options) -> list[Table]:
    """CPU time per cell and at rest without a page, then the page's frames."""
    if not options.ours:
        return []
    what = f"{NODES * RANKS_PER_NODE} simulated ranks on {NODES} nodes"
    cells = Table(f"CPU time of a cell on {what}: head and server together", "ms", "")
    idle = Table(f"Idle: {what}", "% of a core", "")
    frames = Table(f"The longest task of a page with {what}", "ms", "")
    longest_task = "CPU time of the longest task of a page while a notebook is opened"
    opening = Table(f"{longest_task}, with {what}", "ms", JUPYTERLAB)
    saved = Table("The same of a notebook that was saved with its outputs", "ms", JUPYTERLAB)
    executable = chromium()
    with ExitStack() as stack:
        server = stack.enter_context(server_for_pages(executable))
        client = Client(server)
        stack.callback(client.close)
        client.open_channel()
        group = stack.enter_context(simulated_group(client, NODES, RANKS_PER_NODE))
        processes = {HEAD: server.agent_of(group), SERVER: server.pid}
        _idle(idle, processes)
        at_rest = {name: idle.row(name).median / 100 for name in processes}
        _cells(cells, client, group, Used(processes, at_rest), options.rounds, CODES)
        if executable:
            target = {"jupyter_dist": {"group": "nodes", "ranks": "all"}}
            code_cells = [code_cell(code, target) for code in (SAME, DIFFERENT)]
            write_notebook(server, NOTEBOOK, code_cells)
            with Page(server, executable) as page:
                page.evaluate(OPEN.format(name=NOTEBOOK, kernel="false"))
                _frames(frames, page, group)
                page.evaluate(_SAVE.format(name=NOTEBOOK))
            _opening(opening, server, executable, code_cells)
            _opening(saved, server, executable, json.loads((server.home / NOTEBOOK).read_text())["cells"])
        client.end_group(group)
        many = Table(f"The same with the node agents in {PROCESSES} processes", "ms", "")
        cells_of_processes(many, client, server, options.rounds, 0.0)
        late = Table(f"The same with answers that come one after the other within {SPREAD_SECONDS:g} s", "ms", "")
        cells_of_processes(late, client, server, options.rounds)
    same, different = (cells.row(code).median for code in (SAME, DIFFERENT))
    for table in (many, late):
        took = table.row(SAME).median
        table.aim(f"at most {MOST_LATE_MS:g} ms where all answer alike: {took:.0f} ms", took <= MOST_LATE_MS)
    cells.aim(f"at most {MOST_SAME_MS:g} ms where all answer alike: {same:.0f} ms", same <= MOST_SAME_MS)
    most = MOST_DIFFERENT * MOST_SAME_MS
    cells.aim(f"at most {most:g} ms where each prints another number: {different:.0f} ms", different <= most)
    percent = sum(row.median for row in idle.rows)
    idle.aim(f"under {MOST_IDLE_PERCENT:g} % of a core: {percent:.1f} %", percent < MOST_IDLE_PERCENT)
    if frames.rows:
        longest = max(row.median for row in frames.rows)
        frames.aim(f"none over {MOST_FRAME_MS:g} ms, once open: {longest:.0f} ms", longest <= MOST_FRAME_MS)
        for table in (opening, saved):
            opened = table.ratio(OURS)
            table.aim(f"at most {MOST_OPEN:g}x JupyterLab alone: {opened:.2f}x", opened <= MOST_OPEN)
    return [cells, many, late, idle, frames, opening, saved]


def _opening(table: Table, server: Server, executable: str, code_cells: list[Json]) -> None:
    """Open notebooks with and without the extension in turns, each in a page of its own that has become quiet.

    In CPU time, so other processes count little. The first round, which finds all caches cold, is left out.
    """
    for turn in range(1 + OPEN_ROUNDS):
        for bare in (True, False) if turn % 2 else (False, True):
            name = f"{secrets.token_hex(4)}.ipynb"  # without executions of the page before
            write_notebook(server, name, code_cells)
            with Page(server, executable, bare=bare) as page:
                time.sleep(QUIET_SECONDS)
                took = page.tasks(OPEN.format(name=name, kernel="false"), OPEN_SECONDS)
                page.evaluate(_SHUT_DOWN)  # or the kernels of all pages run beside
            if turn > 0:
                table.row(JUPYTERLAB if bare else OURS).values.append(max(took))


def cells_of_processes(
    table: Table,
    client: Client,
    server: Server,
    rounds: int,
    spread_seconds: float = SPREAD_SECONDS,
    *,
    nodes: int = NODES,
    codes: dict[str, str] = CODES,
) -> None:
    """Measure cells, by the name of their row, whose answers are spread over time, as those of real nodes are."""
    client.open_channel()  # again: it has not read for minutes, and the server has closed such a connection
    shape: Json = {"num_processes": PROCESSES, "name": "spread", "spread_seconds": spread_seconds}
    with simulated_group(client, nodes, RANKS_PER_NODE, **shape) as group:
        processes = {HEAD: server.agent_of(group), SERVER: server.pid}
        idle = Table("", "%", "")
        _idle(idle, processes)
        at_rest = {name: idle.row(name).median / 100 for name in processes}
        _cells(table, client, group, Used(processes, at_rest), rounds, codes)
        client.end_group(group)


@contextmanager
def simulated_group(
    client: Client,
    num_nodes: int,
    ranks_per_node: int,
    *,
    num_processes: int = 1,
    name: str = "nodes",
    spread_seconds: float = 0.0,
) -> Iterator[str]:
    """A group whose nodes are all simulated, in so many processes beside the head; ranks answer within a time."""
    shape = {"launcher": "external", "num_nodes": num_nodes, "ranks_per_node": ranks_per_node, "accelerator": "cpu"}
    group: Json = client.must("POST", "/groups", {"name": name, **shape})
    while not group["join"]:
        time.sleep(0.1)
        group = client.must("GET", f"/groups/{group['id']}")
    join_file = shlex.split(group["join"])[-1]
    command = [sys.executable, "-m", "nodes.simulated", join_file]
    each = num_nodes // num_processes
    nodes = [
        subprocess.Popen(
            [*command, str(first), str(each), str(spread_seconds)],
            cwd=REPOSITORY / "tests",
            stdin=subprocess.DEVNULL,
        )
        for first in range(0, num_nodes, each)
    ]
    try:
        deadline = time.monotonic() + START_SECONDS
        while group["state"] == "starting" and time.monotonic() < deadline:
            group = client.must("GET", f"/groups/{group['id']}?wait=30&not_state=starting")
        if group["state"] != "ready":
            raise RuntimeError(f"the group is {group['state']}: {group['error']}")
        yield str(group["id"])
    finally:
        for process in nodes:
            process.send_signal(signal.SIGTERM)
        for process in nodes:
            process.wait(60)


@dataclass(frozen=True)
class Used:
    """CPU seconds of processes, by name, and what they use in a second of rest."""

    processes: dict[str, int]
    at_rest: dict[str, float]

    def by(self, call: Callable[[], object]) -> dict[str, float]:
        """Return the CPU seconds of each process from the call until it is at rest again, without those of rest."""
        began, before = time.monotonic(), {name: scheduled_seconds(pid) for name, pid in self.processes.items()}
        call()
        time.sleep(SETTLE_SECONDS)
        seconds = time.monotonic() - began
        return {
            name: scheduled_seconds(pid) - before[name] - self.at_rest[name] * seconds
            for name, pid in self.processes.items()
        }


def _cells(table: Table, client: Client, group: str, processes: Used, rounds: int, codes: dict[str, str]) -> None:
    parts: dict[str, dict[str, list[float]]] = {}
    for turn in range(WARM_UP_ROUNDS + 2 * rounds):
        for name, code in codes.items():
            _wait_for_links(client, group)
            used = processes.by(lambda code=code: client.cell(group, code))
            if turn >= WARM_UP_ROUNDS:
                table.row(name).values.append(1000 * sum(used.values()))
                for process, seconds in used.items():
                    parts.setdefault(name, {}).setdefault(process, []).append(1000 * seconds)
    for name, of_processes in parts.items():
        halves = (f"{process} {sorted(values)[len(values) // 2]:.0f}" for process, values in of_processes.items())
        table.row(name).note = ", ".join(halves)


def _wait_for_links(client: Client, group: str) -> None:
    """Wait until all nodes are heard: on a busy machine, the one process that they are may have been too late."""

    def are_heard() -> bool:
        return all(node["state"] == "joined" for node in client.must("GET", f"/groups/{group}")["nodes"])

    wait_until(are_heard, START_SECONDS, "all nodes are heard", 0.2)


def _idle(table: Table, processes: dict[str, int]) -> None:
    everything = Used(processes, dict.fromkeys(processes, 0.0))
    time.sleep(STARTED_SECONDS)
    for _ in range(3):
        used = everything.by(lambda: time.sleep(IDLE_SECONDS - SETTLE_SECONDS))
        for name, seconds in used.items():
            table.row(name).values.append(100 * seconds / IDLE_SECONDS)


def _frames(table: Table, page: Page, group: str) -> None:
    """Do what a user does, one thing at a time, and note the longest task of the page's main thread."""
    page.evaluate(_WATCH)
    steps = {
        f"run {SAME}": lambda: _run(page, 0),
        f"run {DIFFERENT}": lambda: _run(page, 1),
        "open the picker": lambda: page.evaluate(_OPEN_PICKER),
        "the rank panel": lambda: page.evaluate(_OPEN_LOG.format(group=group)),
        "the sidebar, idle for 5 s": lambda: time.sleep(5),
    }
    for name, step in steps.items():
        for _ in range(NUM_RUNS if name.startswith("run ") else 1):
            step()
            table.row(name).values.append(_longest(page))


def _longest(page: Page) -> float:
    return float(page.evaluate(_TAKE.replace("SETTLE", "1000")))


def _run(page: Page, index: int) -> None:
    page.evaluate(
        f"(() => {{ const {{ content }} = jupyterapp.shell.currentWidget; content.activeCellIndex = {index};"
        " content.mode = 'command'; content.activate(); })()"
    )
    page.press("Enter", 13, shift=True)
    page.evaluate(IDLE)
