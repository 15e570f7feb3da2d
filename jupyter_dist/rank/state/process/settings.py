"""Settings of torch and NumPy that cells have chosen, and that change what later cells compute."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils.hooks import RemovableHandle

from jupyter_dist.rank.state import reasons


class Setting(NamedTuple):
    """A setting: how to read it, and how to set it."""

    read: Callable[[], Any]
    put: Callable[[Any], Any]


def _of_module(module: Any, name: str) -> Setting:
    return Setting(lambda: getattr(module, name), lambda value: setattr(module, name, value))


def _read_deterministic() -> tuple[bool, bool]:
    is_on = torch.are_deterministic_algorithms_enabled()
    return is_on, torch.is_deterministic_algorithms_warn_only_enabled()


def _put_deterministic(value: tuple[bool, bool]) -> None:
    torch.use_deterministic_algorithms(value[0], warn_only=value[1])


def _put_hook_ids(value: int) -> None:
    RemovableHandle.next_id = max(
        RemovableHandle.next_id, value
    )  # else a new hook would take the place of a restored one


def _read_errors() -> dict[str, Any] | None:
    numpy = sys.modules.get("numpy")
    return None if numpy is None else dict(numpy.geterr())


def _put_errors(value: dict[str, Any] | None) -> None:
    if value is not None:
        import numpy

        numpy.seterr(**value)


SETTINGS: dict[str, Setting] = {
    "default dtype": Setting(torch.get_default_dtype, torch.set_default_dtype),
    "gradients": Setting(torch.is_grad_enabled, torch.set_grad_enabled),
    "anomaly detection": Setting(torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    "deterministic algorithms": Setting(_read_deterministic, _put_deterministic),
    "precision of matrix products": Setting(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "choice of convolutions": _of_module(torch.backends.cudnn, "benchmark"),
    "deterministic convolutions": _of_module(torch.backends.cudnn, "deterministic"),
    "numbers of hooks": Setting(lambda: RemovableHandle.next_id, _put_hook_ids),
    "floating-point errors of NumPy": Setting(_read_errors, _put_errors),
}


def take() -> dict[str, Any]:
    """Return the present settings."""
    return {name: setting.read() for name, setting in SETTINGS.items()}


def put_back(values: dict[str, Any]) -> list[str]:
    """Set the settings that differ; return a sentence for each that cannot be set here."""
    notes = []
    for name, value in values.items():
        setting = SETTINGS.get(name)  # None: of a newer version
        if setting is None:
            continue
        try:
            if setting.read() != value:
                setting.put(value)
        except Exception as err:  # of a library of another version
            notes.append(f"The setting '{name}' was not restored: {reasons.of(err)}.")
    return notes
