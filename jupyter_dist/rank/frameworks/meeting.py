"""The rendezvous for a process group that user code creates itself, after it destroyed the ranks' own.

torch would use a TCPStore of rank 0, which listens on every interface. Here rank 0 creates a store and offers it on a
board; the others wait for an offer that they have not used. So a rank may be late, or retry after a failure, and no
rank uses the store of an earlier attempt. On one machine the stores are files in the group's folder, and the board is
a link to one of them; on several both are with the head of the group.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from typing import Any, Protocol

import torch.distributed as dist

from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.collectives.linkstore import LinkStore, store_at

INTERRUPTIBLE = True  # cells run and wait below these functions

POLL_SECONDS = 0.01
LINK_POLL_SECONDS = 0.05


class Board(Protocol):
    """Where rank 0 offers a store."""

    poll_seconds: float

    def offer(self) -> str:
        """Offer a new store; return it as ranks name it."""

    def offered(self) -> str | None:
        """Return the store on offer."""

    def withdraw(self) -> None:
        """Withdraw the offer."""

    def nowhere(self, rank: int) -> str:
        """Return a store that this rank waits over until there is an offer."""


class FolderBoard:
    """Files in the group's folder."""

    poll_seconds = POLL_SECONDS

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._link = os.path.join(folder, "meeting")

    def offer(self) -> str:
        """Create a file, and point the link at it."""
        path = os.path.join(self._folder, f"store-of-user-{uuid.uuid4().hex[:8]}")
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # private, regardless of the umask
        os.symlink(path, f"{self._link}-0")
        os.replace(f"{self._link}-0", self._link)
        return path

    def offered(self) -> str | None:
        """Return where the link points."""
        try:
            return os.readlink(self._link)
        except OSError:
            return None

    def withdraw(self) -> None:
        """Remove the link."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._link)

    def nowhere(self, rank: int) -> str:
        """Return a path without a file."""
        return os.path.join(self._folder, f"nowhere-{rank}")


class LinkBoard:
    """A store at the head of the group that holds the name of the offered store."""

    poll_seconds = LINK_POLL_SECONDS

    def __init__(self, socket_path: str) -> None:
        self._store = LinkStore(socket_path, "meeting")

    def offer(self) -> str:
        """Choose a name."""
        name = f"link:of-user-{uuid.uuid4().hex[:8]}"
        self._store.set("offer", name)
        return name

    def offered(self) -> str | None:
        """Return the name."""
        found = self._store.peek("offer")
        return None if found is None else found.decode()

    def withdraw(self) -> None:
        """Remove the name."""
        self._store.delete_key("offer")

    def nowhere(self, rank: int) -> str:
        """Return a name without a store."""
        return f"link:nowhere-{rank}"


class StoreListener(Protocol):
    """Receives the store in use, so that an interrupt or the death of a rank ends the wait (process_group.py)."""

    def meets_over(self, store_path: str | None) -> None:
        """User code is creating the process group over this store; None when that is done."""

    def has_lost_peer(self) -> bool:
        """Whether a member died since `meets_over`."""


class Meeting:
    """One rank's side of the rendezvous."""

    def __init__(self, spec: RankSpec, membership: StoreListener) -> None:
        self._rank = spec.rank
        self._spec = spec
        self._board: Board = LinkBoard(spec.store_socket) if spec.store_socket else FolderBoard(_folder_of(spec))
        self._membership = membership
        self._used = self._board.offered()  # the store of earlier ranks

    def take_place(self, spec: RankSpec) -> None:
        """Have another number, or be in a group of another size."""
        self._rank, self._spec = spec.rank, spec

    @contextlib.contextmanager
    def store(self, timeout_seconds: float | None) -> Iterator[Any]:
        """Return a new store that is the same on every rank. Blocks on other ranks until rank 0 has created it.

        Raises:
            TimeoutError: rank 0 did not come.
        """
        self._membership.meets_over(self._board.nowhere(self._rank))  # until rank 0 has chosen a store
        try:
            path = self._board.offer() if self._rank == 0 else self._wait_for_offer(timeout_seconds)
            self._used = path
            self._membership.meets_over(path)
            yield store_at(path, self._spec)
        except BaseException:
            if self._rank == 0:
                self._board.withdraw()
            raise
        finally:
            self._membership.meets_over(None)

    def _wait_for_offer(self, timeout_seconds: float | None) -> str:
        limit = timeout_seconds or dist.distributed_c10d.default_pg_timeout.total_seconds()
        deadline = time.monotonic() + limit
        while (path := self._board.offered()) is None or path == self._used:
            if self._membership.has_lost_peer():
                raise RuntimeError("Another rank died: init_process_group() cannot create the process group.")
            if time.monotonic() > deadline:
                raise TimeoutError(f"Rank 0 did not call init_process_group() within {limit:g} s.")
            time.sleep(self._board.poll_seconds)
        return path


def _folder_of(spec: RankSpec) -> str:
    return os.path.dirname(spec.store_path)
