"""The blocking client: wrappers around AsyncClient and AsyncGroup."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jupyter_dist.client.answers.keywords import RunOptions, StartOptions
from jupyter_dist.client.asynchronous.arguments import check_names
from jupyter_dist.client.asynchronous.client import AsyncClient
from jupyter_dist.client.asynchronous.exchange import trusts_ranks
from jupyter_dist.client.asynchronous.group import AsyncGroup
from jupyter_dist.client.asynchronous.launching import Call
from jupyter_dist.client.displays.live import Show, show_live
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.schemas import beginnings
from jupyter_dist.protocol.wire import requests

from .asking import Ask, asker
from .execution import Execution
from .loop import LoopThread
from .wrapped import BlockingClient, BlockingGroup

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Client(BlockingClient):
    """One Jupyter server's groups."""

    def __init__(self, client: AsyncClient, loop: LoopThread) -> None:
        self._client = client
        self._loop = loop

    @classmethod
    def connect(
        cls,
        url: str | None = None,
        token: str | None = None,
        *,
        private: bool = True,
        start: bool = True,
        prepare: bool = True,
    ) -> Client:
        """See AsyncClient.connect."""
        loop = LoopThread()
        try:
            return cls(loop.run(AsyncClient.connect(url, token, private=private, start=start, prepare=prepare)), loop)
        except BaseException:
            loop.close()
            raise

    @property
    def url(self) -> str:
        """Return the URL of the server."""
        return self._client.server.url

    @property
    def is_private(self) -> bool:
        """Whether the server is a private one, which ends some seconds after its last client."""
        return self._client.is_private

    @property
    def is_own(self) -> bool:
        """Whether the server started this process, as JupyterLab's started its kernels."""
        return self._client.server.is_own

    def ask(self, method: str, *path: str, **options: Any) -> Any:
        """Make any request of docs/api.md, with `body`, `params` or `timeout_seconds`."""
        return self._loop.run(self._client.api.ask(method, *path, **options))

    def groups(self) -> list[Group]:
        """Return all groups, oldest first, including dead ones."""
        return [Group(group, self) for group in self._loop.run(self._client.groups())]

    def start(
        self,
        name: str | None = None,
        *,
        wait: bool = True,
        grace_seconds: float | None = None,
        **options: Unpack[StartOptions],
    ) -> Group:
        """Start a group; returns when its ranks are ready. See AsyncClient.start."""
        starting = self._client.start(name, wait=wait, grace_seconds=grace_seconds, **options)
        return Group(self._loop.run(starting), self)

    def attach(self, name: str | None = None) -> Group:
        """Return the group with that name or id; without one, the only running one."""
        return Group(self._loop.run(self._client.attach(name)), self)

    def close(self) -> None:
        """Close the connection. Groups keep running; a private server ends soon if no client is left. Idempotent."""
        if not self._loop.is_closed:
            self._loop.run(self._client.close())
            self._loop.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self.url}{', private' if self.is_private else ''}>"


class Group(BlockingGroup):
    """One group; `model` is its last known state (docs/api.md, Group)."""

    def __init__(self, group: AsyncGroup, client: Client) -> None:
        self.client = client
        self._group = group
        self._loop = client._loop

    @classmethod
    def start(
        cls,
        name: str | None = None,
        *,
        client: Client | None = None,
        wait: bool = True,
        grace_seconds: float | None = None,
        **options: Unpack[StartOptions],
    ) -> Group:
        """Start a group; returns when its ranks are ready.

        Args:
            name: A name for the group, unique among running groups; by default it is given one.
            client: The client of a server; by default `connect()` finds or starts one.
            wait: Whether to wait until the ranks are ready.
            grace_seconds: End the group that many seconds after this process, however this process ends.
            options: The options of StartOptions (docs/reference/python.md), such as `num_ranks`.
        """
        check_names(options, requests.StartOptions, "name", "client", "wait", "grace_seconds", *beginnings())
        start = (client or Client.connect()).start
        return start(name, wait=wait, grace_seconds=grace_seconds, **options)

    @property
    def model(self) -> models.GroupModel:
        """Return the last known state of the group."""
        return self._group.model

    @property
    def trust_nodes(self) -> bool:
        """Whether values that `pull`, `gather` and `launch` return from other machines may run code here; False.

        Otherwise they are numbers, texts, containers, arrays, tensors, data frames, and plain objects of classes
        allowed by `torch.serialization.add_safe_globals`, whose code does not run. Values of ranks on this machine may
        be anything.
        """
        return self._group.trust_nodes

    @trust_nodes.setter
    def trust_nodes(self, trusted: bool) -> None:
        self._group.trust_nodes = trusted

    def run(
        self,
        code: str,
        ranks: str = "all",
        *,
        stream: bool | Show = False,
        check: bool = False,
        ask: Ask | bool | None = None,
        **options: Unpack[RunOptions],
    ) -> Result:
        """Run a cell and wait until it ends; Ctrl-C interrupts it and keeps the ranks.

        Args:
            code: The cell.
            ranks: A rank expression.
            stream: True shows output as it arrives; a function is called repeatedly with the result so far.
            check: Raise RankError if a rank failed.
            ask: Answers when ranks ask for input: a function that gets an InputPrompt; True: this program's own
                `input()`; False: no answer. By default `input()`, if this program has a terminal or a notebook.
            options: The options of RunOptions (docs/reference/python.md).
        """
        check_names(options, requests.RunOptions, "code", "ranks", "stream", "check", "ask")
        result = self.begin(code, ranks, ask=ask, **options).wait(stream)
        return result.raise_for_error() if check else result

    def submit(self, code: str, ranks: str = "all", **options: Unpack[RunOptions]) -> Execution:
        """Queue a cell and return at once. With `allow_stdin=True`, `Execution.answer` answers its ranks' questions."""
        execution = self.begin(code, ranks, ask=False, **options)
        if execution.was_interrupted:
            execution.cancel()
            raise KeyboardInterrupt
        return execution

    def begin(
        self, code: str, ranks: str = "all", *, ask: Ask | bool | None = None, **options: Unpack[RunOptions]
    ) -> Execution:
        """Queue a cell to wait for it: Ctrl-C meanwhile is raised by `wait`, which then stops the ranks.

        `ask` is as in `run`.
        """
        answers = asker(ask)
        if answers is not None:
            options.setdefault("allow_stdin", True)
        return Execution(*self._loop.run_through(self._group.submit(code, ranks, **options)), self, answers)

    def launch(self, function: Callable[..., Any], *args: Any, ranks: str = "all", **kwargs: Any) -> dict[int, Any]:
        """Call a function on ranks and show their output; return its results by rank.

        A notebook's function is sent with the classes that it names and the values of its closure; it uses the ranks'
        variables.
        """
        with Call(function, args, kwargs, is_trusted=trusts_ranks(self.model, self.trust_nodes)) as call:
            execution = self.begin(call.note, ranks, call=call.request)
            result = call.checked(execution.wait(show_live(states=False)))
            return call.values(result.ranks)

    def __repr__(self) -> str:
        return f"<Group '{self.name}': {self.world_size} ranks, {self.model['state']}>"
