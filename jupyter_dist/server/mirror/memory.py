"""The last minutes of memory samples of a group."""

from __future__ import annotations

import time
from collections import deque

from jupyter_dist.protocol import models

KEEP_SECONDS = 300.0
MAX_SAMPLES = 1000  # far more than arrive in that time
WATCH_SECONDS = 1.0


class MemorySamples:
    """A ring of MemorySamples (docs/api.md), newest last."""

    def __init__(self) -> None:
        self._samples: deque[models.MemorySample] = deque(maxlen=MAX_SAMPLES)

    def add(self, sample: models.MemorySample) -> None:
        """Add a sample, and drop old ones."""
        self._samples.append(sample)
        oldest = time.time() - KEEP_SECONDS
        while self._samples and self._samples[0]["at"] < oldest:
            self._samples.popleft()

    def all(self) -> list[models.MemorySample]:
        """Return all samples."""
        return list(self._samples)

    def latest(self) -> models.MemorySample | None:
        """Return the newest sample."""
        return self._samples[-1] if self._samples else None
