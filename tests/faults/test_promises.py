"""docs/reliability.md names a test for each promise, and each of them exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text()


def test_every_test_that_the_page_names_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 40
    for path, name in named:
        assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.M), (path, name)


def test_every_browser_test_that_the_page_names_exists():
    named = re.findall(r"`(ui-tests/(?:tests|beside)/[\w./]+\.ts)::([^`]+)`", PAGE)
    assert named
    for path, title in named:
        quoted = re.escape(title)
        assert re.search(rf"^ *test\(\s*(['\"`]){quoted}\1,", (ROOT / path).read_text(), re.M), (path, title)


def test_every_promise_has_a_test():
    rows = [
        line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| promise", "| what "))
    ]
    promises = [line for line in rows if "|---" not in line and "figure" not in line]
    before_figures = [line for line in promises if PAGE.index(line) < PAGE.index("## Figures")]
    assert len(before_figures) > 25
    for line in before_figures:
        assert re.search(r"`(tests/\S+\.py|ui-tests/\S+\.ts)::", line), line
