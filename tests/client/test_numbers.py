"""A line is parted into words and numbers, and nothing of it is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.numbers.tokens import tokenize


@given(st.text(alphabet="ab 0159.,:%|+-eninf\u00b5s\x1b[m"))
def test_words_and_tokens_are_the_whole_line(text):
    words, tokens = tokenize(text)
    assert "".join(part for pair in zip(words, [*(t.text for t in tokens), ""], strict=True) for part in pair) == text
