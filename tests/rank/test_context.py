"""Context variables: what a cell sets is set in the next one and in callbacks, whatever ended the cell."""

from __future__ import annotations

import contextvars
import json
import os
from pathlib import Path

import pytest
from rankclient import RankClient

from jupyter_dist.rank.cells.context import run_in

BEGIN = """
import asyncio, contextlib, contextvars
level = contextvars.ContextVar("level", default="none")
@contextlib.contextmanager
def at(value):
    token = level.set(value)
    try: yield
    finally: level.reset(token)
"""


@pytest.fixture(scope="module")
def begun(shared: RankClient) -> RankClient:
    assert shared.run(BEGIN).status == "ok"
    return shared


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [
        ("import decimal\ndecimal.getcontext().prec = 40", "len(str(decimal.Decimal(1) / 3))", "42"),
        ("import numpy as np\nnp.set_printoptions(precision=2)", "np.array([0.123456])", "[0.12]"),
        ("_ = np.seterr(divide='raise')", "np.geterr()['divide']", "raise"),
        (
            "import torch._dynamo\ntorch._dynamo.config.cache_size_limit = 77",
            "torch._dynamo.config.cache_size_limit",
            "77",
        ),
        ("level.set('set')", "level.get()", "set"),
        ("await asyncio.sleep(0)\nlevel.set('awaited')", "level.get()", "awaited"),
        ("get_ipython().run_cell('level.set(\"nested\")')", "level.get()", "nested"),
        ("level.set('again')", "await asyncio.sleep(0, level.get())", "again"),
    ],
)
def test_what_a_cell_sets_is_set_in_the_next(begun: RankClient, setting: str, value: str, text: str) -> None:
    for _ in range(2):
        assert begun.run(setting).status == "ok"
        assert begun.run(f"print({value})").text() == f"{text}\n"


@pytest.mark.parametrize("end", ["", "await asyncio.sleep(0)\n"])
def test_a_context_manager_is_left_in_another_cell_than_it_was_entered_in(begun: RankClient, end: str) -> None:
    begun.run("level.set('outside')")
    assert begun.run(f"{end}inside = at('inside'); inside.__enter__()").status == "ok"
    assert begun.run("print(level.get())").text() == "inside\n"
    assert begun.run(f"{end}inside.__exit__(None, None, None); print(level.get())").text() == "outside\n"


def test_tasks_and_threads_have_what_they_began_with(begun: RankClient) -> None:
    begun.run("level.set('first')\nasync def see(): await asyncio.sleep(0); level.set('own'); seen.append(level.get())")
    begun.run(
        "seen = []\nsee_it = asyncio.create_task(see())\nawait asyncio.to_thread(lambda: seen.append(level.get()))"
    )
    assert begun.run("await see_it; print(sorted(seen), level.get())").text() == "['first', 'own'] first\n"


def test_silent_cells_set_it(begun: RankClient) -> None:
    begun.run("level.set('quiet')", silent=True)
    assert begun.run("print(level.get())").text() == "quiet\n"


def test_it_is_kept_after_errors_and_interrupts(begun: RankClient) -> None:
    for number, wait in enumerate(["import time; time.sleep(1000)", "await asyncio.sleep(1000)"] * 2):
        running = begun.start(f"level.set('{number}'); print('begun {number}', flush=True); {wait}")
        begun.wait_text(f"begun {number}")
        begun.interrupt(running)
        assert begun.result(running).status == "interrupted"
        assert begun.run("print(level.get()); 1 / 0").text() == f"{number}\n"


def test_a_loop_that_a_cell_nests_leaves_no_traceback_of_ours(rank: RankClient, tmp_path: Path) -> None:
    """What waits while the nested loop runs is done after the cell, in order, and nothing enters a context twice."""
    pytest.importorskip("nest_asyncio2")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    block = f"asyncio.get_running_loop().call_soon(lambda: open({str(fifo)!r}).read())"
    assert rank.run(f"import asyncio, contextvars\nvar = contextvars.ContextVar('var')\n{block}").status == "ok"
    cell = rank.start("import nest_asyncio2; nest_asyncio2.apply()\nvar.set(asyncio.run(asyncio.sleep(0, 5)))")
    asked = rank.post("empty_cache")
    rank.ask("ping")  # both wait for the callback now
    fifo.write_text("")
    assert rank.result(cell).status == "ok"
    assert rank.answer(asked)["ok"]
    again = rank.run("print(asyncio.run(asyncio.sleep(0, 7)), var.get())")
    assert (again.text(), again.status) == ("7 5\n", "ok")
    assert not rank.text_of_all("stderr")


def test_steps_of_a_coroutine_run_in_one_context() -> None:
    """The same on Python 3.10, where tasks cannot be given a context."""
    context, var = contextvars.Context(), contextvars.ContextVar("var", default="")

    async def work() -> str:
        token = var.set("inside")
        try:
            await _Pause()
        except ValueError:
            var.reset(token)
        return json.dumps(var.get())

    steps = run_in(context, work())
    steps.send(None)
    assert (context[var], var.get()) == ("inside", "")
    with pytest.raises(StopIteration) as end:
        steps.throw(ValueError())
    assert (end.value.value, var in context) == ('""', False)


class _Pause:
    def __await__(self):
        yield
