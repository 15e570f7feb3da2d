"""What a rank completes: everything while it is idle, its variables while it is busy."""

from __future__ import annotations

from typing import Any

import pytest
from rankclient import RankClient


def complete(rank: RankClient, code: str, cursor_pos: int | None = None) -> dict[str, Any]:
    position = len(code) if cursor_pos is None else cursor_pos
    answer = rank.answer(rank.post("complete", code.encode(), cursor_pos=position))
    assert answer["ok"], answer
    return answer


@pytest.fixture(scope="module")
def named(shared: RankClient) -> RankClient:
    shared.run("class Net:\n    def __init__(self): self.weight_ünï = 1\nnet_of_mine = Net()\nwords = {'alpha': 1}")
    return shared


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("net_of", "net_of_mine"),
        ("net_of_mine.wei", "weight_ünï"),
        ("print(net_of_mine).x\nnet_of_mine.wei", "weight_ünï"),
        ("words['al", "alpha"),
        ("%%time\nnet_of", "net_of_mine"),
        ("torch.zeros_li", "zeros_like"),
        ("%matplot", "%matplotlib"),
        ("import multiproc", "multiprocessing"),
    ],
)
def test_an_idle_rank_knows_names_attributes_keys_and_magics(named: RankClient, code: str, expected: str) -> None:
    found = complete(named, code)
    completed = [code[: found["cursor_start"]] + match for match in found["matches"]]
    assert any(text.endswith(expected) for text in completed), found
    assert found["cursor_end"] == len(code)
    assert all(text.startswith(code[: found["cursor_start"]]) for text in completed)


def test_the_cursor_may_stand_inside(named: RankClient) -> None:
    found = complete(named, "ü = net_of + 1", 10)
    assert (found["matches"], found["cursor_start"], found["cursor_end"]) == (["net_of_mine"], 4, 10)


def test_a_busy_rank_knows_its_variables(rank: RankClient) -> None:
    rank.run("model_a = model_b = _hidden = 1")
    execution_id = rank.start("print('go')\nwhile True: pass")
    rank.wait_text("go")
    found = complete(rank, "x = mode")
    assert (found["matches"], found["cursor_start"], found["cursor_end"]) == (["model_a", "model_b"], 4, 8)
    assert complete(rank, "model_a.")["matches"] == []
    assert "_hidden" not in complete(rank, "")["matches"]
    assert complete(rank, "_hid")["matches"] == ["_hidden"]
    rank.interrupt(execution_id)
    assert rank.result(execution_id).status == "interrupted"


def test_an_object_that_cannot_be_asked_harms_nothing(rank: RankClient) -> None:
    rank.run(
        "class Bad:\n    def __dir__(self): raise SystemExit('no')\n    def __getattr__(self, name): 1 / 0\nbad = Bad()"
    )
    rank.post("complete", b"bad.x", cursor_pos=5)
    assert rank.run("print('fine')").text().endswith("fine\n")
    assert "bad" in complete(rank, "ba")["matches"]


def test_a_completion_that_does_not_end_is_ended_by_an_interrupt(rank: RankClient) -> None:
    rank.run(
        "class Slow:\n    def __dir__(self):\n        print('asked', flush=True)\n        while True: pass\nslow = Slow()"
    )
    rank.post("complete", b"slow.x", cursor_pos=6)
    rank.wait_text("asked")
    execution_id = rank.start("print('runs')")
    rank.interrupt(execution_id)
    assert rank.result(execution_id).status in ("ok", "interrupted")
    assert rank.run("print('and goes on')").text() == "and goes on\n"


def test_completions_see_the_context_variables_of_cells(shared: RankClient) -> None:
    shared.run(
        "import contextvars\nlevel = contextvars.ContextVar('level')\n"
        "class Shown:\n    def __dir__(self): return [f'level_{level.get()}']\nshown = Shown()"
    )
    shared.run("level.set('quiet')", silent=True)
    assert [match for match in complete(shared, "shown.level_")["matches"] if "quiet" in match]
