"""A group in Python, on the shared server."""

import pytest
from faults.server import TOKEN

from jupyter_dist.client import Client


@pytest.fixture
def group(group_server):
    return Client.connect(group_server.info["url"], TOKEN).attach("g")
