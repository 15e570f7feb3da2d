"""The views of a group's executions: live ones are fed, finished ones are kept while there is space."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from jupyter_dist.protocol.ranks import RankSet

from .views import View

# A view takes more memory than its text, and a few milliseconds to build again: enough for what is on the screens.
MAX_FINISHED_BYTES = 32 << 20
MAX_FINISHED = 200
MAX_OPEN = 1000
MAX_BUSY_SECONDS = 0.01

Record = tuple[dict[str, Any], bytes]
FetchRecords = Callable[[str], Awaitable[Iterable[Record]]]


class ViewStore:
    """Views by execution id. A dropped view is rebuilt from the journal, with the same result."""

    def __init__(self, fetch: FetchRecords) -> None:
        self._fetch = fetch
        self._views: OrderedDict[str, View] = OrderedDict()
        # Records that arrive while the view is being rebuilt.
        self._waiting: dict[str, list[Record]] = {}
        self._building: dict[str, asyncio.Future[View]] = {}
        self._finished: dict[str, int] = {}  # sizes of the views that have ended

    def feed(self, record: dict[str, Any], payload: bytes) -> str | None:
        """Feed a record; return the id of the execution whose view changed."""
        execution_id = record.get("execution_id")
        if not isinstance(execution_id, str):
            return None
        if execution_id in self._waiting:
            self._waiting[execution_id].append((record, payload))
            return execution_id
        view = self._views.get(execution_id)
        if view is None:
            if record["kind"] != "begin" or record.get("extends"):
                return None  # not requested since it was dropped
            view = self._views[execution_id] = View(execution_id, RankSet.from_text(record["ranks"]))
            self._forget_open()
        view.feed(record, payload)
        if record["kind"] == "end":
            self._forget_some(view)
        return execution_id

    def expect(self, execution_id: str, ranks: str) -> None:
        """Create the view of an execution all of whose records are still to come: there is nothing to rebuild."""
        if execution_id not in self._views and execution_id not in self._building:
            self._views[execution_id] = View(execution_id, RankSet.from_text(ranks))
            self._forget_open()

    def open(self) -> list[str]:
        """Return the executions in memory whose end has not been fed."""
        return [execution_id for execution_id, view in self._views.items() if not view.ended]

    def peek(self, execution_id: str) -> View | None:
        """Return the view if it is in memory."""
        return None if execution_id in self._waiting else self._views.get(execution_id)

    async def get(self, execution_id: str, ranks: str, *, is_final: bool = False) -> View:
        """Return the view; build or complete it from the journal if needed.

        The view of a final execution has all of its output, even if the agent, which this server has just reached
        again, reported the end before the records.

        Raises:
            JupyterDistError: the agent cannot be reached.
        """
        view = self.peek(execution_id)
        while view is None or (is_final and not view.ended):
            building = self._building.get(execution_id)  # maybe begun while the execution was running
            if building is None:
                building = asyncio.ensure_future(self._build(execution_id, ranks, is_final))
                self._building[execution_id] = building
                building.add_done_callback(lambda done: done.cancelled() or done.exception())  # its caller may be gone
            view = await asyncio.shield(building)
        if execution_id in self._views:
            self._views.move_to_end(execution_id)
        return view

    async def _build(self, execution_id: str, ranks: str, is_final: bool) -> View:
        view = self._views.get(execution_id) or View(execution_id, RankSet.from_text(ranks))  # the view that pages show
        self._waiting[execution_id] = []
        try:
            await _feed_all(view, await self._fetch(execution_id))
            while waiting := self._waiting[execution_id]:
                self._waiting[execution_id] = []
                await _feed_all(view, waiting)
            if is_final:
                view.close()
            self._views[execution_id] = view
        finally:
            for record, payload in self._waiting.pop(execution_id):  # fetching failed: pages may show the view
                view.feed(record, payload)
            del self._building[execution_id]
        if view.ended:
            self._forget_some(view)
        return view

    def _forget_open(self) -> None:
        """Drop an excess open view of a cell that waits: its `begin` creates the view again, so that it misses nothing.

        A group runs few cells at once. More open views come from forged records, and are rebuilt on request.
        """
        if len(self._views) - len(self._finished) > MAX_OPEN:
            is_open = [key for key in self._views if key not in self._finished]
            del self._views[next((key for key in is_open if not self._views[key].began), is_open[0])]

    def _forget_some(self, ended: View) -> None:
        """Drop the least used finished views, because another view has just ended."""
        size = sum(self._finished.values())
        for execution_id in [key for key in self._views if key in self._finished and key != ended.execution_id]:
            if size <= MAX_FINISHED_BYTES and len(self._finished) <= MAX_FINISHED:
                break
            size -= self._finished.pop(execution_id)
            del self._views[execution_id]
        self._finished[ended.execution_id] = ended.text_bytes()


async def _feed_all(view: View, records: Iterable[Record]) -> None:
    """Feed megabytes of records, giving other tasks a turn in between."""
    paused_at = time.monotonic()
    for record, payload in records:
        view.feed(record, payload)
        if time.monotonic() - paused_at > MAX_BUSY_SECONDS:
            await asyncio.sleep(0)
            paused_at = time.monotonic()
