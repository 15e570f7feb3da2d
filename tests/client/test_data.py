"""What ranks on other machines return runs no code here, and what people pull arrives as it was."""

import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import importlib.util
import json
import os
import pickle
import struct
import sys
import types
import uuid
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_dist.objects import files, pickling
from jupyter_dist.objects.data import graph
from jupyter_dist.protocol.errors import JupyterDistError

NOW = datetime.datetime(2026, 11, 26, 7, 30, tzinfo=datetime.timezone.utc)


@dataclasses.dataclass
class Config:
    lr: float = 0.1

    def __post_init__(self):
        assert self.lr != 7, "no code of the class runs here"


Point = collections.namedtuple("Point", "x y")
Color = enum.Enum("Color", "RED BLUE")


def sent(path, value):
    """The value as a client that does not trust its sender gets it."""
    path.unlink(missing_ok=True)
    files.save({"x": value}, [str(path)], as_data=True)
    return files.load(str(path), is_trusted=False)["x"]


def forged(path, data, *buffers):
    """What a client gets from these bytes of another machine."""
    pieces = [memoryview(data), *map(memoryview, buffers)]
    header = struct.pack(f"!Q{len(pieces)}Q", len(pieces), *(piece.nbytes for piece in pieces))
    content = header
    for piece in pieces:
        content += bytes(-len(content) % files.ALIGNMENT) + bytes(piece)
    path.write_bytes(content)
    return files.load(str(path), is_trusted=False)


PLAIN = {
    "numbers": [1, 2.5, 1 + 2j, True, None, 1 << 100, float("inf")],
    "texts": ["é", b"x" * 10_000, bytearray(b"y"), ...],
    "containers": {(1, 2): [{3}, frozenset({4})], "range": range(3), "slice": slice(1, 2)},
    "collections": [collections.OrderedDict(a=1), collections.Counter("aab"), collections.deque([1], maxlen=3)],
    "default": collections.defaultdict(list, a=[1]),
    "times": [NOW, NOW.date(), NOW.time(), datetime.timedelta(seconds=3)],
    "exact": [decimal.Decimal("0.1"), fractions.Fraction(1, 3), uuid.UUID(int=7), Path("/a/b")],
    "namespace": types.SimpleNamespace(a=1),
    "error": ValueError("no"),
    "dtype": [np.dtype("<f4")],
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_values_arrive_as_they_were(tmp_path, name):
    arrives(tmp_path / "x", PLAIN[name])


def test_what_describes_a_tensor_arrives_as_it_was(tmp_path):
    import torch

    arrives(tmp_path / "x", [torch.Size([2, 3]), torch.device("cpu"), torch.float16, np.dtype("<f4"), torch.strided])


def arrives(path, value):
    found = sent(path, value)
    assert type(found) is type(value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "value",
    [np.arange(6.0).reshape(2, 3), np.array(["a", "bc"]), np.array([None, {"a": 1}], object), np.float32(2.5),
     np.array(["2026-01-01"], "M8[D]"), np.asfortranarray(np.eye(3)), np.zeros((0, 3)), np.bool_(True),
     np.ma.masked_array([1, 2], [0, 1])],
    ids=str,
)  # fmt: skip
def test_arrays_arrive_as_they_were(tmp_path, value):
    found = sent(tmp_path / "x", value)
    assert (type(found), found.dtype, found.shape) == (type(value), value.dtype, value.shape)
    assert found.tolist() == value.tolist()


def test_tensors_and_states_arrive_as_they_were(tmp_path):
    import torch

    base = torch.arange(12.0).reshape(3, 4)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    tensors = {
        "view": base[1:, ::2],
        "half": base.half(),
        "grad": base.clone().requires_grad_(),
        "none": torch.empty(0),
    }
    tensors |= {"parameter": torch.nn.Parameter(base), "sparse": base.to_sparse(), "bfloat": base.bfloat16()}
    found = sent(tmp_path / "x", {**tensors, "twice": [base, base]})
    for name, tensor in tensors.items():
        assert type(found[name]) is type(tensor)
        assert found[name].requires_grad == tensor.requires_grad
        assert torch.equal(found[name].to_dense().float(), tensor.to_dense().float())
    first, second = found["twice"]
    first += 1
    assert torch.equal(first, second)
    states = sent(tmp_path / "x", [model.state_dict(), optimizer.state_dict()])
    assert repr(states) == repr([model.state_dict(), optimizer.state_dict()])
    assert states[0]._metadata == model.state_dict()._metadata
    with pytest.raises(JupyterDistError, match=r"the module Sequential; its data is model\.state_dict\(\)"):
        sent(tmp_path / "x", model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that these tensors are in beta
        rows = base.to_sparse_csr()
    tied = sent(tmp_path / "x", {"a": base, "b": base.t(), "bool": base > 3, "rows": rows})
    tied["a"][0, 1] = 7
    assert tied["b"][1, 0] == 7  # they share memory, as they did
    assert torch.equal(tied["bool"], base > 3)
    assert torch.equal(tied["rows"].to_dense(), base)


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="needs pandas")
def test_data_frames_arrive_as_they_were(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(
        {
            "loss": [0.5, 0.25], "name": ["a", "b"], "n": pd.array([1, None], "Int64"), "at": pd.to_datetime(["2026", "2027"]),
            "zone": pd.to_datetime(["2026", "2027"], utc=True), "kind": pd.Categorical(["x", "y"]), "any": [{}, None],
        },
        index=pd.Index(["r", "s"], name="i"),
    )  # fmt: skip
    pd.testing.assert_frame_equal(sent(tmp_path / "x", frame), frame)
    pd.testing.assert_series_equal(sent(tmp_path / "x", frame["loss"]), frame["loss"])
    many = frame.set_index(["name", "n"])
    pd.testing.assert_frame_equal(sent(tmp_path / "x", many), many)
    dates = pd.DataFrame({"x": [1, 2]}, pd.date_range("2026", periods=2, tz="Europe/Berlin", name="at"))
    dates.attrs["run"] = {"id": 7}
    pd.testing.assert_frame_equal(sent(tmp_path / "x", dates), dates)
    assert sent(tmp_path / "x", dates).attrs == dates.attrs
    for value in (pd.Timestamp("2026-01-01"), pd.Timedelta("1s"), pd.NaT, pd.NA):
        assert repr(sent(tmp_path / "x", value)) == repr(value)


def test_containers_share_and_contain_themselves_as_they_did(tmp_path):
    shared, ring = [1.5] * 20, {"texts": ["a\x7fb"] * 20, "many": [1 << 70] * 20}
    ring["self"] = ([ring, shared],)
    found = sent(tmp_path / "x", [ring, shared, shared, *[[]] * 2])
    assert found[0]["self"][0][0] is found[0]
    assert found[0]["self"][0][1] is found[1] is found[2]
    assert found[3] is found[4]
    assert (found[0]["texts"], found[0]["many"], found[1]) == (ring["texts"], ring["many"], shared)


ROW = {"epoch": 1, "loss": 0.5, "name": "a\x7f", "best": None}
ALIKE = {
    "records": [{**ROW, "epoch": number, "best": number > 7} for number in range(40)],
    "lists": [[number, 1 << 70 + number * 200] for number in range(40)],
    "tuples": [(float(number), str(number)) for number in range(40)],
    "others": [{"a": 1, "b": 2}, *({"b": number, "a": 1} for number in range(40))],
    "numbers as names": [{number: 1} for number in range(40)],
    "of lengths": [[0] * number for number in range(40)],
    "empty": [[] for _ in range(40)],
    "with others": [[number, [number]] for number in range(40)],
}


@pytest.mark.parametrize("name", ALIKE)
def test_like_containers_arrive_as_they_were_and_share_as_they_did(tmp_path, name):
    rows = [*ALIKE[name], *([ALIKE[name][0]] if name == "with others" else [])]
    found = sent(tmp_path / "x", {"first": rows[3], "rows": rows, "again": [rows, tuple(rows)], "last": rows[-1]})
    assert found["rows"] == rows
    assert repr(found["rows"]) == repr(rows)  # also in order, and True is no 1
    assert found["first"] is found["rows"][3]
    assert found["last"] is found["rows"][-1] is found["again"][1][-1]
    assert len(set(map(id, found["rows"]))) == len(set(map(id, rows)))
    assert found["rows"] is found["again"][0]


# -- what a machine that was taken over sends -----------------------------------------------------------------


class Calls:
    """A value whose pickle calls a function."""

    def __init__(self, *reduced) -> None:
        self._reduced = reduced

    def __reduce__(self):
        return self._reduced


def pickles(marker):
    """The ways in which a list of allowed callables was once left (decision 39), and the plain one."""
    import torch

    shell = f"touch {marker}"
    layers = torch.nn.ModuleList()
    base = types.SimpleNamespace(__module__="builtins", __new__=np.ndarray, __init__=ValueError)
    vars(layers)["__mro__"] = [base]
    space = bytearray(64)
    yield "a class that its argument makes up", Calls(pickling._exception, (layers, ((1,), np.dtype("O"), space)))
    yield "objects over bytes", Calls(np.ndarray, ((8,), np.dtype("O"), space))
    yield "a call in a state", Calls(types.SimpleNamespace, (), {"__setstate__": exec})
    yield "system", Calls(os.system, (shell,))
    yield "in an array", np.array([Calls(os.system, (shell,))], object)


@pytest.mark.parametrize("number", range(5))
def test_a_pickle_of_another_machine_is_not_loaded(tmp_path, number):
    name, value = list(pickles(tmp_path / "marker"))[number]
    data = pickle.dumps({"x": value}, 5)
    with pytest.raises(JupyterDistError, match="sent a pickle, which could run code here") as refused:
        forged(tmp_path / "x", data)
    assert refused.value.code == "cannot_receive", name
    assert "trust_nodes = True" in refused.value.hint
    assert not (tmp_path / "marker").exists()


def test_a_damaged_array_of_objects_does_not_end_this_process(tmp_path):
    """310 bytes once did: an array of objects whose shape has one changed byte."""
    data = pickle.dumps({"x": np.array([None, {"a": 1}], object)}, 2)
    assert b"K\x02\x85" in data  # its shape, (2,)
    with pytest.raises(JupyterDistError, match="cannot be read: no data"):
        forged(tmp_path / "x", data.replace(b"K\x02\x85", b"K\x80\x85"))
    described = [["numpy.objects", [128], [None, None]]]
    with pytest.raises(JupyterDistError, match="2 objects for an array"):
        described_by(tmp_path / "x", described)


def described_by(path, nodes, *buffers):
    """What a client gets for a description, whose last object is the value."""
    content = {"value": [len(nodes)], "nodes": [*nodes, ["dict", ["x"], [[len(nodes) - 1]]]]}
    return forged(path, graph.MARK + json.dumps(content)[1:].encode(), *buffers)["x"]


WORDS = bytes(8 * 100)
FORGERIES = {
    "objects over bytes": ([["numpy.array", "|O", [100], "C", 0]], "the dtype"),
    "objects in a dtype": ([["numpy.array", "<i8,O", [50], "C", 0]], "the dtype"),
    "two arrays over the same bytes": (
        [["numpy.array", "<i8", [100], "C", 0], ["numpy.array", "<f8", [100], "C", 0], ["tuple", [[0], [1]]]],
        "two objects with the same bytes",
    ),
    "an array beyond its bytes": ([["numpy.array", "<i8", [101], "C", 0]], "800 bytes for an array"),
    "a shape that is negative": ([["numpy.array", "<i8", [-10, -10], "C", 0]], "-10 where a number"),
    "truth values that are none": ([["numpy.array", "|b1", [4], "C", "\0\1\2\3"]], "truth values that are none"),
    "characters that are none": ([["numpy.array", "<U1", [1], "C", "\xff\xff\xff\xff"]], "characters that are none"),
    "a tensor beyond its storage": (
        [["torch.storage", None, 0], ["torch.tensor", ["Tensor", False], [0], "int64", [90, [11], [1]]]],
        r"a tensor of \(11,\) in 800 bytes",
    ),
    "a tensor before its storage": (
        [["torch.storage", None, 0], ["torch.tensor", ["Tensor", False], [0], "int64", [0, [2], [-1]]]],
        "-1 where a number",
    ),
    "a sparse tensor with an index beyond its size": (
        [["torch.storage", None, "\x09" + "\0" * 7], ["torch.tensor", ["Tensor", False], [0], "int64", [0, [1, 1], [1, 1]]],
         ["torch.storage", None, "\0" * 8], ["torch.tensor", ["Tensor", False], [2], "int64", [0, [1], [1]]],
         ["torch.sparse", ["Tensor", False], [[1], [3]], [4], False]],
        "size is inconsistent with indices",
    ),
    "no tensor's function": ([["torch.dtype", "load"]], "which is no dtype"),
    "a class by its name": ([["object", "os._Environ", [], []]], "sent a os._Environ, which could run code"),
    "a class as an error": ([["error", "system", ["true"], []]], "KeyError"),
    "a function as a factory": ([["defaultdict", "eval", [], []]], "another function"),
    "a file as a time zone": ([["ZoneInfo", "../../../etc/passwd"]], "a time zone that is none"),
    "an object that is not there yet": ([["tuple", [[0]]]], "0 where a number of 0 to -1"),
    "a table of objects": ([["list", []], ["table", "tuple", None, [[[0]]]]], "a table of objects"),
    "a table without names": ([["table", "dict", ["a", "a"], [[1], [2]]]], "no names"),
    "a table of more than there is": ([["table", "list", None, [{"s": "\x7f" * (1 << 22)}]]], "objects in tables"),
    "a table of rows that end": ([["table", "list", None, [[1, 2], [1]]]], "shorter"),
    "rows that are not there": ([["table", "list", None, [[1, 2]]], ["tuple", {"r": [1, 2]}]], "not there"),
    "depth in rows": (
        [["tuple", []], *[["tuple", {"r": [number, 1]}] for number in range(200)]], "more than 100 deep"
    ),
    "an unknown kind": ([["numpy.ctypeslib", 1]], "an unknown kind"),
    "depth": ([["tuple", []], *[["tuple", [[number]]] for number in range(200)]], "more than 100 deep"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_description_is_refused_in_words(tmp_path, name):
    nodes, why = FORGERIES[name]
    with pytest.raises(JupyterDistError, match=why) as refused:
        described_by(tmp_path / "x", nodes, WORDS)
    assert refused.value.code == "cannot_receive"


def test_what_was_not_asked_for_is_refused(tmp_path):
    files.save({"other": 1}, [str(tmp_path / "x")], as_data=True)
    assert files.load(str(tmp_path / "x"), ["other"], is_trusted=False) == {"other": 1}
    with pytest.raises(JupyterDistError, match="cannot be read: it has no 'asked'") as refused:
        files.load(str(tmp_path / "x"), ["asked"], is_trusted=False)
    assert refused.value.code == "cannot_receive"


def test_a_file_that_is_shorter_than_its_pieces_is_refused(tmp_path):
    for content in (
        b"",
        bytes(7),
        struct.pack("!Q", 1 << 60),
        struct.pack("!QQ", 1, 1 << 60),
        struct.pack("!QQ", 0, 0),
    ):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(JupyterDistError, match="cannot be read"):
            files.load(str(tmp_path / "x"), is_trusted=False)


UNSENT = {
    "a function": (len, r"a builtins\.builtin_function_or_method"),
    "an object with ways of its own": (Calls(os.getpid, ()), r"test_data\.Calls, which is no data"),
    "a function that makes defaults": (collections.defaultdict(os.getpid), r"dict\(x\) has its data"),
    "an array with fields": (np.zeros(2, "i4,f4"), r"its fields x\[name\]"),
    "an open file": (sys.stdout, "which is no data"),
}


@pytest.mark.parametrize("name", UNSENT)
def test_what_is_no_data_is_not_sent(tmp_path, name):
    value, why = UNSENT[name]
    with pytest.raises(JupyterDistError, match=rf"'x' has .*{why}") as refused:
        sent(tmp_path / "x", [{"deep": (value,)}])
    assert refused.value.code == "cannot_send"
    assert "group.trust_nodes = True" in refused.value.hint


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_bytes_are_a_value_or_an_error_in_words(tmp_path_factory, data):
    import torch

    path = tmp_path_factory.getbasetemp() / "damaged"
    path.unlink(missing_ok=True)
    files.save({"x": [np.arange(3), torch.ones(2), {"a": 1.5}]}, [str(path)], as_data=True)
    content = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with contextlib.suppress(JupyterDistError):
        files.load(str(path), is_trusted=False)


def test_a_class_that_the_user_has_allowed_in_torch_is_allowed_here(tmp_path):
    import torch

    if not hasattr(torch.serialization, "safe_globals"):
        pytest.skip("needs torch 2.6")
    values = [Config(0.5), Point(1, [2]), Color.RED]
    for value in values:
        with pytest.raises(JupyterDistError, match=rf"sent a \S*test_data\.{type(value).__name__}") as refused:
            sent(tmp_path / "x", value)
        assert "add_safe_globals" in refused.value.hint
    with torch.serialization.safe_globals([Config, Point, Color]):
        assert sent(tmp_path / "x", values) == values
