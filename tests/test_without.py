"""Which parts CI removes on which day (.ci/without.py)."""

import importlib.util
import itertools
from pathlib import Path

import pytest

from tests.house import parts

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def of_day():
    spec = importlib.util.spec_from_file_location("without", ROOT / ".ci" / "without.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.of_day


@pytest.mark.parametrize("names", [parts.names(), [f"part{i}" for i in range(35)]], ids=["ours", "most"])
def test_in_a_week_each_part_is_removed_beside_each_other_part(of_day, names):
    days = [set(of_day(names, day)) for day in range(7)]
    for removed, other in itertools.permutations(names, 2):
        assert any(removed in day and other not in day for day in days), f"{other} without {removed}"
    # A day on which most are removed would test little.
    assert max(map(len, days)) <= len(names) / 2


def test_more_parts_than_sets_of_days_are_refused(of_day):
    with pytest.raises(SystemExit, match="35 parts have days of their own, and there are 36"):
        of_day([f"part{i}" for i in range(36)], 0)
