"""Answers Jupyter's messages for a group. Only cells wait for each other; other requests are answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from IPython.core.inputtransformer2 import TransformerManager

from jupyter_dist.kernel.execution.cells import CellRunner, complain
from jupyter_dist.kernel.execution.host import KernelHost
from jupyter_dist.kernel.execution.lines import KernelMagics
from jupyter_dist.protocol.models import models
from jupyter_dist.system.limits import within
from jupyter_dist.version import __version__

from .knowing import Knowing
from .usage import Usage, local_pids
from .wire import KernelSockets, Request

T = TypeVar("T")

PARENT_POLL_SECONDS = 1.0
RESTART_SECONDS = 4.0  # clients give a kernel 5 s to end
PAGE_TARGET = "jupyter_dist"  # a page with our extension opens this comm
STOPPED_WAITING = "The ranks were interrupted but are still running. `%dist_restart` restarts them."

LANGUAGE = {
    "name": "python",
    "version": sys.version.split()[0],
    "mimetype": "text/x-python",
    "file_extension": ".py",
    "pygments_lexer": "ipython3",
    "nbconvert_exporter": "python",
    "codemirror_mode": {"name": "ipython", "version": 3},
}


class RanksKernel:
    """One kernel process: a view of a group, which outlives it."""

    def __init__(self, connection_file: str) -> None:
        self._wire = KernelSockets(connection_file)
        self._host = KernelHost(connection_file)
        self._magics = KernelMagics(self._host.session)
        self._knowing = Knowing(self._host, self._magics)
        self._usage = Usage()
        self._waiting: deque[Request] = deque()
        self._has_work = asyncio.Event()
        self._ended = asyncio.Event()
        self._running: Request | None = None
        self._cell: CellRunner | None = None
        self._given_up = asyncio.Event()
        self._interrupts = 0
        self._question_id: str | None = None
        self._count = 0
        self._pages: dict[str, dict[str, Any]] = {}  # by comm: clients that show ranks, and their notebooks
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Serve until the kernel is shut down, or the process that started it has ended."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        loop.add_signal_handler(signal.SIGTERM, self._ended.set)
        self._wire.publish(None, "status", {"execution_state": "starting"})
        for channel, take in (("shell", self._take), ("control", self._take), ("stdin", self._take_answer)):
            self._spawn(self._wire.receive(channel, take))
        self._spawn(self._run_cells())
        self._spawn(self._watch_parent())
        await self._ended.wait()
        for task in self._tasks:
            task.cancel()
        await self._wire.close()

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, request: Request) -> None:
        if request.kind == "execute_request":
            self._waiting.append(request)
            self._has_work.set()
        else:
            self._spawn(self._answer(request))

    async def _answer(self, request: Request) -> None:
        """Answer a request other than a cell."""
        handler = getattr(self, f"_on_{request.kind}", None)
        self._status(request, "busy")
        try:
            content = await handler(request) if handler is not None else None
            if content is not None:
                self._wire.reply(request, {"status": "ok", **content})
        except Exception as err:
            self._wire.reply(request, complain(err))
        finally:
            self._status(request, "idle")
            if self._running is not None:  # clients show the last state that was published
                self._status(self._running, "busy")

    def _status(self, request: Request, state: str) -> None:
        self._wire.publish(request, "status", {"execution_state": state})

    # -- cells --------------------------------------------------------------------------------------

    async def _run_cells(self) -> None:
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            while self._waiting:
                self._running = self._waiting.popleft()
                try:
                    await self._run_cell(self._running)
                except Exception as err:  # the outermost level of a cell: the next one must run
                    complain(err)
                self._running = None

    async def _run_cell(self, request: Request) -> None:
        """Run a cell and answer it, whatever goes wrong."""
        self._status(request, "busy")
        try:
            content = await self._execute(request)
        except Exception as err:
            content = complain(err)
        is_sound = isinstance(request.content.get("code"), str)
        self._wire.reply(request, {**content, "execution_count": self._count})
        self._running = None
        self._status(request, "idle")
        if is_sound and content["status"] == "error" and request.content.get("stop_on_error", True):
            await asyncio.sleep(0)  # what has arrived is taken
            self._abort_waiting()

    def _abort_waiting(self) -> None:
        """As Jupyter's kernels do: cells that were sent before an error was known do not run."""
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            self._status(request, "busy")
            self._wire.reply(request, {"status": "aborted"})
            self._status(request, "idle")

    async def _execute(self, request: Request) -> dict[str, Any]:
        content, loop = request.content, asyncio.get_running_loop()
        silent, code = bool(content.get("silent")), str(content["code"])
        page, path = self._page_of(request)
        self._interrupts, self._question_id = 0, None
        self._given_up.clear()
        is_over = False

        def tell(call: Callable[..., None], *arguments: Any) -> None:
            """Call from the event loop, unless the user has given the cell up by then: the next one may have begun."""
            loop.call_soon_threadsafe(lambda: None if is_over else call(*arguments))

        def emit(kind: str, said: dict[str, Any]) -> None:
            if not silent:
                tell(self._wire.publish, request, kind, said)

        def ask(prompt: str, password: bool) -> None:
            tell(self._ask, request, prompt, password)

        def counted(count: int) -> None:
            tell(self._begin, request, code, silent, count)

        self._is_begun = False
        cell = self._cell = CellRunner(self._host, self._magics, emit, ask)
        fields = {**_fields(request), **({"notebook": path} if path else {})}
        ranks = _chosen_ranks(request)
        run = in_thread(lambda: cell.run(code, fields, ranks=ranks, page=page, counted=counted))
        given_up = asyncio.ensure_future(self._given_up.wait())
        either: set[asyncio.Future[Any]] = {run, given_up}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        given_up.cancel()
        is_over, self._cell = True, None
        if not run.done():
            error = {"ename": "KeyboardInterrupt", "evalue": STOPPED_WAITING, "traceback": [STOPPED_WAITING]}
            self._wire.publish(request, "error", error)
            return {"status": "error", **error}
        if not self._is_begun:  # a cell of our magics alone, or refused
            self._begin(request, code, silent, self._count + (0 if silent or not code.strip() else 1))
        if (failure := run.exception()) is not None:
            content = complain(failure)
            self._wire.publish(request, "error", {key: content[key] for key in ("ename", "evalue", "traceback")})
            return content
        return run.result()

    def _begin(self, request: Request, code: str, silent: bool, count: int) -> None:
        self._is_begun = True
        if not silent:
            self._count = count
            self._knowing.remember(count, code)
            self._wire.publish(request, "execute_input", {"code": code, "execution_count": count})

    def _page_of(self, request: Request) -> tuple[str | None, str | None]:
        """Return the comm of the page that sent a request, and the path of its notebook."""
        found = ((comm, page["path"]) for comm, page in self._pages.items() if page["client"] == request.client)
        return next(found, (None, None))

    # -- input --------------------------------------------------------------------------------------

    def _ask(self, request: Request, prompt: str, password: bool) -> None:
        self._question_id = self._wire.ask(request, {"prompt": prompt, "password": password})

    async def _take_answer(self, request: Request) -> None:
        """Pass on the answer to the last question; clients may leave out the question's id."""
        asked = request.message["parent_header"].get("msg_id")
        if self._cell is not None and asked in (None, self._question_id):
            cell, text = self._cell, str(request.content.get("value", ""))
            self._spawn(in_background(lambda: cell.answer(text)))

    # -- control ------------------------------------------------------------------------------------

    def _interrupt(self) -> None:
        """Interrupt the ranks; a second time, stop waiting for ranks that do not stop."""
        self._interrupts += 1
        if self._cell is None:
            return
        if self._interrupts > 1:
            self._given_up.set()
        else:
            self._spawn(in_background(self._cell.interrupt))

    async def _on_interrupt_request(self, _: Request) -> dict[str, Any]:
        self._interrupt()
        return {}

    async def _on_shutdown_request(self, request: Request) -> None:
        """End this process: the group keeps running. A client that restarts the kernel means the ranks."""
        restart = bool(request.content.get("restart"))
        end = in_thread(lambda: self._end(restart))
        with contextlib.suppress(asyncio.TimeoutError):
            await within(RESTART_SECONDS, asyncio.shield(end))
        answer = {"status": "ok", "restart": restart}
        self._wire.reply(request, answer)
        self._wire.publish(request, "shutdown_reply", answer)
        self._ended.set()

    def _end(self, restart: bool) -> None:
        if restart:
            self._host.restart()
        self._host.end(restart=restart)

    async def _watch_parent(self) -> None:
        """End when the program that started this process ends, such as a Jupyter server that was killed."""
        parent = os.getppid()
        while "JPY_PARENT_PID" in os.environ:
            await asyncio.sleep(PARENT_POLL_SECONDS)
            if os.getppid() != parent:
                self._ended.set()

    async def _on_usage_request(self, _: Request) -> dict[str, Any]:
        return await in_thread(self._use)

    def _use(self) -> dict[str, Any]:
        group = self._host.group_if_any()
        return self._usage.reply([] if group is None else local_pids(group.status().model))

    # -- everything else ----------------------------------------------------------------------------

    async def _on_kernel_info_request(self, _: Request) -> dict[str, Any]:
        return {
            "protocol_version": "5.3",
            "implementation": "jupyter_dist",
            "implementation_version": __version__,
            "language_info": LANGUAGE,
            "banner": f"Ranks: cells run on a group of torch.distributed ranks. jupyter_dist {__version__}",
            "help_links": [],
            "debugger": False,
            "supported_features": [],
        }

    async def _on_is_complete_request(self, request: Request) -> dict[str, Any]:
        state, indent = TransformerManager().check_complete(str(request.content["code"]))
        return {"status": state, **({"indent": " " * (indent or 0)} if state == "incomplete" else {})}

    async def _on_complete_request(self, request: Request) -> dict[str, Any]:
        code, position = str(request.content["code"]), int(request.content["cursor_pos"])
        return await in_thread(lambda: self._knowing.complete(code, position))

    async def _on_inspect_request(self, request: Request) -> dict[str, Any]:
        content = request.content
        code, position, detail = str(content["code"]), int(content["cursor_pos"]), int(content.get("detail_level", 0))
        return await in_thread(lambda: self._knowing.inspect(code, position, detail))

    async def _on_history_request(self, request: Request) -> dict[str, Any]:
        content = request.content
        return {"history": await in_thread(lambda: self._knowing.history(content))}

    # -- comms: pages with our extension; ranks have none ---------------------------------------------

    async def _on_comm_info_request(self, _: Request) -> dict[str, Any]:
        return {"comms": {comm: {"target_name": PAGE_TARGET} for comm in self._pages}}

    async def _on_comm_open(self, request: Request) -> None:
        content = request.content
        if content.get("target_name") == PAGE_TARGET:
            self._pages = {comm: page for comm, page in self._pages.items() if page["client"] != request.client}
            self._pages[content["comm_id"]] = {"client": request.client, "path": content["data"].get("path")}
        else:
            self._wire.publish(request, "comm_close", {"comm_id": content["comm_id"], "data": {}})

    async def _on_comm_msg(self, request: Request) -> None:
        page = self._pages.get(request.content["comm_id"])
        if page is not None:
            page["path"] = request.content["data"].get("path")

    async def _on_comm_close(self, request: Request) -> None:
        self._pages.pop(request.content["comm_id"], None)


def _fields(request: Request) -> dict[str, Any]:
    """Return the fields of RunRequest for an execute_request."""
    content, metadata = request.content, request.message["metadata"]
    cell = metadata.get("cellId")
    return {
        "allow_stdin": bool(content.get("allow_stdin")),
        "silent": bool(content.get("silent")) or not content.get("store_history", True),
        "user_expressions": content.get("user_expressions"),
        **({"cell_id": cell} if isinstance(cell, str) else {}),
    }


def _chosen_ranks(request: Request) -> str:
    """Return the ranks that the cell's metadata name, as our picker saves them; JupyterLab sends the metadata."""
    chosen = request.message["metadata"].get(models.METADATA_KEY)
    ranks = chosen.get("ranks") if isinstance(chosen, dict) else None
    return ranks if isinstance(ranks, str) and ranks.strip() else "all"


def in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Run a blocking function in a daemon thread, so that the end of the process does not wait for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            set_it(value)

    def target() -> None:
        try:
            result = work()
        except BaseException as err:
            # No future takes a StopIteration, and what is no Exception would end the event loop.
            is_taken = isinstance(err, Exception) and not isinstance(err, StopIteration)
            loop.call_soon_threadsafe(settle, future.set_exception, err if is_taken else RuntimeError(repr(err)))
        else:
            loop.call_soon_threadsafe(settle, future.set_result, result)

    threading.Thread(target=target, daemon=True).start()
    return future


async def in_background(work: Callable[[], None]) -> None:
    """Run a blocking function in a thread; errors are written to the kernel's log."""
    try:
        await in_thread(work)
    except Exception as err:
        complain(err)
