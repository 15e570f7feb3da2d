"""A line is split into words and numbers as in TypeScript, and nothing of it is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.parts.curves.tokens import tokenize

LINES = json.loads((Path(__file__).parents[1] / "vectors" / "lines.json").read_text())


@pytest.mark.parametrize("vector", LINES, ids=lambda vector: vector["name"])
def test_lines_of_real_logs_as_in_typescript(vector):
    _, tokens = tokenize(vector["lines"][0][1].rstrip("\n"))
    assert [[token.kind, token.text] for token in tokens] == vector["tokens"]


@given(st.text(alphabet="ab 0159.,:%|+-_/@eninf\u00b5s\x1b[m"))
def test_words_and_tokens_are_the_whole_line(text):
    words, tokens = tokenize(text)
    assert "".join(part for pair in zip(words, [*(t.text for t in tokens), ""], strict=True) for part in pair) == text
