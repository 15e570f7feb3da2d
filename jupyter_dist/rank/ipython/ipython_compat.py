"""All IPython internals that ranks use. If a version lacks a part, ranks work without it and report it.

Names without an underscore that are not documented (the `init_*` methods, `db`) count as internals, too.
`tests/compat` checks every name against the installed version; docs/compatibility.md lists the tested versions.
"""

from __future__ import annotations

import ast
import contextlib
import fnmatch
import os
import re
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import IPython
from IPython.core import displayhook, displaypub, history, interactiveshell
from IPython.core.autocall import IPyAutocall
from IPython.core.compilerop import CachingCompiler
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.macro import Macro
from IPython.core.prefilter import PrefilterManager
from traitlets import observe


class IPythonPart(NamedTuple):
    """Internal names that ranks use, and the feature that users lose if they are missing."""

    owner: Any
    names: tuple[str, ...]
    lost: str
    since: str = "8.6"


PARTS = [
    IPythonPart(InteractiveShell, ("loop_runner", "loop_runner_map"), "cells that use 'await' at their top level"),
    IPythonPart(InteractiveShell, ("init_profile_dir", "profile_dir"), "%bookmark"),
    IPythonPart(InteractiveShell, ("init_display_pub", "init_displayhook"), "rich outputs"),
    IPythonPart(
        InteractiveShell, ("init_virtualenv", "init_prompts", "init_environment"), "a clean start of the shell"
    ),
    IPythonPart(InteractiveShell, ("init_ipython_dir", "_ipython_dir_changed"), "a start that writes no files"),
    IPythonPart(InteractiveShell, ("init_hooks", "init_user_ns"), "help (?) as an output, and 'rank' after %reset"),
    IPythonPart(InteractiveShell, ("save_sys_module_state", "init_traceback_handlers"), "tracebacks with colours"),
    IPythonPart(InteractiveShell, ("init_history", "history_manager"), "%history -g and -l"),
    IPythonPart(history.HistoryManager, ("search", "get_tail", "get_range"), "%history -g and -l"),
    IPythonPart(
        TransformerManager(), ("cleanup_transforms", "line_transforms", "token_transformers"), "fast small cells"
    ),
    IPythonPart(InteractiveShell, ("init_prefilter", "find_magic", "automagic"), "fast small cells"),
    IPythonPart(PrefilterManager, ("transformers", "checkers"), "fast small cells"),
    IPythonPart(InteractiveShell, ("system_piped",), "an interrupt that ends a cell with '!command'"),
    IPythonPart(displayhook.DisplayHook, ("finish_displayhook", "write_format_data"), "rich results"),
    IPythonPart(displaypub.DisplayPublisher, ("publish", "clear_output"), "display()"),
    IPythonPart(CachingCompiler(), ("_filename_map",), "the numbers of restored cells in tracebacks"),
    # Only later versions have the behaviour that this undoes.
    IPythonPart(InteractiveShell, ("db",), "a start that writes no files", "9.17"),
    IPythonPart(InteractiveShell, ("_tee", "_format_exception_for_storage"), "fast printing", "9.1"),
]


def missing() -> list[str]:
    """Return a sentence for each part that this IPython lacks."""
    has = tuple(IPython.version_info[:2])
    sentences = []
    for part in PARTS:
        names = [name for name in part.names if not hasattr(part.owner, name)]
        expected = tuple(map(int, part.since.split("."))) <= has
        if names and expected:
            sentences.append(f"IPython {IPython.__version__} has no {', '.join(names)}: ranks lack {part.lost}.")
    return sentences


def _transforms(manager: TransformerManager) -> tuple[list[Any], ...] | None:
    try:
        return manager.cleanup_transforms, manager.line_transforms, manager.token_transformers
    except AttributeError:
        return None


_OWN_TRANSFORMS = _transforms(TransformerManager())


def transforms_as_it_comes(manager: TransformerManager) -> bool:
    """Whether cells are transformed as a new IPython does; False if that is not certain."""
    return _OWN_TRANSFORMS is not None and _transforms(manager) == _OWN_TRANSFORMS


# The prompts of IPython and Python, which IPython skips at the beginning of a line, also inside of texts.
_PROMPT = re.compile(r"^\s*(?:(?:\[(?:nav|ins)\])?\s?In \[\d+\]:|>>>|\.\.\.)", re.MULTILINE)
_FIRST_WORD = re.compile(r"[\w.*]*")


class RankHistory(history.HistoryManager):
    """The cells that this rank ran. IPython searches in a database, which ranks do not have."""

    def store_inputs(self, line_num: int, source: str, source_raw: str | None = None) -> None:
        """Keep the cell as `In[line_num]`; numbers before it may be of cells that ran elsewhere."""
        for cells in (self.input_hist_parsed, self.input_hist_raw):
            del cells[line_num:]
            cells.extend([""] * (line_num - len(cells)))
        super().store_inputs(line_num, source, source_raw)

    def search(  # noqa: PLR0913, PLR0917 (the parameters of IPython)
        self,
        pattern: str = "*",
        raw: bool = True,
        search_raw: bool = True,
        output: bool = False,
        n: int | None = None,
        unique: bool = False,
    ) -> list[Any]:
        """Return the cells that match a pattern with * and ?, oldest first."""
        sources = [source for _, _, source in self.get_range(0, 1, None, search_raw)]
        cells = self.get_range(0, 1, None, raw, output)
        found = [(cell, text) for cell, text in zip(cells, sources, strict=True) if fnmatch.fnmatchcase(text, pattern)]
        if unique:
            found = list({text: (cell, text) for cell, text in found}.values())
        return [cell for cell, _ in found][-n if n else None :]

    def get_tail(self, n: int = 10, raw: bool = True, output: bool = False, include_latest: bool = False) -> list[Any]:
        """Return the last cells, oldest first; the running cell only with `include_latest`."""
        cells = list(self.get_range(0, 1, None, raw, output))
        return (cells if include_latest else cells[:-1])[-n:]


class CompatibleShell(InteractiveShell):
    """The part of a rank's shell that depends on IPython's internals."""

    _scratch: tempfile.TemporaryDirectory[str] | None = None

    # -- no files are written at start --------------------------------------------------------------

    @observe("ipython_dir")
    def _ipython_dir_changed(self, change: Any) -> None:
        """Do not create the folder."""

    def init_profile_dir(self, profile_dir: Any) -> None:
        """Do nothing: the folder is created on first use (%bookmark), so that a start writes no files."""
        if not _DB_IS_LAZY:  # before 9.17 the constructor opens a store in it
            from IPython.core.profiledir import ProfileDir

            self._scratch = tempfile.TemporaryDirectory(prefix="jupyter-dist-")
            self.profile_dir = ProfileDir(location=self._scratch.name)

    @property
    def db(self) -> Any:
        """The store that %bookmark uses."""
        if self.profile_dir is None:
            super().init_profile_dir(None)
        if _DB_IS_LAZY:
            return InteractiveShell.db.fget(self)
        if self._db is None:
            self._db = interactiveshell.PickleShareDB(f"{self.profile_dir.location}/db")
        return self._db

    @db.setter
    def db(self, value: Any) -> None:
        if self._scratch is not None:  # used by the constructor; the real one is opened on first access
            self._scratch.cleanup()
            self._scratch = self.profile_dir = value = None
        self._db = value

    _db: Any = None

    def init_history(self) -> None:
        """Keep the history in memory, and search it there."""
        self.history_manager = RankHistory(shell=self, parent=self)
        self.configurables.append(self.history_manager)

    # -- features that cost more than they are worth -----------------------------------------------------------

    @contextlib.contextmanager
    def _tee(self, channel: str) -> Iterator[None]:
        # IPython 9 would keep every printed string, which takes most of the time of a print.
        yield

    def _format_exception_for_storage(self, *_: Any, **__: Any) -> dict[str, Any]:
        # It was formatted for the output already; IPython would format it again to keep it.
        return {}

    # -- cells that IPython leaves as they are -----------------------------------------------------------

    _num_checkers = 0

    def init_prefilter(self) -> None:
        """Record the number of IPython's own checkers of single lines."""
        super().init_prefilter()
        with contextlib.suppress(AttributeError):
            self._num_checkers = len(self.prefilter_manager.checkers)

    def transforms_plain(self, cell: str) -> bool:
        """Whether IPython may change this cell, which is valid Python; True if that is not certain."""
        if self.autocall or self.input_transformers_post:
            return True
        if ("In [" in cell or ">>>" in cell or "..." in cell) and _PROMPT.search(cell):
            return True
        return "\n" not in cell.rstrip("\n") and self._transforms_line(cell)

    def _transforms_line(self, line: str) -> bool:
        """Whether IPython may change the only line of a cell: a magic or a macro, whose name comes first."""
        prefilter = self.prefilter_manager
        try:
            if prefilter.transformers or len(prefilter.checkers) != self._num_checkers:
                return True
        except AttributeError:
            return True
        match = _FIRST_WORD.match(line)
        word = match[0] if match else ""
        if self.automagic and self.find_magic(word) is not None:
            return True
        return issubclass(type(self.user_ns.get(word)), (IPyAutocall, Macro))

    # -- cells that await -----------------------------------------------------------------------------

    def awaits_on_asyncio(self) -> bool:
        """Whether cells that await run on the rank's own loop; %autoawait can choose another one."""
        return bool(self.loop_runner is self.loop_runner_map["asyncio"][0])


_DB_IS_LAZY = isinstance(getattr(InteractiveShell, "db", None), property)


def run_to_end(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine that never awaits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise SyntaxError("this cell awaits, but %autoawait is off")


def living_widgets() -> dict[str, Any]:
    """Return the widgets of ipywidgets that exist, by their models."""
    found = getattr(sys.modules.get("ipywidgets.widgets.widget"), "_instances", None)
    return found if isinstance(found, dict) else {}


def finish_result(hook: displayhook.DisplayHook) -> None:
    """Finish a result as IPython's hook does, except for printing an empty line."""
    if hasattr(hook, "_is_active"):
        hook._is_active = False


def forget_sources(is_gone: Callable[[str], bool]) -> None:
    """Drop the tokens and trees that IPython keeps forever of each cell in a traceback, 8 kB and more for each.

    Args:
        is_gone: whether a file name is to be dropped; sources of modules stay, which take long to parse.
    """
    sources = [getattr(sys.modules.get(package), "Source", object) for package in ("executing", "stack_data")]
    for owner in [*sources, *filter(None, map(sys.modules.get, _FINDERS))]:
        for name, kept in list(vars(owner).items()):
            if isinstance(kept, dict) and name.endswith(_SOURCE_CACHES):
                for key in [key for key in list(kept) if is_gone(_file_of(key[0]))]:
                    _untie(kept.pop(key, None))
            elif hasattr(kept, "cache_clear"):  # its keys are sources, nodes of their trees, or code
                kept.cache_clear()


_FINDERS = ("executing.executing", "executing._position_node_finder")
_SOURCE_CACHES = ("__source_cache_with_lines", "__executing_cache")


def _untie(source: Any) -> None:
    """Free the tree of a source now: nodes that refer to their parents would wait for the garbage collector."""
    if isinstance(tree := getattr(source, "tree", None), ast.AST):
        for node in ast.walk(tree):
            vars(node).pop("parent", None)


def _file_of(name_or_code: Any) -> str:
    return str(getattr(name_or_code, "co_filename", name_or_code))


def note_number(compiler: CachingCompiler, name: str, number: int) -> None:
    """Have tracebacks call the code of this name by the number of a cell; a name that they know keeps its number."""
    with contextlib.suppress(AttributeError):
        compiler._filename_map.setdefault(name, number)


def show_figures_inline() -> None:
    """Show figures inline, as importing matplotlib in a kernel does; here the zygote has imported it already."""
    backend = sys.modules.get("matplotlib_inline.backend_inline")
    enable = getattr(backend, "_enable_matplotlib_integration", None)
    if enable is not None:
        enable()


def unused_profile_files() -> list[str]:
    """Return the files of the user's IPython profile that a kernel would run, and ranks do not."""
    folder = Path(os.environ.get("IPYTHONDIR") or "~/.ipython").expanduser() / "profile_default"
    try:
        started = sorted(path for path in (folder / "startup").iterdir() if path.suffix in (".py", ".ipy"))
        return [str(path) for path in (folder / "ipython_config.py", *started) if path.exists()]
    except OSError:
        return []
