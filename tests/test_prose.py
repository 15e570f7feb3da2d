"""The measures of prose find what they should; tests/test_architecture.py compares the figures with their ceilings."""

import pytest
from house import prose
from house.sources import ROOT


def found_in(text):
    path = ROOT / "made_up.py"
    return prose.idioms([(path, [(text, 1)])])


@pytest.mark.parametrize(
    "text",
    [
        "Hear nothing more, and let the rank see that.",
        "Return those of a page's time.",
        "Whoever starts it needs them.",
        "The node says so.",
        "It knows nothing of a group of its own.",
    ],
)
def test_an_idiom_is_found(text):
    assert prose.PRONOUN_FIRST.match(text) or found_in(text)[1]


@pytest.mark.parametrize(
    "text",
    [
        "Return each device's readings within the page's time range.",
        "Stop receiving, and close the rank's channel.",
        "Keep the cell queued while a rank is unreachable, and show a warning.",
    ],
)
def test_plain_sentences_are_not(text):
    words, found = found_in(text)
    assert words == len(text.split())
    assert found == []
    assert not prose.PRONOUN_FIRST.match(text)


def test_a_name_of_a_missing_file_is_found():
    text = "See rank/main.py, docs/made_up.md and (made_up.py)."
    found = prose.missing_files([(ROOT / "made_up.py", [(text, 1)])])
    assert found == ["made_up.py:1: docs/made_up.md", "made_up.py:1: made_up.py"]
