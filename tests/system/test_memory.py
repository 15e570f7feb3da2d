"""Memory of this process."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys

import pytest

from jupyter_dist.system.memory import without_collections

PROGRAM = """
import gc, json, weakref
from jupyter_dist.system.memory import keep_present_objects

class Circle:
    def __init__(self):
        self.own = self

before = len(gc.get_objects())
keep_present_objects()
circle = weakref.ref(Circle())
print(before, gc.get_freeze_count(), len(gc.get_objects()), circle() is None)
gc.collect()
print(circle() is None)
"""


def test_present_objects_are_not_scanned_any_more_and_later_garbage_is_collected():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    before, frozen, scanned, is_gone, is_collected = done.stdout.split()
    assert int(frozen) >= int(before) > 1000
    assert int(scanned) < 100
    assert (is_gone, is_collected) == ("False", "True")


def test_collections_begin_again_after_imports_unless_one_has_set_when():
    before = gc.get_threshold()
    with without_collections():
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold() == before
    with pytest.raises(ModuleNotFoundError), without_collections():
        importlib.import_module("not_installed_here")
    assert gc.get_threshold() == before
    chosen = (before[0] + 1, *before[1:])
    with without_collections():
        gc.set_threshold(*chosen)
    assert gc.get_threshold() == chosen
    gc.set_threshold(*before)
