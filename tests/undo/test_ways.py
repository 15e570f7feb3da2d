"""Many ways to change a list and many states, each changed and undone twice in one namespace: none is silently different."""

from __future__ import annotations

import pytest
import ways
from trying import try_all

pytestmark = pytest.mark.filterwarnings("ignore")  # of what cells call, and of finalizers after the names are gone
# Ways through functions that only a library knows.
NOT_FOUND = {
    *("getattr of globals", "global module hook", "method of torch replaced", "custom operator", "named logger"),
    *("filter of a named logger", "logger in a name", "showwarning", "json encoder", "seterrcall", "copyreg"),
    *("accessor of tables", "codec", "error handler", "finder", "builtin replaced", "rlock", "context run"),
    *("seed sequence", "codec error", "trace"),
}


def test_no_list_is_silently_different_after_undo() -> None:
    found = try_all(ways.WAYS, of_list=True)
    assert {name for name, pair in found.items() if "SILENT" in pair} <= NOT_FOUND
    assert sum(pair == ["undone", "undone"] for pair in found.values()) >= 90


def test_no_state_is_silently_different_after_undo() -> None:
    found = try_all(ways.STATES, of_list=False)
    assert {name for name, pair in found.items() if "SILENT" in pair} <= NOT_FOUND
    assert sum(pair == ["undone", "undone"] for pair in found.values()) >= 65
