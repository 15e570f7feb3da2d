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


def test_every_test_of_the_page_that_the_pages_name_exists():
    named = re.findall(r"`((?:ui-tests/(?:tests|beside)|labextension/src)/[\w./]+\.tsx?)::([^`]+)`", ALL)
    assert {path.partition("/")[0] for path, _ in named} == {"ui-tests", "labextension"}
    for path, title in named:
        quoted = re.escape(title)
        assert re.search(rf"^ *(?:test|it)\(\s*(['\"`]){quoted}\1,", (ROOT / path).read_text(), re.M), (path, title)


@pytest.mark.parametrize("page", sorted(set(PAGES) - {"index", "figures", "security"}))
def test_every_promise_has_a_test(page):
    """Under each heading stand promises, numbered, and then as many tests."""
    for section in PAGES[page].split("\n## ")[1:]:
        promises, _, tests = section.partition(TESTS)
        numbers = re.findall(r"^(\d+)\. ", promises, re.M)
        assert numbers == [str(number) for number in range(1, len(numbers) + 1)], section.splitlines()[0]
        tested = re.findall(r"^(\d+)\. .*`(?:(?:tests|jupyter_dist/testing)/\S+\.py|ui-tests/\S+\.ts)::", tests, re.M)
        assert numbers == tested, section.splitlines()[0]
        assert numbers, section.splitlines()[0]


def claims():
    """The paragraphs, points and rows of the security model, without what is code or a head of a table."""
    text = (ROOT / "docs" / "security.md").read_text()
    text = re.sub(r"^```.*?^```\n", "\n", text, flags=re.S | re.M)
    text = re.sub(r"^#.*\n|^\|.*\n(?=\|[-|]+\|$)|^\|[-|]+\|\n", "\n", text, flags=re.M)
    text = re.sub(r"^(\| |- )", r"\n", text, flags=re.M)
    return [" ".join(block.split()) for block in text.split("\n\n") if block.strip()]


def test_every_claim_of_the_security_model_is_in_its_table_with_a_test_or_as_a_limit():
    rows = re.findall(r"^\| (.+?) \| (\*limit\*|`.+`) \|$", PAGES["security"], re.M)
    assert len(rows) == PAGES["security"].count("\n| ") - 1  # each has one or the other
    words = [row[0] for row in rows]
    found = [max((one for one in words if claim.startswith(one)), key=len, default=claim) for claim in claims()]
    assert sorted(found) == sorted(words)
