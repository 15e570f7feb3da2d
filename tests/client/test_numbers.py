"""Lines that differ in numbers only become one, as in the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.numbers.condense import condense
from jupyter_dist.numbers.tokens import tokenize

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "numbers.json").read_text())
MARK = "\u27e8"


def items_of(lines, name="stdout"):
    outputs = [(ranks, {"output_type": "stream", "name": name, "text": text}) for ranks, text in lines]
    return [{"id": i, "seq": i, "ranks": ranks, "output": output} for i, (ranks, output) in enumerate(outputs)]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_condensed_as_in_typescript(vector):
    condensed = list(condense(items_of(vector["lines"], vector["stream"])))
    expected = [(ranks, line) for ranks, text in vector["expected"] for line in text.splitlines(keepends=True)]
    assert condensed == expected


@given(st.text(alphabet="ab 0159.,:%|+-eninf\u00b5s\x1b[m"))
def test_words_and_tokens_are_the_whole_line(text):
    words, tokens = tokenize(text)
    assert "".join(part for pair in zip(words, [*(t.text for t in tokens), ""], strict=True) for part in pair) == text


@given(
    st.lists(st.tuples(st.sampled_from(["0", "1", "2-3"]), st.sampled_from(["a 1\n", "a 2\n", "b 0.5\n", "b 0.7\n"])))
)
def test_every_rank_has_its_lines_and_a_condensed_line_is_of_as_many_ranks(lines):
    total = {rank: sum(1 for ranks, _ in lines if ranks == rank) for rank in ("0", "1", "2-3")}
    seen = dict.fromkeys(total, 0)
    members = {"0": {0}, "1": {1}, "2-3": {2, 3}}
    for ranks, _ in condense(items_of(lines)):
        named = {
            int(r) for part in ranks.split(",") for r in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)
        }
        for rank, own in members.items():
            assert own <= named or not own & named
            seen[rank] += own <= named
    assert seen == total
