"""The variables that a user gives the processes of a group: no file, log or answer has a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn


class Secrets:
    """Environment variables by name, whose values leave by three doors alone: `exec`, a private file, and a socket.

    No text, JSON, copy or serialized form of it has a value: none gets into a file, a log or an answer by another road.
    Where a value has been left out, as in group.json, its name is kept.
    """

    __slots__ = ("_unknown", "_values")

    def __init__(self, values: Mapping[str, str] | None = None, unknown: Iterable[str] = ()) -> None:
        self._values = dict(values or {})
        self._unknown = frozenset(unknown) - self._values.keys()

    @classmethod
    def parsed(cls, given: object) -> Secrets:
        """Read a field of a message or a file: values by name, names alone, or a text as in /proc/PID/environ."""
        if isinstance(given, Secrets):
            return given
        if isinstance(given, str):
            return cls.of_environ(given)
        if isinstance(given, dict):
            return cls({name: value for name, value in given.items() if isinstance(name, str) and _is_text(value)})
        return cls(unknown=filter(_is_text, given) if isinstance(given, list) else ())

    @classmethod
    def of_environ(cls, text: str) -> Secrets:
        """Return the variables of a text as in /proc/PID/environ, without malformed ones."""
        pairs = (entry.partition("=") for entry in text.split("\0"))
        return cls({name: value for name, equals, value in pairs if name and equals})

    @property
    def names(self) -> list[str]:
        """Return the names, also of unknown values."""
        return sorted({*self._values, *self._unknown})

    @property
    def unknown(self) -> list[str]:
        """Return the names whose values are not known here."""
        return sorted(self._unknown)

    def under(self, others: Secrets) -> Secrets:
        """Return these variables with `others`, which take precedence."""
        return Secrets({**self._values, **others._values}, (self._unknown | others._unknown) - others._values.keys())

    def without(self, names: Iterable[str]) -> Secrets:
        """Return these variables without the named ones."""
        left = set(names)
        values = {name: value for name, value in self._values.items() if name not in left}
        return Secrets(values, self._unknown - left)

    def for_exec(self) -> dict[str, str]:
        """Return the variables for the environment of a process."""
        return dict(self._values)

    def for_private_file(self) -> dict[str, str]:
        """Return the variables for a file that only this user can read, from which an engine's job takes them."""
        return dict(self._values)

    def for_socket(self) -> dict[str, str] | list[str]:
        """Return the field of a message to another process of ours, which `parsed` reads."""
        return self.names if self._unknown else dict(self._values)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._values or self._unknown)

    def __eq__(self, other: object) -> bool:
        """Whether names and values are equal."""
        return isinstance(other, Secrets) and (self._values, self._unknown) == (other._values, other._unknown)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return the names."""
        return f"<secrets: {', '.join(self.names)}>"

    def __copy__(self) -> Secrets:
        """Return itself: it does not change."""
        return self

    def __deepcopy__(self, memo: Any) -> NoReturn:
        """Refuse: `dataclasses.asdict` is on its way into a file."""
        raise TypeError("Secrets are not copied into plain objects.")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be serialized."""
        raise TypeError("Secrets are not serialized.")


def _is_text(value: object) -> bool:
    return isinstance(value, str)
