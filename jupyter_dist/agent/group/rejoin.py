"""Makes ranks leave their process group and join a new one, without waiting for ranks that cannot join."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Protocol

from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.transport.frames import Header
from jupyter_dist.transport.tasks import start_task

from .process_group import Revived

REJOIN_SECONDS = 60.0
RETRY_SECONDS = 2.0
MAX_RETRY_SECONDS = 30.0
POLL_SECONDS = 0.01


class Stores(Protocol):
    """The stores that ranks use for rendezvous, each only once."""

    def new(self) -> str:
        """Return the name, for ranks, of a store that no process group has used."""

    def break_current(self) -> None:
        """Make a rendezvous fail that cannot complete."""


class FileStores:
    """FileStores in the group's directory, for ranks on this machine."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0

    def new(self) -> str:
        """Return a path that no process group has used: a stale file breaks the next one."""
        before = self._current()
        self._number += 1
        for stale in (before, self._current()):
            with contextlib.suppress(OSError):  # a failing disk: the ranks will report it
                stale.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a full disk: the ranks will report it
            self._current().touch(0o600)  # private, regardless of the umask of the ranks
        return str(self._current())

    def break_current(self) -> None:
        """Make every access to it fail: torch waits for a missing file, but not for a symlink to itself."""
        store = self._current()
        with contextlib.suppress(OSError):
            store.unlink(missing_ok=True)
            store.symlink_to(store)

    def _current(self) -> Path:
        return self._directory / f"store-{self._number}"


class Retries:
    """Calls a function after a failure, later each time."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._seconds = RETRY_SECONDS
        self._timer: asyncio.TimerHandle | None = None

    def plan(self) -> None:
        """Call the function after a time, which is twice as long the next time."""
        self._cancel()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, lambda: start_task(self._work(), "retry"))
        self._seconds = min(2 * self._seconds, MAX_RETRY_SECONDS)

    def stop(self) -> None:
        """Cancel the plan; the next one begins with the shortest time. Idempotent."""
        self._cancel()
        self._seconds = RETRY_SECONDS

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


async def rejoin(ranks: list[RankProcess], store_path: str, move: Header | None = None) -> Revived:
    """Make these ranks join over this store; return what was re-created with it.

    Args:
        ranks: the ranks.
        store_path: a store that no process group has used.
        move: where ranks leave or are added, what changes for all; each gets the place of its spec.

    Raises:
        JupyterDistError: the error of the first rank that could not join.
    """
    for rank in ranks:
        rank.set_state("joining")
    joins = (_rejoin_one(rank, store_path, move) for rank in ranks)
    outcomes = await asyncio.gather(*joins, return_exceptions=True)  # wait for all: none is left half-joined
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    revived = [outcome for outcome in outcomes if isinstance(outcome, Revived)]
    if not revived:
        return Revived(0, ())
    # Each rank has created the same; ranks have left different process groups.
    return revived[0]._replace(lacking=tuple(dict.fromkeys(name for one in revived for name in one.lacking)))


async def rejoin_with(
    new: list[RankProcess], ranks: list[RankProcess], store_path: str, move: Header | None = None
) -> Revived | None:
    """Make these ranks join with new ranks, as soon as the new ones have imported their modules.

    An import takes longer than ranks wait for each other. If a rank has died meanwhile, there is nothing to join.
    """
    while any(rank.state in ("starting", "importing") for rank in new):  # noqa: ASYNC110 - at most as long as a start
        await asyncio.sleep(POLL_SECONDS)
    if any(rank.state == "dead" for rank in (*new, *ranks)):
        return None
    return await rejoin(ranks, store_path, move)


def give_up_waiting_for(dead: RankProcess, living: Iterable[RankProcess], stores: Stores) -> None:
    """Make collectives with a dead rank fail at once, and also a rendezvous that it will not reach."""
    assert dead.exit is not None
    for rank in living:
        rank.send({"t": "peer_lost", "rank": dead.rank, "reason": dead.exit["reason"]})
    stores.break_current()


def explain_failure(living: Iterable[RankProcess], reason: str) -> None:
    """Make collectives fail at once with the reason why there is no process group."""
    text = f"The process group could not be re-created, which is tried again: {reason.rstrip('.')}"
    for rank in living:
        rank.send({"t": "peer_lost", "text": text})


def give_up_waiting_for_device(lost: Iterable[RankProcess], living: Iterable[RankProcess]) -> None:
    """Make collectives with ranks that have lost their devices fail at once: they live, but send nothing any more."""
    lost = list(lost)
    for other in living:
        if other.process_group != "lost":
            other.send({"t": "peer_lost", "rank": lost[0].rank, "reason": "lost its device"})


async def _rejoin_one(rank: RankProcess, store_path: str, move: Header | None) -> Revived:
    rank.collective_seq, rank.process_group = 0, "broken"  # until it has joined the new one
    place = rank.encoded_place(move or {"places": {}})
    try:
        answer = await rank.request("rejoin", REJOIN_SECONDS, place, store_path=store_path)
        rank.process_group = "ok"
    finally:
        if not rank.gone.is_set():
            rank.set_state("idle")
    left, lacking = (tuple(map(str, answer[name])) for name in ("left", "lacking"))
    return Revived(int(answer["num_subgroups"]), left, lacking)
