"""Hangs: the seconds until each kind has its verdict, and whether an innocent cell ever gets one; what watching costs.

The cells are those of tests/hangs (kinds.py and the modules of reports), on four ranks; the cost is that of eight.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.driver import module_of_tests
from benchmarks.options import Options
from benchmarks.ours import FINAL, Client, Json, Server
from benchmarks.processes import descendants, scheduled_seconds
from benchmarks.tables import Table

MODULES = {
    "hanging.py": "import time\nimport torch.distributed as dist\ndef reduce(tensor):\n    dist.all_reduce(tensor)\n\n"
    "def later(tensor):\n    time.sleep(2.5)\n    dist.all_reduce(tensor)\n",
    "slow_import.py": "import time; time.sleep(3)\n",
}
RANKS = 4
WATCHED_RANKS = 8
MOST_SECONDS = 5.0
MOST_PERCENT = 0.5
VERDICT_SECONDS = 60.0
LOOKS, GAP_SECONDS = 100, 0.05
# As parts/hangs/agent/hangwatch.py has them: a look each so often while a cell runs, and a second one if a rank waits.
LOOK_SECONDS, CONFIRM_SECONDS = 3.0, 0.7


def measure(options: Options) -> list[Table]:
    """Two tables of verdicts, and one of cost."""
    if not options.ours:
        return []
    lists = [module_of_tests(f"hangs.{name}") for name in ("kinds", "reported", "later", "latest")]
    hangs = Table(f"A cell that cannot end on {RANKS} ranks, from its start until its verdict", "s", "")
    innocent = Table(f"Cells that look like it, on {RANKS} ranks, until they have ended", "s", "")
    cost = Table(f"Watching a cell on {WATCHED_RANKS} ranks", "% of a core", "")
    with Server() as server:
        page = _Page(server, RANKS)
        for kind in (kind for kinds in lists for kind in kinds.HANGS if kind.verdict == "cannot_end"):
            _hang(page, kind, hangs)
        for kind in (kind for kinds in lists for kind in kinds.INNOCENT):
            _innocent(page, kind, innocent)
        page.end()
    with Server() as server:
        watched = _Page(server, WATCHED_RANKS)
        _cost(server, watched, cost)
        watched.end()
    right = sum(row.note == "" for row in hangs.rows)
    hangs.aim(f"the verdict of all {len(hangs.rows)}: {right}", right == len(hangs.rows))
    longest = max(row.median for row in hangs.rows if row.values)
    hangs.aim(f"within {MOST_SECONDS:g} s: at most {longest:.1f} s", longest <= MOST_SECONDS)
    false = sum(bool(row.note) for row in innocent.rows)
    innocent.aim(f"none of {len(innocent.rows)} is reported as a hang: {false}", not false)
    return [hangs, innocent, cost]


def _hang(page: _Page, kind: Any, table: Table) -> None:
    row = table.row(kind.name)
    if kind.first:
        page.run(kind.first)
    found = page.until_verdict(kind.code, kind.ranks)
    if found is None:
        row.note = "no verdict"
        return
    seconds, verdict = found
    row.values.append(seconds)
    if verdict["reason"] != kind.reason:
        row.note = f"{verdict['reason']}, not {kind.reason}"


def _innocent(page: _Page, kind: Any, table: Table) -> None:
    row = table.row(kind.name)
    if kind.first:
        page.run(kind.first)
    began = time.perf_counter()
    accused = page.run(kind.code, kind.ranks)
    row.values.append(time.perf_counter() - began)
    if accused:
        row.note = f"reported as a hang: {accused}"


def _cost(server: Server, page: _Page, table: Table) -> None:
    """The processor time of a look at all ranks, as often as the agent looks."""
    agent = server.agent_of(page.group)
    looking = page.look_seconds(agent)
    table.row("looks while a cell computes").values.append(100 * looking / LOOK_SECONDS)
    both = 100 * 2 * looking / (LOOK_SECONDS + CONFIRM_SECONDS)
    table.row("looks while ranks wait for others").values.append(both)
    table.row("looks while ranks wait for others").note = f"{1000 * looking:.2f} ms a look, agent and ranks together"
    table.aim(f"under {MOST_PERCENT:g} % of a core: {both:.2f} %", both < MOST_PERCENT)


class _Page(Client):
    """A page that follows cells of a group."""

    def __init__(self, server: Server, ranks: int) -> None:
        super().__init__(server)
        for name, text in MODULES.items():
            (server.home / name).write_text(text)
        self.open_channel()
        self.group: str = self.start_group(ranks)["id"]
        self.wait_ready(self.group)
        self.cell(self.group, f"import sys; sys.path.insert(0, {str(server.home)!r})")

    def end(self) -> None:
        """End the group and the connection."""
        self.end_group(self.group)
        self.close()

    def run(self, code: str, ranks: str = "all") -> str:
        """Run a cell to its end; return what a verdict said that it cannot end, if any did."""
        execution = self._submit(code, ranks)
        accused = ""
        while (told := self._next(execution))["state"] not in FINAL:
            verdict = told.get("verdict") or {}
            accused = verdict["message"] if verdict.get("kind") == "cannot_end" else accused
        self.unsubscribe("execution", group=self.group, execution=execution)
        if told["state"] != "ok":
            raise RuntimeError(f"{code!r} ended with {told['state']}")
        return accused

    def until_verdict(self, code: str, ranks: str) -> tuple[float, Json] | None:
        """Return the seconds until the cell has its verdict, and that; the cell is interrupted."""
        execution = self._submit(code, ranks)
        began, found = time.perf_counter(), None
        while found is None and time.perf_counter() - began < VERDICT_SECONDS:
            told = self._next(execution)
            verdict = told.get("verdict") or {}
            if verdict.get("kind") == "cannot_end":
                found = time.perf_counter() - began, verdict
        self.must("POST", f"/groups/{self.group}/interrupt", {"ranks": "all"})
        while self._next(execution)["state"] not in FINAL:
            pass
        self.unsubscribe("execution", group=self.group, execution=execution)
        self.run("dist.barrier()")
        return found

    def look_seconds(self, agent: int) -> float:
        """Return the processor seconds that one look at all ranks takes, of the agent and its ranks."""
        execution = self._submit("import time; time.sleep(1000)", "all")
        time.sleep(1.0)
        idle, idle_elapsed = _used(agent, lambda: time.sleep(LOOKS * GAP_SECONDS))
        looking, elapsed = _used(agent, self._look_often)
        self.must("POST", f"/groups/{self.group}/interrupt", {"ranks": "all"})
        while self._next(execution)["state"] not in FINAL:
            pass
        return max(0.0, looking - idle * elapsed / idle_elapsed) / LOOKS

    def _look_often(self) -> None:
        for _ in range(LOOKS):
            self.must("GET", f"/groups/{self.group}/stacks")
            time.sleep(GAP_SECONDS)

    def _submit(self, code: str, ranks: str) -> str:
        body = {"code": code, "ranks": ranks}
        execution: Json = self.must("POST", f"/groups/{self.group}/executions", body)
        self.subscribe("execution", group=self.group, execution=execution["id"], since=0)
        return str(execution["id"])

    def _next(self, execution: str) -> Json:
        """Return the execution when it is told the next time."""
        told: Json = self.receive(
            lambda message: message["type"] == "execution" and message["execution"]["id"] == execution
        )["execution"]
        return told


def _used(agent: int, do: Callable[[], None]) -> tuple[float, float]:
    """Return the processor seconds that the agent and all below it use meanwhile, and how long that is."""
    members = [agent, *descendants(agent)]
    before, began = sum(map(scheduled_seconds, members)), time.perf_counter()
    do()
    elapsed = time.perf_counter() - began
    return sum(map(scheduled_seconds, members)) - before, elapsed
