"""What Python and TypeScript both do, against the files that both read (tests/vectors)."""

import copy
import json
from pathlib import Path

import pytest

from jupyter_dist.client.connection.liveview import LiveView
from jupyter_dist.client.results.bundle import make_bundle, mime_bundle

VECTORS = Path(__file__).parents[1] / "vectors"


def vectors(name):
    return pytest.mark.parametrize(
        "vector", json.loads((VECTORS / name).read_text()), ids=lambda vector: vector["name"]
    )


@vectors("bundles.json")
def test_a_bundle_and_its_text(vector):
    before = copy.deepcopy(vector)
    bundle = make_bundle(vector["group"], vector["execution"], vector["items"])
    assert bundle == vector["bundle"]
    assert mime_bundle(bundle)["text/plain"] == vector["text"]
    assert vector == before


@vectors("views.json")
def test_messages_give_the_items_that_the_server_has(vector):
    view = LiveView()
    for step in vector["steps"]:
        view.apply(step["message"])
        assert [{name: item[name] for name in item if name != "seq"} for item in view.items] == step["items"]
