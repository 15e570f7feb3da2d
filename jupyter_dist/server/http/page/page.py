"""The messages to one connected page: the changes since its last ones. Independent of the socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.wire.messages import ErrorMessage, ServerMessage, SubmittedMessage
from jupyter_dist.server.groups.manager import REMOVED, GroupManager
from jupyter_dist.server.mirror.mirror import Topic
from jupyter_dist.system.limits import within
from jupyter_dist.transport.tasks import start_task

from .loads import Loads
from .subscriptions import SUBSCRIPTIONS, ExecutionSubscription, Request, Subscription, known_fields

MIN_GAP_SECONDS = 0.05
MAX_SUBSCRIPTIONS = 2000
MAX_WAITING = 100  # errors to send, subscriptions to close
# Share of the event loop's time for building messages; building for SHORT_SECONDS is free.
BUSY_SHARE = 0.25
SHORT_SECONDS = 0.002

GROUPS: Topic = ("groups",)

log = logging.getLogger(__name__)

Send = Callable[[ServerMessage], Awaitable[None]]
Run = Callable[[Request], Awaitable[models.ExecutionModel]]


class Page:
    """Marks changes, which is cheap, and sends the differences when the socket can take them."""

    def __init__(self, manager: GroupManager, send: Send) -> None:
        self._manager = manager
        self._send = send
        self._subscriptions: dict[Topic, Subscription] = {}
        self._errors: list[ErrorMessage] = []
        self._closing: list[Subscription] = []
        self._submitted: list[SubmittedMessage] = []
        self._beside: set[asyncio.Task[None]] = set()  # submits, messages to ranks, subscriptions that end
        self._loads = Loads(self._wake)
        self._taken = asyncio.Event()  # set when one of these tasks has ended
        self._is_closed = False
        self._has_removed = False  # groups whose subscriptions may be left
        self._changed: set[Topic] = set()
        self._something = asyncio.Event()
        self._something.set()
        self._urgent = asyncio.Event()  # set if a user waits for the message
        self._stop_listening = manager.listen(self._mark)

    async def handle(self, request: Any) -> None:
        """Handle a message of the page; return when there is room for the next."""
        try:
            self._obey(request)
        except JupyterDistError as err:
            if not (isinstance(request, dict) and request.get("type") == "unsubscribe"):
                await self.refuse(err, request)
                return
        await self._room()

    async def submit(self, request: Request, may_run: Awaitable[None], run: Run) -> None:
        """Handle a `submit`; return when there is room for the next message, while the agent may not have answered."""
        try:
            await may_run
        except JupyterDistError as err:
            await self.refuse(err, request)
            return
        # Its cells reach the agent in their order: a task runs at once up to the agent's answer.
        self._do_beside(self._submit(request, run), "submit a cell")
        await self._room()

    async def _submit(self, request: Request, run: Run) -> None:
        try:
            execution = await run(request)
            self._follow(SUBSCRIPTIONS["execution"](self._manager, _topic_of(execution)))
            self._submitted.append({"type": "submitted", "key": request["key"], "execution": execution})
        except Exception as err:  # outermost level of a message: whatever failed, the page gets an answer
            self._errors.append({"type": "error", "error": _reported(err), "request": known_fields(request)})
        self._wake()

    async def pass_on(
        self, request: Request, may_run: Awaitable[None], run: Callable[[Request], Awaitable[object]]
    ) -> None:
        """Handle a `comm`, whose success is not answered; messages to a rank keep their order."""
        try:
            await may_run
        except JupyterDistError as err:
            await self.refuse(err, request)
            return
        self._do_beside(self._pass_on(request, run), "pass a message to a rank")
        await self._room()

    async def _pass_on(self, request: Request, run: Callable[[Request], Awaitable[object]]) -> None:
        try:
            await run(request)
        except Exception as err:  # as above
            self._errors.append({"type": "error", "error": _reported(err), "request": known_fields(request)})
            self._wake()

    async def refuse(self, error: JupyterDistError, request: Any = None) -> None:
        """Answer an invalid message with an error; return when there is room for the next."""
        shown = known_fields(request) if isinstance(request, dict) else None
        self._errors.append({"type": "error", "error": error.to_dict(), "request": shown})
        self._something.set()
        await self._room()

    async def run(self) -> None:
        """Send until cancelled, or until the socket is closed."""
        await self._send({"type": "hello", "server": self._manager.server_id})
        while True:
            await self._wait()
            messages, seconds = await self._collect()
            cost = max(0.0, seconds - SHORT_SECONDS) / BUSY_SHARE
            for message in messages:
                await self._send(message)
                await asyncio.sleep(0)  # many pages with much to send take turns with other tasks
            await asyncio.sleep(cost)
            await self._pause(MIN_GAP_SECONDS - cost)

    async def close(self) -> None:
        """Close all subscriptions. Idempotent."""
        self._is_closed = True
        self._taken.set()
        self._stop_listening()
        await self._loads.close()
        subscriptions = [*self._subscriptions.values(), *self._closing]
        self._subscriptions.clear()
        self._closing.clear()
        await asyncio.gather(*(subscription.close() for subscription in subscriptions), return_exceptions=True)

    def _obey(self, request: Any) -> None:
        if not isinstance(request, dict):
            raise bad_request("A message is a JSON object.", "See docs/api.md, The WebSocket.")
        kind = SUBSCRIPTIONS.get(str(request.get("topic")))
        if request.get("type") not in ("subscribe", "unsubscribe") or kind is None:
            topics = ", ".join(SUBSCRIPTIONS)
            raise bad_request("Unknown message.", f"Subscribe or unsubscribe to one of: {topics}.")
        if request["type"] == "subscribe":
            self._follow(kind(self._manager, request))
        elif (known := self._subscriptions.get(kind.key_of(self._manager, request))) is not None:
            self._end(known)
        self._wake()

    def _end(self, subscription: Subscription) -> None:
        if self._subscriptions.get(subscription.key) is subscription:
            del self._subscriptions[subscription.key]
        self._loads.drop(subscription)
        if subscription.needs_closing:
            self._closing.append(subscription)
            self._something.set()

    def _end_removed(self) -> None:
        """End the subscriptions of removed groups that have nothing left to send."""
        over = [subscription for subscription in self._subscriptions.values() if subscription.is_over]
        sent = [one for one in over if one not in self._loads and self._changed.isdisjoint(one.topics)]
        for subscription in sent:
            self._end(subscription)
        self._has_removed = len(sent) < len(over)

    async def _close(self, subscription: Subscription) -> None:
        with contextlib.suppress(JupyterDistError):  # its agent is gone, or does not answer
            await subscription.close()

    def _do_beside(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = start_task(work, name)
        self._beside.add(task)
        task.add_done_callback(self._did_beside)

    def _did_beside(self, task: asyncio.Task[None]) -> None:
        self._beside.discard(task)
        self._taken.set()

    def _wake(self) -> None:
        """Collect messages at once: a user waits for one of them."""
        self._something.set()
        self._urgent.set()

    def _follow(self, subscription: Subscription) -> None:
        if (known := self._subscriptions.get(subscription.key)) is not None:
            self._end(known)
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            self._end(subscription)
            raise bad_request("Too many subscriptions.", "Unsubscribe from topics that are not shown.")
        self._subscriptions[subscription.key] = subscription
        self._changed.update(subscription.topics)

    def _mark(self, topic: Topic) -> None:
        if topic == GROUPS and GROUPS not in self._subscriptions:
            return
        self._changed.add(topic)
        self._something.set()
        self._has_removed = self._has_removed or topic == REMOVED
        if topic[0] in ("execution", "comms") or (topic[0] == "view" and self._is_first(topic)):
            self._urgent.set()

    def _is_first(self, topic: Topic) -> bool:
        """Whether a user waits for the first output of a cell; later ones are gathered."""
        subscription = self._subscriptions.get(("execution", *topic[1:]))
        return isinstance(subscription, ExecutionSubscription) and subscription.is_empty

    async def _room(self) -> None:
        """Wait while many answers are pending: requests of a page that does not read stay in its socket."""
        while self._num_waiting() >= MAX_WAITING and not self._is_closed:
            self._taken.clear()
            await self._taken.wait()

    def _num_waiting(self) -> int:
        return len(self._errors) + len(self._closing) + len(self._submitted) + len(self._beside)

    async def _wait(self) -> None:
        waiting = (subscription for subscription in self._subscriptions.values() if subscription not in self._loads)
        due = [subscription.due for subscription in waiting if subscription.due is not None]
        timeout = max(0.0, min(due) - time.monotonic()) if due else None
        try:
            await within(timeout, self._something.wait())
        except asyncio.TimeoutError:
            pass
        self._something.clear()

    async def _pause(self, seconds: float) -> None:
        """Wait to batch changes; execution states and requested data are sent at once."""
        if seconds > 0:
            with contextlib.suppress(asyncio.TimeoutError):
                await within(seconds, self._urgent.wait())

    async def _collect(self) -> tuple[list[ServerMessage], float]:
        """Return the messages to send, and the time in seconds that building them took."""
        self._urgent.clear()
        changed, self._changed = self._changed, set()
        errors, self._errors = self._errors, []
        closing, self._closing = self._closing, []
        self._taken.set()
        for subscription in closing:
            self._do_beside(self._close(subscription), "end a subscription")
        submitted, self._submitted = self._submitted, []
        messages: list[ServerMessage] = [*errors, *submitted]
        self._begin_loads(changed)
        await asyncio.sleep(0)  # most loads end within one turn
        seconds = 0.0
        for subscription, load in self._loads.ended():
            if self._subscriptions.get(subscription.key) is subscription:
                seconds += self._collect_from(subscription, load, messages)
                self._loads.again(subscription)
                await asyncio.sleep(0)
        if self._has_removed:
            self._end_removed()
        return messages, seconds

    def _begin_loads(self, changed: set[Topic]) -> None:
        now = time.monotonic()
        for subscription in self._subscriptions.values():
            is_due = subscription.due is not None and subscription.due <= now and subscription not in self._loads
            if is_due or not changed.isdisjoint(subscription.topics):
                self._loads.begin(subscription)

    def _collect_from(
        self, subscription: Subscription, load: asyncio.Task[bool], messages: list[ServerMessage]
    ) -> float:
        """Add the messages of a subscription that is loaded; return the time that building them took."""
        began = time.monotonic()
        try:
            if load.result():
                messages += subscription.messages()
        except Exception as err:  # one topic that fails must not cut the page off from all others
            self._end(subscription)
            messages.append({"type": "error", "error": _reported(err), "request": subscription.request})
        return time.monotonic() - began


def _reported(err: Exception) -> models.ErrorBody:
    """Return the error as a page gets it; the traceback of an unexpected error goes to the log."""
    if not isinstance(err, JupyterDistError):
        log.error("A message of a page failed", exc_info=err)
        err = JupyterDistError("internal", f"The server failed: {type(err).__name__}.", "See the Jupyter server's log.")
    return err.to_dict()


def _topic_of(execution: models.ExecutionModel) -> Request:
    return {"type": "subscribe", "topic": "execution", "group": execution["group"], "execution": execution["id"]}
