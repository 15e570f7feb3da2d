"""torch's flight recorders and captures of graphs, by its own names. For other internals, see torch_compat.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pickle import loads as unpickle  # of what this process has pickled
from typing import Any, NamedTuple

import torch
from torch._C import _distributed_c10d as bindings

from jupyter_dist.protocol.accelerators import DEVICE_TYPES
from jupyter_dist.rank.guard.own import json

from .torch_compat import backend_names


class Recorder(NamedTuple):
    """One of torch's flight recorders."""

    dump: Callable[[bool, bool], bytes | str]  # takes includeCollectives and onlyActive
    asks_device: bool  # a dump asks the device's driver whether collectives have ended
    # The same as pickle, which takes half the time; it takes includeCollectives, includeStackTraces and onlyActive.
    dump_pickled: Callable[[bool, bool, bool], bytes] | None = None

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of all collectives that are kept, in the quickest format."""
        if self.dump_pickled is None:
            recorded = json.loads(self.dump(True, False))
        else:
            recorded = unpickle(self.dump_pickled(True, False, False))  # noqa: S301
        found: list[dict[str, Any]] = recorded["entries"]
        return found


def recorders() -> dict[str, Recorder]:
    """Return all flight recorders of this torch, by our own names.

    A build for CUDA has two: `_dump_nccl_trace_json` for NCCL, and `_dump_fr_trace_json` for gloo. Up to torch 2.7
    there is only the first. From 2.15 on, the second has a recorder for each name of a backend.
    """
    found = {}
    of_device = getattr(bindings, "_dump_nccl_trace_json", None)
    if of_device is not None:
        found["of the device"] = Recorder(of_device, True, getattr(bindings, "_dump_nccl_trace", None))
    by_backend = getattr(bindings, "_dump_fr_trace_json", None)
    if by_backend is None:
        return found
    if "backend:" not in (by_backend.__doc__ or ""):
        return {**found, "of the host": Recorder(by_backend, False, getattr(bindings, "_dump_fr_trace", None))}
    for name in sorted({"gloo", "nccl", "nccl2", *backend_names()}):
        found[f"of {name}"] = Recorder(partial(by_backend, backend=name), asks_device=name != "gloo")
    return found


def graph_classes() -> list[Any]:
    """Return the classes of graphs that devices capture."""
    modules = [getattr(torch, kind, None) for kind in DEVICE_TYPES]
    found = [getattr(module, f"{kind.upper()}Graph", None) for kind, module in zip(DEVICE_TYPES, modules, strict=True)]
    return [graphs for graphs in found if graphs is not None]
