"""The blocking client's loop: a caller may be interrupted at any instruction."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from waits import PATIENCE, until

from jupyter_dist.client import JupyterDistError
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


async def endless():
    await asyncio.Event().wait()


def test_closing_ends_the_waits_of_other_threads():
    loop = LoopThread()
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(wait, endless()) for wait in (loop.run, loop.run_through)]
        until(lambda: len(loop._calls) == 2)
        loop.close()
        for wait in waiting:
            assert wait.exception(PATIENCE).code == "cancelled"
    for wait in (loop.run, loop.run_through):
        with pytest.raises(JupyterDistError, match="The client was closed"):
            wait(asyncio.sleep(0))
    loop.close()


DEAF = """
import asyncio, contextlib
from concurrent.futures import ThreadPoolExecutor
from jupyter_dist.client.blocking import loop as module

async def deaf():
    print("begun", flush=True)
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)

module.STOP_SECONDS = 0.1
loop = module.LoopThread()
with ThreadPoolExecutor(1) as threads:
    waiting = threads.submit(loop.run, deaf())
    loop.run(asyncio.sleep(0))
    loop.close()
    print(waiting.exception().code)
"""


def test_closing_ends_the_wait_for_what_cannot_be_cancelled():
    """In a process of its own, which says at its end that a task is left."""
    done = subprocess.run([sys.executable, "-c", DEAF], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "cancelled"


def test_a_call_that_comes_while_it_closes_ends_too():
    for _ in range(100):
        loop = LoopThread()
        begun = threading.Event()

        def call(loop=loop, begun=begun):
            while True:
                loop.run(asyncio.sleep(0))
                begun.set()

        with ThreadPoolExecutor(1) as threads:
            calling = threads.submit(call)
            assert begun.wait(PATIENCE)
            loop.close()
            assert calling.exception(PATIENCE).code == "cancelled"


FORKED = """
import asyncio, os
from jupyter_dist.client import JupyterDistError
from jupyter_dist.client.blocking.loop import LoopThread

loop = LoopThread()
if os.fork() == 0:
    for wait in (loop.run, loop.run_through):
        try:
            wait(asyncio.sleep(0))
        except JupyterDistError as err:
            print(err.code, err, flush=True)
    loop.close()
    os._exit(0)
os.wait()
print(loop.run(asyncio.sleep(0, "the parent's continues")))
loop.close()
"""


def test_a_forked_child_is_told_that_the_client_is_its_parents():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    first, second, last = done.stdout.splitlines()
    assert first == second
    assert first.startswith("bad_request This client belongs to process ")
    assert last == "the parent's continues"
