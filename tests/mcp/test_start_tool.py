"""The tool that starts a group takes each option of a start."""

from jupyter_dist.parts.mcp.tools import offered
from jupyter_dist.protocol.schemas import beginnings, fields_of
from jupyter_dist.protocol.wire.requests import StartOptions


def test_every_option_of_a_start_is_there():
    assert {*fields_of(StartOptions), *beginnings()} <= set(offered(read_only=False)["start_group"].properties)
