"""docs/benchmarks has a place for each figure, and its summary has what the pages say."""

import pytest

from benchmarks import report
from benchmarks.__main__ import FIGURES


@pytest.mark.parametrize("figure", FIGURES)
def test_each_figure_is_on_one_page(figure):
    begin, end = report._markers(figure)
    assert [page.read_text().count(begin) for page in report.PAGES.glob("*.md") if end in page.read_text()] == [1]


def test_the_summary_counts_the_targets_of_all_pages():
    summary = report.summary()
    assert summary in report.INDEX.read_text()
    assert all(f"]({page.name})" in summary for page in report.PAGES.glob("*.md") if page != report.INDEX)
