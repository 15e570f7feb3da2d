"""The topics that can be followed on the WebSocket, and their state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.machine import MemorySample
from jupyter_dist.protocol.models.models import ExecutionModel, LogRecord
from jupyter_dist.protocol.states import FINAL_EXECUTION_STATES
from jupyter_dist.protocol.wire.messages import (
    ClientMessage,
    ExecutionMessage,
    LogMessage,
    MemoryMessage,
    Topic,
    ViewMessage,
)

from .liveview import LiveView

Key = tuple[Any, ...]
Followed = ExecutionMessage | ViewMessage | LogMessage | MemoryMessage


class Feed:
    """A topic that is followed."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.changed = asyncio.Event()
        self.error: JupyterDistError | None = None

    @property
    def key(self) -> Key:
        """Return the key of the topic's messages."""
        return topic_key(self.topic)

    def subscription(self) -> ClientMessage:
        """Return the message that subscribes, from the current state."""
        return cast(ClientMessage, {"type": "subscribe", **self.topic})

    def unsubscription(self) -> ClientMessage:
        """Return the message that ends the subscription."""
        return cast(ClientMessage, {"type": "unsubscribe", **self.topic})

    def take(self, message: Followed) -> None:
        """Handle a message."""

    def fail(self, error: JupyterDistError) -> None:
        """Handle the error that ended the subscription."""
        self.error = error
        self.changed.set()

    async def wait(self) -> None:
        """Wait for a change. Raises the error that ended the subscription."""
        await self.changed.wait()
        self.changed.clear()
        if self.error is not None:
            raise self.error


class ExecutionFeed(Feed):
    """An execution and its view."""

    def __init__(self, group_id: str, execution: ExecutionModel) -> None:
        super().__init__({"topic": "execution", "group": group_id, "execution": execution["id"]})
        self.execution = execution
        self.view = LiveView()
        self.over = asyncio.Event()  # set when the execution has ended, or cannot be followed
        self.ended = False  # whether no more messages will follow
        self.on_notices: Callable[[list[str] | None], None] | None = None  # of nodes

    def subscription(self) -> ClientMessage:
        """Return the message that subscribes after the known records."""
        return {**super().subscription(), "since": self.view.seq}

    def take(self, message: Followed) -> None:
        """Handle items, or the execution itself."""
        if message["type"] == "view":
            self.view.apply(message)
        elif message["type"] == "execution":
            self.execution = message["execution"]
            if self.on_notices is not None:
                self.on_notices(self.execution.get("notices"))
            # Not from the answer to `submit`, which may have this state, too: its output comes in between.
            self.ended = self.execution["state"] in FINAL_EXECUTION_STATES
        if self.ended:
            self.over.set()
        self.changed.set()

    def fail(self, error: JupyterDistError) -> None:
        """Handle the error that ended the subscription."""
        super().fail(error)
        self.over.set()


class LogFeed(Feed):
    """A rank's log."""

    def __init__(self, group_id: str, rank: int, since: int) -> None:
        super().__init__({"topic": "log", "group": group_id, "rank": rank})
        self._since = since
        self._records: list[LogRecord] = []

    def subscription(self) -> ClientMessage:
        """Return the message that subscribes after the known records."""
        return {**super().subscription(), "since": self._since}

    def take(self, message: Followed) -> None:
        """Handle records."""
        if message["type"] == "log":
            self._records += [record for record in message["records"] if record["seq"] > self._since]
            self._since = message["seq"]
            self.changed.set()

    def taken(self) -> list[LogRecord]:
        """Return the records since the last call."""
        records, self._records = self._records, []
        return records


class MemoryFeed(Feed):
    """A group's memory; samples are taken while it is followed."""

    def __init__(self, group_id: str) -> None:
        super().__init__({"topic": "memory", "group": group_id})
        self.sample: MemorySample | None = None

    def take(self, message: Followed) -> None:
        """Keep the newest sample."""
        if message["type"] == "memory":
            self.sample = message["sample"]
            self.changed.set()


def topic_key(topic: Mapping[str, Any]) -> Key:
    """Return the key that a subscription, its messages and its error share."""
    return (topic.get("topic"), topic.get("group"), topic.get("execution", topic.get("rank")))


def message_key(message: Followed) -> Key:
    """Return the key of the subscription that a message belongs to."""
    if message["type"] == "log":
        return ("log", message["group"], message["rank"])
    if message["type"] == "memory":
        return ("memory", message["group"], None)
    execution = message["execution_id"] if message["type"] == "view" else message["execution"]["id"]
    return ("execution", message["group"], execution)
