"""IPython's shell for a rank: no history, no terminal; output is sent as frames."""

from __future__ import annotations

import ast
import bdb
import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from IPython.core import page
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShellABC
from IPython.core.magics.script import ScriptMagics
from traitlets import Type
from traitlets.config import Config

from jupyter_dist.rank.cells.clients import scripts
from jupyter_dist.rank.cells.errors import cppframes, shortage
from jupyter_dist.rank.collectives import lostdevice
from jupyter_dist.rank.guard import usercode
from jupyter_dist.rank.ipython import elsewhere, ipython_compat, packages, tracebacks
from jupyter_dist.rank.ipython.cellnames import CellCompiler
from jupyter_dist.rank.ipython.displays import Emit, RankDisplayHook, RankDisplayPublisher
from jupyter_dist.rank.ipython.ipython_compat import CompatibleShell
from jupyter_dist.rank.memory import MemoryCounters
from jupyter_dist.rank.output.outbox import Outbox
from jupyter_dist.rank.state.process.torchlogs import TorchLogs

from .interrupt import Interrupter

INTERRUPTIBLE = True  # cells run and wait below these functions on the stack

DEFAULT_CACHE_SIZE = 1000  # IPython's default: how many results Out[] keeps

_PLAIN_CHARACTERS = 20_000  # for a longer cell, parsing twice is slower than the transformation

_WIDGETS = ("widget", "ipympl")  # figures that are widgets (ipympl)
_NEED_PAGE = ("notebook", "nbagg")

_PDB_IS_ON = "%pdb is on, but nobody can answer the debugger here: the program that ran this cell takes no questions.\n"


def _no_editor(*_: Any, **__: Any) -> None:
    raise UsageError("Ranks have no editor. Write a file in a cell with %%writefile, or in JupyterLab.")


def _no_store(_: str) -> None:
    """Refuse: all ranks would write the same entries of one database."""
    message = (
        "Ranks have no %store: all of them would write the same entry. Use torch.save() with a file for each rank."
    )
    raise UsageError(message)


@dataclass(frozen=True)
class ShellParts:
    """The parts of a rank that its shell uses."""

    names: dict[str, Any]  # in the namespace of every rank (rank, world_size, dist ...), hidden from %who
    cache_size: int  # how many results Out[] keeps; 0 for none
    emit: Emit  # sends an output
    interrupter: Interrupter  # knows whether the running cell was interrupted
    memory: MemoryCounters
    outbox: Outbox
    restore: Callable[[], None]  # restores settings of the process that a cell removed
    cell_magics: Mapping[str, Callable[[str, str], None]]  # of parts


class RankShell(CompatibleShell):
    """The shell that `get_ipython()` returns: created in the zygote by `prepare`, assigned to a rank by `begin`."""

    compiler_class = Type(CellCompiler)
    displayhook_class = Type(RankDisplayHook)
    display_pub_class = Type(RankDisplayPublisher)

    rank_names: dict[str, Any] = {}  # noqa: RUF012 (replaced, never changed)
    torch_logs: TorchLogs
    # The parts of ShellParts.
    emit: Emit
    interrupter: Interrupter
    memory: MemoryCounters
    outbox: Outbox
    restore: Callable[[], None] = staticmethod(lambda: None)  # while no rank has begun

    last_error: dict[str, Any] | None = None

    @classmethod
    def prepare(cls) -> RankShell:
        """Return the shell. It is created before ranks are forked because it would be a third of their start time."""
        if not cls.initialized():
            config = Config()
            config.HistoryManager.enabled = False  # sqlite with one writer per rank would be a third of a cell's time
            config.HistoryManager.hist_file = ":memory:"  # otherwise it needs a profile folder
            config.Completer.use_jedi = False  # the objects exist and can be inspected; jedi would read torch's sources
            cls.instance(config=config, user_module=ModuleType("__main__"), cache_size=DEFAULT_CACHE_SIZE)
        shell: RankShell = cls.instance()
        return shell

    def begin(self, parts: ShellParts) -> None:
        """Become this rank's shell: the shell was created in the zygote, before there was a rank."""
        self.emit, self.interrupter, self.memory = parts.emit, parts.interrupter, parts.memory
        self.outbox, self.restore = parts.outbox, parts.restore
        for name, run in parts.cell_magics.items():
            self.register_magic_function(run, "cell", name)
        self.rank_names = parts.names
        self.user_ns.update(parts.names)
        self.user_ns_hidden.update(parts.names)
        if parts.cache_size != DEFAULT_CACHE_SIZE:
            self.cache_size = parts.cache_size
            self.init_displayhook()
        self.display_pub.emit = parts.emit
        self.displayhook.emit = parts.emit
        self.starting_dir = os.getcwd()
        self.user_ns["_dh"][:] = [Path(self.starting_dir)]  # the shell was created in the zygote's folder
        self.torch_logs = TorchLogs()
        self.init_ipython_dir(None)
        self.save_sys_module_state()
        _tell_programs_of_us()
        _choose_figures_backend()
        ipython_compat.show_figures_inline()
        # IPython prints this on sys.exit(); here the error output is enough.
        warnings.filterwarnings("ignore", message="To exit: use 'exit'", category=UserWarning)

    # -- what a rank does not have ------------------------------------------------------------------

    def init_virtualenv(self) -> None:
        """Do nothing: the user chose the interpreter, and VIRTUAL_ENV may be the server's."""

    def init_prompts(self) -> None:
        """Do not set sys.ps1: Lightning and others take it for an interactive session and refuse to train."""

    def init_environment(self) -> None:
        """Do not change the zygote's environment; `begin` sets the rank's."""

    def init_hooks(self) -> None:
        """Show the text of `?` and %less as an output; there is no editor."""
        super().init_hooks()
        tracebacks.name_cells_in_warnings(self)
        self.set_hook("show_in_pager", page.as_hook(self._show_page), 99)
        self.set_hook("editor", _no_editor, 0)

    def init_magics(self) -> None:
        """Replace %store by an error that explains why it is missing, and have %pip take turns."""
        super().init_magics()
        packages.take_turns(self)
        self.register_magic_function(_no_store, "line", "store")

    def _show_page(self, text: Any, *_: Any, **__: Any) -> None:
        from jupyter_dist.protocol.models.models import METADATA_KEY  # ranks need no models otherwise

        data = text if isinstance(text, dict) else {"text/plain": text}
        # Clients that have a pager show it there.
        self.emit("display_data", {"data": data, "metadata": {METADATA_KEY: {"pager": True}}, "transient": {}})

    def init_user_ns(self) -> None:
        """Add the names that every rank has, also after %reset."""
        super().init_user_ns()
        self.user_ns.update(self.rank_names)
        self.user_ns_hidden.update(self.rank_names)

    def enable_gui(self, gui: str | None = None) -> None:
        """Refuse GUI event loops: figures are shown inline."""
        if gui not in (None, "inline", *_WIDGETS):
            raise UsageError(f"Ranks have no display: '{gui}' is not available. Use %matplotlib inline.")

    def enable_matplotlib(self, gui: str | None = None) -> Any:
        """Refuse figures that need a display, or the kernel's own connection to the page."""
        if gui is None or gui in _NEED_PAGE:
            shown = f"'{gui}' needs a kernel" if gui else "Ranks have no display"
            raise UsageError(f"{shown}. Use %matplotlib inline or %matplotlib widget: figures are shown in the cell.")
        if gui not in ("inline", "agg", *_WIDGETS):
            raise UsageError(f"Ranks have no display: '{gui}' is not available. Use %matplotlib inline.")
        return super().enable_matplotlib(gui)

    def ask_exit(self) -> None:
        """Refuse `exit` and `quit`."""
        raise SystemExit("a rank runs until its group is shut down or restarted")

    def set_next_input(self, s: str, replace: bool = False) -> None:
        """Show the code: ranks cannot fill in the next cell."""
        sys.stdout.write(f"# A rank cannot fill in a cell. Copy this:\n{s}\n")

    # -- running ------------------------------------------------------------------------------------

    def transform_cell(self, raw_cell: str) -> str:
        """Transform IPython syntax. Skipped for plain Python, because it takes a third of the time of a small cell."""
        if self._is_plain(raw_cell):
            return raw_cell if raw_cell.endswith("\n") else f"{raw_cell}\n"
        return str(super().transform_cell(raw_cell))

    def _is_plain(self, cell: str) -> bool:
        """Whether IPython would return the cell unchanged; False if that is not certain."""
        if not ipython_compat.transforms_as_it_comes(self.input_transformer_manager):
            return False
        # Backslash: parsing may warn, and would warn twice. Leading blanks: IPython removes them.
        if len(cell) > _PLAIN_CHARACTERS or "\\" in cell or not cell or cell[0].isspace():
            return False
        try:
            ast.parse(cell)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        return not self.transforms_plain(cell)

    def safe_execfile(self, fname: Any, *where: Any, **options: Any) -> None:
        """Run a script (`%run`). A module of another script's folder does not stand in for one of this folder."""
        scripts.drop_modules_of_others(os.path.dirname(os.path.abspath(os.path.expanduser(fname))))
        super().safe_execfile(fname, *where, **options)

    async def run_code(self, code_obj: Any, result: Any = None, *, async_: bool = False) -> bool:
        """Run a statement of a cell, unless the cell was interrupted before."""
        if self.interrupter.check_unnoticed():
            raise KeyboardInterrupt
        self.torch_logs.apply()
        failed = bool(await super().run_code(code_obj, result, async_=async_))
        if result is not None and isinstance(result.error_in_exec, bdb.BdbQuit) and self.last_error is None:
            # IPython shows nothing, but the rest of the cell does not run.
            self._send_error(type(result.error_in_exec)("the debugger was quit, and the cell with it"), None, True)
        return failed

    def system_piped(self, cmd: str) -> None:
        """Run `!cmd`. On an interrupt IPython only forwards Ctrl-C to the command; here the cell ends, too."""
        super().system_piped(cmd)
        if self.interrupter.check():
            raise KeyboardInterrupt

    system = system_piped

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        """Run a line magic. One of a kernel beside the ranks is refused with a sentence about where it runs."""
        if self.find_line_magic(magic_name) is None:
            elsewhere.refuse(f"%{magic_name}")
        return super().run_line_magic(magic_name, line, _stack_depth + 1)  # up to the user's frame

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        """Run a cell magic, with the same refusals. An interrupt of `%%bash` and similar magics ends the cell, too."""
        if self.find_cell_magic(magic_name) is None:
            elsewhere.refuse(f"%%{magic_name}")
        # IPython before 8.12 always, later with --no-raise-error
        result = super().run_cell_magic(magic_name, line, cell)
        is_script = getattr(self.find_cell_magic(magic_name), "__module__", None) == ScriptMagics.__module__
        if is_script and self.interrupter.check():
            raise KeyboardInterrupt
        return result

    # -- errors -------------------------------------------------------------------------------------

    def showtraceback(
        self,
        exc_tuple: tuple[type[BaseException], BaseException, TracebackType | None] | None = None,
        filename: str | None = None,
        tb_offset: int | None = None,
        exception_only: bool = False,
        running_compiled_code: bool = False,
    ) -> None:
        """Send the current exception, or the last one (`%tb`), as one `error` output."""
        if exc_tuple is None and sys.exc_info()[1] is None and getattr(sys, "last_value", None) is None:
            sys.stderr.write("No traceback available to show.\n")  # as IPython does
            return
        error, trace = _current_error(exc_tuple)
        self._send_error(error, trace, exception_only)
        if self.call_pdb and not exception_only and not isinstance(error, (SyntaxError, UsageError)):
            self._debug()

    def showsyntaxerror(self, filename: str | None = None, running_compiled_code: bool = False) -> None:
        """Send a cell's syntax error, which has no traceback."""
        error, trace = _current_error(None)
        self._send_error(error, trace, not running_compiled_code)

    def restore_names(self) -> None:
        """Restore the names of IPython and of every rank after a cell cleared the namespace."""
        if "_oh" not in self.user_ns or "_dh" not in self.user_ns:
            self.init_user_ns()

    def _debug(self) -> None:
        """Open the debugger where an error was raised (`%pdb on`), if a user can answer it."""
        execution = self.interrupter.current
        if execution is None or execution.interrupt_at is not None:
            return
        if execution.allow_stdin:
            self.debugger(force=True)
        else:
            sys.stderr.write(_PDB_IS_ON)

    def _send_error(self, error: BaseException, trace: TracebackType | None, bare: bool) -> None:
        self.restore()
        is_short = shortage.find_shortage(error) is not None
        if is_short:
            self.memory.use_reserve()
        shown = self.interrupter.explain(error, trace)
        whole = [] if self.outbox.in_child else cppframes.find(shown.error)  # a child cannot write the log
        fold = functools.partial(cppframes.fold, whole)
        self.last_error = tracebacks.error_content(self, shown.error, shown.trace, bare, fold)
        if not bare and self._is_shown_by_hook(shown.error, self.last_error["traceback"]):
            self.last_error = tracebacks.error_content(self, shown.error, shown.trace, True, fold)
        self.emit("error", self.last_error)
        self._log_whole(whole)
        if shown.note:
            sys.stderr.write(f"{shown.note}\n")
        if lostdevice.is_in(error):
            sys.stderr.write(f"{lostdevice.SENTENCE}\n")
        if is_short:
            # Where memory is short, the report may fail, too; the error has been shown.
            with contextlib.suppress(Exception):
                sys.stderr.write(shortage.report(error, self.user_ns, self.user_ns_hidden, self.memory))

    def _log_whole(self, messages: list[str]) -> None:
        current = self.interrupter.current  # IPython's own number may be the next cell's already
        cell = f"In [{current.execution_count}]: " if current is not None else ""
        for message in messages:
            self.outbox.log(f"jupyter_dist: {cell}an error with its C++ frames:\n{message}\n")

    def _is_shown_by_hook(self, error: BaseException, lines: list[str]) -> bool:
        """Show an error by the function with which a library (rich) replaced IPython's; return whether there is one."""
        hook = vars(self).get("_showtraceback")
        if not callable(hook):
            return False
        try:
            usercode.call(hook, type(error), error, lines)
        except BaseException:  # the boundary to user code: the error is shown as usual
            return False
        return True

    def report_memory(self) -> None:
        """Print the holders of memory in this rank, below a cell in which the kernel killed another rank."""
        sys.stderr.write(shortage.report(None, self.user_ns, self.user_ns_hidden, self.memory))

    def forget_error(self) -> None:
        """Forget the last traceback if a cell has cleared Python's: IPython has it, too, and the variables in it."""
        if getattr(sys, "last_traceback", None) is None:
            self.InteractiveTB.tb = None


# rich, fastprogress and pandas recognize a notebook by this name. Unlike ipykernel's shell, ours has no IPKernelApp in
# its config, which would make tqdm.auto and others choose widgets: text of equal ranks is
# folded, and is in every log.
RankShell.__name__ = RankShell.__qualname__ = "ZMQInteractiveShell"
InteractiveShellABC.register(RankShell)


def _tell_programs_of_us() -> None:
    """Set the environment so that programs started by cells use colors, but no pager."""
    os.environ.update(PAGER="cat", GIT_PAGER="cat")
    for name, value in (("TERM", "xterm-color"), ("CLICOLOR", "1"), ("FORCE_COLOR", "1")):
        os.environ.setdefault(name, value)


def _choose_figures_backend() -> None:
    """Set the backend from the environment, as importing matplotlib does; here the zygote has imported it already."""
    matplotlib = sys.modules.get("matplotlib")
    if matplotlib is not None and "MPLBACKEND" in os.environ:
        matplotlib.rcParams["backend"] = os.environ["MPLBACKEND"]


def _current_error(
    exc_tuple: tuple[type[BaseException], BaseException, TracebackType | None] | None,
) -> tuple[BaseException, TracebackType | None]:
    """Return the error to show, and leave it in sys for `pdb.pm()` and others."""
    kind, error, trace = exc_tuple or sys.exc_info()
    if error is None:
        error = getattr(sys, "last_value", None) or ValueError("No exception to find")
        kind, trace = type(error), error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    return error, trace
