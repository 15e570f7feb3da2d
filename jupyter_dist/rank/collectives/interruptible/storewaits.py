"""Waits for keys of torch's stores by asking again and again: C++ code handles no signal until its timeout, minutes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.guard.own import os, time

INTERRUPTIBLE = True  # cells run and wait below these functions

FIRST_SECONDS, LONGEST_SECONDS = 0.001, 0.05
_SHORTEST = timedelta(milliseconds=1)
_AFTER = re.compile(r"after \d+ms")


def install() -> None:
    """Let signals end `wait` and `get` of stores wherever Python calls them."""
    torch_compat.replace_store_waits(_asking, _waiting_first)


def _asking(wait: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(wait)
    def asking(store: Any, keys: list[str], timeout: timedelta | None = None) -> None:
        limit = store.timeout if timeout is None else timeout
        root = _root(store)
        if _is_of_python(root):
            wait(store, keys, limit)
        elif not _come(store, root, keys, limit):
            _raise_timeout(wait, store, keys, limit)

    return asking


def _waiting_first(get: Callable[..., bytes]) -> Callable[..., bytes]:
    @functools.wraps(get)
    def waiting(store: Any, key: str) -> bytes:
        if not _is_of_python(_root(store)):
            store.wait([key])
        return get(store, key)

    return waiting


def _come(store: Any, root: Any, keys: list[str], limit: timedelta) -> bool:
    """Wait until the keys are set; return False if they are not set in time."""
    deadline, pause = time.monotonic() + limit.total_seconds(), FIRST_SECONDS
    # A FileStore whose file is not there would wait for that in C++.
    file = getattr(root, "path", None)
    while (file is not None and not os.path.lexists(file)) or not store.check(keys):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(2 * pause, LONGEST_SECONDS)
    return True


def _raise_timeout(wait: Callable[..., None], store: Any, keys: list[str], limit: timedelta) -> None:
    """Raise torch's own exception, with the time that was waited."""
    try:
        wait(store, keys, _SHORTEST)
    except RuntimeError as err:
        raise type(err)(_AFTER.sub(f"after {limit // timedelta(milliseconds=1)}ms", str(err))) from None


def _root(store: Any) -> Any:
    """Return the store below prefixes."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return store


def _is_of_python(root: Any) -> bool:
    """Whether a store is a class in Python, whose code handles signals by itself."""
    return not type(root).__module__.startswith("torch.")
