"""The loads of a page's subscriptions, which must end before messages can be sent. No load delays another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .subscriptions import Subscription


class Loads:
    """The loads that have begun. A load that takes longer than a turn of the event loop calls `wake` at its end."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._running: dict[Subscription, asyncio.Task[bool]] = {}
        self._changed: set[Subscription] = set()  # since their load began

    def __contains__(self, subscription: Subscription) -> bool:
        """Whether the subscription is being loaded."""
        return subscription in self._running

    def begin(self, subscription: Subscription) -> None:
        """Load the subscription; if it is already being loaded, load it again after that."""
        if subscription in self._running:
            self._changed.add(subscription)
            return
        task = asyncio.create_task(subscription.try_to_load(), name=f"load {subscription.key}")
        self._running[subscription] = task
        task.add_done_callback(lambda _: self._ended(subscription, task))

    def ended(self) -> list[tuple[Subscription, asyncio.Task[bool]]]:
        """Return the loads that have ended since the last call; call `again` for each after its messages are built."""
        ended = [(subscription, task) for subscription, task in self._running.items() if task.done()]
        for subscription, _ in ended:
            del self._running[subscription]
        return ended

    def again(self, subscription: Subscription) -> None:
        """Load the subscription again if it changed since its load began."""
        if subscription in self._changed:
            self._changed.discard(subscription)
            self.begin(subscription)

    def drop(self, subscription: Subscription) -> None:
        """Stop loading the subscription. Idempotent."""
        self._changed.discard(subscription)
        if (task := self._running.pop(subscription, None)) is not None:
            task.cancel()

    async def close(self) -> None:
        """Stop loading, and wait until all have stopped. Idempotent."""
        tasks = list(self._running.values())
        for subscription in list(self._running):
            self.drop(subscription)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, subscription: Subscription, task: asyncio.Task[bool]) -> None:
        if not task.cancelled():
            task.exception()  # else asyncio logs the error of a dropped load as never retrieved
        if self._running.get(subscription) is task:
            self._wake()
