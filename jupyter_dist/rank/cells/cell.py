"""One cell on one rank, from its request to its reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jupyter_dist.rank.guard.own import time


@dataclass
class Execution:
    """What the main thread and the side thread both know of the running cell."""

    execution_id: str
    execution_count: int
    silent: bool
    code: str
    empty_cache: bool = False  # whether to give cached memory back if the cell changed what is in use
    started_at: float = field(default_factory=time.monotonic)
    interrupt_at: float | None = None  # when it was first asked to stop
    had_private_signal: bool = False  # SIGINT did not reach its code
    noticed_interrupt: bool = False  # KeyboardInterrupt was raised in its code
    broke_process_group: bool = False  # a hung collective had to be broken to end it
    cancel: Callable[[], object] | None = None  # set while it awaits: ends the wait
