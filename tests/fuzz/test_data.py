"""Damaged descriptions of values from other machines: each is a value or an error in words, and ends no process."""

import collections
import contextlib
import copy
import datetime
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_dist.objects import files
from jupyter_dist.objects.data import graph, kinds
from jupyter_dist.protocol.errors import JupyterDistError

few = settings(settings.get_profile("channels"), deadline=None)

ODD = [
    *(None, True, 0, 1, -1, 2, 255, 1 << 31, 1 << 62, (1 << 64) - 1, -(1 << 63), 1 << 200, 1e308, float("nan"), "", "a"),
    *("|O", "<O8", "<i8", "|b1", "<U1", "<i8,O", "<M8[ns]", "load", "bool", "cuda", "Parameter", "ValueError", "../..", "ns", "table"),
    *([], [0], [1], [-1], [[0]], {}, {"d": "a"}, {"q": 0}, {"r": [0, 3]}, {"s": "\x7f"}, [1 << 40], [1 << 31, 1 << 31, 4], [0, 1 << 62]),
]  # fmt: skip


@pytest.fixture(scope="module")
def written():
    """Descriptions of objects of all kinds, as JSON, and one buffer."""
    torch = pytest.importorskip("torch")
    pd = pytest.importorskip("pandas")
    tensor = torch.arange(6.0).reshape(2, 3)
    ring = [collections.OrderedDict(a=1), collections.defaultdict(list, b=[2]), frozenset({(1, 2)})]
    ring += [[{"a": number, "b": "x"} for number in range(16)], [(0.5, number) for number in range(16)]]
    ring.append((ring, datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), ValueError("no"), 1 << 3000))
    dates = pd.date_range("2026", periods=2, tz="UTC")
    frame = pd.DataFrame({"n": pd.array([1, None], "Int64"), "t": ["a", "b"], "k": pd.Categorical(["x", "y"])}, dates)
    values = [
        ring,
        [
            np.arange(200.0),
            np.array(["a", None], object),
            np.ma.masked_array([1], [0]),
            np.float32(1),
            np.array([True]),
        ],
        [
            tensor,
            tensor.t(),
            tensor.to_sparse(),
            torch.nn.Parameter(tensor),
            tensor > 2,
            torch.Size([1]),
            torch.float16,
        ],
        [frame, frame.set_index(["t", "n"]), pd.interval_range(0, 2), pd.period_range("2026", periods=2, freq="M")],
    ]
    return [json.loads(bytes(kinds.write({"x": value})[0]).decode("utf-8", "surrogatepass")) for value in values]


@few
@given(st.data())
def test_a_damaged_description_is_a_value_or_an_error_in_words(written, data):
    content = copy.deepcopy(data.draw(st.sampled_from(written), "description"))
    nodes = content["nodes"]
    others = [part for found in written for node in found["nodes"] for part in node]
    for _ in range(data.draw(st.integers(1, 3), "changes")):
        node = nodes[data.draw(st.integers(0, len(nodes) - 1), "node")]
        place = node
        while isinstance(place[at := data.draw(st.integers(0, len(place) - 1), "part")], list) and place[at]:
            place = place[at]
        place[at] = copy.deepcopy(data.draw(st.sampled_from(ODD) | st.sampled_from(others), "put there"))
        if data.draw(st.booleans(), "again"):
            nodes.insert(data.draw(st.integers(0, len(nodes)), "where"), copy.deepcopy(node))
    description = graph.MARK + json.dumps(content)[1:].encode()
    with contextlib.suppress(JupyterDistError):
        found = files._read_data(memoryview(bytearray(packed(description, bytes(range(256)) * 8))))
        with contextlib.suppress(Exception):
            repr(found)  # uses what was made


def packed(*pieces):
    """The content of a file with these pieces."""
    content = b"".join(number.to_bytes(8, "big") for number in (len(pieces), *map(len, pieces)))
    for piece in pieces:
        content += bytes(-len(content) % files.ALIGNMENT) + piece
    return content
