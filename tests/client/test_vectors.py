"""What Python and TypeScript both do, against the files that both read (tests/vectors)."""

import copy
import html
import json
import re
from pathlib import Path

import pytest

from jupyter_dist.client.bundles.bundle import make_bundle, mime_bundle
from jupyter_dist.client.bundles.portable import as_displays, portable_outputs
from jupyter_dist.client.connection.liveview import LiveView

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


@vectors("portable.json")
def test_what_every_reader_of_notebooks_shows(vector):
    before = copy.deepcopy(vector)
    outputs = portable_outputs(vector["bundle"])
    assert outputs == vector["outputs"]
    assert as_displays(outputs, vector["bundle"]["execution_id"]) == vector["displays"]
    assert vector == before


@vectors("portable.json")
def test_labels_and_text_need_neither_script_nor_style(vector):
    """As on GitHub, which runs no scripts and takes styles away."""
    for output in vector["outputs"]:
        data = output.get("data", {})
        if not (ours := data.get("text/html", "")).startswith("<d"):
            continue
        tags = set(re.findall(r"<[^>]*>", ours))
        assert {re.sub(r"[</>]| .*", "", tag) for tag in tags} <= {"details", "summary", "b", "pre", "div"}
        words = re.findall(r"\w+", html.unescape(re.sub(r"<[^>]*>", " ", ours)))
        assert words == re.findall(r"\w+", data["text/plain"])


@vectors("views.json")
def test_messages_give_the_items_that_the_server_has(vector):
    view = LiveView()
    for step in vector["steps"]:
        view.apply(step["message"])
        assert [{name: item[name] for name in item if name != "seq"} for item in view.items] == step["items"]
