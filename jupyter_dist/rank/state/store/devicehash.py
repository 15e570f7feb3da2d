"""A hash that the device of a tensor computes, so that bytes which a folder has already need not be copied to the host.

Each word of 8 bytes is mixed with its position, and the results are added, which any number of cores can do in any
order. It uses torch's operations on int64 alone, so all devices compute the same. It finds changes, not forgeries.
"""

from __future__ import annotations

from typing import Any

import torch

_WORD = 8
_MASK = (1 << 64) - 1
_HALF = (1 << 32) - 1
# Odd numbers with irregular bits; a row for each half of the hash.
_ROWS = (
    (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB),
    (0xC2B2AE3D27D4EB4F, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53),
)


def digest(data: torch.Tensor) -> str:
    """Return the hash of bytes: 32 hexadecimal digits.

    Args:
        data: a tensor of uint8 with one dimension, on any device.
    """
    num_bytes = data.numel()
    words = _words(data)
    places = torch.arange(words.numel(), dtype=torch.int64, device=data.device)
    sums = torch.stack([_mixed(words, places, row).sum() for row in _ROWS]).tolist()
    return "".join(f"{_finish(number, num_bytes, row):016x}" for number, row in zip(sums, _ROWS, strict=True))


def _words(data: torch.Tensor) -> torch.Tensor:
    missing = -data.numel() % _WORD
    if missing:
        data = torch.cat([data, data.new_zeros(missing)])
    elif data.storage_offset() % _WORD or data.data_ptr() % _WORD:
        data = data.clone()
    return data.view(torch.int64)


def _mixed(words: torch.Tensor, places: torch.Tensor, row: tuple[int, int, int]) -> torch.Tensor:
    mixed: Any = places * _signed(row[0])
    mixed.bitwise_xor_(words).mul_(_signed(row[1]))
    mixed.bitwise_xor_((mixed >> 32).bitwise_and_(_HALF)).mul_(_signed(row[2]))
    mixed.bitwise_xor_((mixed >> 29).bitwise_and_(_MASK >> 29))
    return mixed


def _signed(number: int) -> int:
    """Return a number of 64 bits as torch has it, with a sign."""
    return number - (1 << 64) if number >> 63 else number


def _finish(total: int, num_bytes: int, row: tuple[int, int, int]) -> int:
    number = (total + num_bytes * row[0]) & _MASK
    for factor in row[1:]:
        number = ((number ^ (number >> 31)) * factor) & _MASK
    return number ^ (number >> 32)
