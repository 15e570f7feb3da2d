"""The driver's checkpoint: the steps for each state, with the values that an H200 has answered (docs/gpu.md).

The real driver is asked by `product:park` of tests/gpu.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys

import pytest

from jupyter_dist.parts.parking.agent import checkpoint

NAMES = {1: b"CUDA_ERROR_INVALID_VALUE", 2: b"CUDA_ERROR_OUT_OF_MEMORY", 401: b"CUDA_ERROR_ILLEGAL_STATE"}
RUNNING, LOCKED, CHECKPOINTED = range(3)


class RecordedDriver:
    """Answers as driver 580 did: each step in its state alone, and what is told to fail fails."""

    def __init__(self, state=RUNNING, **failures):
        self.states = {7: state}
        self.failures = failures
        self.lock_bytes = b""

    def cuInit(self, flags):
        return self.failures.get("init", 0)

    def cuGetErrorName(self, code, text):
        text._obj.value = NAMES.get(code)
        return 0 if code in NAMES else 1

    def cuCheckpointProcessGetState(self, pid, state):
        if pid not in self.states:
            return 1
        state._obj.value = self.states[pid]
        return 0

    def _step(self, name, pid, before, after):
        if name in self.failures:
            return self.failures[name]
        if self.states[pid] != before:
            return 401
        self.states[pid] = after
        return 0

    def cuCheckpointProcessLock(self, pid, arguments):
        self.lock_bytes = bytes(arguments._obj)
        return self._step("lock", pid, RUNNING, LOCKED)

    def cuCheckpointProcessCheckpoint(self, pid, arguments):
        return self._step("checkpoint", pid, LOCKED, CHECKPOINTED)

    def cuCheckpointProcessRestore(self, pid, arguments):
        return self._step("restore", pid, CHECKPOINTED, LOCKED)

    def cuCheckpointProcessUnlock(self, pid, arguments):
        return self._step("unlock", pid, LOCKED, RUNNING)


def steps(capsys, library, what, pid=7):
    is_right = checkpoint.carry_out(checkpoint.CheckpointDriver(library), what, pid)
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return is_right, [(line["step"], line["outcome"], line["state"]) for line in printed]


def test_a_process_is_parked_and_resumed(capsys):
    library = RecordedDriver()
    parked = [("lock", "ok", "locked"), ("checkpoint", "ok", "checkpointed")]
    assert steps(capsys, library, "park") == (True, parked)
    assert steps(capsys, library, "park") == (True, [("look", "ok", "checkpointed")])
    assert steps(capsys, library, "resume") == (True, [("restore", "ok", "locked"), ("unlock", "ok", "running")])
    assert steps(capsys, library, "resume") == (True, [("look", "ok", "running")])
    assert len(library.lock_bytes) == 64
    assert int.from_bytes(library.lock_bytes[:4], "little") == checkpoint.LOCK_MILLISECONDS


@pytest.mark.parametrize(("what", "state", "done"), [
    ("park", LOCKED, ["checkpoint"]),
    ("resume", LOCKED, ["unlock"]),
])  # fmt: skip
def test_what_was_cut_short_is_continued(capsys, what, state, done):
    is_right, found = steps(capsys, RecordedDriver(state), what)
    assert is_right
    assert [step for step, _, _ in found] == done


def test_a_process_that_cannot_be_parked_is_unlocked_again(capsys):
    library = RecordedDriver(checkpoint=2)
    assert steps(capsys, library, "park") == (
        False,
        [
            ("lock", "ok", "locked"),
            ("checkpoint", "CUDA_ERROR_OUT_OF_MEMORY", "locked"),
            ("unlock", "ok", "running"),
        ],
    )
    assert library.states[7] == RUNNING


def test_a_device_that_is_full_leaves_the_process_parked(capsys):
    library = RecordedDriver(CHECKPOINTED, restore=2)
    expected = [("restore", "CUDA_ERROR_OUT_OF_MEMORY", "checkpointed")]
    assert steps(capsys, library, "resume") == (False, expected)


def test_a_process_without_a_context_is_named(capsys):
    assert steps(capsys, RecordedDriver(), "park", pid=8) == (
        False,
        [("look", "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_INVALID_VALUE")],
    )


def test_an_older_driver_is_named():
    with pytest.raises(AttributeError):
        checkpoint.CheckpointDriver(ctypes.CDLL(None))


def test_a_machine_without_a_driver_is_named():
    """As the agent runs it: without site-packages, and without this package."""
    command = [sys.executable, "-I", "-S", checkpoint.__file__, "look", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert json.loads(done.stdout)["step"] in ("load", "begin", "look")
    assert done.returncode in (0, 1, 2)
    assert not done.stderr
