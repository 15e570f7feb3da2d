"""News of widgets on the way from the agent to pages. A page that lost news gets the state that the agent keeps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from jupyter_dist.protocol.wire.messages import CommNews, CommState
from jupyter_dist.transport.frames import Header

MAX_QUEUED = 5000  # messages for a page that does not take them; after that it gets the state of all comms

Fetch = Callable[[], Awaitable[Header]]


class CommFollower:
    """The news that one page has not been sent yet; `take` returns them."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._is_lost = True  # the page needs all comms
        self._comms: list[CommState] | None = None
        self._news: list[CommNews] = []
        self._seq = 0  # of the last news that the fetched comms contain

    def feed(self, news: list[CommNews]) -> None:
        """Take news of the agent."""
        self._news += news
        if len(self._news) > MAX_QUEUED:
            self.reset()

    def reset(self) -> None:
        """Start over with all comms, because news were lost."""
        self._is_lost, self._news = True, []

    async def load(self) -> None:
        """Fetch all comms if they are needed. Raises JupyterDistError."""
        if not self._is_lost:
            return
        self._is_lost = False
        try:
            answer = await self._fetch()
        except BaseException:
            self._is_lost = True
            raise
        self._comms, self._seq = list(answer["comms"]), int(answer["seq"])

    def take(self) -> tuple[list[CommState] | None, list[CommNews]]:
        """Return all comms, if the page needs them, and the news since."""
        if self._is_lost:
            return None, []
        comms, self._comms = self._comms, None
        news, self._news = [message for message in self._news if message["seq"] > self._seq], []
        return comms, news


class CommFeed:
    """The followers of one group's widgets."""

    def __init__(self) -> None:
        self._followers: set[CommFollower] = set()

    def follow(self, fetch: Fetch) -> CommFollower:
        """Add a follower."""
        follower = CommFollower(fetch)
        self._followers.add(follower)
        return follower

    def leave(self, follower: CommFollower) -> None:
        """Remove the follower. Idempotent."""
        self._followers.discard(follower)

    def feed(self, header: Header) -> None:
        """Take a `comms` message of the agent."""
        for follower in self._followers:
            if header.get("reset"):
                follower.reset()
            else:
                follower.feed(header["messages"])

    def reset(self) -> None:
        """Reset all followers: the connection to the agent was lost, and news with it."""
        for follower in self._followers:
            follower.reset()
