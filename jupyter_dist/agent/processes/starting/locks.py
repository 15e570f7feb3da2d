"""Whose lock a process waits for, by the place of its futex in memory: malloc's are at known places.

The places are those of glibc on machines of 64 bits: of the first arena in the initialised data of the C library,
which has no other lock there, and of all others at the beginning of their heap.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import NamedTuple

_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ \d+ *(.*)$", re.MULTILINE)
_HEAP_BYTES = 64 << 20  # each begins at a multiple of this
_HEAD_BYTES = 0x80  # of a heap: the lock is the first member of the arena, which comes after a few words
_LIBC = re.compile(r"/libc[-.][^/]*$")
_PT_LOAD = 1


class _Mapping(NamedTuple):
    begin: int
    end: int
    rights: str
    offset: int  # in the file
    path: str


def waits_for_allocator(pid: int) -> bool:
    """Whether the main thread of a process waits for a lock of malloc; False if this process may not look at it."""
    try:
        address = int(_text(pid, f"task/{pid}/syscall").split()[1], 16)  # the first argument of futex()
        mapping = next(one for one in _mappings(pid) if one.begin <= address < one.end)
        heap = address // _HEAP_BYTES * _HEAP_BYTES
        if not mapping.path:
            return mapping.begin == heap and address - heap < _HEAD_BYTES
        if _LIBC.search(mapping.path):
            return "w" in mapping.rights and address - mapping.begin + mapping.offset < _end_of_data(pid, mapping.path)
        return "malloc" in mapping.path  # libjemalloc, libtcmalloc
    except (OSError, ValueError, IndexError, StopIteration, struct.error):
        return False


def _mappings(pid: int) -> list[_Mapping]:
    return [
        _Mapping(int(begin, 16), int(end, 16), rights, int(offset, 16), path)
        for begin, end, rights, offset, path in _MAPPING.findall(_text(pid, "maps"))
    ]


def _end_of_data(pid: int, path: str) -> int:
    """Return where the data of a library end in its file: what is after them begins as zeros."""
    with Path(f"/proc/{pid}/root{path}").open("rb") as file:
        header = file.read(64)
        at, size, number = *struct.unpack_from("<Q", header, 32), *struct.unpack_from("<HH", header, 54)
        file.seek(at)
        table = file.read(size * number)
    segments = [struct.unpack_from("<IIQQQQ", table, i * size) for i in range(number)]
    ends: list[int] = [offset + filled for kind, _, offset, _, _, filled in segments if kind == _PT_LOAD]
    return max(ends)


def _text(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
