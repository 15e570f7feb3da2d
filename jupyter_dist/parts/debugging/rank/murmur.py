"""The hash by which JupyterLab names the file of a cell (MurmurHash2, 32 bits)."""

from __future__ import annotations

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes, seed: int) -> int:
    """Return the hash of `data`; JupyterLab computes the same in the page."""
    rest = len(data) % 4
    value = (seed ^ len(data)) & _MASK
    for start in range(0, len(data) - rest, 4):
        part = int.from_bytes(data[start : start + 4], "little") * _M & _MASK
        part = (part ^ part >> 24) * _M & _MASK
        value = (value * _M & _MASK) ^ part
    if rest:
        value = (value ^ int.from_bytes(data[-rest:], "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15
