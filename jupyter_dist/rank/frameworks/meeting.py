"""The rendezvous for a process group that user code creates itself, after it destroyed the ranks' own.

torch would use a TCPStore of rank 0, which listens on every interface. Here rank 0 creates a FileStore in the group's
folder and points a link at it; the others wait until the link points at one that they have not used. So a rank may
be late, or retry after a failure, and no rank uses the store of an earlier attempt.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from typing import Any, Protocol

import torch.distributed as dist

from jupyter_dist.protocol.specs import RankSpec

INTERRUPTIBLE = True  # cells run and wait below these functions

POLL_SECONDS = 0.01


class Membership(Protocol):
    """Receives the store in use, so that an interrupt or the death of a rank ends the wait (process_group.py)."""

    def meets_over(self, store_path: str | None) -> None:
        """User code is creating the process group over this store; None when that is done."""

    def has_lost_peer(self) -> bool:
        """Whether a member died since `meets_over`."""


class Meeting:
    """One rank's side of the rendezvous."""

    def __init__(self, spec: RankSpec, membership: Membership) -> None:
        self._rank, self._world_size = spec.rank, spec.world_size
        self._folder = os.path.dirname(spec.store_path)
        self._link = os.path.join(self._folder, "meeting")
        self._membership = membership
        self._used = self._target()  # the store of earlier ranks

    @contextlib.contextmanager
    def store(self, timeout_seconds: float | None) -> Iterator[Any]:
        """Return a new store that is the same on every rank. Blocks on other ranks until rank 0 has created it.

        Raises:
            TimeoutError: rank 0 did not come.
        """
        # The link itself, until rank 0 has chosen a store.
        self._membership.meets_over(os.path.join(self._folder, f"nowhere-{self._rank}"))
        try:
            path = self._offer() if self._rank == 0 else self._wait_for_offer(timeout_seconds)
            self._used = path
            self._membership.meets_over(path)
            yield dist.FileStore(path, self._world_size)
        except BaseException:
            if self._rank == 0:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._link)
            raise
        finally:
            self._membership.meets_over(None)

    def _offer(self) -> str:
        path = os.path.join(self._folder, f"store-of-user-{uuid.uuid4().hex[:8]}")
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # private, regardless of the umask
        os.symlink(path, f"{self._link}-0")
        os.replace(f"{self._link}-0", self._link)
        return path

    def _wait_for_offer(self, timeout_seconds: float | None) -> str:
        limit = timeout_seconds or dist.distributed_c10d.default_pg_timeout.total_seconds()
        deadline = time.monotonic() + limit
        while (path := self._target()) is None or path == self._used:
            if self._membership.has_lost_peer():
                raise RuntimeError("Another rank died: init_process_group() cannot create the process group.")
            if time.monotonic() > deadline:
                raise TimeoutError(f"Rank 0 did not call init_process_group() within {limit:g} s.")
            time.sleep(POLL_SECONDS)
        return path

    def _target(self) -> str | None:
        try:
            return os.readlink(self._link)
        except OSError:
            return None
