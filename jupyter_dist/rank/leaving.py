"""The orderly end of a rank: exit handlers and files as at the end of Python, without waiting for threads or a device.

A rank leaves by `os._exit`: a thread of the user or a broken process group could keep the process alive forever.
"""

from __future__ import annotations

import atexit
import contextlib
from io import BufferedRandom, BufferedWriter, TextIOWrapper

from jupyter_dist.rank.guard.own import gc

_FILES = (TextIOWrapper, BufferedWriter, BufferedRandom)  # objects that hold text first: their bytes go into the others


def leave_in_order() -> None:
    """Run exit handlers, which clear the names of cells, too; finish and flush the files that are still open."""
    atexit._run_exitfuncs()
    gc.collect()  # archives and temporary folders in cycles finish themselves
    kinds = {id(kind) for kind in _FILES}  # by identity: a metaclass of the user's may compare
    open_ones = [found for found in gc.get_objects() if id(type(found)) in kinds]
    for kind in _FILES:
        for file in open_ones:
            if type(file) is kind:
                with contextlib.suppress(Exception):  # closed, or its disk is full
                    file.flush()
