"""Runs a cell of a client: its magics, its code on ranks, their output, and their requests for input. Blocking."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from typing import Any

from jupyter_dist.client import Execution, JupyterDistError, RankError, Result
from jupyter_dist.client.answers.infos import InputPromptInfo
from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.client.bundles.outputs import BundleOutputs, Emit
from jupyter_dist.magics.failures import DistError
from jupyter_dist.protocol.ranks import RankSet

from .host import CELL, KernelHost
from .lines import KernelMagics, parts
from .outputs import PRINTED, PlainOutputs, StreamFile, error_content

# The options of an execute_request: `allow_stdin`, `silent`, `store_history`; from a page, also its notebook and cell.
Fields = dict[str, Any]
Counted = Callable[[int], None]

EXPRESSIONS_SECONDS = 10.0  # an idle rank answers at once


class CellRunner:
    """Runs a cell in a thread; other threads call `interrupt` and `answer`.

    The thread of a cell that the user has given up keeps running beside the next cell's thread, so neither may change
    the objects that the other uses.
    """

    def __init__(self, host: KernelHost, magics: KernelMagics, emit: Emit, ask: Callable[[str, bool], None]) -> None:
        self._host = host
        self._magics = magics
        self.emit = emit
        self._ask = ask
        self._execution: Execution | None = None
        self._question: InputPromptInfo | None = None
        self._asked: list[InputPromptInfo] = []
        self._answered = -1  # the last question that was answered here
        self._is_interrupted = False
        self.show: PlainOutputs | BundleOutputs | None = None
        self._ranks = "all"
        self._first_rank = 0  # of the ranks that the cell ran on
        self._is_shown = False  # by a page, with its error
        self.fields: Fields = {}
        self.count: int | None = None  # the ranks' execution count

    def run(self, code: str, fields: Fields, *, ranks: str, page: str | None, counted: Counted) -> dict[str, Any]:
        """Run the cell; return the content of its reply, which is `ok` or describes the error.

        `page` is the comm of the page that shows the output of ranks; None: the client shows no ranks.
        """
        self._counted, self._ranks = counted, ranks
        self._page = page
        self.show = (PlainOutputs if page is None else BundleOutputs)(self.emit)
        self.fields = {name: value for name, value in fields.items() if name != "user_expressions"}
        CELL.set(self)
        PRINTED.set(StreamFile(self.emit, "stdout"))
        try:
            self._run(code)
        except RankError as err:
            return self._failed(error_content(err.result) or {}, is_shown=self._is_shown)
        except DistError as err:
            return self._failed(_content(err, err._render_traceback_()))
        except JupyterDistError as err:
            return self._failed(_content(err, [f"\x1b[0;31m{type(err).__name__}\x1b[0m: {err}"]))
        finally:
            self._execution = None
        pages = []
        if isinstance(self.show, PlainOutputs):
            pages = self.show.pages
            if (
                self.show.is_empty and "clear_output(" in code
            ):  # there was nothing to clear, and clients may count on it
                self.emit("clear_output", {"wait": False})
        return {"status": "ok", "payload": pages, "user_expressions": self._evaluated(fields.get("user_expressions"))}

    def _evaluated(self, expressions: object) -> dict[str, Any]:
        """Return the values of the request's `user_expressions` on the first rank: by name, a display or an error."""
        if not isinstance(expressions, dict) or not expressions:
            return {}
        code = f'__import__("json").dumps(__import__("IPython").get_ipython().user_expressions({expressions!r}))'
        try:
            group = self._host.session.group()
            return dict(json.loads(group.pull(code, self._first_rank, timeout_seconds=EXPRESSIONS_SECONDS)))
        except (JupyterDistError, ValueError, TypeError) as err:  # also an answer that a cell has made unreadable
            return {
                name: {"status": "error", **_content(err, [f"{type(err).__name__}: {err}"])} for name in expressions
            }

    def interrupt(self) -> None:
        """Interrupt the ranks, or have the cell not begin on them."""
        self._is_interrupted = True
        if (execution := self._execution) is not None:
            with contextlib.suppress(JupyterDistError):  # it has just ended
                execution.cancel()

    def answer(self, text: str) -> None:
        """Hand the client's answer to the ranks that asked."""
        question, self._question = self._question, None
        if question is not None and (execution := self._execution) is not None:
            self._answered = question.seq
            with contextlib.suppress(JupyterDistError):  # another client has answered, or the rank has died
                execution.answer(text, question.ranks, question.seq)

    def _run(self, code: str) -> None:
        found = parts(code, self._magics)
        for name, line in found.lines:
            self._check_interrupted(f"%{name}")
            self._magics.call(name, line)
        if found.cell is None and not found.is_for_ranks:
            return
        _, sentence = self._host.ready()
        if sentence:
            self.emit("stream", {"name": "stdout", "text": sentence})
        self._check_interrupted("it")
        if found.cell is not None:
            self._magics.call(found.cell[0], found.cell[1], found.code)
        else:
            self._host.session.run(found.code, self._ranks)

    def _check_interrupted(self, what: str) -> None:
        if self._is_interrupted:
            raise DistError(f"The cell was interrupted before {what} began.")

    def begun(self, execution: Execution) -> None:
        """Note the execution that runs now, for the cell or for one of its magics: an interrupt stops it."""
        self._execution = execution
        if self._is_interrupted:
            self.interrupt()

    def follow(self, execution: Execution) -> Result:
        """Show the cell until it ends."""
        self._is_shown = self._page is not None
        if (count := execution.model["execution_count"]) is not None:
            self._counted(count)
        self._tell_page(execution)
        for result in execution.stream():
            assert self.show is not None
            self._first_rank = min(result.ranks, default=0)
            self.show(result)
            if self._page is None:
                self._ask_for(result)
        return result

    def _tell_page(self, execution: Execution) -> None:
        """Have a page follow the execution itself: then it asks for input, and shows what is new at once."""
        if self._page is not None:
            data = {"group": execution.group.id, "execution": execution.id}
            self.emit("comm_msg", {"comm_id": self._page, "data": data})

    def _ask_for(self, result: Result) -> None:
        """Ask the client for input, after a delay in which other ranks can ask the same; one question at a time."""
        before, self._asked = self._asked, result.asking
        if self._question is not None and any(_includes(asked, self._question) for asked in result.asking):
            return
        self._question = None
        question = next((asked for asked in result.asking if asked.seq > self._answered), None)
        if question is not None and (question.ranks == result.execution["ranks"] or before == result.asking):
            self._question = question
            label = "" if result.group["world_size"] == 1 else f"[{rank_label(question.ranks)}] "
            self._ask(label + question.prompt, question.password)

    def _failed(self, error: dict[str, Any], *, is_shown: bool = False) -> dict[str, Any]:
        if not is_shown:
            self.emit("error", error)
        return {"status": "error", **error, "payload": [], "user_expressions": {}}


def _includes(asked: InputPromptInfo, question: InputPromptInfo) -> bool:
    """Whether the ranks of a question still ask it; more may have joined them."""
    others = RankSet.from_text(question.ranks) - RankSet.from_text(asked.ranks)
    return asked.prompt == question.prompt and not others


def _content(err: Exception, traceback: list[str]) -> dict[str, Any]:
    return {"ename": type(err).__name__, "evalue": str(err), "traceback": traceback}


def complain(err: BaseException) -> dict[str, Any]:
    """Return the reply to a cell that the kernel itself failed at; the traceback goes to the kernel's log."""
    sys.excepthook(type(err), err, err.__traceback__)
    return {"status": "error", **_content(Exception(str(err)), [f"{type(err).__name__}: {err}"])}
