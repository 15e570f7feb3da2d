"""How much CPU time each test file used, with all its processes: what makes the suite long on a machine with two cores."""

from __future__ import annotations

import contextlib
import json
import os
import resource
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from house.parts import CPU_SECONDS, cpu_seconds

from jupyter_dist.system.processes import descendants

SHOWN = 12
_TICK = os.sysconf("SC_CLK_TCK")
_SPENT = pytest.StashKey["Counter[str]"]()


def spent_seconds() -> float:
    """Return the CPU time of this process, of all that have ended below it, and of all that run below it."""
    total = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / _TICK
    return total


class CpuTimes:
    """Adds up the time of each file; workers send theirs to the process that prints."""

    def __init__(self, config: pytest.Config) -> None:
        self._spent = config.stash[_SPENT] = Counter()
        self._since = spent_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        result = yield
        if nextitem is None or nextitem.path != item.path:
            now = spent_seconds()
            self._spent[item.nodeid.partition("::")[0]] += max(now - self._since, 0.0)
            self._since = now
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["cpu"] = dict(self._spent)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._spent.update(getattr(node, "workeroutput", {}).get("cpu", {}))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        whole = sum(self._spent.values())
        terminalreporter.section(f"CPU time by file: {whole / 60:.1f} min in all")
        for file, seconds in self._spent.most_common(SHOWN):
            terminalreporter.line(f"{seconds:7.1f} s  {file}")
        options = terminalreporter.config.option
        if CPU_SECONDS.parent.is_dir() and not (options.keyword or any("::" in path for path in options.file_or_dir)):
            CPU_SECONDS.write_text(json.dumps({**cpu_seconds(), **self._spent}))
