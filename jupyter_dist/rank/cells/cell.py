"""One cell on one rank, from its request to its reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jupyter_dist.rank.guard.own import time


@dataclass
class Execution:
    """The state of a cell that the main thread and the side thread share."""

    execution_id: str
    execution_count: int
    silent: bool
    code: str
    empty_cache: bool = False  # whether to release cached memory if the cell changed the memory in use
    started_at: float = field(default_factory=time.monotonic)
    interrupt_at: float | None = None  # time of the first interrupt
    had_private_signal: bool = False  # SIGINT did not reach the cell's code
    noticed_interrupt: bool = False  # KeyboardInterrupt was raised in the cell's code
    broke_process_group: bool = False  # its connections were broken to end a hung collective
    cancel: Callable[[], object] | None = None  # set while it awaits: cancels the wait
