"""Curves of a result: numbers with a name that recur, by rank, as the page finds them; `track()` gives them exactly."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waits import PATIENCE, until

from jupyter_dist.client import JupyterDistError
from jupyter_dist.parts.curves.reading import csv_lines, curves_of, curves_of_lines, named_numbers
from jupyter_dist.server.folding.printed import printed_lines

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


def test_what_is_the_same_each_time_is_a_curve_only_if_it_is_of_a_step():
    text = "".join(f"using lr 0.001\nstep {i} momentum 0.9\nloss {0.5 + i}\nbad nan\n" for i in range(3))
    assert set(curves_of(items_of(("0-1", text)))) == {"momentum", "loss", "bad"}


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
    assert list(result.numbers) == ["loss", "acc"]
    loss = result.numbers["loss"]
    assert loss[1].steps == [0, 10, 20, 30]
    assert loss[1].values == pytest.approx([2, 1.5, 4 / 3, 1.25])
    assert result.numbers["acc"][0].values == [0.5, 0.6, 0.7, 0.8]
    assert "val/loss=nan" in result.text
    assert math.isfinite(loss[0].values[-1])


def test_of_a_long_cell_the_server_reads_every_line(group):
    code = "for i in range(5000):\n    print(f'step {i}  loss {0.5 + i + rank:.1f}')"
    result = group.run(code).raise_for_error()
    assert len(result.numbers["loss"][0].values) < 5000  # the view leaves lines out
    found = group.curves(result.execution["id"])
    assert list(found) == ["loss"]
    assert found["loss"][1].steps == list(range(5000))
    assert found["loss"][1].values == [1.5 + i for i in range(5000)]
    assert (found.model["left_out"], found.model["unread_bytes"]) == (0, 0)
    assert "loss   ranks 0-1  5000     0-4999  1      5000  0.5     5000" in repr(found)
    rows = group.curves_csv(result.execution["id"]).splitlines()
    assert (len(rows), rows[0], rows[-1]) == (10_001, "curve,step,rank,value", "loss,4999,1,5000.5")


def test_by_default_of_the_last_cell_also_while_it_runs(group):
    code = "import time\nfor i in range(3):\n    track(acc=i / 2)\nwhile True: time.sleep(0.1)"
    execution = group.submit(code, "1")
    until(lambda: "acc" in group.curves())
    assert group.curves()["acc"][1].values == [0.0, 0.5, 1.0]
    execution.cancel()
    assert execution.result(PATIENCE).done


def test_of_an_execution_that_is_not_known(group):
    with pytest.raises(JupyterDistError, match="There is no execution 'e-unknown'"):
        group.curves("e-unknown")


def test_lines_on_both_sides_of_what_was_not_read_are_not_joined():
    def record(rank, text):
        return {"kind": "stream", "name": "stdout", "rank": rank}, text.encode()

    first = [record(0, "loss 0.5\nloss 0."), record(1, "loss 1.5\n")]
    last = [record(0, "loss 0.25\n"), record(1, "\x1b[31mloss 2.5\x1b[0m\nlo"), record(1, "ss 3.5\nloss 4")]
    lines = [line for part in (first, last) for line in printed_lines(part)]
    curves = curves_of_lines(lines)
    assert curves["loss"][0].values == [0.5, 0.25]
    assert curves["loss"][1].values == [1.5, 2.5, 3.5]
    assert list(csv_lines(curves))[:2] == ["curve,step,rank,value\n", "loss,0,0,0.5\n"]


def test_what_is_no_number_is_named(group):
    for code, said in (
        ("track()", "TypeError: track() takes numbers with names"),
        ("track(loss='x')", "TypeError: track(loss=...) takes a number"),
        ("track(loss=torch.ones(3))", "ValueError: track(loss=...) takes a number, or a tensor of one element"),
        ("track({'a=b': 1})", "ValueError: track() cannot use the name 'a=b'"),
    ):
        assert str(group.run(code).errors[0]).startswith(said)
