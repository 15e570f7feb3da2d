"""Which steps are looked at: the first ones, then ever fewer, at numbers that all ranks choose alike."""

from __future__ import annotations

import math
from collections import deque

from jupyter_dist.rank.guard.own import time

NUM_FIRST = 4
NUM_COSTS = 3
BUDGET = 0.005  # of the time of the loop: for looks, and for what is done in each step
LEAST_SECONDS = 0.3  # between looks after the first ones
# At these steps what is rare is asked: whether the learning rate is still zero, whether no pass has averaged anything.
IDLE_STEP, UNSYNCED_STEP = 9, 1024
AFTER_CHANGE, MAX_CHANGES = (1, 2, 10), 2
MEASURED = 32  # one of so many steps without a look is measured
FAST_SECONDS = 0.005  # steps that take less have no hooks between looks
SHORT_SECONDS = 0.02  # shorter steps have no hook of outputs, and their mode is read now and then
MODE_STEPS = 8


class Schedule:
    """Chooses steps by what looks have cost until now.

    Intervals are powers of two: ranks that choose different ones still look at common steps.
    """

    def __init__(self) -> None:
        self.num_steps = 0  # counted by the caller
        self.spent = 0.0  # seconds, since the first step
        self.is_fast = self.is_short = False  # steps are so short that hooks would be felt, or much in each step
        self.mode_steps = 1  # of so many, the mode is read in one
        self.next_event = 1  # the step at which something is to be done: not before
        self.comes_next = True  # a look, perhaps
        self._began = time.perf_counter()
        self._costs: deque[float] = deque(maxlen=NUM_COSTS)  # of the newest looks
        self._interval = 1
        self._more: tuple[int, ...] = ()  # steps after a change
        self._num_changes = 0

    def changed(self) -> None:
        """Look at some of the next steps: a mode has changed, or the learning rate is zero now."""
        self._num_changes += 1
        if self._num_changes <= MAX_CHANGES:
            self._more = tuple(self.num_steps + more for more in AFTER_CHANGE)
            self.next_event = self.num_steps

    @property
    def is_due(self) -> bool:
        """Whether to look at the step that has ended."""
        step = self.num_steps
        if step <= NUM_FIRST or step in self._more:
            return True
        return step % self._interval == 0 and self.spent <= BUDGET * self.seconds

    @property
    def seconds(self) -> float:
        """Since the first step."""
        return time.perf_counter() - self._began

    def looked(self, cost: float) -> None:
        """Choose the interval after a look that has cost so many seconds."""
        self._costs.append(cost)
        self.spent += cost
        if self.num_steps < NUM_FIRST:
            return
        usual = self.seconds / self.num_steps
        # The least of them: another process may have had the core in one of these looks.
        wanted = max(LEAST_SECONDS, min(self._costs) / BUDGET) / max(usual, 1e-6)
        self._interval = 1
        while self._interval < wanted and self._interval < 1 << 20:
            self._interval *= 2

    def plan(self) -> None:
        """Find the next event: a look, the step before it, in which its batch is read, or a question."""
        step = self.num_steps
        look = step + 1 if step < NUM_FIRST else (step // self._interval + 1) * self._interval
        before = [one - 1 for one in (look, *self._more)]
        events = (look, *before, IDLE_STEP, UNSYNCED_STEP, *self._more)
        self.next_event = min(one for one in events if one > step)
        self.comes_next = step + 1 in (look, *self._more)
        usual = self.seconds / step if step > NUM_FIRST else math.inf
        self.is_fast, self.is_short = usual < FAST_SECONDS, usual < SHORT_SECONDS
        self.mode_steps = MODE_STEPS if self.is_short else 1
