"""Which names of the namespace a cell can reach: from its code, and from the functions that it can call.

The answer may be too large, never too small. Code that can reach any object (`globals()`, `gc`, magics), libraries that
may hold functions of users, threads and graphs of autograd: all names, then.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

from jupyter_dist.rank.guard.own import asyncio, signal, threading
from jupyter_dist.rank.state.process.modules.own import is_users

# Names with which code can reach objects that it does not name.
_BOUNDLESS = frozenset(
    {
        *("globals", "locals", "vars", "eval", "exec", "compile", "__import__", "get_ipython", "gc", "sys", "inspect"),
        *("ctypes", "importlib", "builtins", "__builtins__", "__globals__", "__main__", "_getframe", "ops"),
        *(
            "backward",
            "grad",
            "run_line_magic",
            "run_cell_magic",
            "atexit",
            "breakpoint",
            "f_globals",
            "__subclasses__",
            "_ih",
            "_oh",
        ),
        *("pickle", "cloudpickle", "dill", "torch_dispatch", "runpy", "code", "signal", "faulthandler"),
    }
)
# Libraries that call back only functions which they are given, or which objects hold that they are given.
_KNOWN = frozenset(
    {
        *("torch", "torchvision", "torchaudio", "torchmetrics", "numpy", "scipy", "pandas", "sklearn", "tqdm"),
        *("math", "cmath", "random", "time", "itertools", "functools", "operator", "collections", "copy", "json", "re"),
        *("string", "textwrap", "statistics", "fractions", "decimal", "datetime", "typing", "dataclasses", "enum"),
        *(
            "contextlib",
            "abc",
            "types",
            "os",
            "posixpath",
            "pathlib",
            "shutil",
            "glob",
            "io",
            "csv",
            "hashlib",
            "heapq",
        ),
        *(
            "bisect",
            "array",
            "struct",
            "uuid",
            "warnings",
            "logging",
            "pprint",
            "tempfile",
            "builtins",
            "_io",
            "_thread",
        ),
        *("jupyter_dist", "collections.abc", "numbers", "zlib", "base64", "secrets", "platform", "socket", "_random"),
        *("__future__", "traceback", "einops", "safetensors", "_operator", "_collections", "_functools", "posix"),
        *("_collections_abc", "genericpath", "_json", "_struct", "_datetime", "_bisect", "_heapq", "nt", "_decimal"),
    }
)
_OWN = ("jupyter_dist", "pydevd", "debugpy")  # names of threads
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class ReachesAllError(Exception):
    """The code may reach any name."""


def names_of_cell(code: str) -> frozenset[str]:
    """Return the names that the code of a cell has; raises ReachesAllError if it can reach others."""
    try:
        compiled = compile(code, "<cell>", "exec", _FLAGS, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
        raise ReachesAllError from err
    return names_of_code(compiled)


def all_names(code: str) -> set[str]:
    """Return the names that the code of a cell has, whatever it can reach."""
    try:
        compiled = compile(code, "<cell>", "exec", _FLAGS, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {name for part in _parts(compiled) for name in part.co_names}


@lru_cache(maxsize=4096)
def names_of_code(code: CodeType) -> frozenset[str]:
    """Return the names that compiled code has, and the code in it; raises ReachesAllError if it can reach others."""
    names = {name for part in _parts(code) for name in part.co_names}
    if not _BOUNDLESS.isdisjoint(names):
        raise ReachesAllError
    for name in names:
        module = sys.modules.get(name)
        if module is not None and not hasattr(builtins, name):
            check_module(name)
    return frozenset(names)


def _parts(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def check_module(name: str) -> None:
    """Raise ReachesAllError unless a module is known to call no functions of users but its arguments."""
    if name.partition(".")[0] not in _KNOWN and name not in _KNOWN and not is_users(name):
        raise ReachesAllError


class Bystanders:
    """Finds threads, tasks and timers of cells, which may change objects while another cell runs."""

    def __init__(self) -> None:
        """Note the threads and the timer of before the first cell."""
        self._own_threads = threading.enumerate()
        self._own_timer = _timer_runs()

    def may_act(self) -> bool:
        """Whether something may act during the next cell that the cell does not name."""
        for thread in threading.enumerate():
            if thread not in self._own_threads and not thread.name.startswith(_OWN):
                return True
        if _timer_runs() and not self._own_timer:
            return True
        with contextlib.suppress(RuntimeError):  # no loop runs
            return bool(asyncio.all_tasks())
        return False


def _timer_runs() -> bool:
    return signal.getitimer(signal.ITIMER_REAL)[0] > 0
