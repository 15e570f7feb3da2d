"""Outputs that parts make when a cell has ended, of what its ranks have sent."""

import json
import sys
from types import ModuleType

import pytest
from records import Recorder, shown

from jupyter_dist.server.folding import ofparts


def lengths(execution_id, contents, ranks):
    if any(json.loads(content) is None for content in contents.values()):
        raise ValueError("as the test wants")
    text = f"{execution_id}: {sorted(contents)} of {list(ranks)}"
    return {"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}}


@pytest.fixture(autouse=True)
def of_a_part(monkeypatch):
    """As if a part had declared two kinds, and the function of one were not there."""
    module = ModuleType("a_part")
    module.lengths = lengths
    monkeypatch.setitem(sys.modules, "a_part", module)
    monkeypatch.setitem(ofparts.MAKERS, "lengths", "a_part.lengths")
    monkeypatch.setitem(ofparts.MAKERS, "missing", "a_part.missing")


def test_one_output_of_all_ranks_comes_last_when_the_cell_has_ended():
    recorder = Recorder(3)
    recorder._add("lengths", b"1", rank=0)
    recorder._add("lengths", b"2", rank=1)
    recorder._add("lengths", b"3", rank=2)
    recorder.stream(0, "text\n")
    assert shown(recorder.view().snapshot()) == [("0", "text\n")]
    recorder.end()
    text = "e-1: [0, 1, 2] of [0, 1, 2]"
    assert [each[0] for each in shown(recorder.view().snapshot())] == ["0", "0-2"]
    assert text in shown(recorder.view().snapshot())[1][1]


@pytest.mark.parametrize(("kind", "content"), [("lengths", b"null"), ("missing", b"1"), ("unknown", b"1")])
def test_without_a_function_that_makes_it_the_rest_is_shown(kind, content):
    recorder = Recorder(2)
    recorder._add(kind, content, rank=1)
    recorder.stream(0, "text\n")
    recorder.end()
    assert shown(recorder.view().snapshot()) == [("0", "text\n")]
