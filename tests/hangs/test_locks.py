"""A lock of the memory allocator is told from any other lock, from outside of the process that waits for it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from waits import until

from jupyter_dist.agent.processes.starting.locks import waits_for_allocator
from jupyter_dist.agent.processes.starting.outside import _read

MUTEX = "import ctypes; libc, m = ctypes.CDLL(None), ctypes.create_string_buffer(64)\nfor _ in 'ab': libc.pthread_mutex_lock(m)"
# A thread prints malloc's statistics, one arena after the other, into a pipe with little room, and keeps the arena's lock meanwhile.
ARENA = """
import ctypes, os, threading, time
libc = ctypes.CDLL(None); libc.fdopen.restype = libc.malloc.restype = ctypes.c_void_p
into = os.pipe()[1]; os.write(into, b"x" * (65536 - {room}))
file = libc.fdopen(into, b"w"); libc.setvbuf(ctypes.c_void_p(file), None, 2, 0)
made = []
def other(): made.append(libc.malloc(5000)); time.sleep(1000)
threading.Thread(target=other, daemon=True).start()
while not made: time.sleep(0.01)
ctypes.c_void_p.in_dll(libc, "stderr").value = file
threading.Thread(target=libc.malloc_stats, daemon=True).start()
time.sleep(3)  # on a busy machine
{then}
"""


@pytest.mark.parametrize(
    ("code", "is_allocator"),
    [
        (MUTEX, False),
        (ARENA.format(room=0, then="while True: libc.malloc(5000)"), True),  # of the first arena
        (ARENA.format(room=144, then="libc.free(ctypes.c_void_p(made[0]))"), True),  # of the other thread's
    ],
)
def test_a_lock_of_the_allocator_is_known_by_its_place(code, is_allocator):
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        # Its main thread may wait for the GIL before.
        until(
            lambda: (
                "futex" in getattr(_read(process.pid), "waits_in", "")
                and (waits_for_allocator(process.pid) or not is_allocator)
            )
        )
        assert waits_for_allocator(process.pid) is is_allocator
    finally:
        process.kill()
        process.wait()
