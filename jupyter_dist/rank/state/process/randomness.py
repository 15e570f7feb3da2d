"""The random states of a process: Python's, NumPy's, and torch's on each device."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import torch

from jupyter_dist.rank.collectives.torch_compat import devices_in_use
from jupyter_dist.rank.state import reasons

RandomStates = dict[str, Any]


def take() -> RandomStates:
    """Return the present random states; of devices, if the process has used them."""
    states: RandomStates = {"python": random.getstate(), "torch": torch.get_rng_state()}
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        states["numpy"] = numpy.get_state()
    states["devices"] = {device: getattr(torch, device).get_rng_state_all() for device in devices_in_use()}
    return states


def put_back(states: RandomStates) -> list[str]:
    """Set the random states; return a sentence for each that cannot be set here."""
    notes = []
    for name, put in _PUT.items():
        if name in states:
            try:
                notes += put(states[name]) or []
            except Exception as err:  # of a library of another version, or of another device
                notes.append(f"The random state of {name} was not restored: {reasons.of(err)}.")
    return notes


def _put_back_numpy(state: Any) -> None:
    import numpy

    numpy.random.set_state(state)


def _put_back_devices(states: dict[str, list[torch.Tensor]]) -> list[str]:
    return [sentence for kind, taken in states.items() for sentence in _put_back_on_devices(kind, taken)]


def _put_back_on_devices(kind: str, taken: list[torch.Tensor]) -> list[str]:
    module = getattr(torch, kind)
    if not module.is_available() or module.device_count() < len(taken):
        return [f"The random states of {len(taken)} {kind} devices were not restored: there are fewer here."]
    module.set_rng_state_all(taken)
    return []


_PUT: dict[str, Callable[[Any], list[str] | None]] = {
    "python": random.setstate,
    "torch": torch.set_rng_state,
    "numpy": _put_back_numpy,
    "devices": _put_back_devices,
}
