"""What libraries call that cells gave them: handlers of loggers, hooks of all modules, and events of IPython."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any

import torch

from .modules.own import is_users, is_users_module, variables_of

LoggerState = dict[str, Any]

_before: dict[str, LoggerState] = {}
_HOOKS = variables_of(torch.nn.modules.module)


def remember() -> None:
    """Remember the loggers of before the first cell."""
    _before.clear()
    _before.update({name: _state_of(logger) for name, logger in _loggers().items()})


def take_loggers(_shell: Any) -> dict[str, LoggerState]:
    """Return the state of each logger that is not as it was before the first cell, or as new ones are."""
    loggers = {name: one for name, one in _loggers().items() if name in _before or not _is_new(one)}
    states = {name: _state_of(logger) for name, logger in loggers.items()}
    return {name: state for name, state in states.items() if state != _before.get(name)}


def put_back_loggers(_shell: Any, states: Mapping[str, LoggerState]) -> list[str]:
    """Give loggers their handlers, levels and filters."""
    for name, state in states.items():
        logger = logging.getLogger(name or None)
        if logger.level != state["level"]:  # to set it clears the caches of all loggers
            logger.setLevel(state["level"])
        logger.propagate, logger.disabled = state["propagate"], state["disabled"]
        logger.handlers[:], logger.filters[:] = state["handlers"], state["filters"]
    return []


def _loggers() -> dict[str, logging.Logger]:
    known = logging.root.manager.loggerDict
    found = {name: logger for name, logger in list(known.items()) if isinstance(logger, logging.Logger)}
    return {"": logging.root, **found}


def _is_new(logger: logging.Logger) -> bool:
    has_any = logger.level or logger.handlers or logger.filters or logger.disabled
    return logger.propagate is True and not has_any


def _state_of(logger: logging.Logger) -> LoggerState:
    return {
        "level": logger.level,
        "propagate": logger.propagate,
        "disabled": logger.disabled,
        "handlers": list(logger.handlers),
        "filters": list(logger.filters),
    }


def take_hooks(_shell: Any) -> dict[str, dict[Any, Any]]:
    """Return the hooks that cells have registered for all modules."""
    return {name: _of_users(hooks) for name, hooks in _global_hooks().items()}


def _of_users(hooks: Mapping[Any, Any]) -> dict[Any, Any]:
    # Entries that only mark another hook, by its number, have no function.
    return {number: hook for number, hook in list(hooks.items()) if type(hook) is bool or _is_users(hook)}


def put_back_hooks(_shell: Any, saved: Mapping[str, Mapping[Any, Any]]) -> list[str]:
    """Register hooks for all modules, under the numbers that their handles have."""
    for name, hooks in _global_hooks().items():
        for number in _of_users(hooks):
            del hooks[number]
        hooks.update(saved.get(name, {}))
    return []


def _global_hooks() -> dict[str, Any]:
    names = [name for name in _HOOKS if name.startswith("_global_") and hasattr(_HOOKS[name], "items")]
    return {name: _HOOKS[name] for name in names}


def take_events(shell: Any) -> dict[str, list[Any]]:
    """Return the functions of cells that IPython calls at its events."""
    events = shell.events.callbacks
    found = {event: [one for one in called if _is_users(one)] for event, called in events.items()}
    return {event: called for event, called in found.items() if called}


def put_back_events(shell: Any, saved: Mapping[str, list[Any]]) -> list[str]:
    """Let IPython call these functions of cells, and no others, at its events."""
    for event, called in shell.events.callbacks.items():
        called[:] = [*(one for one in called if not _is_users(one)), *saved.get(event, ())]
    return []


def _is_users(called: Any) -> bool:
    function = getattr(called, "__func__", called)
    variables = getattr(function, "__globals__", None)
    if variables is None:
        return is_users(type(function).__module__)
    module = sys.modules.get(variables.get("__name__", ""))
    return variables.get("__name__") == "__main__" or (module is not None and is_users_module(module))
