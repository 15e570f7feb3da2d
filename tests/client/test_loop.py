"""The blocking client's loop: a caller may be interrupted at any instruction."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest
from waits import PATIENCE

from jupyter_dist.client.blocking.loop import LoopThread

# Timers that end before, while and after the wait does. In a process of its own: what hangs is ended with it.
INTERRUPTED = """
import asyncio, random, signal, sys
from jupyter_dist.client.blocking.loop import LoopThread

def interrupt(*_):
    raise KeyboardInterrupt

chance, through, interrupted = random.Random(sys.argv[1]), sys.argv[1] == "through", 0
signal.signal(signal.SIGALRM, interrupt)
loop = LoopThread()
for number in range(3000):
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 1e-3))
        value = asyncio.sleep(chance.uniform(0, 5e-4), number)
        if through:
            answer, was = loop.run_through(value)
            interrupted += was
        else:
            answer = loop.run(value)
        assert answer == number, (answer, number)
    except KeyboardInterrupt:
        interrupted += 1
    finally:
        while True:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
                break
            except KeyboardInterrupt:
                pass
loop.close()
print(interrupted)
"""


@pytest.mark.parametrize("how", ["run", "through"])
def test_an_interrupt_at_any_instruction_is_only_a_keyboard_interrupt(how):
    """The loop continues, and no wait is left that nobody ends."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::RuntimeWarning", "-c", INTERRUPTED, how],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 100


def test_what_was_interrupted_is_cancelled():
    loop = LoopThread()
    ended = []

    async def endless():
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            ended.append(True)

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        loop._loop.call_soon_threadsafe(loop._loop.call_later, 0.05, os.kill, os.getpid(), signal.SIGUSR1)
        with pytest.raises(KeyboardInterrupt):
            loop.run(endless())
        assert loop.run(asyncio.sleep(0, "still there")) == "still there"
    finally:
        signal.signal(signal.SIGUSR1, before)
        loop.close()
    assert ended == [True]
