"""Every test of this folder ends with what it began with."""

import pytest
from leaks import nothing_left


@pytest.fixture(autouse=True)
def _no_leaks():
    with nothing_left():
        yield
