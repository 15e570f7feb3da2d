"""Moves the bytes of storages to host memory or into a file, and back, under the same tensors."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import torch

from jupyter_dist.objects import staging
from jupyter_dist.rank.guard.own import os


class Shelf:
    """Memory of the host, or a file without a name, for the bytes of all storages of a rank."""

    def __init__(self, num_bytes: int, path: str | None) -> None:
        """Allocate the memory, or the whole file.

        Args:
            num_bytes: its size.
            path: a new file; None: host memory.

        Raises:
            OSError: the disk is full, or the file cannot be created.
            ValueError: there are not enough addresses.
        """
        self._num_bytes = max(1, num_bytes)
        self._fd: int | None = None
        self._memory: mmap.mmap | None = None
        if path is None:
            self._memory = mmap.mmap(-1, self._num_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            return
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.unlink(path)  # it goes with this process, however that ends
            os.posix_fallocate(self._fd, 0, self._num_bytes)  # later, a full disk would end the process
        except OSError:
            self.close()
            raise

    def as_bytes(self) -> Any:
        """Return its bytes as a tensor, which keeps them mapped."""
        memory = self._memory
        if memory is None:
            assert self._fd is not None
            memory = mmap.mmap(self._fd, self._num_bytes)
        return torch.frombuffer(memory, dtype=torch.uint8)

    def settle(self) -> None:
        """Write a file to its disk, so that its pages take no memory."""
        if self._fd is not None:
            os.fsync(self._fd)
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """Release the memory or the file. Idempotent."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd = self._memory = None  # a mapping goes with the last tensor that uses it


class MovedStorages:
    """Storages without bytes: their tensors must not be used until `bring_back` has returned."""

    def __init__(self, storages: list[Any], path: str | None) -> None:
        """Move the bytes; after an error nothing is changed.

        Raises:
            OSError, ValueError, MemoryError, RuntimeError: there is no room, or the device fails.
        """
        self._storages = storages
        self._sizes = [int(storage.nbytes()) for storage in storages]
        self._shelf = Shelf(self.num_bytes, path)
        try:
            _synchronize(storages)
            for storage, place in self._with_places():
                _copy_out(storage, place)
        except BaseException:
            self._shelf.close()
            raise
        try:
            for storage in storages:
                storage.resize_(0)
            self._shelf.settle()
        except BaseException:  # of the disk, or a device that fails
            self.bring_back()
            raise
        _give_back(storages)

    @property
    def num_bytes(self) -> int:
        """The size of all storages."""
        return sum(self._sizes)

    def bring_back(self) -> None:
        """Give the storages their bytes again; after an error they have none, and can be brought back later.

        Raises:
            RuntimeError: the device has too little free memory, or fails.
        """
        try:
            for storage, size in zip(self._storages, self._sizes, strict=True):
                storage.resize_(size)
            for storage, place in self._with_places():
                _as_bytes(storage).copy_(place)
            _synchronize(self._storages)
        except BaseException:
            for storage in self._storages:
                storage.resize_(0)
            _give_back(self._storages)
            raise
        self._shelf.close()

    def _with_places(self) -> Iterator[tuple[Any, Any]]:
        shelf, start = self._shelf.as_bytes(), 0
        for storage, size in zip(self._storages, self._sizes, strict=True):
            yield storage, shelf[start : start + size]
            start += size


def _copy_out(storage: Any, place: Any) -> None:
    if not staging.is_staged(storage):
        place.copy_(_as_bytes(storage))
        return
    start = 0
    for part in staging.chunks_of(storage):  # through pinned memory: new memory of the host takes its pages meanwhile
        place[start : start + len(part)].copy_(torch.frombuffer(part, dtype=torch.uint8))
        start += len(part)


def _as_bytes(storage: Any) -> Any:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _modules(storages: list[Any]) -> list[tuple[Any, Any]]:
    devices = {storage.device for storage in storages if storage.device.type != "cpu"}
    return [(getattr(torch, device.type), device) for device in devices]


def _synchronize(storages: list[Any]) -> None:
    """Wait until the devices have ended their work: streams of cells may still use the storages."""
    for module, device in _modules(storages):
        module.synchronize(device)


def _give_back(storages: list[Any]) -> None:
    """Give the memory of empty storages back to the devices."""
    for module, device in _modules(storages):
        with module.device(device):
            module.empty_cache()
