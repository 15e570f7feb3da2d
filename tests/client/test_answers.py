"""Answers of the API as objects: typed attributes, a text, and a table that escapes what users wrote."""

import pytest

from jupyter_dist.client.answers.base import ApiList, listed
from jupyter_dist.client.answers.infos import ExecutionInfo, HistoryCellInfo, RankInfo, RankStackInfo

CODE = "<script>alert('x')</script>"


def test_fields_are_attributes_of_the_types_that_the_api_declares():
    found = RankStackInfo({"ranks": "0", "state": "runs", "call": None, "frames": [{"line": 3, "function": "step"}]})
    assert (found.ranks, found.call, found.frames[0].line, found.frames[0].code) == ("0", None, 3, None)
    assert ExecutionInfo({"rank_seconds": {"10": 1.5}}).rank_seconds == {10: 1.5}  # ranks are numbers
    assert HistoryCellInfo({"code": "a"}).execution_count is None  # an older server does not send it
    assert HistoryCellInfo({"code": "a"}) == HistoryCellInfo({"code": "a"}) != HistoryCellInfo({"code": "b"})
    assert found.model["state"] == "runs"
    assert repr(RankInfo({"rank": 1})).startswith("RankInfo(rank=1, ")


@pytest.mark.parametrize(
    "shown",
    [
        listed(HistoryCellInfo, [{"code": CODE}]),
        HistoryCellInfo({"code": CODE}),
        RankStackInfo({"frames": [{"code": CODE}]}),
        ApiList([CODE]),
    ],
)
def test_a_notebook_shows_a_table_in_which_all_text_is_escaped(shown):
    html = shown._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_lists_are_lists():
    found = listed(RankInfo, [{"rank": 0}, {"rank": 1}])
    assert [one.rank for one in found] == [0, 1]
    assert found.model == [{"rank": 0}, {"rank": 1}]
    assert repr(found).count("\n") == 1
