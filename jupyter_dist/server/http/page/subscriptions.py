"""The topics that a page can follow. Each keeps the state that it sent, and builds the next messages from changes."""

from __future__ import annotations

import contextlib
import time
from typing import Any, ClassVar

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models import machine, models
from jupyter_dist.protocol.wire.changes import are_same_ranks, changed_fields, rank_changes
from jupyter_dist.protocol.wire.messages import (
    MAX_ID,
    ChangesMessage,
    CommsMessage,
    GroupChange,
    LogMessage,
    TopicMessage,
    ViewMessage,
)
from jupyter_dist.protocol.wire.specs import MAX_SEQ
from jupyter_dist.server.folding.snapshots import EMPTY, Snapshot, difference
from jupyter_dist.server.folding.views import View
from jupyter_dist.server.groups.manager import GroupManager
from jupyter_dist.server.mirror.executions import is_final
from jupyter_dist.server.mirror.mirror import GroupMirror, Topic

DEVICES_SECONDS = 3.0
AWAY = ("agent_unreachable", "timed_out")  # errors of an agent that may answer later
AGAIN_SECONDS = 3.0
KNOWN_FIELDS = ("type", "topic", "group", "execution", "rank", "since", "key")

Request = dict[str, Any]  # a message of a page, unchecked


def known_fields(request: Request) -> Request:
    """Return the known fields of a message, to send them back with an error; other fields are dropped."""
    short = {name: request[name] for name in KNOWN_FIELDS if name in request}
    return {
        name: value
        for name, value in short.items()
        if isinstance(value, int) or (type(value) is str and len(value) < 1000)
    }


class Subscription:
    """One topic that a page follows."""

    topic: ClassVar[str]
    fields: ClassVar[dict[str, type]] = {}
    needs_closing: ClassVar[bool] = False

    def __init__(self, manager: GroupManager, request: Request) -> None:
        self.request = known_fields(request)
        self.due: float | None = None  # monotonic time of the next message if nothing changes
        self.key = self.key_of(manager, request)
        self.topics: tuple[Topic, ...] = ()
        self._manager = manager

    @property
    def is_over(self) -> bool:
        """Whether its group has been removed."""
        return False

    @classmethod
    def key_of(cls, manager: GroupManager, request: Request) -> Topic:
        """Return the key of the subscription that the page's message is about. Raises JupyterDistError `bad_request`.

        A page can give a group by its name or id; the key has the id.
        """
        cls._check(request)
        given = {name: request[name] for name in cls.fields}
        if "group" in given:
            with contextlib.suppress(JupyterDistError):  # it has been removed: the page gives its id
                given["group"] = manager.get(given["group"]).id
        return (cls.topic, *given.values())

    @classmethod
    def _check(cls, request: Request) -> None:
        for name, kind in cls.fields.items():
            value = request.get(name)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise bad_request(f"'{name}' is missing or has the wrong type.", f"Topic '{cls.topic}' requires it.")
            if isinstance(value, str) and len(value) > MAX_ID:
                raise bad_request(f"'{name}' has {len(value)} characters.", f"Names and ids have at most {MAX_ID}.")
        since = request.get("since", 0)
        if type(since) is not int or not 0 <= since <= MAX_SEQ:
            raise bad_request("'since' is not a valid sequence number.", "Use the highest seq that you have, or 0.")

    async def try_to_load(self) -> bool:
        """Load, and return whether there may be messages: while the agent does not answer, it is asked again later.

        Raises:
            JupyterDistError: the subscription can never be loaded.
        """
        self.due = None
        try:
            await self.load()
        except JupyterDistError as err:
            if err.code not in AWAY:
                raise
            self.due = time.monotonic() + AGAIN_SECONDS
            return False
        return True

    async def load(self) -> None:
        """Load the data that the next messages need."""

    def messages(self) -> list[TopicMessage]:
        """Return the messages to send now, after `load`; the time that this takes is limited."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop following. Idempotent."""


class OfGroup(Subscription):
    """A topic of one group."""

    def __init__(self, manager: GroupManager, request: Request) -> None:
        super().__init__(manager, request)
        self._group: GroupMirror = manager.get(request["group"]).mirror

    @property
    def is_over(self) -> bool:
        """Whether its group has been removed."""
        return not self._manager.has(self._group.id)


class GroupsSubscription(Subscription):
    """All groups, as changes: of a group of many ranks, only the ranks that changed are sent."""

    topic = "groups"

    def __init__(self, manager: GroupManager, request: Request) -> None:
        super().__init__(manager, request)
        self.topics = (self.key,)
        self._sent: dict[str, models.GroupModel] = {}
        self._seq = 0
        self._by_field = request.get("by_field") is True  # pages of jupyter_dist 0.2 do not know it

    def messages(self) -> list[TopicMessage]:
        """Return the changes since the last message; the first has all groups."""
        now = {group["id"]: group for group in (managed.model() for managed in self._manager.all())}
        before, self._sent = self._sent, now
        pairs = [(before.get(name), group) for name, group in now.items() if before.get(name) != group]
        is_same_set = list(before) == list(now)
        if self._seq and is_same_set and not pairs:
            return []
        self._seq += 1
        message: ChangesMessage = {
            "type": "changes",
            "seq": self._seq,
            "groups": [group for old, group in pairs if not _has_same_ranks(old, group)],
            "changes": [self._change(old, group) for old, group in pairs if old and _has_same_ranks(old, group)],
        }
        if not is_same_set:
            message["order"] = list(now)
        return [message]

    def _change(self, old: models.GroupModel, new: models.GroupModel) -> GroupChange:
        whole, by_field = rank_changes(old["ranks"], new["ranks"], self._by_field)
        change: GroupChange = {"id": new["id"], "fields": changed_fields(old, new), "ranks": whole}
        return {**change, "rank_changes": by_field} if by_field else change


def _has_same_ranks(old: models.GroupModel | None, new: models.GroupModel) -> bool:
    return old is not None and are_same_ranks(old["ranks"], new["ranks"])


class ExecutionSubscription(OfGroup):
    """An execution and its view."""

    topic = "execution"
    fields: ClassVar[dict[str, type]] = {"group": str, "execution": str}

    def __init__(self, manager: GroupManager, request: Request) -> None:
        super().__init__(manager, request)
        self._execution_id = request["execution"]
        self._since = int(request.get("since", 0))
        self._view: View | None = None
        self._sent: Snapshot | None = None
        self._sent_execution: models.ExecutionModel | None = None
        self.topics = (self.key, ("view", self._group.id, self._execution_id), ("nodes", self._group.id))

    @property
    def is_empty(self) -> bool:
        """Whether no output has been sent yet."""
        return self._sent is None or not self._sent.items

    async def load(self) -> None:
        """Read the view from the journal, and the code, unless they are in memory."""
        self._view = await self._group.view(self._execution_id)
        await self._group.execution(self._execution_id)

    def messages(self) -> list[TopicMessage]:
        """Return the changes of the view, then the execution, both from the same moment."""
        assert self._view is not None
        snapshot = self._view.snapshot()
        execution = self._group.executions.get(self._execution_id)
        if (notices := self._group.status.notices) is not None:
            execution = {**execution, "notices": notices}
        messages: list[TopicMessage] = [*self._view_messages(snapshot)]
        # A client may leave when the cell has ended: if the agent was just reached again, its last output comes first.
        is_late = is_final(execution) and self._view.began and not self._view.ended and self._group.is_attached
        if execution != self._sent_execution and not is_late:
            self._sent_execution = execution
            messages.append({"type": "execution", "group": self._group.id, "execution": execution})
        return messages

    def _view_messages(self, snapshot: Snapshot) -> list[ViewMessage]:
        reset = False
        if self._sent is None:
            known = self._since == snapshot.seq
            # A page with a different state, from before a reconnection, starts over.
            reset = bool(self._since) and not known
            self._sent = snapshot if known else EMPTY
        if snapshot.seq == self._sent.seq and not reset:
            return []
        change = difference(self._sent, snapshot)
        self._sent = snapshot
        message: ViewMessage = {
            "type": "view",
            "group": self._group.id,
            "execution_id": self._execution_id,
            "since": change["since"],
            "seq": change["seq"],
            "items": change["items"],
            "removed": change["removed"],
        }
        if reset:
            message["reset"] = True
        return [message]


class LogSubscription(OfGroup):
    """A rank's log."""

    topic = "log"
    fields: ClassVar[dict[str, type]] = {"group": str, "rank": int}

    def __init__(self, manager: GroupManager, request: Request) -> None:
        super().__init__(manager, request)
        self._rank = request["rank"]
        self._group.check_rank(self._rank)
        self._seq = int(request.get("since", 0))
        self._new: tuple[list[models.LogRecord], int] = [], 0
        self.topics = (self.key,)

    async def load(self) -> None:
        """Take the records since the last message."""
        self._new = await self._group.log_after(self._rank, self._seq)

    def messages(self) -> list[TopicMessage]:
        """Return the records since the last message."""
        records, skipped = self._new
        if not records:
            return []
        self._seq = records[-1]["seq"]
        message: LogMessage = {
            "type": "log",
            "group": self._group.id,
            "rank": self._rank,
            "records": records,
            "seq": self._seq,
            "skipped": skipped,
        }
        return [message]


class CommsSubscription(OfGroup):
    """The widgets of a group's ranks: first all widgets, then their changes."""

    topic = "comms"
    needs_closing = True
    fields: ClassVar[dict[str, type]] = {"group": str}

    def __init__(self, manager: GroupManager, request: Request) -> None:
        super().__init__(manager, request)
        self._follower = self._group.comms.follow(self._group.fetch_comms)
        self.topics = (self.key,)

    async def load(self) -> None:
        """Fetch all widgets, if the page needs them."""
        await self._follower.load()

    def messages(self) -> list[TopicMessage]:
        """Return the news since the last message."""
        comms, news = self._follower.take()
        if comms is None and not news:
            return []
        message: CommsMessage = {"type": "comms", "group": self._group.id, "messages": news}
        if comms is not None:
            message["comms"] = comms
        return [message]

    async def close(self) -> None:
        """Stop following."""
        self._group.comms.leave(self._follower)


class MemorySubscription(OfGroup):
    """A group's memory; samples are taken while it is followed."""

    topic = "memory"
    needs_closing = True
    fields: ClassVar[dict[str, type]] = {"group": str}

    def __init__(self, manager: GroupManager, request: Request) -> None:
        super().__init__(manager, request)
        self._watching = False
        self._sent = self._group.memory.num_added
        self.topics = (self.key,)

    async def load(self) -> None:
        """Start sampling."""
        if not self._watching:
            self._watching = True
            await self._group.watch_memory(1)

    def messages(self) -> list[TopicMessage]:
        """Return the samples since the last message."""
        samples = self._group.memory.added_after(self._sent)
        self._sent = self._group.memory.num_added
        return [{"type": "memory", "group": self._group.id, "sample": sample} for sample in samples]

    async def close(self) -> None:
        """Stop sampling."""
        if self._watching:
            self._watching = False
            await self._group.watch_memory(-1)


class DevicesSubscription(Subscription):
    """Devices and host, read while they are followed."""

    topic = "devices"

    def __init__(self, manager: GroupManager, request: Request) -> None:
        super().__init__(manager, request)
        self.due = time.monotonic()
        self._reading: machine.Devices

    async def load(self) -> None:
        """Read the devices and the host."""
        self.due = time.monotonic() + DEVICES_SECONDS
        self._reading = await self._manager.devices.read(self._manager.rank_of_pid)

    def messages(self) -> list[TopicMessage]:
        """Return the reading."""
        return [{"type": "devices", **self._reading}]


SUBSCRIPTIONS: dict[str, type[Subscription]] = {
    kind.topic: kind
    for kind in (
        GroupsSubscription,
        ExecutionSubscription,
        LogSubscription,
        CommsSubscription,
        MemorySubscription,
        DevicesSubscription,
    )
}
