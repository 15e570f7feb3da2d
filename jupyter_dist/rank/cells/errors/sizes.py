"""Sizes of memory as torch writes them."""

from __future__ import annotations

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def bytes_of(amount: str, unit: str) -> int:
    """Return a size that torch has written."""
    return int(float(amount) * 1024 ** _UNITS.index(unit))


def size_text(size: int) -> str:
    """Return a size as torch writes it, with three digits, so that it is the same on ranks that are nearly alike."""
    number, unit = float(size), 0
    while number >= 999.5 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    digits = 0 if unit == 0 or number >= 99.95 else 1 if number >= 9.995 else 2
    return f"{number:.{digits}f} {_UNITS[unit]}"
