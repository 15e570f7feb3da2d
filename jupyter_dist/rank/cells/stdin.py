"""`input` and `getpass` on a rank: the clients of the cell receive the question, and its code waits for the answer."""

from __future__ import annotations

import builtins
import getpass
import itertools
from dataclasses import dataclass, field
from queue import SimpleQueue

from IPython.core.error import StdinNotImplementedError

from jupyter_dist.protocol.wire import road
from jupyter_dist.rank.guard.own import threading
from jupyter_dist.rank.output.outbox import Outbox
from jupyter_dist.rank.output.streams import Streams

from . import debuggers
from .interrupt import CurrentExecution, Interrupter

INTERRUPTIBLE = True  # cells wait here

HIDDEN = "\u00b7" * 8  # what JupyterLab shows for a password

_NOBODY = (
    "Nobody can answer {name}() here: the program that ran this cell takes no questions. Run the cell in a notebook or "
    "a terminal, set the value as a variable first, or have the program answer (allow_stdin in the docs)."
)
_NOBODY_DEBUGS = (
    "Nobody can answer the debugger here: the program that ran this cell takes no questions. Run the cell in a "
    "notebook or a terminal, or have the program answer (allow_stdin in the docs)."
)
_NO_CELL = "{name}() can only ask while a cell runs."
_IN_CHILD = "{name}() cannot ask in a child process of a rank. Ask before the process starts."
_INTERRUPTED = "The cell was interrupted: it gets no more input."
_ENDED = "The cell has ended: it gets no more input."


class NobodyDebugsError(StdinNotImplementedError):
    """No user can answer a debugger. One line: the debugger has printed its position, and its frames add nothing."""

    def __init__(self) -> None:
        super().__init__(_NOBODY_DEBUGS)

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


NobodyDebugsError.__name__ = StdinNotImplementedError.__name__


@dataclass
class _Question:
    number: int
    answer: SimpleQueue[str | EOFError] = field(default_factory=SimpleQueue)


class Stdin:
    """Sends a single question at a time; `take` and `end_cell` end the wait."""

    def __init__(self, outbox: Outbox, streams: Streams, interrupter: Interrupter) -> None:
        self._outbox = outbox
        self._streams = streams
        self._interrupter = interrupter
        self._numbers = itertools.count(1)
        self._turn = threading.Lock()  # threads of a cell ask one after the other
        self._asked: _Question | None = None

    def install(self) -> None:
        """Replace the functions of Python that read from a terminal."""
        builtins.input = self.input
        getpass.getpass = self.getpass

    # -- any thread of a cell -----------------------------------------------------------------------

    def input(self, prompt: object = "", /) -> str:
        """Ask for a line, and return it without its line break."""
        return self._ask("input", str(prompt), password=False)

    def getpass(self, prompt: object = "Password: ", stream: object = None, *, echo_char: object = None) -> str:
        """Ask for a password, which is shown nowhere."""
        return self._ask("getpass", str(prompt), password=True)

    def _ask(self, name: str, prompt: str, *, password: bool) -> str:
        execution = self._asker(name)
        with self._turn:
            answer = self._wait(execution, prompt, password)
        if isinstance(answer, EOFError):
            raise answer
        self._streams.flush()
        self._outbox.write("stdout", f"{prompt}{HIDDEN if password else answer}\n".encode("utf-8", "backslashreplace"))
        return answer

    def _asker(self, name: str) -> CurrentExecution:
        """Return the running cell, if it may ask."""
        if self._outbox.in_child:
            raise StdinNotImplementedError(_IN_CHILD.format(name=name))
        execution = self._interrupter.current
        if execution is None:
            raise StdinNotImplementedError(_NO_CELL.format(name=name))
        if not execution.allow_stdin:
            raise NobodyDebugsError() if debuggers.at_prompt() else StdinNotImplementedError(_NOBODY.format(name=name))
        if execution.interrupt_at is not None:  # debuggers catch KeyboardInterrupt, and ask again
            raise EOFError(_INTERRUPTED)
        return execution

    def _wait(self, execution: CurrentExecution, prompt: str, password: bool) -> str | EOFError:
        question = _Question(next(self._numbers))
        self._streams.flush()
        try:
            self._asked = question
            self._send("input", execution, question, road.InputQuestion(prompt=_shown(prompt), password=password))
            if self._interrupter.current is not execution:  # it ended meanwhile, without this thread
                return EOFError(_ENDED)
            return question.answer.get()
        finally:
            if self._asked is question:  # interrupted: there was no answer
                self._asked = None
                self._send("input_over", execution, question, {})

    def _send(self, kind: str, execution: CurrentExecution, question: _Question, content: object) -> None:
        header = {"t": "from_rank", "kind": kind, "execution_id": execution.execution_id, "number": question.number}
        payload = road.FROM_RANK[kind].encode(content)
        road.FROM_RANK[kind].decode(payload)  # a prompt of a class of the cell's may be another in JSON
        self._outbox.send(header, payload)

    # -- side thread, and the end of a cell ---------------------------------------------------------

    def take(self, number: int, answer: road.InputAnswer) -> None:
        """Take the answer to a question; ignored if the question no longer waits."""
        asked = self._asked
        if asked is not None and asked.number == number:
            self._asked = None
            text = answer["text"]
            asked.answer.put(EOFError("end of input") if text is None else text)

    def end_cell(self) -> None:
        """End the wait of a thread that the cell has left asking: the question goes with the cell."""
        asked, self._asked = self._asked, None
        if asked is not None:
            asked.answer.put(EOFError(_ENDED))


def _shown(prompt: str) -> str:
    """Return the prompt, or the end of a long prompt; the output has the whole prompt, with the answer."""
    limit = road.MAX_PROMPT_CHARS
    return prompt if len(prompt) <= limit else f"\u2026{prompt[1 - limit :]}"
