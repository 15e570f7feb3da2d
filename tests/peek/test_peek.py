"""Values of busy ranks are read while their cell runs: no code of the user's runs, and nothing waits for a device."""

from __future__ import annotations

import pytest
from agent.harness import AgentProcess
from leaks import nothing_left
from waits import until

from jupyter_dist.parts.peek.server import _fold
from jupyter_dist.parts.peek.text import peeked_text

BEFORE = """import os, time
class Loud:
    def __repr__(self): ran.append("repr"); return "loud"
    def __len__(self): ran.append("len"); return 1
    def __getattr__(self, name): ran.append(name); raise AttributeError(name)
ran, state, model, on_meta = [], {"lr": 0.5}, torch.nn.Linear(3, 2), torch.ones(4, 5, device="meta")
def train(stop):
    loud, values, turned = Loud(), torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(3, 4).t()
    step = 0
    while not os.path.exists(stop):
        step += 1
        loss = rank + 0.25
        time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A group whose ranks are in a function of a cell."""
    place = tmp_path_factory.mktemp("peek")
    with nothing_left(), AgentProcess(place / "g") as group:
        group.start(2, cwd=str(place))
        group.run(BEFORE)
        cell = group.submit("train('stop')", [0, 1])

        def peek(*names):
            return _fold(group.request("peek", names=list(names), ranks=[0, 1])[0]["found"])

        until(lambda: len(peek("loss")["values"]) == 2)  # of both ranks
        yield peek
        (place / "stop").touch()
        assert group.ended(cell)["state"] == "ok"
        assert group.text(0, group.run("print(ran)")["id"]) == "[]\n"


def values(answer):
    return {(value["name"], value["ranks"]): value for value in answer["values"]}


def at_one_line(answer):
    """Return the values if both ranks were at the same line of the function."""
    found = values(answer)
    return found if ("values", "0-1") in found else None


def test_numbers_of_the_running_function(busy):
    found = values(busy("loss"))
    assert [found["loss", rank]["value"] for rank in "01"] == ["0.25", "1.25"]
    assert found["loss", "0"]["place"].startswith("train, line ")
    assert found["loss", "0"]["place_words"][0]["values"][0] == "train"
    (first,) = busy("step")["values"][:1]
    until(lambda: busy("step")["values"][0]["value"] != first["value"])


def test_names_of_cells_tensors_and_parts_of_values(busy):
    # A value of a function has its line: equal ones of ranks that are at different lines are two.
    found = until(lambda: at_one_line(busy("state['lr']", "model.weight", "on_meta", "values", "turned", "world_size")))
    assert found["state['lr']", "0-1"]["value"] == "0.5"
    assert found["model.weight", "0"]["shape"] == "[2, 3]"
    assert (found["on_meta", "0-1"]["device"], found["on_meta", "0-1"]["value"]) == ("meta", "")
    assert found["values", "0-1"]["value"] == "[0, 1, 2, 3, 4, 5]"
    assert found["turned", "0-1"]["value"] == "[0, 4, 8, ...]"


def test_without_names_the_names_of_the_running_function(busy):
    assert {value["name"] for value in busy()["values"]} == {"stop", "loud", "values", "turned", "step", "loss"}


def test_what_is_not_there_is_named_and_a_silent_rank_with_its_reason():
    row = {"type": "float", "shape": "", "dtype": "", "device": "", "value": "0.5", "place": "step, line 2 of cell [3]"}
    answer = _fold(
        [
            {"rank": 0, "values": {"loss": row, "other": None}},
            {"rank": 1, "values": {"loss": row, "other": None}},
            {"rank": 2, "why": "it is stopped, by a signal or a debugger."},
        ]
    )
    assert peeked_text(answer).splitlines() == [
        "loss = 0.5  (float)  on ranks 0-1, in step, line 2 of cell [3]",
        "other is not there on ranks 0-1.",
        "Rank 2 does not answer: it is stopped, by a signal or a debugger.",
    ]
