"""Rows as columns and back: nothing is lost, and what all rows have alike is there once."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.protocol.wire.columns import in_columns, in_rows

VALUES = st.one_of(
    st.none(), st.integers(-3, 3), st.text(max_size=2), st.booleans(), st.lists(st.integers(), max_size=2)
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), max_size=5))
def test_no_row_changes(rows):
    found = in_rows(json.loads(json.dumps(in_columns(rows))))
    assert found == rows
    assert [[type(row[name]) for name in sorted(row)] for row in found] == [
        [type(row[name]) for name in sorted(row)] for row in rows
    ]


def test_equal_values_of_different_types_are_not_alike():
    rows = [{"a": True, "b": 1}, {"a": 1, "b": 2}]
    assert [type(row["a"]) for row in in_rows(in_columns(rows))] == [bool, int]


def test_what_is_alike_is_there_once():
    rows = [{"rank": rank, "state": "idle", "exit": None} for rank in range(100)]
    assert in_columns(rows) == {"alike": {"state": "idle", "exit": None}, "columns": {"rank": list(range(100))}}
