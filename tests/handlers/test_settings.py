"""Settings that cannot be meant are refused at the server's start, with what to write instead."""

import math
import re

import pytest
from traitlets import TraitError
from traitlets.config import Config

from jupyter_dist.server.extension import DistApp
from jupyter_dist.server.traits import Seconds

DURATIONS = [name for name, trait in DistApp.class_traits(config=True).items() if isinstance(trait, Seconds)]


@pytest.mark.parametrize("name", DURATIONS)
@pytest.mark.parametrize("value", [math.inf, math.nan, 1e300])
def test_a_duration_without_an_end_is_refused(name, value):
    """It would reach the agent as no number at all."""
    with pytest.raises(
        TraitError, match=re.escape(f"{name} must be a number of seconds, at most 100000000, not {value}.")
    ):
        DistApp(config=Config({"DistApp": {name: value}}))


def test_a_duration_of_years_is_accepted():
    assert DistApp(config=Config({"DistApp": {"lease_seconds": 1e8}})).lease_seconds == 1e8
    assert {"lease_seconds", "start_timeout_seconds", "forkserver_seconds"} <= set(DURATIONS)
