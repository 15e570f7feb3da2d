"""Validates a node agent's description of its machine, once, when it joins: the API, page and terminal show it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from jupyter_dist.transport.frames import Header
from jupyter_dist.transport.resuming import MAX_NUMBER

MAX_WORD = 64
MAX_HOST = 255
MAX_TEXT = 300
MAX_DEVICES = 1024


def checked(header: Header) -> Header:
    """Return the known fields of a hello.

    Raises:
        ValueError: a field has another type, is too long, or has characters that cannot be shown.
    """
    for name, is_sound in _FIELDS.items():
        if not is_sound(header.get(name)):
            raise ValueError(f"'{name}' in its first message is not valid: {header.get(name)!r:.80}")
    return {name: header.get(name) for name in _FIELDS}


def is_place(answer: Header) -> bool:
    """Whether a node's answer has the place of its trial port."""
    return (
        _is_address(answer.get("address"))
        and _is_count(answer.get("port"))
        and _is_line(answer.get("token"), MAX_WORD)
        and _or_none(lambda value: _is_line(value, MAX_WORD))(answer.get("interface"))
    )


def one_line(text: Any) -> str:
    """Return a text from a node as one short line without control characters."""
    return "".join(char if char.isprintable() else " " for char in str(text)[:MAX_TEXT])


def _is_line(value: Any, max_length: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= max_length and value.isprintable()


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_NUMBER


def _is_address(value: Any) -> bool:
    try:
        return _is_line(value, MAX_WORD) and bool(ipaddress.ip_address(value))
    except ValueError:
        return False


def _is_device(value: Any) -> bool:
    return isinstance(value, dict) and all(is_sound(value.get(name)) for name, is_sound in _OF_DEVICE.items())


def _or_none(is_sound: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_sound(value)


_OF_DEVICE: dict[str, Callable[[Any], bool]] = {
    "index": _or_none(_is_count),
    "name": lambda value: _is_line(value, MAX_HOST),
    "uuid": _or_none(lambda value: _is_line(value, MAX_HOST)),
    "memory_bytes": _or_none(_is_count),
}
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "session": lambda value: _is_line(value, MAX_WORD),
    "node": _or_none(lambda value: type(value) is int and abs(value) <= MAX_NUMBER),
    "received": _is_count,
    "host": lambda value: _is_line(value, MAX_HOST),
    "pid": _is_count,
    "address": _is_address,
    "interface": _or_none(lambda value: _is_line(value, MAX_WORD)),
    "python": lambda value: _is_line(value, MAX_WORD),
    "torch": _or_none(lambda value: _is_line(value, MAX_WORD)),
    "devices": lambda value: isinstance(value, list) and len(value) <= MAX_DEVICES and all(map(_is_device, value)),
    "memory": _or_none(_is_count),
    "cpus": _or_none(_is_count),
    "machine_cpus": _or_none(_is_count),
    "given_bytes": _or_none(_is_count),
}
