"""Groups over two nodes."""

import pytest
from libraries import FABRIC, preloading

from .twonodes import CREDENTIALS, OF_TASKS, TwoNodes


@pytest.fixture(scope="module")
def shared_nodes(tmp_path_factory):
    nodes = TwoNodes(tmp_path_factory.mktemp("nodes") / "g")
    nodes.begin()
    for node in range(2):
        nodes.join("--node-rank", str(node), **preloading(FABRIC), **CREDENTIALS, **OF_TASKS)
    nodes.ready()
    yield nodes
    nodes.end()
