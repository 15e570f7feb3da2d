"""torch's process group: created at the start, and re-created under the same objects after it broke."""

from __future__ import annotations

import contextlib
import datetime
import sys
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from jupyter_dist.protocol.accelerators import BACKENDS
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.collectives.aborting import nccl, unhang
from jupyter_dist.rank.collectives.aborting.gloo_sockets import GlooSockets
from jupyter_dist.rank.collectives.diagnosis import counters, flight, mainthread, records
from jupyter_dist.rank.collectives.interruptible import waits
from jupyter_dist.rank.guard.own import os, time

from . import failures, linkstore, lostdevice, torch_compat
from .revival import models
from .revival.compat import Move
from .revival.groups import KeptGroups

REJOIN_SECONDS = 10.0
REJOIN_SECONDS_PER_RANK = 0.5
# gloo retries a connection that fails; in torch 2.13 it gives up after five timeouts.
_NUM_TRIES = 5
_POLL_SECONDS = 0.005


class RevivedGroups(NamedTuple):
    """The process groups that were re-created with the default process group."""

    num_subgroups: int
    left: list[str]  # names that mean different process groups on different ranks
    lacking: list[str]  # names of process groups of which members have left the group


class Mesh(NamedTuple):
    """The connections of a default process group over gloo."""

    world: Callable[[], Any]  # a weak reference
    listeners: frozenset[int]
    num_connections: int  # when it was new


class Membership:
    """This rank's membership in the process group: it joins, leaves, and joins again after it broke."""

    def __init__(self, spec: RankSpec, log: Callable[[str], None]) -> None:
        self._spec = spec
        self._log = log
        self._told: set[str] = set()
        self._store_path = spec.store_path
        self._broken_since: float | None = None
        self._knows_records = False  # whether the recorders were found to have this group's collectives
        self._has_aborted = False  # communicators on devices
        self._aborted: list[records.IncompleteCollective] = []  # under way at the abort after a rank's death
        self._has_lost_device = False  # permanently: lostdevice.py
        self._meets = False  # user code is creating the process group
        self._abandoned: list[Any] = []  # backends that cannot be closed
        self._sockets = GlooSockets()
        self._sockets.install()
        self._timeout: datetime.timedelta | None = None  # that user code asked for
        os.register_at_fork(after_in_child=self._forked)
        self._mesh: Mesh | None = None
        self._before: frozenset[int] = frozenset()  # gloo's devices before user code began to create the process group

    def join_first(self) -> None:
        """Join when this process starts: with other new ranks, or with ranks that have process groups already."""
        self.join(self._spec.store_path, kept=KeptGroups() if self._spec.replaces else None)

    def take_place(self, spec: RankSpec) -> None:
        """Have another number, or be in a group of another size, from the next process group on."""
        self._spec = spec

    def join(
        self,
        store_path: str,
        timeout_seconds: float | None = None,
        kept: KeptGroups | None = None,
        move: Move | None = None,
    ) -> None:
        """Join the other ranks; blocks until all have joined. Errors of torch pass through.

        Args:
            store_path: a store that no process group has used (linkstore.py).
            timeout_seconds: how long to wait for the others; the spec's by default.
            kept: the process groups to create again, if other ranks do the same.
            move: how a resize has changed the numbers of the ranks.
        """
        linkstore.check_reachable(store_path)
        self._store_path = store_path
        torch_compat.use_device(self._spec.device)
        dist.set_debug_level_from_env()
        torch_compat.keep_records()
        store = linkstore.store_at(store_path, self._spec)
        if timeout_seconds is not None:
            store.set_timeout(datetime.timedelta(seconds=timeout_seconds))
        if kept is not None:
            kept.publish(store, self._spec.rank, move)
        backend = BACKENDS[self._spec.backend]
        can_change = torch_compat.can_change_timeout(backend.joined_as)
        if backend.is_eager or not can_change:  # a backend that connects at once waits for ranks that are not there
            self._meet(store, self._spec.join_timeout_seconds if timeout_seconds is None else timeout_seconds)
        if can_change:
            timeout = datetime.timedelta(seconds=self._connect_seconds(timeout_seconds))
        else:
            timeout = self._timeout or torch_compat.default_timeout(backend.joined_as)
        world: dict[str, Any] = {"rank": self._spec.rank, "world_size": self._spec.world_size}
        if backend.is_eager:
            world["device_id"] = torch.device(self._spec.device)
        before = self._sockets.listeners()
        dist.init_process_group(backend.joined_as, store=store, timeout=timeout, **world)
        torch_compat.name_ranks_of_default()
        self._look_at_mesh(before)
        if kept is not None:
            kept.recreate(store, self._spec.world_size, timeout if can_change else None)
            if self._mesh is not None:  # the same connections, under the object of before
                self._mesh = self._mesh._replace(world=weakref.ref(dist.group.WORLD))
        # That timeout was for joining; collectives of cells get torch's default, or what user code has asked for.
        torch_compat.set_timeout(self._timeout or torch_compat.default_timeout(backend.joined_as))
        for sentence in backend.changed_by(os.environ):
            self._tell(sentence)
        self._broken_since, self._has_aborted = None, False

    def keep_timeout(self, timeout: datetime.timedelta | None) -> bool:
        """Use this timeout of collectives, torch's default if none, for each process group from now on.

        Returns:
            Whether it counts for the present one.
        """
        self._timeout = timeout
        if not dist.is_initialized():
            return True
        if self._spec.backend != "gloo":  # none ends a collective on a device (see set_timeout)
            return timeout is None or timeout >= torch_compat.default_timeout(self._spec.backend)
        if torch_compat.can_change_timeout(self._spec.backend):
            torch_compat.set_timeout(timeout or torch_compat.default_timeout(self._spec.backend))
            return True
        return torch_compat.timeout_of(None) == timeout

    def _forked(self) -> None:
        """Forget the rank's connections, in a forked child: they belong to the parent."""
        self._broken_since, self._meets, self._mesh = None, False, None
        self._sockets.forget()

    def _meet(self, store: dist.Store, seconds: float) -> None:
        """Wait until all ranks are there, so that joining with a long timeout does not wait for a missing rank.

        Not in a process group: a rank that leaves it closes connections that another one is still opening.
        """
        meeting = dist.PrefixStore("meeting", store)
        meeting.set(str(self._spec.rank), "here")
        meeting.wait([str(rank) for rank in range(self._spec.world_size)], datetime.timedelta(seconds=seconds))

    def _connect_seconds(self, rejoin_seconds: float | None) -> float:
        if rejoin_seconds is None:
            return self._spec.join_timeout_seconds
        has_gloo = "gloo" in BACKENDS[self._spec.backend].joined_as
        return rejoin_seconds / _NUM_TRIES if has_gloo else rejoin_seconds

    def rejoin(self, store_path: str, move: Move | None = None) -> RevivedGroups:
        """Leave the broken group and join a new one, with all process groups that any rank has."""
        kept = KeptGroups()
        before = dist.group.WORLD if dist.is_initialized() else None
        if dist.is_initialized():
            self._close(kept)
        self.begin_cell()
        # All ranks join at the same time. gloo waits for a rank that dies after it published its address, and that wait
        # cannot be broken: this limits how long a death delays the others.
        try:
            self.join(store_path, max(REJOIN_SECONDS, self._spec.world_size * REJOIN_SECONDS_PER_RANK), kept, move)
        except BaseException:
            kept.put_back()
            raise
        flight.forget()
        counters.forget_messages()
        if kept.failure is not None:
            self._log(
                "jupyter_dist: the process groups were re-created as other objects: subgroups and meshes must be made "
                f"again. ({kept.failure:.300})\n"
            )
        for sentence in models.end_half_done_steps(before):
            self._log(f"jupyter_dist: {sentence}\n")
        return RevivedGroups(kept.num_subgroups, kept.left, kept.lacking)

    def disconnect(self) -> None:
        """Close the connections of all process groups, whose objects stay until `rejoin` gives them new ones."""
        self._break()
        self._break_collectives()
        if torch_compat.device_groups():
            self._abort()

    def _close(self, kept: KeptGroups) -> None:
        self._break()
        # An interrupted collective may still wait in gloo's own thread, and closing would wait for it.
        self._break_collectives()
        if torch_compat.device_groups():
            failure = nccl.abort()
            self._tell_failure(failure)
            if failure is not None:
                raise TimeoutError(f"Its communicators cannot be closed: {failure}")
        if kept.hide():
            return
        # Closing a group whose connections are gone may fail; drop it anyway.
        with contextlib.suppress(RuntimeError):
            if torch_compat.device_groups():
                torch_compat.drop_process_groups()
            else:
                dist.destroy_process_group()

    def begin_cell(self) -> None:
        """Avoid a pitfall of torch: after a failed init, ranks disagree on the next group's name and hang."""
        torch_compat.release_backends()
        if not dist.is_initialized():
            torch_compat.forget_failed_init()

    def state(self, error: BaseException | None) -> str:
        """`ok`, `broken` (collectives would fail), `none` (the user destroyed it), or `lost` (with the device)."""
        self._has_lost_device = self._has_lost_device or lostdevice.is_in(error)
        if self._has_lost_device:
            return "lost"
        failure = self.find_failure(error)
        if failure is not None and failure.breaks_all:
            self._break()
        if not dist.is_initialized():
            return "none"
        return "ok" if self._broken_since is None else "broken"

    def find_failure(self, error: BaseException | None) -> failures.Failure | None:
        """Return the failure of a collective that caused this error, with the flag that the default group is broken."""
        found = failures.find(error)
        return None if found is None else found._replace(breaks_all=self._is_broken_by(found))

    def _is_broken_by(self, failure: failures.Failure) -> bool:
        """Whether the default process group is broken: by its connections and store, which prove more than an error."""
        if self._broken_since is not None or unhang.store_is_broken(self._store_path):
            return True
        if self._mesh is not None and self._mesh.world() is getattr(dist.group, "WORLD", None):
            is_cut = self._sockets.num_established(self._mesh.listeners) < self._mesh.num_connections
            if is_cut or self._spec.backend == "gloo":
                return is_cut
        return failure.kind != "other" and failure.group in (None, getattr(dist.group, "WORLD", None))

    def _look_at_mesh(self, before: frozenset[int]) -> None:
        """Record the connections of the new process group, unless it makes them later (TORCH_GLOO_LAZY_INIT)."""
        listeners = self._sockets.listeners() - before
        number = self._sockets.num_established(listeners)
        is_full = 1 <= self._spec.world_size - 1 <= number
        self._mesh = Mesh(weakref.ref(dist.group.WORLD), listeners, number) if is_full else None

    def peer_lost(self) -> None:
        """Handle a member's death (side thread): until the group is re-created, collectives fail instead of hanging."""
        self._break()
        self._break_collectives()
        if torch_compat.device_groups():
            self._aborted = flight.unfinished()
            self._abort()
        if self._meets:  # the rendezvous can never complete
            self._break_store()

    def meets_over(self, store_path: str | None) -> None:
        """Record the store over which user code is creating the process group; None when that is done."""
        if store_path is not None:
            self._store_path, self._broken_since = store_path, None
            self._before = self._sockets.listeners()
        elif dist.is_initialized():
            torch_compat.name_ranks_of_default()
            self._look_at_mesh(self._before)
        self._meets = store_path is not None

    def has_lost_peer(self) -> bool:
        """Whether a member died since `meets_over`, or an interrupt ended the wait."""
        return self._broken_since is not None

    def was_aborted(self) -> bool:
        """Whether the communicators on devices were aborted since this rank has joined, or are being aborted now."""
        return self._has_aborted or nccl.is_aborting()

    def failure_of_cell(self, began_ns: int) -> str | None:
        """Return the collective of a cell that has never completed, and has raised no error; None if there is none.

        On a device a collective that is aborted, or whose peer is gone, returns, and the next one raises.
        """
        if not torch_compat.device_groups():
            return None
        failed = [*self._aborted, *records.abandoned_collectives()]
        self._aborted = []
        return next((entry["name"] for entry in failed if entry["created_ns"] >= began_ns), None)

    def was_broken(self, seconds_ago: float) -> bool:
        """Whether all connections were cut at least this long ago."""
        return self._broken_since is not None and time.monotonic() - self._broken_since >= seconds_ago

    def leave(self, is_complete: Callable[[], bool]) -> None:
        """Leave an incomplete gloo collective, so that no other rank waits in it either."""
        self._break()
        self._break_collectives()
        deadline = time.monotonic() + waits.GRACE_SECONDS
        while not is_complete():
            if time.monotonic() > deadline:
                # gloo's thread keeps waiting, and closing would wait for it. Keep them and create new ones beside them.
                self._abandoned += torch_compat.backends()
                flight.forget()
                return
            time.sleep(_POLL_SECONDS)

    def collective_seq(self) -> int | None:
        """Return how many collectives this rank began on the default process group; None if there is none."""
        number = counters.collective_seq()
        if number and not self._knows_records:
            self._check_records()
        return number

    def _check_records(self) -> None:
        """Log a warning if the recorders lack the collectives that a cell has begun: their names prove nothing."""
        self._knows_records = True
        begun = {name for name in torch_compat.backend_names() if torch_compat.keeps_records(name)}
        if begun and not begun & records.backends_seen():
            what = (
                f"torch {torch.__version__} keeps no record of this group's collectives where jupyter_dist reads them"
            )
            self._log(f"jupyter_dist: {what}. A rank that waits for its device is not named as waiting.\n")

    def unhang(self, frees: bool = False) -> bool:
        """Free the main thread if it waits in a collective (side thread); return True if connections were broken.

        Args:
            frees: end hangs on devices, too. The agent requests it on all ranks of a cell together: an abort on one
                rank alone leaves the others waiting, and breaks healthy training.
        """
        if self._meets and mainthread.main_thread_sleeps():
            self._break()
            self._break_store()
            return True
        if frees and not self._has_aborted and torch_compat.device_groups():
            return self._unhang_device()
        # The main thread's state does not show a wait for a device, in which it spins.
        return mainthread.main_thread_sleeps() and self._unhang_host(frees or self._spec.backend == "gloo")

    def _unhang_host(self, may_break: bool) -> bool:
        in_torch = may_break and mainthread.main_thread_waits_in_torch("gloo")
        # Set the flag first: the main thread may be free and reply before this thread continues.
        was_broken = self._broken_since is not None
        if in_torch:
            self._break()
        store = self._sockets.store_connection(mainthread.main_thread_fd())
        if store is not None:
            unhang.break_connections([store])
        elif in_torch and was_broken:  # the connections are cut already, so it waits in the store (as new_group does)
            self._break_store()
        elif in_torch and not self._break_collectives():
            self._broken_since = None
        return self._broken_since is not None or store is not None

    def _break_collectives(self) -> int:
        return unhang.break_connections(self._sockets.connections())

    def _break_store(self) -> None:
        if self._store_path.startswith(linkstore.PREFIX):
            with contextlib.suppress(RuntimeError, OSError):  # the node agent is gone, and ends this rank
                linkstore.LinkStore(self._spec.store_socket, self._store_path).close()
        else:
            unhang.break_store(self._store_path)

    def _unhang_device(self) -> bool:
        """Abort, even without torch's records: a first collective, or a collective that torch gave up, has none."""
        was_broken = self._broken_since is not None
        self._break()
        if self._abort():
            if flight.outstanding("gloo") is not None:  # the wait may be for a collective of gloo
                self._break_collectives()
        elif not was_broken:
            self._broken_since = None  # tried again while the cell waits
        return self._broken_since is not None

    def _abort(self) -> bool:
        failure = nccl.abort()
        self._has_aborted = failure is None
        self._tell_failure(failure)
        return self._has_aborted

    def _tell_failure(self, failure: str | None) -> None:
        if failure is not None:
            what = f"the {self._spec.backend} collectives of this rank could not be ended: {failure}"
            self._tell(f"{what}. Kill this rank, or restart the group.")

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._log(f"jupyter_dist: {sentence}\n")

    def _break(self) -> None:
        if self._broken_since is None:
            self._broken_since = time.monotonic()


def reseed(accelerator: str) -> None:
    """Give each forked rank its own random state instead of the zygote's."""
    if accelerator != "cpu":
        torch.seed()
    else:
        torch.default_generator.seed()  # torch.seed() would also seed every device type, which is slow
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def use_threads() -> None:
    """Apply OMP_NUM_THREADS, which torch read when the zygote imported it."""
    number = os.environ.get("OMP_NUM_THREADS", "")
    if number.isdigit() and int(number) > 0:
        torch.set_num_threads(int(number))
