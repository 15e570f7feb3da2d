"""Errors of training: the seconds until a planted one is named in its cell, and whether innocent loops are accused.

The loops are those of the tests (tests/checks/kinds.py, long.py and unseen.py), on two to four ranks, of a few dozen
steps each, or of hundreds. The cost is measured in pairs: the same loop on four ranks, with checks and without them.
"""

from __future__ import annotations

import itertools
import statistics
import time
from importlib.util import find_spec
from typing import Any

from benchmarks.driver import module_of_tests
from benchmarks.options import Options
from benchmarks.ours import FINAL, Client, Json, Server
from benchmarks.processes import scheduled_seconds
from benchmarks.tables import Row, Table

MOST_SECONDS = 3.0
LEAST_NAMED = 0.9
MOST_COST = 1.0  # percent
MOST_MEMORY = 1000.0  # kB
MOST_IDLE = 0.5  # ms of processor time a second, of all ranks together
IDLE_ROUNDS, IDLE_SECONDS = 3, 5.0
PAIRS = 18
STEPS = 400
# The time and the processor time of a number of steps on each rank, 100 a second: paced, so that a core is left, and as
# fast as the machine can, with so much work in a step that it takes about 10 ms there.
LOOPS = """model = DDP(net()); opt = optim.SGD(model.parameters(), lr=0.01)
def loop(number, work):
    cpu, wall = time.process_time(), time.perf_counter()
    for i in range(number):
        opt.zero_grad()
        loss_of(model(batch())).backward()
        opt.step()
        if work:
            for _ in range(work):
                torch.mm(A, A)
        else:
            time.sleep(max(0.0, wall + 0.01 * (i + 1) - time.perf_counter()))
    return time.process_time() - cpu, time.perf_counter() - wall
A = torch.randn(128, 128)
loop(20, 0)
took = loop(50, 20)[1] / 50
scale = torch.tensor([took]); dist.all_reduce(scale, dist.ReduceOp.MAX)
work = max(1, int(20 * 0.01 / scale.item()))"""
HELD = """import tracemalloc
tracemalloc.start(); loop(150, 0); found = tracemalloc.take_snapshot().statistics("filename"); tracemalloc.stop()
if rank == 0: print(sum(one.size for one in found if "parts/checks" in one.traceback[0].filename))"""
NAMES = {
    "kinds": ("an error that the rules were written with", "that the rules were written with"),
    "long": ("an error that begins after step 200", "of hundreds of steps"),
    "unseen": ("an error that no rule was written with", "that no rule was written with"),
}
PIDS = """pids = [None] * world_size
dist.all_gather_object(pids, os.getpid())
if rank == 0: print(*pids)"""
_numbers = itertools.count()


def measure(options: Options) -> list[Table]:
    """Tables of errors and of innocent loops, seen by the author of the rules and not, and of the cost."""
    if not options.ours:
        return []
    tables = []
    with Server() as server:
        for name, (error, which) in NAMES.items():
            kinds = module_of_tests(f"checks.{name}")
            errors, innocents = (
                [kind for kind in several if not kind.needs or find_spec(kind.needs)]
                for several in (kinds.WRONG, kinds.RIGHT)
            )
            wrong = Table(f"Loops with {error}, until it is named with its ranks and its line", "s", "")
            right = Table(f"Loops without an error {which}, until they have ended", "s", "")
            for kind in errors:
                wrong.row(kind.name)
            for kind in innocents:
                right.row(kind.name)
            rows = {row.system: row for row in (*wrong.rows, *right.rows)}
            _run_all(server, kinds.FIRST, [*errors, *innocents], rows)
            _judge(wrong, right)
            tables += [table for table in (wrong, right) if table.rows]
        tables += cost(server, module_of_tests("checks.kinds").FIRST)
    return tables


def _judge(wrong: Table, right: Table) -> None:
    named = sum(row.note == "" for row in wrong.rows)
    wrong.aim(f"named in {LEAST_NAMED:.0%} of {len(wrong.rows)}: {named}", named >= LEAST_NAMED * len(wrong.rows))
    longest = max((row.median for row in wrong.rows if row.values), default=0.0)
    wrong.aim(f"within {MOST_SECONDS:g} s of the begin of the error: at most {longest:.1f} s", longest <= MOST_SECONDS)
    false = sum(bool(row.note) for row in right.rows)
    right.aim(f"something is named in none of {len(right.rows)}: {false}", not false)


def _run_all(server: Server, first: str, kinds: list[Any], rows: dict[str, Row]) -> None:
    kinds = sorted(kinds, key=lambda kind: kind.num_ranks)
    for num_ranks, several in itertools.groupby(kinds, key=lambda kind: kind.num_ranks):
        page = ChecksPage(server, num_ranks)
        for kind in several:
            page.run(first)
            for ranks, code in kind.before:
                page.run(code, ranks)
            _watch_one(page, kind, rows[kind.name])
        page.end()


def _watch_one(page: ChecksPage, kind: Any, row: Row) -> None:
    kinds = getattr(kind, "kinds", ())
    seconds, state, found = page.watch(kind.code)
    right = [one for one in found if kinds and _is_right(kind, one[1])]
    if right:
        began = page.printed("if rank == 0: print(began)")[0] if "began" in kind.code else None
        row.values.append(right[0][0] if began is None else right[0][1]["since"] - began)
    elif not kinds:
        row.values.append(seconds)
    other = [check["message"] for _, check in found if check["kind"] not in kinds]
    missed = [] if right or not kinds else [f"nothing was named, the cell ended with {state}"]
    row.note = "; ".join([*other, *missed])


def _is_right(kind: Any, check: Json) -> bool:
    code = (check["line"] or {"code": ""})["code"]
    is_line = not kind.line or any(part in code for part in kind.line)
    return check["kind"] in kind.kinds and check["ranks"] == kind.ranks and is_line


def cost(server: Server, first: str, pairs: int = PAIRS) -> list[Table]:
    """What checks add to a loop of 100 steps a second on 4 ranks, in pairs that alternate; and the memory they hold."""
    page = ChecksPage(server, 4)
    page.run(first + LOOPS)
    table = Table(f"{STEPS} steps at 100 a second on 4 ranks: what checks add, in pairs", "% of the loop's time", "")
    rows = {
        0: (table.row("paced: wall time"), table.row("paced: processor time of a rank, of one core")),
        1: (table.row("as fast as it can: wall time"), table.row("as fast as it can: processor time of a rank")),
    }
    for number in range(pairs):
        for is_free, (wall, processor) in rows.items():
            told = {is_on: page.loop(is_on, is_free) for is_on in ((True, False) if number % 2 else (False, True))}
            wall.values.append(100 * (told[True][1] / told[False][1] - 1))
            processor.values.append(100 * (told[True][0] - told[False][0]) / told[False][1])
    for row in (one for pair in rows.values() for one in pair):
        row.note = f"+-{statistics.stdev(row.values) / len(row.values) ** 0.5:.2f} (standard error of the mean)"
    memory = Table("Memory that checks hold on rank 0 in step 150 of that loop", "kB", "")
    held = memory.row("of Python")
    page.switch(is_on=True)
    held.values.append(page.printed(HELD)[0] / 1000)
    memory.aim(f"under {MOST_MEMORY:g} kB: {held.median:.0f} kB", held.median < MOST_MEMORY)
    idle = _idle(page)
    page.end()
    added = {row.system: row.median for pair in rows.values() for row in pair}
    words = ", ".join(f"{name} {value:.2f} %" for name, value in added.items())
    table.aim(f"at most {MOST_COST:g} %: {words}", max(added.values()) <= MOST_COST)
    return [table, memory, idle]


def _idle(page: ChecksPage) -> Table:
    """What the ranks of a group that has trained do while no cell runs."""
    table = Table("The 4 ranks of a group that has trained, while no cell runs", "ms of processor time a second", "")
    rows = {False: table.row("without checks"), True: table.row("with checks")}
    pids = [int(pid) for pid in page.printed(PIDS)]
    for _ in range(IDLE_ROUNDS):
        for is_on, row in rows.items():
            page.switch(is_on)
            page.run("loop(20, 0); None")
            time.sleep(1.0)
            before, began = sum(map(scheduled_seconds, pids)), time.perf_counter()
            time.sleep(IDLE_SECONDS)
            used = sum(map(scheduled_seconds, pids)) - before
            row.values.append(1000 * used / (time.perf_counter() - began))
    more = rows[True].median - rows[False].median
    table.aim(f"at most {MOST_IDLE:g} ms a second more: {more:.2f} ms", more <= MOST_IDLE)
    return table


class ChecksPage(Client):
    """A client that runs cells on a group of its own, and reads what their executions have in `checks`."""

    def __init__(self, server: Server, ranks: int) -> None:
        super().__init__(server)
        self.open_channel()
        self.group: str = self.start_group(ranks, f"bench-{next(_numbers)}")["id"]
        self.wait_ready(self.group)
        self.run("import torch._dynamo")  # the first optimizer of a rank imports it, for seconds

    def end(self) -> None:
        """End the group and the connection."""
        self.end_group(self.group)
        self.close()

    def run(self, code: str, ranks: str = "all") -> str:
        """Run a cell to its end; return its id."""
        execution = self._submit(code, ranks)
        while (told := self._get(execution))["state"] not in FINAL:
            time.sleep(0.05)
        if told["state"] != "ok":
            raise RuntimeError(f"{code!r} ended with {told['state']}")
        return execution

    def watch(self, code: str) -> tuple[float, str, list[tuple[float, Json]]]:
        """Run a cell; return how long it took, its state and each check, with the seconds until it was there."""
        execution = self._submit(code, "all")
        began, found, told = time.perf_counter(), {}, {"state": "queued"}
        while told["state"] not in FINAL:
            time.sleep(0.05)
            told = self._get(execution)
            for check in told.get("checks") or ():
                found.setdefault((check["kind"], check["ranks"]), (time.perf_counter() - began, check))
        seconds = time.perf_counter() - began
        return seconds, told["state"], sorted(found.values(), key=lambda one: one[0])

    def loop(self, is_on: bool, is_free: bool) -> tuple[float, float]:
        """Return the mean processor time and the time of a loop on its ranks."""
        self.switch(is_on)
        code = f"told = torch.tensor(loop({STEPS}, {'work' if is_free else 0}))"
        cpu, wall = self.printed(f"{code}\ndist.all_reduce(told)\nif rank == 0: print(*(told / world_size).tolist())")[
            :2
        ]
        return cpu, wall

    def switch(self, is_on: bool) -> None:
        """Switch checks on or off."""
        self.must("POST", f"/groups/{self.group}/checks", {"on": is_on})

    def printed(self, code: str) -> list[float]:
        """Run a cell; return the numbers that it prints."""
        execution = self.run(code)
        view = self.must("GET", f"/groups/{self.group}/executions/{execution}")
        texts = [
            "".join(item["output"]["text"]) for item in view["items"] if item.get("output", {}).get("text") is not None
        ]
        return [float(one) for one in "".join(texts).split()]

    def _submit(self, code: str, ranks: str) -> str:
        body = {"code": code, "ranks": ranks}
        found: str = self.must("POST", f"/groups/{self.group}/executions", body)["id"]
        return found

    def _get(self, execution: str) -> Json:
        found: Json = self.must("GET", f"/groups/{self.group}/executions/{execution}")["execution"]
        return found
