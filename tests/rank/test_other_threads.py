"""Looking at the frames of another thread neither ends the process nor changes its collector, whatever runs meanwhile."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from jupyter_dist.rank.guard import frames

# The main thread makes functions, runs and forgets them. The collector starts often, and lets it go on.
PROGRAM = """
import gc, threading, time
from jupyter_dist.rank.guard import frames

def let_others_run(phase, info):
    if threading.current_thread() is not threading.main_thread():
        time.sleep(0.0002)

def watch():
    global looks
    while True:
        time.sleep(0.0005)
        frame = frames.of_main_thread()
        while frame is not None:
            assert frame.f_code.co_filename
            frame = frame.f_back
        looks += 1

def recurse(depth):
    names = {}
    body = "a = [[depth]] * 3000; b = list(range(100)); return again(depth - 1) if depth else 0"
    exec(compile(f"def inner{depth}(again, depth): {body}", f"<code {depth}>", "exec"), names)
    return names[f"inner{depth}"](recurse, depth)

gc.set_threshold(5)
gc.callbacks.append(let_others_run)
looks = 0
threading.Thread(target=watch, daemon=True).start()
end = time.monotonic() + 4
while time.monotonic() < end or looks < 100:
    recurse(60)
print(gc.get_threshold()[0] in (5, frames._NEVER), frames.thresholds()[0])
"""


def test_a_function_that_ends_while_its_frame_is_made_does_not_end_the_process() -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", PROGRAM]
    done = subprocess.run(command, check=False, capture_output=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, b"True 5\n"), done.stderr[-3000:].decode()


def test_thresholds_that_are_set_meanwhile_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_COLLECTS_MEANWHILE", True)
    before = gc.get_threshold()
    try:
        with frames.being_made():
            assert frames.thresholds() == before != gc.get_threshold()
            assert gc.isenabled()
        assert gc.get_threshold() == before
        with frames.being_made():
            gc.set_threshold(7, 8, 9)
        assert gc.get_threshold() == (7, 8, 9)
        gc.set_threshold(0)
        with frames.being_made():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
