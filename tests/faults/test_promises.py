"""docs/reliability names a test for each promise, and each of them exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs" / "reliability").glob("*.md"))}
ALL = "\n".join(PAGES.values())
TESTS = ":::{dropdown} Tests\n"


def test_every_test_that_the_pages_name_exists():
    named = re.findall(r"`((?:tests|jupyter_dist/testing)/[\w/]+\.py)::(\w+)`", ALL)
    assert len(named) > 40
    for path, name in named:
        assert re.search(rf"^ *(async )?def {name}\(", (ROOT / path).read_text(), re.M), (path, name)


def test_every_browser_test_that_the_pages_name_exists():
    named = re.findall(r"`(ui-tests/(?:tests|beside)/[\w./]+\.ts)::([^`]+)`", ALL)
    assert named
    for path, title in named:
        quoted = re.escape(title)
        assert re.search(rf"^ *test\(\s*(['\"`]){quoted}\1,", (ROOT / path).read_text(), re.M), (path, title)


@pytest.mark.parametrize("page", sorted(set(PAGES) - {"index", "figures"}))
def test_every_promise_has_a_test(page):
    """Under each heading stand promises, numbered, and then as many tests."""
    for section in PAGES[page].split("\n## ")[1:]:
        promises, _, tests = section.partition(TESTS)
        numbers = re.findall(r"^(\d+)\. ", promises, re.M)
        assert numbers == [str(number) for number in range(1, len(numbers) + 1)], section.splitlines()[0]
        tested = re.findall(r"^(\d+)\. .*`(?:(?:tests|jupyter_dist/testing)/\S+\.py|ui-tests/\S+\.ts)::", tests, re.M)
        assert numbers == tested, section.splitlines()[0]
        assert numbers, section.splitlines()[0]
