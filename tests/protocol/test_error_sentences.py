"""The sentences of errors."""

import pytest

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.places import cut


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("It cannot be read: it is damaged..", "It cannot be read: it is damaged."),
        ("Not run: it is gone.. Start it again.", "Not run: it is gone. Start it again."),
        ("It waits...", "It waits..."),
        ("'../x' is no file in .. of it.", "'../x' is no file in .. of it."),
    ],
)
def test_a_sentence_that_quotes_another_ends_with_one_full_stop(message: str, shown: str) -> None:
    assert JupyterDistError("internal", message).message == shown


def test_a_long_text_is_cut_between_words() -> None:
    assert cut("ranks must call the same collectives", 20) == "ranks must call the\u2026"
