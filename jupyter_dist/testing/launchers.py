"""The contract of all launchers, whatever their engine. Its tests run real processes on the real engine.

class TestEcho(LauncherContract):
name = "echo"
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from traitlets.config import Config

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.server.launchers.allocation import Allocated, Allocation, Ended, Event, Wanted
from jupyter_dist.server.launchers.launcher import Launcher
from jupyter_dist.server.launchers.nodefiles import AgentExited, AgentStarted
from jupyter_dist.server.launchers.registry import Launchers
from jupyter_dist.system.limits import within
from jupyter_dist.system.processes import command_line, processes

PROGRAM = Path(__file__).with_name("nodeprogram.py")
LIMIT_SECONDS = 90.0  # for each wait: only a fault takes this long
LOOK_SECONDS = 0.1
CANARY = "the secret of the group"

E = TypeVar("E")


class Place:
    """A folder for groups, and the launchers of one server after another."""

    def __init__(self, folder: Path, config: Config | None = None) -> None:
        self.folder = folder
        self.shared = folder / "shared"  # for what a launcher writes where nodes see it
        self.shared.mkdir()
        self.config = Config()
        self.config.Launcher.poll_seconds = LOOK_SECONDS
        self.config.merge(config or Config())

    def launchers(self) -> Launchers:
        """Return the launchers as a new server has them."""
        return Launchers(self.config)

    @contextlib.asynccontextmanager
    async def server(self) -> AsyncIterator[Launchers]:
        """Have launchers as long as a server lives."""
        launchers = self.launchers()
        try:
            yield launchers
        finally:
            await launchers.detach()

    def wanted(self, *actions: str, num_nodes: int = 2, ranks_per_node: tuple[int, ...] = (), **options: Any) -> Wanted:
        """Return the nodes of a new group; `actions` are actions of nodeprogram.py, such as "0=exit:3"."""
        group_id = f"g-{secrets.token_hex(4)}"
        directory = self.folder / group_id
        directory.mkdir(mode=0o700)
        join = directory / "join.json"
        join.touch(0o600)
        join.write_text("the secret")
        return Wanted(
            group_id=group_id,
            name="train",
            directory=directory,
            num_nodes=num_nodes,
            ranks_per_node=ranks_per_node,
            command=(sys.executable, str(PROGRAM), str(join), *actions),
            env=Secrets({**os.environ, "FROM_THE_GROUP": "yes", "OF_GROUP": group_id, "OWN": CANARY}),
            cwd=str(self.folder),
            options=options,
            files=(join,),
        )


class Followed:
    """The events of an allocation as they come."""

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation
        self.seen: list[Event] = []
        self._events = allocation.events()

    async def until(self, kind: type[E], count: int = 1) -> list[E]:
        """Wait until there are so many events of this kind, and return them."""

        async def wait() -> None:
            while len(self.of(kind)) < count:
                self.seen.append(await anext(self._events))

        try:
            await within(LIMIT_SECONDS, wait())
        except (asyncio.TimeoutError, StopAsyncIteration) as err:
            raise AssertionError((kind, self.seen, await self.allocation.logs(None, 2000))) from err
        return self.of(kind)

    async def until_ready(self) -> None:
        """Wait until the program on each node waits for its end."""
        await self.until(AgentStarted, self.allocation.num_nodes)
        deadline = time.monotonic() + LIMIT_SECONDS
        for node in range(self.allocation.num_nodes):
            while f"node {node}: " not in await self.allocation.logs(node, 1000):
                assert time.monotonic() < deadline, f"node {node} printed nothing"
                await asyncio.sleep(LOOK_SECONDS)

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of this kind so far."""
        return [event for event in self.seen if isinstance(event, kind)]


def files_with_secret(place: Place) -> list[Path]:
    """Return the files with the secret of the join file or of the environment, which only its user may read."""
    files = (path for path in place.folder.rglob("*") if path.is_file())
    return [path for path in files if b"the secret" in path.read_bytes() and not path.name.endswith(".log")]


def running(group_id: str) -> list[int]:
    """Return the processes on this machine that were started for a group: it is named in arguments or environment."""
    return [pid for pid in processes() if any(group_id in word for word in _words(pid))]


def _words(pid: int) -> list[str]:
    command = [os.fsdecode(word) for word in command_line(pid)]
    if str(PROGRAM) in command:
        with contextlib.suppress(OSError):
            command += Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    return command


def _coroutine(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[[LauncherContract, Place], None]:
    """Run an asynchronous test without a plugin of pytest."""

    def run(self: LauncherContract, place: Place) -> None:
        asyncio.run(test(self, place))

    run.__doc__ = test.__doc__
    return run


class LauncherContract:
    """The tests of a launcher: a subclass names the launcher, and may override `config` for its engine.

    Nodes of the engine must be processes that this machine sees, such as in a cluster on one machine.
    """

    name: ClassVar[str]

    def config(self, folder: Path) -> Config:
        """Return the configuration of the server; the contract has set `Launcher.poll_seconds`."""
        return Config()

    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        """Return the folder and the launchers of a test."""
        return Place(tmp_path, self.config(tmp_path))

    def _launcher(self, launchers: Launchers) -> Launcher:
        return launchers.get(self.name)

    @_coroutine
    async def test_nodes_start_are_adopted_by_the_next_server_and_end(self, place: Place) -> None:
        """Nodes outlive the server and are given time to end, no secret is seen, and `cancel` leaves nothing."""
        wanted = place.wanted("1=linger")
        async with place.server() as launchers:
            assert (await launchers.probe())[self.name].is_usable
            allocation = await self._launcher(launchers).submit(wanted)
            first = Followed(allocation)
            await first.until(AgentStarted, 2)
            (allocated,) = first.of(Allocated)
            assert len(allocated.hosts) == 2
            assert {event.node for event in first.of(AgentStarted)} == {0, 1}
        state = wanted.directory / "launcher.json"
        assert state.stat().st_mode & 0o777 == 0o600
        assert "the secret" not in state.read_text()
        assert {path.stat().st_mode & 0o777 for path in files_with_secret(place)} <= {0o600}
        assert all(b"the secret" not in b" ".join(command_line(pid)) for pid in running(wanted.group_id))
        assert len(running(wanted.group_id)) >= 2  # no server: they keep running
        async with place.server() as launchers:
            again = launchers.adopt(wanted.directory)
            assert again is not None
            second = Followed(again)
            await second.until_ready()
            await second.until(Allocated)
            await again.cancel(20)
            await again.cancel(20)  # idempotent
            await second.until(Ended)
            assert [(event.node, event.code) for event in sorted(second.of(AgentExited), key=str)] == [(0, 0), (1, 0)]
            for node in (0, 1):
                assert f"node {node}: the secret 600 yes\nended by SIGTERM" in await again.logs(node, 1000)
            assert running(wanted.group_id) == []
            again.forget()
            assert list(place.shared.iterdir()) == []
            assert [path for path in files_with_secret(place) if path.name != "join.json"] == []

    @_coroutine
    async def test_the_end_of_one_node_is_reported_and_leaves_the_others(self, place: Place) -> None:
        """A node that fails does not end the job."""
        async with place.server() as launchers:
            allocation = await self._launcher(launchers).submit(place.wanted("0=exit:3", "1=wait"))
            followed = Followed(allocation)
            (exited,) = await followed.until(AgentExited)
            assert (exited.node, exited.code, exited.signal) == (0, 3, None)
            assert exited.text.endswith("no such torch")
            await asyncio.sleep(5 * self._launcher(launchers).poll_seconds)
            assert not allocation.has_ended
            await allocation.cancel(20)
            await followed.until(Ended)

    @_coroutine
    async def test_when_all_nodes_have_ended_the_job_has_and_signals_are_named(self, place: Place) -> None:
        """The last event is `Ended`, after the ends of all nodes."""
        async with place.server() as launchers:
            followed = Followed(await self._launcher(launchers).submit(place.wanted("0=kill", "1=exit:0")))
            await followed.until(Ended)
            exits = sorted((event.node, event.code, event.signal) for event in followed.of(AgentExited))
            assert exits == [(0, None, 9), (1, 0, None)]
            assert followed.seen[-1] == Ended("The node agents have ended, and their nodes are released.")

    @_coroutine
    async def test_a_missing_interpreter_is_named_with_its_node(self, place: Place) -> None:
        """A command that a node does not have is an end with code 127 and the path."""
        async with place.server() as launchers:
            wanted = dataclasses.replace(place.wanted(), command=("/no/such/python", "-c", "pass"))
            followed = Followed(await self._launcher(launchers).submit(wanted))
            ends = await followed.until(AgentExited, 2)
            assert {(event.code, "/no/such/python" in event.text) for event in ends} == {(127, True)}
            await followed.until(Ended)

    @_coroutine
    async def test_what_comes_before_the_command_and_its_variables_reach_each_node(self, place: Place) -> None:
        """The options that launchers have in common: a prologue, a prefix, and the variables that are passed on."""
        async with place.server() as launchers:
            options: dict[str, Any] = {
                "prologue": "export FROM_THE_GROUP='a prologue'",
                "environment_passed": "none",
                "command_prefix": ["env", "FROM_PREFIX=a prefix"],
            }
            wanted = place.wanted("0=env:FROM_PREFIX", "1=env:OF_GROUP", **options)
            allocation = await self._launcher(launchers).submit(wanted)
            followed = Followed(allocation)
            await followed.until(Ended)
            printed = [await allocation.logs(node, 1000) for node in (0, 1)]
            assert "the secret 600 a prologue\nFROM_PREFIX is 'a prefix'" in printed[0]
            assert "OF_GROUP is None" in printed[1]

    @_coroutine
    async def test_wrong_options_are_refused_with_a_sentence_each_and_leave_nothing(self, place: Place) -> None:
        """Nothing is submitted, and nothing is written."""
        async with place.server() as launchers:
            wanted = place.wanted(colour="red", shape="round")
            with pytest.raises(JupyterDistError) as refused:
                await self._launcher(launchers).submit(wanted)
            assert refused.value.code == "bad_request"
            assert "no option 'colour'. " in refused.value.message
            assert "no option 'shape'." in refused.value.message
            assert [path.name for path in wanted.directory.iterdir()] == ["join.json"]
            assert list(place.shared.iterdir()) == []
