"""The open comms of all ranks with the state of their widgets for pages that come later, and news for those there.

Pure. The state is merged from `open` and `update` messages, as in ipywidgets' protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_STATE_BYTES = 64 << 20  # of all comms together
MAX_COMMS = 20_000
COMM_BYTES = 500  # each counts this much besides its state
MAX_NEWS_BYTES = 4 << 20  # that a slow server has not taken
MAX_WAITING = 1000  # messages to one rank that it has not handled
MAX_WAITING_BYTES = 32 << 20

Content = dict[str, Any]


@dataclass
class Comm:
    """One comm, as a page that opens it now must see it."""

    rank: int
    comm_id: str
    execution_id: str | None
    content: Content  # of its `comm_open`, without what is below
    state: dict[str, Any] = field(default_factory=dict)
    buffers: dict[str, list[tuple[list[Any], str]]] = field(default_factory=dict)  # by key of the state: path, base64
    sizes: dict[str, int] = field(default_factory=dict)
    live: bool = True  # false: its rank is dead
    is_kept: bool = True  # false: there was too much state

    @property
    def num_bytes(self) -> int:
        """Return roughly how many bytes the state takes."""
        return COMM_BYTES + sum(self.sizes.values())

    def merge(self, data: Content, buffers: list[str], size: int) -> None:
        """Merge a state, or a part of a state."""
        state = data.get("state")
        if not isinstance(state, dict) or not self.is_kept:
            return
        self.state.update(state)
        for key in state:
            self.buffers.pop(key, None)
            self.sizes[key] = size // len(state)
        paths = data.get("buffer_paths")
        for path, buffer in zip(paths if isinstance(paths, list) else [], buffers, strict=False):
            if isinstance(path, list) and path:
                self.buffers.setdefault(str(path[0]), []).append((path, buffer))

    def drop_state(self) -> None:
        """Keep no state."""
        self.state, self.buffers, self.sizes, self.is_kept = {}, {}, {}, False

    def model(self) -> Content:
        """Return the `comm_open` that a page would get now."""
        split = [part for parts in self.buffers.values() for part in parts]
        data = {**self.content["data"]}
        if self.state or self.is_widget:
            data.update(state=self.state, buffer_paths=[path for path, _ in split])
        return {
            **self.content,
            "rank": self.rank,
            "comm_id": self.comm_id,
            "execution_id": self.execution_id,
            "data": data,
            "buffers": [buffer for _, buffer in split] or self.content.get("buffers", []),
            "live": self.live,
            "is_kept": self.is_kept,
        }

    @property
    def is_widget(self) -> bool:
        """Whether the comm follows ipywidgets' protocol."""
        return self.content.get("target_name") == "jupyter.widget"


class Comms:
    """The comms of one group; `on_news` is called when there is news for the server."""

    def __init__(self) -> None:
        self.on_news: Callable[[], None] = lambda: None
        self._comms: dict[str, Comm] = {}
        self._num_bytes = 0
        self._seq = 0
        self._news: list[Content] = []
        self._news_bytes = 0
        self._is_broken = False  # news were dropped: the server has to ask for everything again
        self._follows = False
        self._waiting: dict[int, dict[str, int]] = {}  # by rank: messages that it has not handled, with their size

    # -- from ranks -----------------------------------------------------------------------------------

    def rank_sent(self, rank: int, kind: str, execution_id: str | None, content: Content, size: int) -> str | None:
        """Take a message of a rank; return a sentence for its cell if something is not kept."""
        if kind == "comm_done":
            self._waiting.get(rank, {}).pop(content["msg_id"], None)
            self._add_news({"kind": kind, "rank": rank, **content}, 100)
            return None
        comm_id = content["comm_id"]
        known = self._comms.get(comm_id)
        if known is not None and known.rank != rank and known.live:
            return f"This widget has the id of one of rank {known.rank}'s and is not shown. Let ipywidgets choose ids."
        sentence = self._keep(rank, kind, execution_id, content, size)
        self._add_news({"kind": kind, "rank": rank, "execution_id": execution_id, **content}, size)
        return sentence

    def _keep(self, rank: int, kind: str, execution_id: str | None, content: Content, size: int) -> str | None:
        comm_id, data = content["comm_id"], content.get("data", {})
        if kind == "comm_close":
            closed = self._comms.pop(comm_id, None)
            self._num_bytes -= closed.num_bytes if closed else 0
            return None
        comm = self._comms.get(comm_id)
        if kind == "comm_open":
            self._num_bytes -= comm.num_bytes if comm else 0
            comm = self._comms[comm_id] = Comm(rank, comm_id, execution_id, {**content, "data": data})
            if comm.is_widget:  # its state is kept apart
                kept: Content = {name: content[name] for name in ("target_name", "metadata") if name in content}
                comm.content = {**kept, "data": {}}
            self._num_bytes += comm.num_bytes
        if comm is None or not comm.is_widget:
            return None
        if kind == "comm_msg" and data.get("method") not in ("update", "echo_update"):
            return None
        before = comm.num_bytes
        comm.merge(data, content.get("buffers", []), size)
        self._num_bytes += comm.num_bytes - before
        return self._within_limits(comm)

    def _within_limits(self, comm: Comm) -> str | None:
        if self._num_bytes <= MAX_STATE_BYTES and len(self._comms) <= MAX_COMMS:
            return None
        before = comm.num_bytes
        comm.drop_state()
        self._num_bytes += comm.num_bytes - before
        return (
            f"The state of this group's widgets is larger than {MAX_STATE_BYTES >> 20} MiB, or they are more than "
            f"{MAX_COMMS}. This one works in the pages that show it now; pages that are opened later show its text. "
            "Close widgets that are not needed (widget.close())."
        )

    def rank_died(self, rank: int) -> None:
        """Keep the widgets of a dead rank, as they were."""
        self._waiting.pop(rank, None)
        mine = [comm for comm in self._comms.values() if comm.rank == rank and comm.live]
        for comm in mine:
            comm.live = False
        if mine:
            self._add_news({"kind": "dead", "rank": rank}, 100)

    def clear(self) -> None:
        """Remove all comms: the ranks are new ones."""
        self._comms, self._num_bytes, self._waiting = {}, 0, {}
        self._break()

    # -- to ranks -------------------------------------------------------------------------------------

    def send(self, rank: int, content: Content, size: int) -> bool:
        """Note a message to a rank; return whether there is room for it."""
        waiting = self._waiting.setdefault(rank, {})
        if len(waiting) >= MAX_WAITING or sum(waiting.values()) + size > MAX_WAITING_BYTES:
            return False
        if (msg_id := content.get("msg_id")) is not None:
            waiting[msg_id] = size
        return True

    def calls_back(self, rank: int) -> bool:
        """Whether the rank has messages that it has not handled."""
        return bool(self._waiting.get(rank))

    def find(self, comm_id: str) -> Comm | None:
        """Return the comm."""
        return self._comms.get(comm_id)

    # -- for the server -------------------------------------------------------------------------------

    def snapshot(self) -> Content:
        """Return all that is open, and send news from now on."""
        self._follows = True
        if self._is_broken:
            self.on_news()  # the last call may have been for a server that is gone
        return {"seq": self._seq, "comms": [comm.model() for comm in self._comms.values()]}

    def take_news(self) -> Content:
        """Return the news since the last call; `reset` if news were dropped."""
        news, self._news, self._news_bytes = self._news, [], 0
        if self._is_broken:
            self._is_broken = False
            return {"seq": self._seq, "messages": [], "reset": True}
        return {"seq": self._seq, "messages": news}

    def _add_news(self, message: Content, size: int) -> None:
        self._seq += 1
        if not self._follows or self._is_broken:
            return
        if self._news_bytes + size > max(MAX_NEWS_BYTES, size):
            self._break()
            return
        self._news.append({"seq": self._seq, **message})
        self._news_bytes += size
        self.on_news()

    def _break(self) -> None:
        self._seq += 1
        self._news, self._news_bytes = [], 0
        if self._follows:
            self._is_broken = True
            self.on_news()
