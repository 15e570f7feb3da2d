"""Each setting of the process is taken back by undo, and goes through a save: one table, and a change for every row."""

from __future__ import annotations

import sys

import pytest
from keeping import Undoable

from jupyter_dist.rank.state.process import settings

CHANGES = {
    "default dtype": "torch.set_default_dtype(torch.float64)",
    "gradients": "torch.set_grad_enabled(False)",
    "anomaly detection": "torch.autograd.set_detect_anomaly(True)",
    "deterministic algorithms": "torch.use_deterministic_algorithms(True, warn_only=True)",
    "precision of matrix products": "torch.set_float32_matmul_precision('medium')",
    "choice of convolutions": "torch.backends.cudnn.benchmark = True",
    "deterministic convolutions": "torch.backends.cudnn.deterministic = True",
    "numbers of hooks": None,  # only rises
    "floating-point errors of NumPy": "numpy.seterr(divide='raise')",
    "context of decimal numbers": "decimal.getcontext().prec = 7",
    "printing of torch": "torch.set_printoptions(precision=9)",
    "printing of NumPy": "numpy.set_printoptions(precision=3)",
    "options of pandas": "pandas.set_option('display.max_rows', 7)",
    "rcParams of Matplotlib": None,  # by name, in an own test
    "filters of warnings": "warnings.simplefilter('error', ResourceWarning)",
    "limit of recursion": "sys.setrecursionlimit(4321)",
    "number of threads": "torch.set_num_threads(torch.get_num_threads() + 1)",
    "unraisable errors": "sys.unraisablehook = print",
    "uncaught errors": "sys.excepthook = print",
    "uncaught errors of threads": "threading.excepthook = print",
    "breakpoints": "sys.breakpointhook = print",
    "writing of bytecode": "sys.dont_write_bytecode = not sys.dont_write_bytecode",
    "digits of integers": "sys.set_int_max_str_digits(5000)",
    "interval of switches": "sys.setswitchinterval(0.01)",
    "locale": "locale.setlocale(locale.LC_ALL, 'C.UTF-8' if locale.setlocale(locale.LC_ALL) == 'C' else 'C')",
    "umask": "os.umask(0o077)",
    "time zone": "os.environ['TZ'] = 'Asia/Tokyo'; time.tzset()",
    "thresholds of garbage": "gc.set_threshold(5000, 20, 20)",
    "tracebacks of faults": "faulthandler.disable() if faulthandler.is_enabled() else faulthandler.enable()",
    "tracing of memory": "tracemalloc.start(3)",
    "handlers of coding errors": "codecs.register_error('of a test', lambda e: ('', e.end))",
    "limit of CSV fields": "csv.field_size_limit(1 << 30)",
    "time limit of sockets": "socket.setdefaulttimeout(7)",
    "folder of temporary files": "tempfile.tempdir = '/'",
    "first day of weeks": "calendar.setfirstweekday(6)",
    "disabled logging": "logging.disable(logging.CRITICAL)",
    "class of loggers": "logging.setLoggerClass(type('Own', (logging.Logger,), {}))",
    "records of loggers": "logging.setLogRecordFactory(lambda *a, **k: logging.LogRecord(*a, **k))",
    "start of processes": "multiprocessing.set_start_method('spawn', force=True)",
    "sharing of tensors": "torch.multiprocessing.set_sharing_strategy('file_system')",
    "autocast on CPU": "torch.set_autocast_enabled('cpu', True)",
    "type of autocast on CPU": "torch.set_autocast_dtype('cpu', torch.float16)",
    "device of new tensors": "torch.set_default_device('meta')",
    "function for errors of NumPy": "numpy.seterrcall(print)",
    "profile of threads": "threading.setprofile(print)",
    "names of levels of logging": "logging.addLevelName(15, 'NOTE')",
    "configuration of scikit-learn": "__import__('sklearn').set_config(working_memory=77)",
    "warnings of torch": "torch.set_warn_always(True)",
    "smallest numbers": "torch.set_flush_denormal(True)",
    "kernels of attention": "torch.backends.cuda.enable_flash_sdp(False)",
    "modules that are converted": "torch.__future__.set_overwrite_module_params_on_conversion(True)",
    "modules that are swapped": "torch.__future__.set_swap_module_params_on_conversion(True)",
}
IMPORTS = (
    "import calendar, codecs, csv, decimal, faulthandler, gc, locale, logging, multiprocessing, numpy, os, pandas, "
    "resource, socket, sys, tempfile, threading, time, torch, tracemalloc, warnings"
)


def change_of(name: str) -> str | None:
    """Return the code that changes a setting; limits of the process are lowered by one."""
    if name.startswith("limit ") and name.endswith(" of the process"):
        number = f"resource.RLIMIT_{name.split()[1]}"
        return f"s, h = resource.getrlimit({number}); resource.setrlimit({number}, ((s if s > 0 else 1 << 40) - 1, h))"
    return CHANGES[name]


@pytest.mark.filterwarnings("ignore")  # of pandas, about options that it will drop
@pytest.mark.parametrize("name", [name for name in settings.rows() if change_of(name)])
def test_a_setting_is_undone_done_again_and_saved(name: str) -> None:
    setting, space = settings.rows()[name], Undoable()
    space.run(IMPORTS)
    settings.remember()
    before = setting.read()
    space.run(change_of(name) or "")
    changed, saved = setting.read(), {**settings.take(), **settings.take_others(None)}
    assert changed != before
    assert space.undo() == []
    assert setting.read() == before
    space.redo()
    assert setting.read() == changed
    space.undo()
    assert saved[name] == changed
    assert settings.put_back_others(None, {name: changed} if name in settings.OTHERS else {}) == []
    if name in settings.SETTINGS:
        assert settings.put_back({name: changed}) == []
    if name != "time zone":  # whose environment is saved with the environment
        assert setting.read() == changed
    assert settings.put_back_others(None, {}) == settings.put_back({name: before}) == []
    assert setting.read() == before


def test_a_hook_of_a_library_is_there_again_after_undo(monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch sets one with a process group."""

    def hook(*_: object) -> None:
        pass

    hook.__module__ = "torch.distributed.distributed_c10d"
    monkeypatch.setattr(sys, "excepthook", hook)
    space = Undoable()
    space.run(IMPORTS)
    settings.remember()
    space.run("sys.excepthook = print")
    saved = settings.take_others(None)
    assert space.undo() == []
    assert sys.excepthook is hook
    settings.put_back_others(None, {"uncaught errors": saved["uncaught errors"]})
    assert sys.excepthook is print
    settings.put_back_others(None, {})
    assert sys.excepthook is hook
