"""Groups over two nodes."""

import resource

import pytest
from libraries import FABRIC, preloading

from .twonodes import CREDENTIALS, OF_TASKS, TwoNodes

HEAD_FILES = 256  # that the head of `shared_nodes` may open


@pytest.fixture(scope="module")
def shared_nodes(tmp_path_factory):
    nodes = TwoNodes(tmp_path_factory.mktemp("nodes") / "g")
    resource.prlimit(nodes.head.process.pid, resource.RLIMIT_NOFILE, (HEAD_FILES, HEAD_FILES))
    nodes.begin()
    for node in range(2):
        nodes.join("--node-rank", str(node), **preloading(FABRIC), **CREDENTIALS, **OF_TASKS)
    nodes.ready()
    yield nodes
    nodes.end()
