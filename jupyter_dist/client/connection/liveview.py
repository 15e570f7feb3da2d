"""A view from the WebSocket: differences applied in order (docs/api.md, The WebSocket)."""

from __future__ import annotations

from jupyter_dist.protocol.models.models import ViewChange, ViewItem
from jupyter_dist.protocol.wire.messages import ViewMessage


class LiveView:
    """The items of one execution, and the sequence number up to which they are known."""

    def __init__(self) -> None:
        self.items: list[ViewItem] = []
        self.seq = 0

    def apply(self, message: ViewMessage) -> None:
        """Apply a `view` message, unless it has nothing new."""
        is_whole = message.get("reset") or not message["since"]
        if not is_whole and message["seq"] <= self.seq:
            return
        if is_whole:
            self.items = []
        if message["removed"]:
            removed = set(message["removed"])
            self.items = [item for item in self.items if item["id"] not in removed]
        known = {item["id"]: item for item in self.items}
        for change in message["items"]:
            self._put(change, known)
        self.seq = message["seq"]

    def _put(self, change: ViewChange, known: dict[int, ViewItem]) -> None:
        new: ViewItem = {"id": change["id"], "seq": change["seq"], "ranks": change["ranks"]}
        old = known.get(new["id"])
        if old is not None and "append" in change:
            new["output"] = {**old["output"], "text": old["output"]["text"] + change["append"]}
        elif "elided" in change:
            new["elided"] = change["elided"]
        else:
            new["output"] = change["output"]
        known[new["id"]] = new
        after = change["after"]
        if old is not None:
            position = self._position(old["id"])
            before = self.items[position - 1]["id"] if position else None
            if before == after:
                self.items[position] = new
                return
            del self.items[position]
        if after is None:
            self.items.insert(0, new)
        elif self.items and self.items[-1]["id"] == after:  # by far the most common case
            self.items.append(new)
        else:
            self.items.insert(self._position(after) + 1, new)

    def _position(self, item_id: int) -> int:
        return next(position for position, item in enumerate(self.items) if item["id"] == item_id)
