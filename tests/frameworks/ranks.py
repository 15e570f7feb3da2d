"""Real ranks that run cells with real frameworks in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.harness import AgentClient, AgentProcess
from libraries import preloading
from waits import PATIENCE

from jupyter_dist.rank.start.preload import OPTIONAL

ANSI = re.compile(r"\x1b\[[0-9;]*m")
CELL_SECONDS = 3 * PATIENCE  # the first cell of a framework imports it


@dataclass
class Said:
    """What one cell said, rank by rank."""

    state: str
    out: list[str]
    err: list[str]


class Ranks:
    """A group of two."""

    def __init__(self, agent: AgentClient) -> None:
        self.agent = agent

    def cell(self, code: str, ranks: tuple[int, ...] = (0, 1)) -> Said:
        """Run a cell until it ends, with any outcome."""
        execution_id = self.agent.submit(code, ranks)
        return self.said(execution_id, ranks)

    def said(self, execution_id: str, ranks: tuple[int, ...] = (0, 1)) -> Said:
        ended = self.agent.ended(execution_id, CELL_SECONDS)
        texts = {name: [self.agent.text(rank, execution_id, name) for rank in ranks] for name in ("stdout", "stderr")}
        return Said(ended["state"], texts["stdout"], texts["stderr"])

    def run(self, code: str, ranks: tuple[int, ...] = (0, 1)) -> list[str]:
        """Run a cell that must end well; return what each rank printed."""
        said = self.cell(code, ranks)
        assert said.state == "ok", self.errors() or said
        return said.out

    def agree(self, code: str) -> str:
        """Run a cell that must end well, and print the same on both ranks."""
        first, second = self.run(code)
        assert first == second
        return first.rstrip("\n")

    def continues_after_hangs(self, make: str) -> None:
        """Hang in a step of training and interrupt it, three times: the losses are those of an undisturbed run.

        Args:
            make: code that defines `make()`, which makes a new model, and `step(number)`, which returns the loss.
        """
        undisturbed = self.run(f"{make}\nmake()\nprint([step(number) for number in range(4)])")
        self.run("make()\nlosses = [step(0)]")
        for number in (1, 2, 3):
            hung = self.agent.submit("if rank == 0: step(100)", [0, 1])
            self.agent.wait(lambda: (self.agent.group["ranks"][0]["message"] or "").startswith("Waits in "))
            self.agent.request("interrupt", ranks=[0, 1])
            assert self.said(hung).state == "interrupted"
            self.run(f"losses.append(step({number}))")
        assert self.run("print(losses)") == undisturbed

    def errors(self) -> str:
        """The errors of the last cell that had any, with their tracebacks."""
        found = [(header["execution_id"], data) for header, data in self.agent.records if header["kind"] == "error"]
        errors = [json.loads(data) for execution_id, data in found if execution_id == found[-1][0]]
        return ANSI.sub("", "\n".join(line for error in errors for line in error["traceback"]))[-3000:]

    def wait_note(self, text: str) -> None:
        """Wait until the group says so."""
        self.agent.wait(lambda: text in (self.agent.group["note"] or ""))

    def log(self, rank: int) -> str:
        """What the rank said outside of cells."""
        wanted = {"rank": rank, "kind": "stream", "name": "stderr", "execution_id": None}
        return b"".join(data for header, data in self.agent.records if wanted.items() <= header.items()).decode()


@contextmanager
def two_ranks(
    directory: Path, preload: Sequence[str] = (), libraries: Sequence[str] = (), **spec: object
) -> Iterator[Ranks]:
    everything = preloading([*OPTIONAL, *libraries])  # as users' zygotes do, and what each rank would import by itself
    with AgentProcess(directory / "group", everything) as agent:
        agent.start(preload=list(preload), **spec)
        # With a thread, say, each rank would import all of it: half a minute of CPU.
        assert "fresh processes" not in (agent.group["note"] or ""), agent.group["note"]
        yield Ranks(agent)
