"""The cells of a rank that can be undone, newest last: what is kept for each, within limits, and undo in place."""

from __future__ import annotations

import atexit
import builtins
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.wire.places import cut
from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.guard.own import gc, time

from .allowance import Allowance
from .fingerprint import Fingerprint, Looker
from .kept import NO_ROOM, Held, KeptCell, check_known, no_collections, obstacle_of, write
from .reach import Bystanders, all_names
from .redo import UndoneCells
from .states.caches import CacheState
from .states.foreign import PartsState
from .states.mementos import DictState, InstanceState, Memento, NamesState, is_result
from .states.memory import MemoryState
from .states.process import GeneratorState, ProcessState
from .states.shared import KeptPart, PartsOfCell
from .walk import MAX_NAMED, Key, ObjectWalk, TooManyObjectsError, is_python, know_arrays

_MIB = 1 << 20
_MUCH_MEMORY = 256 * _MIB
_UNSEEN = "what the cell changed without naming it was not looked for: there are too many objects"
_AT_EXIT = "a function that is called when the process ends stays registered (`atexit.register`)"
_WITH_HOOKS = ("torch.nn.modules.module", "torch.optim.optimizer")


class UndoKeeper:
    """Keeps the state before cells, and writes it back. Main thread only."""

    def __init__(self, shell: Any, bystanders: Bystanders) -> None:
        self._shell = shell
        self._bystanders = bystanders
        self._namespace: dict[str, Any] = shell.user_ns
        self._cells: list[KeptCell] = []
        self._held = Held()
        self._undone = UndoneCells(self._held)
        self._number = 0
        self._reasons: dict[str, str] = {}  # why cells cannot be undone any more, by execution
        self._report: dict[str, Any] | None = None
        self._limits: Mapping[str, int] = {}
        self._looker = Looker(self._namespace)
        self._print: Fingerprint | None = None  # of before the cell; None: it is not known
        self._kept: set[int] = set()  # the ids of what is kept for the cell that runs
        self._began = 0.0
        self._exits = _Exits("")
        self._allowance = Allowance()
        self._parts = PartsOfCell()
        self._learned: set[str] = set()  # names whose objects changed in cells that do not name them

    # -- before and after a cell ----------------------------------------------------------------------

    def begin(self) -> None:
        """Begin with a cell: nothing has been kept for it."""
        self._report, self._kept, self._began = None, set(), 0.0

    def before(self, execution_id: str, code: str | None, limits: Mapping[str, int] | None, *, is_silent: bool) -> None:
        """Keep the state before a cell. A cell that is not kept ends what is kept, for it may change anything.

        Args:
            execution_id: of the cell.
            code: of the cell, as Python; None: it may reach every name.
            limits: `cells` and `bytes`; None: the cell is not to be kept.
            is_silent: whether it is a request between cells, which is kept if cells before it are.
        """
        if limits is None and not self._cells and not self._undone.cells:
            return
        if limits is None and not is_silent:
            self._drop_all("A cell ran after it that did not keep undo.")
            return
        self._limits = limits = limits or self._limits
        self._number += 1
        began, cell = time.monotonic(), KeptCell(execution_id, is_silent, self._number)
        reason = None
        try:
            cell.modes = torch_compat.dispatch_modes()
            with no_collections(), torch_compat.without_dispatch_modes():
                self._take(cell, code, limits)
                self._kept = _ids_of(cell.mementos)
                if self._print is None:
                    self._print = self._look()
        except (TooManyObjectsError, JupyterDistError) as err:
            reason = str(err)
        except MemoryError:
            reason = "There is not enough memory to keep the state before the cell."
        except Exception as err:  # an object that no rule foresees must not keep the cell from running
            reason = cut(f"The state before the cell could not be kept: {type(err).__name__}: {err}", 300)
        self._began = time.monotonic()
        self._exits = _Exits(code)
        cell.milliseconds = round((self._began - began) * 1000, 3)
        if reason is not None:
            self._print = None
            self._drop_all("A cell ran after it whose state could not be kept.")
            self._reasons[execution_id] = reason
        self._report = {
            "undo": {"not_kept": cell.not_kept, **({"reason": reason} if reason else {})},
            "undo_cost": [cell.added_bytes, cell.milliseconds],
        }

    def _look(self) -> Fingerprint | None:
        """Look at all objects; None if they are too many. It is tried again when there is twice the time for it."""
        if self._allowance.refuses("", self._namespace):
            return None
        began = time.thread_time()
        found = self._looker.look(self._allowance.limit())
        used = time.thread_time() - began
        self._allowance.spend(used)
        if found is None:
            self._allowance.failed("", self._namespace, used)
        return found

    def _compare(self) -> None:
        """Name the changes of the cell that were not kept; the next cells keep these objects."""
        self._allowance.earn(time.monotonic() - self._began)
        before, self._began, cell = self._print, 0.0, self._cells[-1]
        if self._exits.has_more():
            cell.not_kept.append(_AT_EXIT)
        with no_collections(), torch_compat.without_dispatch_modes():
            self._print = self._look() if before is not None else None
        if before is None or self._print is None:
            cell.not_kept.append(_UNSEEN)
            return
        for name, what in self._print.changed(before, self._kept).items():
            self._learned.add(name)
            if len(cell.not_kept) < MAX_NAMED and not any(known.startswith(f"`{name}`: ") for known in cell.not_kept):
                cell.not_kept.append(f"`{name}`: {what} changed, to which the names of the cell do not lead")

    def after(self) -> dict[str, Any]:
        """Return the fields for the reply to the cell: what ranks have alike, and the cost."""
        if self._began and self._cells and self._report is not None and "reason" not in self._report["undo"]:
            began = time.monotonic()
            self._compare()
            changed = self._report["undo"]["changed"] = self._has_changed(self._cells[-1])
            if changed or _UNSEEN in self._cells[-1].not_kept:
                self._undone.drop("A cell ran after the undo that may have changed something.")
            cost = self._report["undo_cost"]
            cost[1] = round(cost[1] + (time.monotonic() - began) * 1000, 3)
        known = {
            "kept": _names_of(self._cells),
            "undone": _names_of(self._undone.cells),
            "files": self._parts.files(),
        }
        if self._report is None:
            return {"undo": known}
        return {**self._report, "undo": {**known, **self._report["undo"]}}

    def _has_changed(self, cell: KeptCell) -> bool:
        """Whether a cell changed something besides its own result; much memory is not compared, as it takes long."""
        if any(" changed, " in sentence for sentence in cell.not_kept):
            return True
        states = [one for _, one in cell.mementos if one.value is not self._namespace.get("_oh")]
        memory = [one for one in states if isinstance(one, MemoryState)]
        rest = [one for one in states if not isinstance(one, MemoryState | DisplayState)]
        is_much = not self._undone.cells and sum(one.size for one in memory) > _MUCH_MEMORY
        return any(one.has_changed() for one in rest) or is_much or any(one.differs() for one in memory)

    def forget(self, reason: str) -> None:
        """Drop all cells, with the reason for those who want to undo them."""
        self._drop_all(reason)

    def _take(self, cell: KeptCell, code: str | None, limits: Mapping[str, int]) -> None:
        know_arrays()
        walk = ObjectWalk(self._namespace, self._held.latest, self._allowance)
        walk.from_code(None if self._bystanders.may_act() else code, self._learned)
        for root in (self._namespace.get("_oh"), *_global_hooks()):
            if type(root) is dict or isinstance(root, dict):
                walk.keep(root, DictState)
        walk.keep(self._namespace, NamesState)
        walk.keep(vars(builtins), NamesState)
        parts = self._parts_of(walk) if walk.has_wrapped else []
        self._make_room(walk.copied_bytes, limits)
        for copy in walk.copies:
            copy.take()
        found = list(walk.mementos.items())
        found.append((("process", ProcessState), ProcessState()))
        found.append((("display", DisplayState), DisplayState(self._shell.displayhook)))
        cell.mementos, cell.not_kept = found, walk.not_kept
        before = self._held.num_bytes
        for key, memento in found:
            self._held.hold(memento)
            self._held.latest[key] = memento
        cell.added_bytes = self._held.num_bytes - before
        self._cells.append(cell)
        self._shrink(limits)
        self._parts.publish(cell.execution_id, parts)

    def _parts_of(self, walk: ObjectWalk) -> list[KeptPart]:
        began = time.thread_time()
        parts = self._parts.choose(self._namespace, walk.mementos)
        self._allowance.spend(time.thread_time() - began)
        return parts

    def _make_room(self, num_bytes: int, limits: Mapping[str, int]) -> None:
        """Drop the oldest cells until there is room; raises JupyterDistError if there never is."""
        if num_bytes > limits["bytes"]:
            needed, limit = num_bytes / _MIB, limits["bytes"] / _MIB
            message = say(
                "The state before the cell takes %1 MiB on a rank; the limit is %2 MiB.",
                f"{needed:.0f}",
                f"{limit:.0f}",
            )
            raise JupyterDistError("too_large", message, say("The setting DistApp.undo_bytes is the limit."))
        if self._held.num_bytes + num_bytes > limits["bytes"]:
            self._undone.drop(NO_ROOM)
        while self._cells and self._held.num_bytes + num_bytes > limits["bytes"]:
            self._drop_oldest(NO_ROOM)

    def _shrink(self, limits: Mapping[str, int]) -> None:
        """Drop the oldest cells beyond the limits."""
        while sum(not cell.is_silent for cell in self._cells) > limits["cells"]:
            self._drop_oldest("More cells ran after it than are kept (DistApp.undo_cells).")
        while len(self._cells) > 1 and self._held.num_bytes > limits["bytes"]:
            self._drop_oldest(NO_ROOM)

    def _drop_oldest(self, reason: str) -> None:
        oldest = self._cells.pop(0)
        self._held.release(oldest.mementos)
        self._reasons[oldest.execution_id] = reason
        while self._cells and self._cells[0].is_silent:
            self._held.release(self._cells.pop(0).mementos)

    def _drop_all(self, reason: str) -> None:
        self._print = None
        self._undone.drop(reason)
        while self._cells:
            self._drop_oldest(reason)

    # -- undo -----------------------------------------------------------------------------------------

    def check(self, executions: Sequence[str]) -> list[str]:
        """Return sentences about objects that undoing these cells leaves unchanged.

        Raises:
            JupyterDistError: `cannot_undo`, if other cells ran after them, or an object cannot get
                its state back. Nothing has been changed.
        """
        cells = self._chosen(executions)
        for cell in cells:
            if (obstacle := obstacle_of(cell.mementos)) is not None:
                message = say("The cell cannot be undone: %1.", obstacle)
                raise JupyterDistError("cannot_undo", message, say("Run the cells again, or restart the ranks."))
        return list(dict.fromkeys(sentence for cell in cells for sentence in cell.not_kept))

    def undo(self, executions: Sequence[str]) -> list[str]:
        """Write the state before these cells back; return what is left as it is.

        Raises:
            JupyterDistError: `cannot_undo`, as `check`.
        """
        left = self.check(executions)
        self._print = None
        failed: list[str] = []
        for cell in self._chosen(executions):
            why_not = self._undone.take(cell, self._limits["bytes"])
            with torch_compat.without_dispatch_modes():
                failed += write(cell.mementos)
            torch_compat.leave_dispatch_modes(cell.modes)
            self._cells.remove(cell)
            self._undone.cells.append(cell)
            self._reasons[cell.execution_id] = "It was undone."
            if why_not or failed:
                self._undone.drop(why_not or "Not all of it could be undone.")
        if failed:
            message = say("Not all could be undone: %1.", "; ".join(failed[:5]))
            raise JupyterDistError(
                "cannot_undo", message, say("The rest was. Run the cells again, or restart the ranks.")
            )
        return left

    # -- redo -----------------------------------------------------------------------------------------

    def check_redo(self, executions: Sequence[str]) -> None:
        """Raise JupyterDistError if these cells cannot be done again."""
        self._undone.chosen(executions)

    def redo(self, executions: Sequence[str]) -> list[str]:
        """Write the states after undone cells into the same objects; raises JupyterDistError as `check_redo`."""
        chosen = self._undone.chosen(executions)
        self._print = None
        failed: list[str] = []
        results = self._results()
        for cell in chosen:
            with torch_compat.without_dispatch_modes():
                failed += write(cell.after)
            self._undone.cells.remove(cell)
            self._held.release(cell.after)
            cell.after = []
            self._drop_since(cell)
            self._cells.append(cell)
        for names, known in results:
            names.update({name: value for name, value in known.items() if name not in names})
        self._shrink(self._limits)
        if failed:
            message = say("Not all could be done again: %1.", "; ".join(failed[:5]))
            raise JupyterDistError(
                "cannot_undo", message, say("The rest was. Run the cells again, or restart the ranks.")
            )
        return []

    def _drop_since(self, cell: KeptCell) -> None:
        """Drop cells that ran after a cell that is done again: they changed nothing, and kept the state without it."""
        while self._cells and self._cells[-1].number > cell.number:
            looked = self._cells.pop()
            self._held.release(looked.mementos)
            self._reasons[looked.execution_id] = "It changed nothing, and an undone cell before it was done again."

    def _results(self) -> list[tuple[dict[Any, Any], dict[Any, Any]]]:
        """Return the results of cells, of which those after an undo stay."""
        names = {name: one for name, one in self._namespace.items() if is_result(name) and name.strip("_")}
        history = self._namespace.get("_oh")
        return [(self._namespace, names), *([(history, dict(history))] if type(history) is dict else [])]

    def _chosen(self, executions: Sequence[str]) -> list[KeptCell]:
        """Return the cells to undo, newest first, with requests after them."""
        wanted = set(executions)
        check_known(wanted, self._cells, self._reasons, ("undone", "run"), "Run the cells again.")
        first = min(n for n, cell in enumerate(self._cells) if cell.execution_id in wanted)
        chosen = self._cells[first:]
        if any(not cell.is_silent and cell.execution_id not in wanted for cell in chosen):
            raise JupyterDistError("cannot_undo", say("Cells ran after it."), say("Undo these first, or with it."))
        return chosen[::-1]


class _Exits:
    """How many functions are to be called when the process ends, before a cell: Python does not list them."""

    def __init__(self, code: str | None) -> None:
        self._number = atexit._ncallbacks()
        self._modules = set(sys.modules)
        self._is_named = code is None or "atexit" in all_names(code)

    def has_more(self) -> bool:
        """Whether the cell registered one: it or a function that it called, but not a library while it was imported."""
        added = atexit._ncallbacks() - self._number
        return added > 0 and (self._is_named or added > sum(map(_registers_itself, set(sys.modules) - self._modules)))


def _registers_itself(name: str) -> bool:
    """Whether a module registers functions for the end of the process in the code that runs when it is imported."""
    try:
        module: Any = sys.modules[name]
        code = module.__spec__.loader.get_code(name)
    except Exception:  # it has none, or is an object in place of a module
        return False
    return code is not None and {"atexit", "register"} <= set(code.co_names)


class DisplayState(Memento):
    """The last results, of which IPython keeps a second reference to see whether the user has changed `_`."""

    __slots__ = ("saved",)
    names = ("_", "__", "___")

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.saved = [getattr(value, name, None) for name in self.names]

    def differs(self) -> bool:
        """Whether there is another last result now."""
        return any(
            getattr(self.value, name, None) is not item for name, item in zip(self.names, self.saved, strict=True)
        )

    def restore(self) -> None:
        """Set the last results."""
        for name, item in zip(self.names, self.saved, strict=True):
            setattr(self.value, name, item)


def _ids_of(mementos: list[tuple[Key, Memento]]) -> set[int]:
    """Return the ids of objects whose state is kept whole, and of inner parts of objects in C."""
    kept = {key[0] for key, one in mementos if type(one) is not InstanceState or is_python(type(one.value))}
    inner = [one.value for _, one in mementos if isinstance(one, PartsState | CacheState | GeneratorState)]
    for _ in range(2):
        inner += [part for one in inner for part in gc.get_referents(one) if not isinstance(part, type)]
    return kept.union(map(id, inner))


def _global_hooks() -> list[Any]:
    """Return torch's dictionaries of hooks for all modules and optimizers."""
    places = (vars(sys.modules[name]) for name in _WITH_HOOKS if name in sys.modules)
    return [item for place in places for name, item in list(place.items()) if name.startswith("_global_")]


def _names_of(cells: list[KeptCell]) -> list[str]:
    return [cell.execution_id for cell in cells if not cell.is_silent]
