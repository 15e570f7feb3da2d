"""Curves of a result: numbers with a name that recur, by rank, as the page finds them; `track()` gives them exactly."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.client.results.curves import curves_of, named_numbers

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "curves.json").read_text())


def items_of(*texts):
    return [
        {"id": i, "seq": i, "ranks": ranks, "output": {"output_type": "stream", "name": "stdout", "text": text}}
        for i, (ranks, text) in enumerate(texts)
    ]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["line"])
def test_names_as_in_typescript(vector):
    step, tokens = named_numbers(vector["line"])
    assert step == (vector["step"] and tuple(vector["step"]))
    assert list(tokens) == list(vector["values"])
    for name, value in vector["values"].items():
        assert tokens[name].value == pytest.approx(float(value), nan_ok=True)


@given(st.text(alphabet="ab 0159.,:%|+-=eninf_/[]()\u00b5s\x1b[m\t"))
def test_any_line_has_an_answer(line):
    step, tokens = named_numbers(line)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    assert all(name in plain and token.text in plain for name, token in tokens.items())
    assert step is None or (step[0] in plain and str(step[1]) in plain.replace(",", ""))


@given(st.lists(st.floats(allow_nan=False), min_size=3, max_size=20))
def test_what_track_writes_is_read_exactly(values):
    text = "".join(f"step={i}  loss={value!r}\n" for i, value in enumerate(values))
    curve = curves_of(items_of(("0-1", text)))["loss"]
    assert curve[0] == curve[1]
    assert curve[0].values == values
    assert curve[0].steps == list(range(len(values)))


def test_steps_that_do_not_rise_are_counted_anew():
    text = "".join(f"epoch {epoch} step {step} loss 0.{step}5\n" for epoch in range(2) for step in range(3))
    assert curves_of(items_of(("0", text)))["loss"][0].steps == [0, 1, 2, 3, 4, 5]


def test_of_real_ranks(group):
    result = group.run(
        "for i in range(4):\n"
        "    track(loss=torch.tensor(1 / (i + 1) + rank), step=10 * i)\n"
        "    print(f'epoch {i} acc {0.5 + i / 10:.2f}')\n"
        "track({'val/loss': float('nan')})",
    ).raise_for_error()
    assert list(result.curves) == ["loss", "acc"]
    loss = result.curves["loss"]
    assert loss[1].steps == [0, 10, 20, 30]
    assert loss[1].values == pytest.approx([2, 1.5, 4 / 3, 1.25])
    assert result.curves["acc"][0].values == [0.5, 0.6, 0.7, 0.8]
    assert "val/loss=nan" in result.text
    assert math.isfinite(loss[0].values[-1])


def test_what_is_no_number_is_named(group):
    for code, said in (
        ("track()", "TypeError: track() takes numbers with names"),
        ("track(loss='x')", "TypeError: track(loss=...) takes a number"),
        ("track(loss=torch.ones(3))", "ValueError: track(loss=...) takes a number, or a tensor of one element"),
        ("track({'a=b': 1})", "ValueError: track() cannot use the name 'a=b'"),
    ):
        assert str(group.run(code).errors[0]).startswith(said)
