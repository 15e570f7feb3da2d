"""Groups for everybody else: what aio.py does, without `await`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jupyter_dist.client.asynchronous.client import AsyncClient
from jupyter_dist.client.asynchronous.group import AsyncGroup, Fields
from jupyter_dist.client.calls.launching import Call
from jupyter_dist.client.results.display import show_live
from jupyter_dist.client.results.result import Result

from .execution import Execution, Show
from .loop import LoopThread


class Client:
    """One Jupyter server's groups."""

    def __init__(self, client: AsyncClient, loop: LoopThread) -> None:
        self._client = client
        self._loop = loop

    @classmethod
    def connect(cls, url: str | None = None, token: str | None = None, *, private: bool = True) -> Client:
        """See AsyncClient.connect."""
        loop = LoopThread()
        try:
            return cls(loop.run(AsyncClient.connect(url, token, private=private)), loop)
        except BaseException:
            loop.close()
            raise

    @property
    def url(self) -> str:
        """Where the server listens."""
        return self._client.server.url

    @property
    def is_private(self) -> bool:
        """Whether the server is this process's own."""
        return self._client.is_private

    def ask(self, method: str, *path: str, **options: Any) -> Any:
        """Any request of docs/api.md, with `body`, `params` or `timeout_seconds`."""
        return self._loop.run(self._client.api.ask(method, *path, **options))

    def groups(self) -> list[Group]:
        """All groups, oldest first; also those that are dead."""
        return [Group(group, self) for group in self._loop.run(self._client.groups())]

    def start(self, name: str | None = None, *, wait: bool = True, **fields: Any) -> Group:
        """Start a group: the fields of `POST /groups` (docs/api.md). Returns when its ranks are ready."""
        return Group(self._loop.run(self._client.start(name, wait=wait, **fields)), self)

    def attach(self, name: str | None = None) -> Group:
        """The group of that name or id; without one, the only one that lives."""
        return Group(self._loop.run(self._client.attach(name)), self)

    def close(self) -> None:
        """Let go of the server; a private one ends, the groups stay. Idempotent."""
        if not self._loop.is_closed:
            self._loop.run(self._client.close())
            self._loop.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self.url}{', private' if self.is_private else ''}>"


class Group:
    """One group; `model` is what was last heard of it (docs/api.md, Group)."""

    def __init__(self, group: AsyncGroup, client: Client) -> None:
        self.client = client
        self._group = group
        self._loop = client._loop

    @classmethod
    def start(cls, name: str | None = None, *, client: Client | None = None, **fields: Any) -> Group:
        """Start a group: the fields of `POST /groups` (docs/api.md). Returns when its ranks are ready."""
        return (client or Client.connect()).start(name, **fields)

    @property
    def model(self) -> Fields:
        """What was last heard of it."""
        return self._group.model

    @property
    def id(self) -> str:
        """Its id, which no other group ever has."""
        return self._group.id

    @property
    def name(self) -> str:
        """Its user's name for it."""
        return self._group.name

    @property
    def world_size(self) -> int:
        """How many ranks it has."""
        return self._group.world_size

    def run(
        self, code: str, ranks: str = "all", *, stream: bool | Show = False, check: bool = False, **fields: Any
    ) -> Result:
        """Run a cell to its end, however long it takes; Ctrl-C interrupts it and keeps the ranks.

        Args:
            code: The cell.
            ranks: A rank expression.
            stream: True shows outputs as they come; a function is given what is there so far, again and again.
            check: Raise RankError when a rank failed.
            fields: Of `POST .../executions` (docs/api.md).
        """
        result = self.submit(code, ranks, **fields).wait(stream)
        return result.raise_for_error() if check else result

    def submit(self, code: str, ranks: str = "all", **fields: Any) -> Execution:
        """Queue a cell and return at once."""
        return Execution(self._loop.run(self._group.submit(code, ranks, **fields)), self)

    def push(self, values: Mapping[str, Any], ranks: str = "all") -> None:
        """Give ranks variables: any Python objects, arrays and tensors without copies. On one machine."""
        self._loop.run(self._group.push(values, ranks))

    def scatter(self, name: str, parts: Sequence[Any], ranks: str = "all") -> None:
        """Give the first rank the first part, the second the second ..., as variable `name`."""
        self._loop.run(self._group.scatter(name, parts, ranks))

    def broadcast(self, name: str, src: int = 0, ranks: str = "all") -> None:
        """Give ranks the value that variable `name` has on rank `src`; it does not come here."""
        self._loop.run(self._group.broadcast(name, src, ranks))

    def pull(self, name: str, rank: int = 0) -> Any:
        """The value of a variable, or of any expression, on one rank."""
        return self._loop.run(self._group.pull(name, rank))

    def gather(self, name: str, ranks: str = "all") -> dict[int, Any]:
        """The values of a variable, or of any expression, by rank."""
        return self._loop.run(self._group.gather(name, ranks))

    def launch(self, function: Callable[..., Any], *args: Any, ranks: str = "all", **kwargs: Any) -> dict[int, Any]:
        """Call a function on ranks, showing what they say; what it returns, by rank.

        One of a notebook is defined there by its source, with the classes it names; it finds the ranks' variables.
        """
        with Call(function, args, kwargs) as call:
            result = call.checked(self.submit(call.code, ranks).wait(show_live(states=False)))
            return call.values(result.ranks)

    def status(self) -> Fields:
        """The Group of docs/api.md, now."""
        return self._loop.run(self._group.status())

    def memory(self) -> Fields:
        """A fresh MemorySample of docs/api.md."""
        return self._loop.run(self._group.memory())

    def complete(self, code: str, cursor_pos: int | None = None, rank: int = 0) -> Fields:
        """What fits at the cursor (in characters; the end) of what a rank knows: Jupyter's complete_reply.

        Raises:
            JupyterDistError: when the rank cannot answer at once.
        """
        return self._loop.run(self._group.complete(code, cursor_pos, rank))

    def interrupt(self, ranks: str = "all") -> Fields:
        """Interrupt what runs; the ranks and their variables stay."""
        return self._loop.run(self._group.interrupt(ranks))

    def restart(self) -> Group:
        """Fresh processes for all ranks; returns when they are ready."""
        self._loop.run(self._group.restart())
        return self

    def replace(self) -> Group:
        """Fresh processes for dead ranks, the others keep theirs; returns when they have joined."""
        self._loop.run(self._group.replace())
        return self

    def kill(self, rank: int) -> Group:
        """End one rank's process, for when no interrupt frees it; the others keep theirs. Then `replace` it."""
        self._loop.run(self._group.kill(rank))
        return self

    def reform(self) -> Group:
        """Form the process group anew in the same processes, which keep every variable; returns when it is there.

        Raises:
            JupyterDistError: `group_not_ready`, when a cell runs, a rank is dead, or ranks could not join.
        """
        self._loop.run(self._group.reform())
        return self

    def empty_cache(self, ranks: str = "all") -> dict[int, int]:
        """Collect garbage and empty the device caches of idle ranks; freed bytes by rank."""
        return self._loop.run(self._group.empty_cache(ranks))

    def shutdown(self) -> list[str]:
        """End the group; returns sentences about what did not leave by itself."""
        return self._loop.run(self._group.shutdown())

    def logs(self, rank: int, tail_bytes: int = 1 << 18) -> list[Fields]:
        """The last records of a rank's log (docs/api.md, LogRecord)."""
        return self._loop.run(self._group.logs(rank, tail_bytes))

    def follow_logs(self, rank: int, tail_bytes: int = 1 << 18) -> Iterator[list[Fields]]:
        """The last records of a rank's log, then what comes, for ever."""
        return self._loop.iterate(self._group.follow_logs(rank, tail_bytes))

    def __repr__(self) -> str:
        return f"<Group '{self.name}': {self.world_size} ranks, {self.model['state']}>"
