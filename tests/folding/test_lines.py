"""Carriage returns and backspaces, and that it does not matter how text was cut into chunks."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.server.folding.feeding.lines import MAX_LINE_CHARS, LineBuffer


def shown(*chunks: str) -> str:
    buffer = LineBuffer()
    lines = [line for chunk in chunks for line in buffer.feed(chunk)]
    return "".join(lines) + buffer.text


def test_plain_lines() -> None:
    buffer = LineBuffer()
    assert buffer.feed("a\nb") == ["a\n"]
    assert buffer.text == "b"
    assert buffer.feed("c\n\n") == ["bc\n", "\n"]


def test_a_progress_bar_is_one_line() -> None:
    assert shown("  0%", "\r 50%", "\r100%\n", "done\n") == "100%\ndone\n"


def test_a_carriage_return_overwrites_as_a_terminal_does() -> None:
    assert shown("hello\rJ") == "Jello"
    assert shown("hello\r\n") == "hello\n"
    assert shown("\rhello") == "hello"


def test_a_line_with_escapes_is_replaced_whole() -> None:
    assert shown("\x1b[31mred\x1b[0m\rok") == "ok"


def test_backspaces() -> None:
    assert shown("1/3\b\b\b2/3\b\b\b3/3\n") == "3/3\n"
    assert shown("\b\bx") == "x"


def test_an_endless_line_comes_in_pieces() -> None:
    buffer = LineBuffer()
    pieces = buffer.feed("x" * (3 * MAX_LINE_CHARS))
    assert [len(piece) for piece in pieces] == [MAX_LINE_CHARS, MAX_LINE_CHARS]
    assert len(buffer.text) == MAX_LINE_CHARS


VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "terminal.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_shared_vectors(vector: dict[str, Any]) -> None:
    assert shown(*vector["chunks"]) == vector["shown"]
    assert shown(*"".join(vector["chunks"])) == vector["shown"]


TEXT = st.text(alphabet="ab\r\b\n\x1b[K2", max_size=40)


@given(st.lists(TEXT, max_size=5))
def test_chunks_do_not_matter(chunks: list[str]) -> None:
    whole, cut = LineBuffer(), LineBuffer()
    lines = whole.feed("".join(chunks))
    assert [line for chunk in chunks for line in cut.feed(chunk)] == lines
    assert cut.text == whole.text


@given(
    st.lists(st.sampled_from(["a", "bc\n", "\n", "d" * MAX_LINE_CHARS, "e\r", "f\b"]), max_size=12), st.integers(0, 4)
)
def test_what_is_skipped_is_what_feeding_would_give(parts: list[str], keep: int) -> None:
    fed, skipping = LineBuffer(), LineBuffer()
    for buffer in (fed, skipping):
        buffer.feed("begun")
    data = "".join(parts)
    skipped, rest = skipping.skip(data, keep)
    lines = skipping.feed(rest)
    assert not skipped or sum(line.endswith("\n") for line in lines) == keep
    assert skipped + "".join(lines) == "".join(fed.feed(data))
    assert skipping.text == fed.text
