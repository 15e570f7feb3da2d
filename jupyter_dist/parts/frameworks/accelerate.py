"""Hugging Face Accelerate: changing the precision between cells, and launchers called inside running ranks."""

from __future__ import annotations

import sys
from typing import Any

from jupyter_dist.rank.frameworks.fix import Fix, RankContext, after, before, need

INTERRUPTIBLE = True  # cells run and wait below these functions

PACKAGE, SEEN_WITH = "accelerate", "1.15"


def change_precision(_: RankContext, state: Any) -> None:
    """Allow another mixed_precision in a new Accelerator(); unpatched, it asks to "restart your runtime completely".

    The state that is reset does not include the process group, so the group and its connections stay.
    """
    accelerator_state, gradient_state, partial = state.AcceleratorState, state.GradientState, state.PartialState
    need(accelerator_state, "_reset_state")
    need(gradient_state, "_reset_state")
    need(partial, "_shared_state")

    def reset(self: Any, mixed_precision: str | None = None, *_: Any, **__: Any) -> None:
        wanted = None if mixed_precision is None else str(mixed_precision).lower()
        if self.initialized and wanted not in (None, self._mixed_precision) and not _is_deepspeed(self):
            accelerator_state._reset_state()
            gradient_state._reset_state()
            self.__dict__.update(partial._shared_state)  # the state when __init__ checked

    before(accelerator_state, "_check_initialized", reset)


def _is_deepspeed(state: Any) -> bool:
    return str(state.distributed_type).endswith("DEEPSPEED")


def take_timeout(context: RankContext, state: Any) -> None:
    """Use InitProcessGroupKwargs(timeout) and TrainingArguments(ddp_timeout) for the existing process group.

    Unpatched, Accelerate drops them where there is one.
    """

    def take(*_: Any, timeout: Any = None, **__: Any) -> None:
        context.take_timeout(timeout)

    before(state.PartialState, "__init__", take)
    before(state.AcceleratorState, "__init__", take)  # which makes no other PartialState where there is one


def launch_in_place(context: RankContext, launchers: Any) -> None:
    """Make notebook_launcher and debug_launcher call the function on every rank of the cell, and return its value."""
    need(launchers, "notebook_launcher", "debug_launcher", "patch_environment", "AcceleratorState")

    def run(function: Any, args: Any, num_processes: int | None, mixed_precision: str) -> Any:
        _check_number(context, num_processes)
        if launchers.AcceleratorState._shared_state:
            sys.modules["accelerate"].Accelerator(mixed_precision=mixed_precision)  # as a new process would
        with launchers.patch_environment(accelerate_mixed_precision=mixed_precision):
            return function(*args)

    def notebook_launcher(
        function: Any, args: Any = (), num_processes: int | None = None, mixed_precision: str = "no", *_: Any, **__: Any
    ) -> Any:
        """Call the function in this rank; Accelerate's notebook_launcher would start processes."""
        return run(function, args, num_processes, str(mixed_precision).lower())

    def debug_launcher(function: Any, args: Any = (), num_processes: int | None = None) -> Any:
        """Call the function in this rank; Accelerate's debug_launcher would start processes."""
        return run(function, args, num_processes, "no")

    launchers.notebook_launcher, launchers.debug_launcher = notebook_launcher, debug_launcher


def _check_number(context: RankContext, num_processes: int | None) -> None:
    have = context.world_size
    if num_processes is None or num_processes == have:
        return
    if num_processes > have:
        message = f"num_processes={num_processes}, but this group has {have} ranks, and no more can be started here."
        raise ValueError(f"{message} Omit num_processes, or start a larger group.")
    text = f"The function runs on the {have} ranks of this group, not on num_processes={num_processes}."
    context.notice("notebook_launcher", f"{text} To use fewer processes, start a smaller group.")


def notice_alone(context: RankContext, accelerator: Any) -> None:
    """Report an Accelerator() on CPU without ACCELERATE_USE_CPU=1: it uses one process on every rank."""

    def look(made: Any, *_: Any, **__: Any) -> None:
        hint = "Start the group with the default ACCELERATE_USE_CPU; it was changed in this one."
        context.notice_alone("Accelerator()", made.num_processes, hint)

    after(accelerator.Accelerator, "__init__", look)


FIXES = {
    "accelerate.state": [
        Fix(PACKAGE, SEEN_WITH, "mixed_precision may change from one Accelerator() to the next", change_precision),
        Fix(PACKAGE, SEEN_WITH, "a timeout is set on the existing process group", take_timeout),
    ],
    "accelerate.launchers": [
        Fix(PACKAGE, SEEN_WITH, "notebook_launcher and debug_launcher run in place in the ranks", launch_in_place)
    ],
    "accelerate.accelerator": [Fix(PACKAGE, SEEN_WITH, "Accelerator() on one process is reported once", notice_alone)],
}
