"""IPython's shell as a rank uses it: no history, no terminal, no stdin; output becomes frames."""

from __future__ import annotations

import ast
import builtins
import getpass
import os
import sys
import warnings
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

from IPython.core import page
from IPython.core.error import StdinNotImplementedError, UsageError
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShellABC
from IPython.core.magics.script import ScriptMagics
from traitlets import Type
from traitlets.config import Config

from . import ipython_compat, tracebacks
from .displays import Emit, RankDisplayHook, RankDisplayPublisher
from .interrupt import Interrupter
from .ipython_compat import CompatibleShell

INTERRUPTIBLE = True  # cells run and wait below these functions

DEFAULT_CACHE_SIZE = 1000  # IPython's: how many results Out[] keeps

_PLAIN_CHARACTERS = 20_000  # of a longer cell, parsing twice costs more than looking


def _transforms(manager: TransformerManager) -> tuple[list[Any], ...]:
    return manager.cleanup_transforms, manager.line_transforms, manager.token_transformers


_IPYTHONS_OWN = _transforms(TransformerManager())


class RankShell(CompatibleShell):
    """The one that `get_ipython()` returns: made by `prepare` in the zygote, a rank's since `begin`."""

    displayhook_class = Type(RankDisplayHook)
    display_pub_class = Type(RankDisplayPublisher)

    rank_names: dict[str, Any] = {}  # noqa: RUF012 (replaced, never changed)
    emit: Emit
    interrupter: Interrupter

    last_error: dict[str, Any] | None = None
    restore: Callable[[], None] = staticmethod(lambda: None)  # puts back what a cell took away from the process

    @classmethod
    def prepare(cls) -> RankShell:
        """Return the shell, made before ranks are forked: it would be a third of what a rank does to start."""
        if not cls.initialized():
            config = Config()
            config.HistoryManager.enabled = False  # sqlite, one writer per rank: a third of a cell's cost
            config.HistoryManager.hist_file = ":memory:"  # else it asks for a profile folder
            config.Completer.use_jedi = False  # the objects are there to be asked; it would read torch's sources
            cls.instance(config=config, user_module=ModuleType("__main__"), cache_size=DEFAULT_CACHE_SIZE)
        shell: RankShell = cls.instance()
        return shell

    def begin(self, names: dict[str, Any], emit: Emit, interrupter: Interrupter, cache_size: int) -> None:
        """Become this rank's shell.

        Args:
            names: what every rank has in its namespace (rank, world_size, dist ...), hidden from %who.
            emit: sends an output.
            interrupter: knows whether the running cell was asked to stop.
            cache_size: how many results Out[] keeps; 0 for none.
        """
        self.rank_names, self.emit, self.interrupter = names, emit, interrupter
        self.user_ns.update(names)
        self.user_ns_hidden.update(names)
        if cache_size != DEFAULT_CACHE_SIZE:
            self.cache_size = cache_size
            self.init_displayhook()
        self.display_pub.emit = emit
        self.displayhook.emit = emit
        self.starting_dir = os.getcwd()
        self.init_ipython_dir(None)
        self.save_sys_module_state()
        _tell_programs_of_us()
        _refuse_stdin()
        _choose_figures_backend()
        ipython_compat.show_figures_inline()
        # IPython says it on sys.exit(), where it makes no sense: the error output tells all.
        warnings.filterwarnings("ignore", message="To exit: use 'exit'", category=UserWarning)

    # -- what a rank does not have ------------------------------------------------------------------

    def init_virtualenv(self) -> None:
        """The interpreter is the one the user chose; VIRTUAL_ENV may be the server's."""

    def init_prompts(self) -> None:
        """No sys.ps1: Lightning and others take it for an interactive session and refuse to train."""

    def init_environment(self) -> None:
        """The zygote's environment stays as it is; `begin` sets the rank's."""

    def init_hooks(self) -> None:
        """`?` and %less show their text as an output."""
        super().init_hooks()
        self.set_hook("show_in_pager", page.as_hook(self._show_page), 99)

    def _show_page(self, text: Any, *_: Any, **__: Any) -> None:
        data = text if isinstance(text, dict) else {"text/plain": text}
        self.emit("display_data", {"data": data, "metadata": {}, "transient": {}})

    def init_user_ns(self) -> None:
        """The names that every rank has, also after %reset."""
        super().init_user_ns()
        self.user_ns.update(self.rank_names)
        self.user_ns_hidden.update(self.rank_names)

    def enable_gui(self, gui: str | None = None) -> None:
        """Figures are shown inline; there is no event loop of a window system."""
        if gui not in (None, "inline"):
            raise UsageError(f"Ranks have no display: '{gui}' cannot be used, only %matplotlib inline.")

    def ask_exit(self) -> None:
        """`exit` and `quit`."""
        raise SystemExit("a rank stays until its group is shut down or restarted")

    def set_next_input(self, s: str, replace: bool = False) -> None:
        """There is no next cell to fill in."""

    # -- running ------------------------------------------------------------------------------------

    def transform_cell(self, raw_cell: str) -> str:
        """IPython's own Python made plain; looking for it costs a third of a small cell, so not where there is none."""
        if self._is_plain(raw_cell):
            return raw_cell if raw_cell.endswith("\n") else f"{raw_cell}\n"
        return str(super().transform_cell(raw_cell))

    def _is_plain(self, cell: str) -> bool:
        """Whether IPython would return the cell as it is; False where that is not sure at once."""
        if self.autocall or _transforms(self.input_transformer_manager) != _IPYTHONS_OWN:
            return False
        # A backslash: parsing may warn, and will once more. Blanks first: IPython removes them.
        if len(cell) > _PLAIN_CHARACTERS or "\\" in cell or not cell or cell[0].isspace():
            return False
        try:
            body = ast.parse(cell).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        # A name alone may be called by IPython: exit, and macros.
        return not (len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Name))

    async def run_code(self, code_obj: Any, result: Any = None, *, async_: bool = False) -> bool:
        """Run one statement of a cell, unless the cell was interrupted before it got here."""
        if self.interrupter.check_unnoticed():
            raise KeyboardInterrupt
        return bool(await super().run_code(code_obj, result, async_=async_))

    def system_piped(self, cmd: str) -> None:
        """`!cmd`: IPython forwards Ctrl-C to the command and goes on; the cell must end as well."""
        super().system_piped(cmd)
        if self.interrupter.check():
            raise KeyboardInterrupt

    system = system_piped

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        """`%%bash` and its like: the same (IPython before 8.12 always, later with --no-raise-error)."""
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
        """Send the current exception as one `error` output."""
        error, trace = _current_error(exc_tuple)
        self._send_error(error, trace, exception_only)

    def showsyntaxerror(self, filename: str | None = None, running_compiled_code: bool = False) -> None:
        """Send a cell's syntax error, which has no traceback."""
        error, trace = _current_error(None)
        self._send_error(error, trace, not running_compiled_code)

    def restore_names(self) -> None:
        """A cell cleared the namespace: the names that IPython and every rank have come back."""
        if "_oh" not in self.user_ns or "_dh" not in self.user_ns:
            self.init_user_ns()

    def _send_error(self, error: BaseException, trace: TracebackType | None, bare: bool) -> None:
        self.restore()
        error, trace = self.interrupter.explain(error, trace)
        self.last_error = tracebacks.error_content(self, error, trace, bare)
        self.emit("error", self.last_error)


# rich, fastprogress and pandas recognise a notebook by this name. Unlike ipykernel's shell ours has no
# IPKernelApp in its config, by which tqdm.auto and others would choose widgets, which ranks do not have.
RankShell.__name__ = RankShell.__qualname__ = "ZMQInteractiveShell"
InteractiveShellABC.register(RankShell)


def _tell_programs_of_us() -> None:
    """What programs started by a cell need to know: no pager, but colours."""
    os.environ.update(PAGER="cat", GIT_PAGER="cat")
    for name, value in (("TERM", "xterm-color"), ("CLICOLOR", "1"), ("FORCE_COLOR", "1")):
        os.environ.setdefault(name, value)


def _refuse_stdin() -> None:
    def refuse(*_: object, **__: object) -> str:
        raise StdinNotImplementedError("ranks have no stdin: input() and debuggers cannot ask anything here")

    builtins.input = refuse
    getpass.getpass = refuse


def _choose_figures_backend() -> None:
    """Set what importing matplotlib would have taken from the environment, had the zygote not imported it already."""
    matplotlib = sys.modules.get("matplotlib")
    if matplotlib is not None and "MPLBACKEND" in os.environ:
        matplotlib.rcParams["backend"] = os.environ["MPLBACKEND"]


def _current_error(
    exc_tuple: tuple[type[BaseException], BaseException, TracebackType | None] | None,
) -> tuple[BaseException, TracebackType | None]:
    """The error to show, which `pdb.pm()` and others then find in sys."""
    kind, error, trace = exc_tuple or sys.exc_info()
    if error is None:
        error = getattr(sys, "last_value", None) or ValueError("No exception to find")
        kind, trace = type(error), error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    return error, trace
