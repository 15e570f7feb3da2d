"""Slow cells: the seconds until a planted cause is named, whether innocent cells are accused, and the cost of watching.

The cells are those of the tests (tests/pace/kinds.py and unseen.py), on two to four ranks. The cost is measured on
eight, in pairs: silent cells are not watched.
"""

from __future__ import annotations

import itertools
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.driver import module_of_tests
from benchmarks.options import Options
from benchmarks.ours import FINAL, Client, Json, Server
from benchmarks.processes import scheduled_seconds
from benchmarks.tables import Row, Table
from jupyter_dist.agent.watch.pace.clocks import Clocks
from jupyter_dist.agent.watch.pace.reports import read_report
from jupyter_dist.agent.watch.pacewatch import LEAST_ARRIVALS, MANY_SECONDS, MAX_ARRIVALS, WatchedCell

WATCHED_RANKS = 8
GROUPS = 3  # that are watched at a time, where cells hardly compute
MOST_SECONDS = 10.0
WATCH_SECONDS = 11.0
LEAST_NAMED = 0.9
MOST_PERCENT, MOST_LOST_PERCENT = 0.5, 1.0
PAIRS, FIRST_STEPS, STEPS = 2, 1500, 3000  # a cell is looked at more often in its first seconds
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
        if rank == 0: os.mkdir("HOME/halfway-TURN")
    dist.all_reduce(values)
    time.sleep(0.008)
marks.append((used(), time.perf_counter()))
open(f"HOME/marks-{rank}", "w").write(json.dumps(marks))
"""
MANY_RANKS, MOST_OF_AGENT = 256, 2.0
_numbers = itertools.count()


def measure(options: Options) -> list[Table]:
    """Tables of causes and of innocent cells, tuned on and not, and two of cost."""
    if not options.ours:
        return []
    tables = []
    with Server() as server:
        for name, which in (("kinds", "the rules were tuned on"), ("unseen", "no rule was tuned on")):
            kinds = module_of_tests(f"pace.{name}")
            slow = Table(f"Slow cells that {which}, until the cause is named with its ranks and its line", "s", "")
            steady = Table(f"Cells without a cause that {which}, for as long as they were watched", "s", "")
            rows = {kind.name: slow.row(kind.name) for kind in kinds.SLOW}
            rows.update({kind.name: steady.row(kind.name) for kind in kinds.STEADY})
            _watch_all(server, kinds.FIRST, [*kinds.SLOW, *kinds.STEADY], rows)
            _judge(slow, steady)
            tables += [slow, steady]
    return [*tables, *_costs(module_of_tests("pace.kinds").FIRST)]


def _judge(slow: Table, steady: Table) -> None:
    right = sum(row.note == "" for row in slow.rows)
    slow.aim(f"named in {LEAST_NAMED:.0%} of {len(slow.rows)}: {right}", right >= LEAST_NAMED * len(slow.rows))
    longest = max((row.median for row in slow.rows if row.values), default=0.0)
    slow.aim(f"within {MOST_SECONDS:g} s: at most {longest:.1f} s", longest <= MOST_SECONDS)
    false = sum(bool(row.note) for row in steady.rows)
    steady.aim(f"a cause is named in none of {len(steady.rows)}: {false}", not false)


def _watch_all(server: Server, first: str, kinds: list[Any], rows: dict[str, Row]) -> None:
    """Watch cells that compute one after the other, then the rest, several groups at a time."""
    _watch_several(server, first, [kind for kind in kinds if kind.computes], rows)
    rest = sorted((kind for kind in kinds if not kind.computes), key=lambda kind: kind.num_ranks)
    with ThreadPoolExecutor(GROUPS) as pool:
        parts = [rest[index::GROUPS] for index in range(GROUPS)]
        for done in [pool.submit(_watch_several, server, first, part, rows) for part in parts]:
            done.result()


def _watch_several(server: Server, first: str, kinds: list[Any], rows: dict[str, Row]) -> None:
    for num_ranks, several in itertools.groupby(kinds, key=lambda kind: kind.num_ranks):
        page = _SlowPage(server, num_ranks)
        for kind in several:
            page.run(first)
            _watch_one(page, kind, rows[kind.name])
        page.end()


def _watch_one(page: _SlowPage, kind: Any, row: Row) -> None:
    """Note when the cause was named that a cell has, and everything else that was named before."""
    began = time.perf_counter()
    kinds = getattr(kind, "kinds", ())
    named = page.watch(kind.code, "all" if kinds else kind.ranks, lambda cause: cause["kind"] in kinds)
    right = [seconds for seconds, cause in named if kinds and _is_right(kind, cause)]
    if right:
        row.values.append(right[0])
        return
    row.note = "; ".join(cause["message"] for _, cause in named) or ("nothing was named" if kinds else "")
    if not kinds:
        row.values.append(time.perf_counter() - began)


def _is_right(kind: Any, cause: Json) -> bool:
    code = (cause["place"] or {"code": ""})["code"]
    is_line = not kind.line or any(part in code for part in kind.line)
    return cause["kind"] in kind.kinds and cause["ranks"] == kind.ranks and is_line


def _costs(first: str) -> list[Table]:
    """What watching costs on eight ranks, and what judging costs the agent of many."""
    cost = Table(f"Watching a loop of 100 steps a second on {WATCHED_RANKS} ranks", "%", "")
    used: list[tuple[float, float]] = []
    lost = []
    with Server() as server:
        page = _SlowPage(server, WATCHED_RANKS)
        page.run(first)
        agent = server.agent_of(page.group)
        for turn in range(PAIRS):
            plain, watched = (_loop(server, page, agent, silent, f"{turn}{silent}") for silent in (True, False))
            used.append((100 * (watched[0] - plain[0]), 100 * (watched[1] - plain[1])))
            lost.append(100 * (watched[2] - plain[2]) / plain[2])
        page.end()
    early, later = (statistics.median(part) for part in zip(*used, strict=True))
    cost.row(f"of a core, in the first {FIRST_STEPS // 100} s").values.extend(one for one, _ in used)
    cost.row("of a core, later").values.extend(one for _, one in used)
    cost.row("of the steps a second").values.extend(lost)
    cost.aim(
        f"under {MOST_PERCENT:g} % of a core once it runs: {later:.2f} %, at first {early:.2f} %", later < MOST_PERCENT
    )
    slower = statistics.median(lost)
    cost.aim(f"under {MOST_LOST_PERCENT:g} % slower: {slower:.2f} %", slower < MOST_LOST_PERCENT)
    agent_cost = Table(f"Judging a cell of {MANY_RANKS} ranks, a look each {MANY_SECONDS:g} s", "% of a core", "")
    agent_cost.row("the agent").values.extend(_judging())
    most = statistics.median(agent_cost.rows[0].values)
    agent_cost.aim(f"under {MOST_OF_AGENT:g} % of a core: {most:.2f} %", most < MOST_OF_AGENT)
    return [cost, agent_cost]


def _loop(server: Server, page: _SlowPage, agent: int, silent: bool, turn: str) -> tuple[float, float, float]:
    """Return the cores that side threads and agent use in both parts of a loop, and its seconds."""
    code = STEP
    for name, value in (("FIRST_STEPS", FIRST_STEPS), ("STEPS", STEPS), ("HOME", server.home), ("TURN", turn)):
        code = code.replace(name, str(value))
    of_agent = [scheduled_seconds(agent)]
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(page.run, code, silent)
        while not (server.home / f"halfway-{turn}").exists() and not running.done():
            time.sleep(0.05)
        of_agent.append(scheduled_seconds(agent))
        running.result()
    of_agent.append(scheduled_seconds(agent))
    marks = [json.loads((server.home / f"marks-{rank}").read_text()) for rank in range(WATCHED_RANKS)]
    parts = []
    for part in range(2):
        seconds = max(one[part + 1][1] - one[part][1] for one in marks)
        of_ranks = sum(one[part + 1][0] - one[part][0] for one in marks)
        parts.append((of_ranks + of_agent[part + 1] - of_agent[part]) / seconds)
    return parts[0], parts[1], max(one[2][1] - one[0][1] for one in marks)


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
    return json.dumps({**answer, **numbers, "device": [None, None], "memory": memory, "grown": [], "steps": []})


class _SlowPage(Client):
    """A page that follows cells of a group."""

    def __init__(self, server: Server, ranks: int) -> None:
        super().__init__(server)
        self.open_channel()
        self.group: str = self.start_group(ranks, f"bench-{next(_numbers)}")["id"]
        self.wait_ready(self.group)

    def end(self) -> None:
        """End the group and the connection."""
        self.end_group(self.group)
        self.close()

    def run(self, code: str, silent: bool = False) -> None:
        """Run a cell to its end."""
        execution = self._submit(code, "all", silent)
        while (told := self._get(execution))["state"] not in FINAL:
            time.sleep(0.1)
        if told["state"] != "ok":
            raise RuntimeError(f"{code!r} ended with {told['state']}")

    def watch(self, code: str, ranks: str, is_enough: Any) -> list[tuple[float, Json]]:
        """Return what a cell was accused of, with the seconds until then; it is interrupted after a while."""
        execution = self._submit(code, ranks)
        began, found = time.perf_counter(), {}
        while (told := self._get(execution))["state"] not in FINAL and time.perf_counter() - began < WATCH_SECONDS:
            for cause in told.get("slowness") or ():
                found.setdefault((cause["kind"], cause["ranks"]), (time.perf_counter() - began, cause))
            if any(is_enough(cause) for _, cause in found.values()):
                break
            time.sleep(0.1)
        self.must("POST", f"/groups/{self.group}/interrupt", {"ranks": "all"})
        while self._get(execution)["state"] not in FINAL:
            time.sleep(0.1)
        return sorted(found.values(), key=lambda one: one[0])

    def _submit(self, code: str, ranks: str, silent: bool = False) -> str:
        body = {"code": code, "ranks": ranks, "silent": silent}
        execution: Json = self.must("POST", f"/groups/{self.group}/executions", body)
        return str(execution["id"])

    def _get(self, execution: str) -> Json:
        view: Json = self.must("GET", f"/groups/{self.group}/executions/{execution}")
        told: Json = view["execution"]
        return told
