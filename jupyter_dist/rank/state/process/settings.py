"""Settings of the process that cells have chosen: one table, of which all that keeps values keeps every row."""

from __future__ import annotations

import calendar
import codecs
import contextlib
import csv
import decimal
import faulthandler
import importlib
import locale
import logging
import multiprocessing
import resource
import socket
import sys
import tempfile
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.utils.hooks import RemovableHandle

from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.guard import frames
from jupyter_dist.rank.guard.own import gc, os
from jupyter_dist.rank.state import reasons

_UNKNOWN = object()
_OF_LIBRARY = "of a library"


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


def _read_error_call() -> Any:
    numpy = sys.modules.get("numpy")
    return None if numpy is None else numpy.geterrcall()


def _put_error_call(value: Any) -> None:
    import numpy

    numpy.seterrcall(value)


def _put_level_names(value: Mapping[int, str]) -> None:
    for level in logging._levelToName.keys() - value.keys():
        logging._nameToLevel.pop(logging._levelToName.pop(level), None)
    for level, name in value.items():
        if logging._levelToName.get(level) != name:
            logging.addLevelName(level, name)


def _read_sklearn() -> dict[str, Any]:
    sklearn: Any = sys.modules.get("sklearn")
    default = getattr(sys.modules.get("sklearn._config"), "_global_config", {})
    return {name: one for name, one in sklearn.get_config().items() if one != default.get(name)} if default else {}


def _put_sklearn(value: Mapping[str, Any]) -> None:
    sklearn: Any = importlib.import_module("sklearn")
    default = {name: sys.modules["sklearn._config"]._global_config[name] for name in _read_sklearn()}
    sklearn.set_config(**{**default, **value})


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
    values = {name: read_row(setting) for name, setting in settings.items()}
    return {name: value for name, value in values.items() if value is not _UNKNOWN}


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
    if config is None:
        return {}
    known = config._registered_options
    return {name: one for name, one in _options_in(config._global_config, known) if one != known[name].defval}


def _options_in(options: Mapping[str, Any], known: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all options of pandas, whose own function to read one takes longer than all of these."""
    for name, value in options.items():
        if (path := f"{before}{name}") in known:
            yield path, value
        elif isinstance(value, dict):
            yield from _options_in(value, known, f"{path}.")


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
    default = dict(dict.items(matplotlib.rcParamsDefault))  # without checks of each
    values = dict.items(matplotlib.rcParams)
    changed = {name: one for name, one in values if one is not default.get(name) and one != default.get(name)}
    return {name: one for name, one in changed.items() if name in default and not name.startswith(_OF_BACKENDS)}


def _put_plots(value: dict[str, Any]) -> None:
    matplotlib: Any = importlib.import_module("matplotlib")
    default = {name: matplotlib.rcParamsDefault[name] for name in _read_plots()}
    matplotlib.rcParams.update({**default, **value})


def _read_locale() -> str:
    return locale.setlocale(locale.LC_ALL)


def _put_locale(value: str) -> None:
    locale.setlocale(locale.LC_ALL, value)


def _read_umask() -> str:
    """Return the umask without setting another one, as a thread may write a file meanwhile; empty if not known."""
    with contextlib.suppress(OSError, AttributeError):  # a file without a name takes a hundredth of the time
        fd = os.open("/dev/shm", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o777)  # noqa: S108 - it has no name
        try:
            return f"{~os.fstat(fd).st_mode & 0o777:04o}"
        finally:
            os.close(fd)
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as status:
        return next((line.split()[1] for line in status if line.startswith("Umask:")), "")
    return ""


def _put_umask(value: str) -> None:
    os.umask(int(value, 8))


def _put_thresholds(value: tuple[int, int, int]) -> None:
    gc.set_threshold(*value)


def _put_faults(value: bool) -> None:
    faulthandler.enable() if value else faulthandler.disable()


def _read_tracing() -> int:
    return tracemalloc.get_traceback_limit() if tracemalloc.is_tracing() else 0


def _put_tracing(value: int) -> None:
    tracemalloc.start(value) if value else tracemalloc.stop()


def _put_start_method(value: str | None) -> None:
    multiprocessing.set_start_method(value, force=True)


def _read_time_zone() -> tuple[Any, ...]:
    return (*time.tzname, time.timezone, time.altzone)


def _put_time_zone(_: Any) -> None:
    time.tzset()  # of the environment, which is set by now


_SMALL, _TWO = sys.float_info.min, 2.0  # variables, so that the division is done when it is asked for


def _flushes() -> bool:
    """Whether the smallest numbers are taken for 0, which torch has no function to ask for."""
    return _SMALL / _TWO == 0.0


def _limit(number: int) -> Setting:
    def put(value: int) -> None:
        resource.setrlimit(number, (value, resource.getrlimit(number)[1]))

    return Setting(lambda: resource.getrlimit(number)[0], put)


_CODING: list[dict[str, Any]] = []  # the one dictionary of handlers, once it is found
_STANDARD = (
    *("strict", "ignore", "replace", "xmlcharrefreplace", "backslashreplace"),
    *("namereplace", "surrogatepass", "surrogateescape"),
)
_PROBE = "jupyter_dist.probe"
_LATE = "handlers of coding errors"  # it takes a tenth of a second to find them: not at the start of a rank


def coding_handlers() -> dict[str, Any]:
    """Return the handlers of coding errors by their names, which Python has no function to list.

    A zygote calls this before it freezes the present objects: the collector does not look at them any more.
    """
    if not _CODING:
        codecs.register_error(_PROBE, codecs.strict_errors)  # other dictionaries may have the standard names
        if not (found := _holders()):
            gc.unfreeze()  # and not frozen again: that would hide the objects of cells from all that looks for them
            found = _holders()
        for one in found:
            del one[_PROBE]
        _CODING.extend(found)
    return _CODING[0] if _CODING else {}


def _holders() -> list[dict[str, Any]]:
    return [one for one in gc.get_referrers(codecs.strict_errors) if type(one) is dict and _PROBE in one]


def _put_handlers(value: Mapping[str, Any]) -> None:
    known = coding_handlers()
    for name in known.keys() - value.keys():
        del known[name]
    known.update(value)


_seen_of_library: list[Any] = []  # the last of a library, in this process


def _read_uncaught() -> Any:
    """Return `sys.excepthook`; the hook of the shell, or of torch with a process group, is no setting of a cell."""
    hook = sys.excepthook
    if str(getattr(hook, "__module__", "")).startswith(("torch.", "IPython.")):
        _seen_of_library[:] = [hook]
        return _OF_LIBRARY
    return hook


def _put_uncaught(hook: Any) -> None:
    if hook != _OF_LIBRARY:
        sys.excepthook = hook
    elif _read_uncaught() != _OF_LIBRARY and _seen_of_library:
        (sys.excepthook,) = _seen_of_library


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
    "uncaught errors": Setting(_read_uncaught, _put_uncaught),
    "uncaught errors of threads": _of_module(threading, "excepthook"),
    "breakpoints": _of_module(sys, "breakpointhook"),
    "writing of bytecode": _of_module(sys, "dont_write_bytecode"),
    **(
        {"digits of integers": Setting(sys.get_int_max_str_digits, sys.set_int_max_str_digits)}
        if hasattr(sys, "get_int_max_str_digits")  # Python 3.10.7
        else {}
    ),
    "interval of switches": Setting(sys.getswitchinterval, sys.setswitchinterval),
    "locale": Setting(_read_locale, _put_locale),
    "umask": Setting(_read_umask, _put_umask),
    "time zone": Setting(_read_time_zone, _put_time_zone),
    "thresholds of garbage": Setting(frames.thresholds, _put_thresholds),
    "tracebacks of faults": Setting(faulthandler.is_enabled, _put_faults),
    "tracing of memory": Setting(_read_tracing, _put_tracing),
    _LATE: Setting(lambda: dict(coding_handlers()), _put_handlers),
    "limit of CSV fields": Setting(csv.field_size_limit, csv.field_size_limit),
    "time limit of sockets": Setting(socket.getdefaulttimeout, socket.setdefaulttimeout),
    "folder of temporary files": _of_module(tempfile, "tempdir"),
    "first day of weeks": Setting(calendar.firstweekday, calendar.setfirstweekday),
    "disabled logging": _of_module(logging.root.manager, "disable"),
    "class of loggers": Setting(logging.getLoggerClass, logging.setLoggerClass),
    "records of loggers": Setting(logging.getLogRecordFactory, logging.setLogRecordFactory),
    "start of processes": Setting(partial(multiprocessing.get_start_method, allow_none=True), _put_start_method),
    "sharing of tensors": Setting(
        torch.multiprocessing.get_sharing_strategy, torch.multiprocessing.set_sharing_strategy
    ),
    "autocast on CPU": Setting(partial(torch.is_autocast_enabled, "cpu"), partial(torch.set_autocast_enabled, "cpu")),
    "type of autocast on CPU": Setting(
        partial(torch.get_autocast_dtype, "cpu"), partial(torch.set_autocast_dtype, "cpu")
    ),
    "device of new tensors": Setting(torch.get_default_device, torch.set_default_device),
    "function for errors of NumPy": Setting(_read_error_call, _put_error_call),
    "profile of threads": Setting(threading.getprofile, threading.setprofile),
    "names of levels of logging": Setting(lambda: dict(logging._levelToName), _put_level_names),
    "configuration of scikit-learn": Setting(_read_sklearn, _put_sklearn),
    "warnings of torch": Setting(torch.is_warn_always_enabled, torch.set_warn_always),
    "smallest numbers": Setting(_flushes, torch.set_flush_denormal),
    "kernels of attention": Setting(torch_compat.attention_kernels, torch_compat.set_attention_kernels),
    "modules that are converted": Setting(
        torch.__future__.get_overwrite_module_params_on_conversion,
        torch.__future__.set_overwrite_module_params_on_conversion,
    ),
    "modules that are swapped": Setting(
        torch.__future__.get_swap_module_params_on_conversion, torch.__future__.set_swap_module_params_on_conversion
    ),
    **{
        f"limit {name} of the process": _limit(getattr(resource, f"RLIMIT_{name}"))
        for name in ("NOFILE", "CORE", "STACK", "FSIZE", "NPROC", "MEMLOCK", "AS", "DATA", "CPU")
        if hasattr(resource, f"RLIMIT_{name}")
    },
}
_before: dict[str, Any] = {}


def rows() -> dict[str, Setting]:
    """Return all settings."""
    return {**SETTINGS, **OTHERS}


def read_row(setting: Setting) -> Any:
    """Return the value of a setting; a mark that equals itself alone if it cannot be read."""
    try:
        return setting.read()
    except Exception:  # torch refuses to name a precision that was set in an old and a new way
        return _UNKNOWN


def remember() -> None:
    """Remember the settings of before the first cell, which depend on the machine."""
    _before.clear()
    _before.update(_read({name: one for name, one in OTHERS.items() if name != _LATE}))
    _before[_LATE] = {name: codecs.lookup_error(name) for name in _STANDARD}


def take_others(_shell: Any) -> dict[str, Any]:
    """Return the settings that cells have changed."""
    return {name: value for name, value in _read(OTHERS).items() if value != _before.get(name, value)}


def put_back_others(_shell: Any, values: Mapping[str, Any]) -> list[str]:
    """Set the settings that cells had changed, and the rest as before the first cell."""
    return _put_back(OTHERS, {**_before, **values})


def put_back(values: Mapping[str, Any]) -> list[str]:
    """Set the settings that differ; return a sentence for each that cannot be set here."""
    return _put_back(SETTINGS, values)


def _put_back(settings: Mapping[str, Setting], values: Mapping[str, Any]) -> list[str]:
    notes = []
    for name, value in values.items():
        setting = settings.get(name)  # None: of a newer version
        if setting is None:
            continue
        try:
            if read_row(setting) != value:
                setting.put(value)
        except Exception as err:  # of a library of another version
            notes.append(f"The setting '{name}' was not restored: {reasons.of(err)}.")
    return notes
