"""Asking with a number: every question ends, with its own answer."""

import asyncio

import pytest

from jupyter_dist.transport.questions import Questions


async def test_answers_find_their_questions_in_any_order():
    questions = Questions()
    sent = []
    asked = [asyncio.create_task(questions.ask(sent.append, 5)) for _ in range(3)]
    await asyncio.sleep(0)
    for number in reversed(sent):
        questions.answer(number, f"answer {number}")
    assert await asyncio.gather(*asked) == [f"answer {number}" for number in sent]


async def test_what_nobody_waits_for_is_dropped():
    questions = Questions()
    sent = []
    with pytest.raises(asyncio.TimeoutError):
        await questions.ask(sent.append, 0.01)
    for number in (*sent, 99, None, "1", [], 1.5):
        questions.answer(number, "late")
        questions.refuse(number, OSError("late"))


async def test_an_answer_is_taken_before_what_is_heard_next():
    questions = Questions()
    taken, sent = [], []
    asked = asyncio.create_task(questions.ask(sent.append, 5, taken.append))
    await asyncio.sleep(0)
    questions.answer(sent[0], "answer")
    taken.append("what is heard next")
    assert await asked == "answer"
    assert taken == ["answer", "what is heard next"]


async def test_whoever_asked_hears_of_an_answer_that_cannot_be_taken_and_of_one_that_was_not_sent():
    questions = Questions()
    sent = []

    def fails(_):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await questions.ask(fails, 5)
    asked = asyncio.create_task(questions.ask(sent.append, 5, fails))
    await asyncio.sleep(0)
    questions.answer(sent[0], "answer")
    with pytest.raises(ValueError, match="no"):
        await asked


async def test_all_that_is_open_fails_when_the_peer_is_gone():
    questions = Questions()
    asked = [asyncio.create_task(questions.ask(lambda _: None, 5)) for _ in range(2)]
    await asyncio.sleep(0)
    questions.fail(lambda: OSError("gone"))
    errors = await asyncio.gather(*asked, return_exceptions=True)
    assert [str(error) for error in errors] == ["gone", "gone"]
    assert errors[0] is not errors[1]
