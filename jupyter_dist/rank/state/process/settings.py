"""Settings of torch and NumPy that cells have chosen, and that change what later cells compute."""

from __future__ import annotations

import contextlib
import decimal
import importlib
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch.utils.hooks import RemovableHandle

from jupyter_dist.rank.collectives import torch_compat
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
    """Return the present settings, as far as they can be read."""
    return _read(SETTINGS)


def _read(settings: Mapping[str, Setting]) -> dict[str, Any]:
    found = {}
    for name, setting in settings.items():
        with contextlib.suppress(Exception):  # torch refuses to name a precision that was set in an old and a new way
            found[name] = setting.read()
    return found


def _read_decimal() -> dict[str, Any]:
    context = decimal.getcontext()
    fields = {name: getattr(context, name) for name in ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")}
    return {**fields, "traps": dict(context.traps)}


def _put_decimal(value: dict[str, Any]) -> None:
    context = decimal.getcontext()  # which names of cells may be
    for name, one in value.items():
        if name == "traps":
            context.traps.update(one)
        else:
            setattr(context, name, one)


def _read_printing() -> dict[str, Any]:
    return dict(torch_compat.print_options())


def _put_printing(value: dict[str, Any]) -> None:
    torch_compat.print_options().update(value)


def put_filters(value: list[Any]) -> None:
    """Set the filters of warnings."""
    warnings.filters[:] = value  # type: ignore[index]
    with warnings.catch_warnings():
        pass  # which makes Python look at the filters again


def _read_numpy() -> dict[str, Any] | None:
    numpy = sys.modules.get("numpy")
    return None if numpy is None else dict(numpy.get_printoptions())


def _put_numpy(value: dict[str, Any] | None) -> None:
    if value is not None:
        import numpy

        numpy.set_printoptions(**value)


def _read_pandas() -> dict[str, Any]:
    config = sys.modules.get("pandas._config.config")
    known = {} if config is None else config._registered_options
    values = {name: config.get_option(name) for name in known} if config is not None else {}
    return {name: value for name, value in values.items() if value != known[name].defval}


def _put_pandas(value: dict[str, Any]) -> None:
    pandas: Any = importlib.import_module("pandas")
    changed = _read_pandas()
    for name in changed.keys() - value.keys():
        pandas.reset_option(name)
    for name, one in value.items():
        if name not in changed or changed[name] != one:
            pandas.set_option(name, one)


def _read_plots() -> dict[str, Any]:
    matplotlib: Any = sys.modules.get("matplotlib")
    if matplotlib is None or not hasattr(matplotlib, "rcParamsDefault"):
        return {}
    default = matplotlib.rcParamsDefault
    names = [name for name in default if not name.startswith(_OF_BACKENDS)]
    return {name: matplotlib.rcParams[name] for name in names if matplotlib.rcParams[name] != default[name]}


def _put_plots(value: dict[str, Any]) -> None:
    matplotlib: Any = importlib.import_module("matplotlib")
    default = {name: matplotlib.rcParamsDefault[name] for name in _read_plots()}
    matplotlib.rcParams.update({**default, **value})


_OF_BACKENDS = ("backend", "interactive", "toolbar", "webagg", "tk.", "timezone", "date.epoch", "figure.hooks")

# As they change no result, or take a library with them, each of these is saved by itself.
OTHERS: dict[str, Setting] = {
    "context of decimal numbers": Setting(_read_decimal, _put_decimal),
    "printing of torch": Setting(_read_printing, _put_printing),
    "printing of NumPy": Setting(_read_numpy, _put_numpy),
    "options of pandas": Setting(_read_pandas, _put_pandas),
    "rcParams of Matplotlib": Setting(_read_plots, _put_plots),
    "filters of warnings": Setting(lambda: list(warnings.filters), put_filters),
    "limit of recursion": Setting(sys.getrecursionlimit, sys.setrecursionlimit),
    "number of threads": Setting(torch.get_num_threads, torch.set_num_threads),
    "unraisable errors": _of_module(sys, "unraisablehook"),
    "uncaught errors of threads": _of_module(threading, "excepthook"),
}
_before: dict[str, Any] = {}


def remember() -> None:
    """Remember the settings of before the first cell, which depend on the machine."""
    _before.clear()
    _before.update(_read(OTHERS))


def take_others(_shell: Any) -> dict[str, Any]:
    """Return the settings that cells have changed."""
    return {name: value for name, value in _read(OTHERS).items() if value != _before.get(name, value)}


def put_back_others(_shell: Any, values: Mapping[str, Any]) -> list[str]:
    """Set the settings that cells had changed, and the rest as before the first cell."""
    return _put_back(OTHERS, {**_before, **values})


def put_back(values: Mapping[str, Any]) -> list[str]:
    """Set the settings that differ; return a sentence for each that cannot be set here."""
    return _put_back(SETTINGS, values)


_UNKNOWN = object()


def _put_back(settings: Mapping[str, Setting], values: Mapping[str, Any]) -> list[str]:
    notes = []
    for name, value in values.items():
        setting = settings.get(name)  # None: of a newer version
        if setting is None:
            continue
        try:
            if _read({name: setting}).get(name, _UNKNOWN) != value:
                setting.put(value)
        except Exception as err:  # of a library of another version
            notes.append(f"The setting '{name}' was not restored: {reasons.of(err)}.")
    return notes
