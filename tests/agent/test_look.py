"""What ranks tell of themselves may be anything: only numbers are taken for numbers."""

import math

import pytest

from jupyter_dist.agent.watch.look import finite


@pytest.mark.parametrize("value", [None, "5", "inf", math.inf, -math.inf, math.nan, True, [1], {}, 10**400])
def test_what_is_no_finite_number_is_none(value):
    assert finite(value) is None


@pytest.mark.parametrize("value", [0, 1.5, -2, 1 << 50])
def test_numbers_are_as_they_were_told(value):
    assert finite(value) == value
