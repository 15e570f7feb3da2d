"""Small journals, and what is read of them."""

import pytest

from jupyter_dist.journal import blocks, reader
from jupyter_dist.journal import writer as writer_module
from jupyter_dist.journal.records.record import scan


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(writer_module, "SEGMENT_BYTES", 4000)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1000)


@pytest.fixture
def scanned(monkeypatch):
    """How many bytes the reader looked at."""
    sizes = []
    monkeypatch.setattr(reader, "scan", lambda data, *rest: sizes.append(len(data)) or scan(data, *rest))
    return sizes
