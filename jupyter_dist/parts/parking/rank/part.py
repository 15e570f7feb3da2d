"""Parks a rank, in its main thread: it leaves its process groups, and its tensors leave the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_dist.protocol.accelerators import DEVICE_TYPES
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.places import cut
from jupyter_dist.rank.collectives.revival import models
from jupyter_dist.rank.collectives.torch_compat import OutOfMemoryError
from jupyter_dist.rank.guard.own import gc, os, time
from jupyter_dist.rank.part import RankCore, RankPart, RankRequest
from jupyter_dist.system.memory import available_bytes

from .moving import MovedStorages
from .storages import find_storages, why_addresses_matter


class ParkingOfRank(RankPart):
    """Moves the rank's storages away and back, when the agent asks for it."""

    def __init__(self, core: RankCore) -> None:
        super().__init__(core)
        self._memory = core.memory
        self._moved: MovedStorages | None = None

    def idle_requests(self) -> Mapping[str, RankRequest]:
        """Return the requests that need the main thread."""
        return {
            "look_to_park": lambda *_: self.look(),
            "park": lambda header, _: self.park(header["folder"], header["moves"]),
            "resume": lambda *_: self.resume(),
        }

    def look(self) -> dict[str, Any]:
        """Empty the device's cache; return how much memory parking would move, and the reasons against parking."""
        self._memory.release()  # the driver would move the cache, too
        found, in_use = find_storages(self._memory.device_type), self._memory.in_use()
        return {
            "storage_bytes": found.num_bytes,
            "available_bytes": available_bytes(),
            "device_bytes": in_use[1] if in_use is not None else None,
            "active": self.core.may_run(),
            "addresses": why_addresses_matter() if self._memory.device_type in DEVICE_TYPES else None,
        }

    def park(self, folder: str | None, moves: bool) -> dict[str, Any]:
        """Leave the process groups, and move storages to host memory or into a file of this folder.

        Args:
            folder: where the file is made; None: host memory.
            moves: whether storages are moved; else the driver takes all of the device's memory.

        Raises:
            JupyterDistError: `group_not_ready`, if there is no room; nothing has moved then.
        """
        began = time.monotonic()
        self.core.leave_groups()
        self._memory.is_away = True
        if not moves:
            self._memory.release()  # the communicators' memory, and objects that referred to them
            held = (self._memory.in_use() or (0, 0))[1]
            return {"held_bytes": held, "left_bytes": 0, "left": [], "seconds": time.monotonic() - began}
        models.release_buckets()
        gc.collect()
        found = find_storages(self._memory.device_type)
        path = None if folder is None else os.path.join(folder, f".parked-{os.getpid()}-{time.time_ns()}")
        try:
            self._moved = MovedStorages(found.movable, path)
        except (OSError, ValueError, MemoryError, RuntimeError) as err:
            where = say("host memory") if folder is None else folder
            message = say("Cannot move %1 MiB to %2: %3", found.num_bytes >> 20, where, cut(str(err), 400))
            raise JupyterDistError("group_not_ready", message, say("Free some, or choose another place.")) from err
        left = sum(found.left_bytes.values())
        in_use = self._memory.in_use()
        if in_use is not None:  # on a device: all memory that the allocator still holds
            left = in_use[1]
        self._memory.trim()
        return {
            "held_bytes": self._moved.num_bytes,
            "left_bytes": left,
            "left": found.sentences(),
            "seconds": time.monotonic() - began,
        }

    def resume(self) -> dict[str, Any]:
        """Bring the storages back; the process groups are re-created later. Idempotent.

        Raises:
            JupyterDistError: `group_not_ready`, if the device has too little free memory; the rank stays parked then.
        """
        began = time.monotonic()
        if self._moved is not None:
            try:
                self._moved.bring_back()
            except (MemoryError, OSError, RuntimeError) as err:
                what = say("out of memory") if isinstance(err, (MemoryError, OutOfMemoryError)) else str(err)
                message = say("Cannot bring %1 MiB back: %2.", self._moved.num_bytes >> 20, cut(what, 400))
                raise JupyterDistError(
                    "group_not_ready", message, say("Free memory there, and resume it again.")
                ) from err
        self._moved, self._memory.is_away = None, False
        return {"seconds": time.monotonic() - began}
