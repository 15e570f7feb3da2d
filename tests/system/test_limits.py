"""Time limits on what an event loop waits for."""

from __future__ import annotations

import asyncio

import pytest
from waits import PATIENCE

from jupyter_dist.system.limits import within


def test_a_cancellation_that_comes_with_the_result_is_not_lost():
    """`asyncio.wait_for` returned the result before Python 3.12: a loop that was to end went on, and a server never stopped."""

    async def asks_for_ever(answers):
        while True:
            await within(1000, answers[0])
            answers.pop(0)

    async def main():
        loop = asyncio.get_running_loop()
        answers = [loop.create_future(), loop.create_future()]
        task = asyncio.ensure_future(asks_for_ever(answers))
        await asyncio.sleep(0)
        answers[0].set_result(None)
        task.cancel()
        await asyncio.wait((task,), timeout=PATIENCE)
        assert task.cancelled()

    asyncio.run(main())


def test_what_takes_too_long_is_cancelled_and_may_clean_up():
    cleaned = []

    async def slow():
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(within(0.01, slow()))
    assert cleaned == [True]


def test_results_and_errors_are_those_of_what_is_awaited():
    async def fails():
        raise KeyError("x")

    assert asyncio.run(within(None, asyncio.sleep(0, "result"))) == "result"
    with pytest.raises(KeyError):
        asyncio.run(within(1000, fails()))


def test_a_cancelled_caller_cancels_what_it_waits_for():
    async def main():
        future = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(within(1000, future))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,), timeout=PATIENCE)
        assert task.cancelled()
        assert future.cancelled()

    asyncio.run(main())
