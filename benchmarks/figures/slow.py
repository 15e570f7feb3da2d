"""Slow cells: the seconds until a planted cause is named, and whether innocent cells are accused.

The cells are those of tests/slow (kinds.py, unseen.py and the modules of reports), on two to four ranks.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.driver import module_of_tests
from benchmarks.options import Options
from benchmarks.ours import FINAL, Client, Json, Server
from benchmarks.tables import Row, Table

GROUPS = 3  # that are watched at a time, where cells hardly compute
MOST_SECONDS = 10.0
WATCH_SECONDS = 11.0
LEAST_NAMED = 0.9
_LISTS = (
    ("kinds", "the rules were tuned on"),
    ("unseen", "no rule was tuned on"),
    ("reported", "public reports describe"),
    ("later", "public reports describe that were read later"),
    ("latest", "public reports describe that were read last"),
)
_numbers = itertools.count()


def measure(options: Options) -> list[Table]:
    """Tables of causes and of innocent cells, tuned on and not."""
    if not options.ours:
        return []
    tables = []
    with Server() as server:
        for name, which in _LISTS:
            kinds = module_of_tests(f"slow.{name}")
            slow = Table(f"Slow cells that {which}, until the cause is named with its ranks and its line", "s", "")
            steady = Table(f"Cells without a cause that {which}, for as long as they were watched", "s", "")
            rows = {kind.name: slow.row(kind.name) for kind in kinds.SLOW}
            rows.update({kind.name: steady.row(kind.name) for kind in kinds.STEADY})
            _watch_all(server, kinds.FIRST, [*kinds.SLOW, *kinds.STEADY], rows)
            _judge(slow, steady)
            tables += [slow, steady]
    return tables


def _judge(slow: Table, steady: Table) -> None:
    right = sum(row.note == "" for row in slow.rows)
    slow.aim(f"named in {LEAST_NAMED:.0%} of {len(slow.rows)}: {right}", right >= LEAST_NAMED * len(slow.rows))
    longest = max((row.median for row in slow.rows if row.values), default=0.0)
    slow.aim(f"within {MOST_SECONDS:g} s: at most {longest:.1f} s", longest <= MOST_SECONDS)
    false = sum(bool(row.note) for row in steady.rows)
    steady.aim(f"a cause is named in none of {len(steady.rows)}: {false}", not false)


def _watch_all(server: Server, first: str, kinds: list[Any], rows: dict[str, Row]) -> None:
    """Watch cells that compute one after the other, then the rest, several groups at a time."""
    kinds = sorted(kinds, key=lambda kind: kind.num_ranks)
    _watch_several(server, first, [kind for kind in kinds if kind.computes], rows)
    rest = [kind for kind in kinds if not kind.computes]
    with ThreadPoolExecutor(GROUPS) as pool:
        parts = [rest[index::GROUPS] for index in range(GROUPS)]
        for done in [pool.submit(_watch_several, server, first, part, rows) for part in parts]:
            done.result()


def _watch_several(server: Server, first: str, kinds: list[Any], rows: dict[str, Row]) -> None:
    for num_ranks, several in itertools.groupby(kinds, key=lambda kind: kind.num_ranks):
        page = SlowPage(server, num_ranks)
        for kind in several:
            page.run(first)
            _watch_one(page, kind, rows[kind.name])
        page.end()


def _watch_one(page: SlowPage, kind: Any, row: Row) -> None:
    """Note when the cause was named that a cell has, and everything else that was named before."""
    began = time.perf_counter()
    kinds = getattr(kind, "kinds", ())
    named = page.watch(kind.code, "all" if kinds else kind.ranks, lambda cause: cause["kind"] in kinds)
    right = [seconds for seconds, cause in named if kinds and _is_right(kind, cause)]
    if right:
        row.values.append(right[0])
        return
    seconds = time.perf_counter() - began
    nothing = "nothing was named" if seconds >= WATCH_SECONDS else f"the cell ended after {seconds:.1f} s"
    # The line that takes the most of a step is a fact, and no cause.
    said = [cause["message"] for _, cause in named if kinds or cause["kind"] != "line"]
    row.note = "; ".join(said) or (nothing if kinds else "")
    if not kinds:
        row.values.append(time.perf_counter() - began)


def _is_right(kind: Any, cause: Json) -> bool:
    code = (cause["place"] or {"code": ""})["code"]
    is_line = not kind.line or any(part in code for part in kind.line)
    return cause["kind"] in kind.kinds and cause["ranks"] == kind.ranks and is_line


class SlowPage(Client):
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
