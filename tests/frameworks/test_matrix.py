"""docs/frameworks.md names a test for each row, each of them exists, and none is left out."""

import re
from pathlib import Path

from jupyter_dist.protocol.parts import find_modules
from jupyter_dist.rank.frameworks.hook import fixes_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "frameworks.md").read_text()
MATRIX = PAGE[PAGE.index("## The matrix") : PAGE.index("## The environment")]


def named_tests():
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


def test_every_test_that_the_page_names_exists():
    assert len(named_tests()) > 50
    for path, name in named_tests():
        assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE), (path, name)


def test_every_row_of_the_matrix_has_a_test():
    rows = [line for line in MATRIX.splitlines() if line.startswith("| ") and not line.endswith(("| test |", "GPUs |"))]
    assert len(rows) > 45
    for row in rows:
        assert "::test_" in row, row


def test_every_test_of_a_framework_is_on_the_page():
    on_page = {name for _, name in named_tests()}
    for path in ROOT.glob("tests/frameworks/test_*.py"):
        if path.stem not in ("test_hook", "test_matrix"):
            names = re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE)
            # Log lines and environment variables are not rows of the matrix.
            rows = [name for name in names if not re.search(r"rank_log|interactive", name)]
            assert set(rows) <= on_page, (path, set(rows) - on_page)


def test_every_fix_is_on_the_page_in_its_version():
    for fixes in fixes_of(find_modules("fixes")).values():
        for fix in fixes:
            framework = fix.package.replace("-", "_")
            (row,) = re.findall(rf"^\| .*\b{framework}\b.*?\| ([\d.]+) \|", PAGE, re.MULTILINE)
            assert row.startswith(fix.seen_with), (framework, row)
