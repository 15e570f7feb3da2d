"""What a cell can change of its process besides objects: random states, modes of torch, environment, folder, paths."""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from jupyter_dist.protocol.accelerators import DEVICE_TYPES
from jupyter_dist.rank.cells.looks.generators import generator_of
from jupyter_dist.rank.guard.own import os, signal
from jupyter_dist.rank.state.process import settings

from .foreign import DecimalState
from .mementos import Memento

Part = tuple[str, Callable[[], Any], Callable[[Any], object]]


class ProcessState(Memento):
    """The parts of the process that are written back with a cell."""

    __slots__ = ("_parts", "saved")

    def __init__(self) -> None:
        super().__init__(None)
        self._parts = _parts()
        self.saved = [read() for _, read, _ in self._parts]
        self.num_bytes = 10_000

    def differs(self) -> bool:
        """Return True: its parts are compared when they are written."""
        return True

    def now(self) -> Memento:
        """Return the present state of the process."""
        return ProcessState()

    def has_changed(self) -> bool:
        """Whether a part is another now."""
        return any(not _is_equal(read(), before) for (_, read, _), before in zip(self._parts, self.saved, strict=True))

    def obstacle(self) -> str | None:
        """Return why the working folder cannot be entered again."""
        for (name, read, _), before in zip(self._parts, self.saved, strict=True):
            if name == "folder" and before != read() and not os.path.isdir(before):
                return f"the working folder {before} is gone"
        return None

    def restore(self) -> None:
        """Write the parts that have changed."""
        for (_, read, write), before in zip(self._parts, self.saved, strict=True):
            if not _is_equal(read(), before):
                write(before)


def _is_equal(now: Any, before: Any) -> bool:
    if isinstance(before, torch.Tensor):
        return torch.equal(now, before)
    if isinstance(before, dict) and isinstance(now, dict) and before.keys() == now.keys():  # of numpy: in parts
        return all(_is_equal(now[name], part) for name, part in before.items())
    return bytes(now) == bytes(before) if hasattr(before, "tobytes") else bool(now == before)


_WHOLE = ("context of decimal numbers", "options of pandas", "rcParams of Matplotlib")  # kept with flags, or by name


def _parts() -> list[Part]:
    parts: list[Part] = [
        ("random", random.getstate, random.setstate),
        ("torch", torch.default_generator.get_state, torch.default_generator.set_state),
        ("environment", lambda: dict(os.environ), _set_environment),
        ("folder", _folder, os.chdir),
        ("paths", lambda: list(sys.path), _set_paths),
        ("loggers", _loggers, _set_loggers),
        ("signals", _handlers, _set_handlers),
        ("profile", sys.getprofile, sys.setprofile),
    ]
    chosen = ((name, one) for name, one in settings.rows().items() if name not in _WHOLE)
    parts += [(name, partial(settings.read_row, one), one.put) for name, one in chosen]
    if (plots := sys.modules.get("matplotlib")) is not None and hasattr(plots, "rcParams"):
        chosen_plots = plots.rcParams  # without its checks, and without choosing a backend
        parts.append(("plots", partial(dict, dict.items(chosen_plots)), partial(dict.update, chosen_plots)))
    if (decimal := sys.modules.get("decimal")) is not None:
        parts.append(("decimal", lambda: DecimalState(decimal.getcontext()).saved, _set_decimal))
    if (tables := sys.modules.get("pandas._config.config")) is not None and hasattr(tables, "_global_config"):
        options = tables._global_config
        parts.append(("tables", lambda: _nested(options), lambda before: _set_nested(options, before)))
    if (numpy := sys.modules.get("numpy.random")) is not None:
        parts.append(("numpy", partial(numpy.get_state, legacy=False), numpy.set_state))
    for kind in DEVICE_TYPES:
        module = getattr(torch, kind, None)
        if module is not None and hasattr(module, "default_generators") and module.is_initialized():
            for generator in module.default_generators:
                parts.append((kind, generator.get_state, generator.set_state))
    return parts


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""


def _set_environment(before: dict[str, str]) -> None:
    for name in [name for name in os.environ if name not in before]:
        del os.environ[name]
    for name, value in before.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _set_paths(before: list[str]) -> None:
    sys.path[:] = before


def _loggers() -> dict[str, tuple[Any, ...]]:
    known = [
        logging.root,
        *(one for one in list(logging.root.manager.loggerDict.values()) if type(one) is logging.Logger),
    ]
    return {one.name: _logger(one) for one in known}


def _logger(one: logging.Logger) -> tuple[Any, ...]:
    return (one.level, one.propagate, one.disabled, tuple(one.handlers), tuple(one.filters))


def _set_loggers(before: dict[str, tuple[Any, ...]]) -> None:
    """Set loggers; a logger of a cell gets no level, handlers and filters, as a new one."""
    for name in _loggers():
        one = logging.root if name == logging.root.name else logging.getLogger(name)
        state = before.get(name, (logging.NOTSET, True, False, (), ()))
        if _logger(one) != state:
            level, one.propagate, one.disabled, one.handlers[:], one.filters[:] = state
            one.setLevel(level)


def _set_decimal(before: list[Any]) -> None:
    state = DecimalState(sys.modules["decimal"].getcontext())
    state.saved = before
    state.restore()


def _handlers() -> dict[int, Any]:
    """Return the handlers of signals, without the handler of interrupts, which is the rank's."""
    return {one: signal.getsignal(one) for one in signal.valid_signals() if one != signal.SIGINT}


def _set_handlers(before: dict[int, Any]) -> None:
    for one, handler in before.items():
        if handler is not None and signal.getsignal(one) != handler:
            signal.signal(one, handler)


def _nested(options: dict[str, Any]) -> dict[str, Any]:
    return {name: _nested(one) if type(one) is dict else one for name, one in options.items()}


def _set_nested(options: dict[str, Any], before: dict[str, Any]) -> None:
    for name, one in before.items():
        if type(one) is dict:
            _set_nested(options[name], one)
        else:
            options[name] = one


class GeneratorState(Memento):
    """The state of a random generator of Python, numpy or torch."""

    __slots__ = ("_read", "_write", "saved")

    def __init__(self, value: Any, read: Callable[[], Any], write: Callable[[Any], None]) -> None:
        super().__init__(value)
        self._read, self._write = read, write
        self.saved = read()
        self.num_bytes = 6000

    def now(self) -> Memento:
        """Return the present state of the generator."""
        return GeneratorState(self.value, self._read, self._write)

    def differs(self) -> bool:
        """Whether the generator has given a number since."""
        return (
            repr(self._read()) != repr(self.saved)
            if isinstance(self.saved, dict)
            else not _is_equal(self._read(), self.saved)
        )

    def restore(self) -> None:
        """Set the state."""
        self._write(self.saved)


def generator_state(value: Any) -> GeneratorState | None:
    """Return the state of a random generator; None if the value is none, or has no state."""
    found = generator_of(value)
    return None if found is None else GeneratorState(*found)
