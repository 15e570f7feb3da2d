"""The cost of watching the pace of a cell: on eight ranks, in pairs of a watched and a silent cell, and on many."""

from __future__ import annotations

import itertools
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

from benchmarks.options import Options
from benchmarks.ours import FINAL, Client, Server
from benchmarks.processes import scheduled_seconds, wait_until
from benchmarks.tables import Table
from jupyter_dist.parts.slow.agent.asking.clocks import Clocks
from jupyter_dist.parts.slow.agent.asking.reports import read_report
from jupyter_dist.parts.slow.agent.pacewatch import LEAST_ARRIVALS, MANY_SECONDS, MAX_ARRIVALS, WatchedCell

from .slow import SlowPage
from .thousand import simulated_group

WATCHED_RANKS = 8
MOST_PERCENT, MOST_LOST_PERCENT = 0.5, 1.0
PAIRS = 4  # of a watched and a silent cell in one group, in turns: first the one, then the other
FIRST_STEPS, STEPS = 1000, 3000  # a cell is looked at more often in its first seconds
STEP = """import json, os, threading, time
side = next(thread for thread in threading.enumerate() if "side thread" in thread.name)
def used():
    return int(open(f"/proc/self/task/{side.native_id}/schedstat").read().split()[0]) / 1e9
values = torch.ones(100)
dist.barrier()
marks = [(used(), time.perf_counter())]
for step in range(STEPS):
    if step == FIRST_STEPS:
        marks.append((used(), time.perf_counter()))
        if rank == 0: os.mkdir("HALFWAY")
    dist.all_reduce(values)
    time.sleep(0.008)
marks.append((used(), time.perf_counter()))
open(f"HOME/marks-{rank}", "w").write(json.dumps(marks))
"""
MANY_RANKS, MOST_OF_AGENT, MOST_OF_SERVER = 256, 2.0, 2.0
RANKS_PER_NODE = 8
LOOP_SECONDS, QUICK_SECONDS = 55.0, 15.0  # of simulated ranks; in the first seconds there are more looks
PAGE_SECONDS = 2.5  # of a page that shows where the time goes (labextension/src/parts/slow/pace/pacemodel.ts)
_numbers = itertools.count()


def measure(options: Options) -> list[Table]:
    """What watching costs on eight ranks, and what judging costs the agent of many."""
    if not options.ours:
        return []
    pairs = []
    with Server() as server:
        page = SlowPage(server, WATCHED_RANKS)
        watched = _Loops(server, page, silent=False)
        silent = _Loops(server, page, silent=True)
        silent.run()  # what only the first loop of a group takes
        for turn in range(PAIRS):
            first, second = (silent, watched) if turn % 2 else (watched, silent)
            found = {loops: loops.run() for loops in (first, second)}
            pairs.append((found[watched], found[silent]))
        page.end()
    cost = _costs(pairs)
    agent_cost = Table(f"Judging a cell of {MANY_RANKS} ranks, a look each {MANY_SECONDS:g} s", "% of a core", "")
    agent_cost.row("the agent").values.extend(_judging())
    most = statistics.median(agent_cost.rows[0].values)
    agent_cost.aim(f"under {MOST_OF_AGENT:g} % of a core: {most:.2f} %", most < MOST_OF_AGENT)
    return [cost, agent_cost, _serving()]


class _Loop(NamedTuple):
    early: float  # cores that side threads and agent use
    later: float
    seconds: float


def _costs(pairs: list[tuple[_Loop, _Loop]]) -> Table:
    """Return the table of what watched cells use more than silent ones, pair by pair."""
    cost = Table(f"Watching a loop of 100 steps a second on {WATCHED_RANKS} ranks", "%", "")
    early, later = cost.row(f"of a core, in the first {FIRST_STEPS // 100} s"), cost.row("of a core, later")
    lost = cost.row("slower")
    for watched, silent in pairs:
        early.values.append(100 * (watched.early - silent.early))
        later.values.append(100 * (watched.later - silent.later))
        lost.values.append(100 * (watched.seconds - silent.seconds) / silent.seconds)
    words = f"under {MOST_PERCENT:g} % of a core once it runs: {later.median:.2f} %, at first {early.median:.2f} %"
    cost.aim(words, later.median < MOST_PERCENT)
    cost.aim(f"under {MOST_LOST_PERCENT:g} % slower: {lost.median:.2f} %", lost.median < MOST_LOST_PERCENT)
    return cost


class _Loops:
    """A loop that runs again and again in a group: watched, or silent, which is not watched."""

    def __init__(self, server: Server, page: SlowPage, *, silent: bool) -> None:
        self._server = server
        self._page = page
        self._agent = server.agent_of(page.group)
        self._silent = silent

    def run(self) -> _Loop:
        """Run the loop once."""
        home = self._server.home
        halfway = home / f"halfway-{next(_numbers)}"
        code = STEP
        for name, value in (("FIRST_STEPS", FIRST_STEPS), ("STEPS", STEPS), ("HALFWAY", halfway), ("HOME", home)):
            code = code.replace(name, str(value))
        of_agent = [self._used()]
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._page.run, code, self._silent)
            while not halfway.exists() and not running.done():
                time.sleep(0.05)
            of_agent.append(self._used())
            running.result()
        of_agent.append(self._used())
        marks = [json.loads((home / f"marks-{rank}").read_text()) for rank in range(WATCHED_RANKS)]
        parts = []
        for part in range(2):
            seconds = max(one[part + 1][1] - one[part][1] for one in marks)
            of_ranks = sum(one[part + 1][0] - one[part][0] for one in marks)
            parts.append((of_ranks + of_agent[part + 1] - of_agent[part]) / seconds)
        return _Loop(parts[0], parts[1], max(one[2][1] - one[0][1] for one in marks))

    def _used(self) -> float:
        return scheduled_seconds(self._agent)


def _judging() -> list[float]:
    """Return the percent of a core that looks at many ranks take: reading the answers, and judging."""
    answers = {rank: _answer(rank) for rank in range(MANY_RANKS)}
    cell, clocks, hosts = WatchedCell("e"), Clocks(), dict.fromkeys(range(MANY_RANKS), "")
    found = []
    for look in range(8):
        began = time.process_time()
        reports = {rank: read_report(json.loads(answer)) for rank, answer in answers.items()}
        cell.take(MANY_SECONDS * look, {rank: one for rank, one in reports.items() if one}, clocks, hosts)
        found.append(100 * (time.process_time() - began) / MANY_SECONDS)
    return found


def _serving() -> Table:
    """Return the table of what a watched cell of many simulated ranks costs, more than one that is not watched."""
    table = Table(
        f"A slow cell of {MANY_RANKS} simulated ranks, {RANKS_PER_NODE} on each node, with its details in a page",
        "% of a core",
        "",
    )
    with Server() as server, closing(Client(server)) as page:
        page.open_channel()
        with simulated_group(page, MANY_RANKS // RANKS_PER_NODE, RANKS_PER_NODE) as group:
            processes = {"the server": server.pid, "the agent": server.agent_of(group)}
            silent, watched = (_used_in_loop(page, group, processes, silent) for silent in (True, False))
            page.end_group(group)
    for name in processes:
        table.row(name).values.append(100 * (watched[name] - silent[name]))
    of_server = table.row("the server").median
    table.aim(f"under {MOST_OF_SERVER:g} % of a core for the server: {of_server:.2f} %", of_server < MOST_OF_SERVER)
    return table


def _used_in_loop(page: Client, group: str, processes: dict[str, int], silent: bool) -> dict[str, float]:
    """Return the cores that processes use while ranks run a loop; a page shows where its time goes if it is watched."""
    body = {"code": f"runs_on = {LOOP_SECONDS}", "ranks": "all", "silent": silent}
    path = f"/groups/{group}/executions/{page.must('POST', f'/groups/{group}/executions', body)['id']}"
    time.sleep(QUICK_SECONDS)
    began, before = time.monotonic(), {name: scheduled_seconds(pid) for name, pid in processes.items()}
    while time.monotonic() - began < LOOP_SECONDS - QUICK_SECONDS - 2 * PAGE_SECONDS:
        time.sleep(PAGE_SECONDS)
        if not silent and not page.must("GET", f"{path}/pace")["causes"]:
            raise RuntimeError("the cause is not named")
    seconds = time.monotonic() - began
    used = {name: (scheduled_seconds(pid) - before[name]) / seconds for name, pid in processes.items()}
    wait_until(lambda: page.must("GET", path)["execution"]["state"] in FINAL, LOOP_SECONDS, "the loop has ended")
    return used


def _answer(rank: int) -> str:
    """Return an answer of a rank as they come, with as many rows as there are of so many ranks."""
    line = ["<ipython-input-7-0123456789ab>", 3, "<module>", "loss.backward()"]
    number = max(LEAST_ARRIVALS, MAX_ARRIVALS // MANY_RANKS)
    rows = [["0", "all_reduce", 4096, step, 10_000 * step + 100 * (rank % 7), None, False] for step in range(number)]
    samples = [
        [activity, 10, 1000, line, None, False] for activity in ("wait", "backward", "run", "optimizer", "input")
    ]
    memory = {"resident_bytes": 1 << 30, "allocated_bytes": None}
    numbers = dict.fromkeys(("compiles", "cpu_seconds", "run_delay_seconds", "stopped_seconds"), 0)
    answer = {"seconds": MANY_SECONDS, "now": 0, "samples": samples, "arrivals": rows, "collections": [0, 0.0]}
    return json.dumps(
        {**answer, **numbers, "device": [None, None], "memory": memory, "grown": [], "updates": [], "steps": []}
    )
