"""What ranks on other machines return runs no code here, and what people pull arrives as it was."""

import collections
import contextlib
import dataclasses
import datetime
import decimal
import fractions
import importlib.util
import operator
import os
import pickle
import struct
import types
import uuid
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_dist.objects import files
from jupyter_dist.protocol.errors import JupyterDistError

NOW = datetime.datetime(2026, 11, 26, 7, 30, tzinfo=datetime.timezone.utc)


@dataclasses.dataclass
class Config:
    lr: float = 0.1


def sent(path, value):
    """The value as a client that does not trust its sender gets it."""
    path.unlink(missing_ok=True)
    files.save({"x": value}, [str(path)])
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


def test_tensors_and_models_arrive_as_they_were(tmp_path):
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
    whole = sent(tmp_path / "x", model)
    assert torch.equal(whole(torch.ones(2, 3)), model(torch.ones(2, 3)))


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
    for value in (pd.Timestamp("2026-01-01"), pd.Timedelta("1s"), pd.NaT, pd.NA):
        assert repr(sent(tmp_path / "x", value)) == repr(value)


class Calls:
    """A value whose pickle calls a function."""

    def __init__(self, *reduced) -> None:
        self._reduced = reduced

    def __reduce__(self):
        return self._reduced


def attacks(marker):
    shell = f"touch {marker}"
    namespace = types.SimpleNamespace()
    yield "system", Calls(os.system, (shell,))
    yield "eval", Calls(eval, (f"__import__('os').system({shell!r})",))
    yield "exec", Calls(exec, (f"open({str(marker)!r}, 'w')",))
    yield "getattr", Calls(getattr, (0, "real"))
    yield "getter", Calls(operator.attrgetter("real"), (0,))
    yield "open", Calls(open, (str(marker), "w"))
    yield "array", Calls(np.ndarray, ((1,), np.dtype("O"), bytearray(8)))
    yield "in an array", np.array([Calls(os.system, (shell,))], object)
    yield "default", collections.defaultdict(os.getpid)
    yield "class", Config()
    yield "function", shell.upper
    yield "a change", Calls(types.SimpleNamespace, (), None, None, iter([("a", Calls(os.system, (shell,)))]))
    yield "in a namespace", types.SimpleNamespace(a=namespace, b=Calls(os.system, (shell,)))


@pytest.mark.parametrize("name", [name for name, _ in attacks(Path("x"))])
def test_a_value_that_names_other_code_is_refused_and_nothing_runs(tmp_path, name):
    marker = tmp_path / "marker"
    is_refused(tmp_path / "x", dict(attacks(marker))[name], marker)


@pytest.mark.parametrize("name", ["load", "storage"])
def test_a_value_that_names_what_loads_for_torch_is_refused_and_nothing_runs(tmp_path, name):
    import torch

    marker = tmp_path / "marker"
    inner = pickle.dumps(Calls(os.system, (f"touch {marker}",)))
    calls = {"load": (torch.load, (str(marker),)), "storage": (torch.storage._load_from_bytes, (inner,))}
    is_refused(tmp_path / "x", Calls(*calls[name]), marker)


def is_refused(path, value, marker):
    with pytest.raises(JupyterDistError, match="another machine") as refused:
        sent(path, value)
    assert refused.value.code == "cannot_receive"
    assert not marker.exists()


def test_a_dtype_that_calls_bytes_objects_is_refused(tmp_path):
    for flags, size in ((63, 8), (0, 4)):
        forgery = Calls(np.dtype, ("i8", False, True), (3, "<", None, None, None, size, 8, flags))
        with pytest.raises(JupyterDistError, match="a dtype that is not what it says"):
            sent(tmp_path / "x", forgery)


def test_a_pickle_cannot_change_a_class_or_call_what_it_has_made(tmp_path):
    import torch

    made = pickle.dumps(torch.nn.ReLU(), 5)[:-1]
    for data in (b"cuuid\nUUID\n}(X\x01\x00\x00\x00aK\x01ub.", made + b")R.", b"(cuuid\nUUID\no.", b"(iuuid\nUUID\n."):
        with pytest.raises(JupyterDistError, match=r"a change of a class|a call of ReLU|an instruction of old"):
            forged(tmp_path / "x", data)
    assert not hasattr(uuid.UUID, "a")


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_bytes_are_a_value_or_an_error_in_words(tmp_path_factory, data):
    import torch

    path = tmp_path_factory.getbasetemp() / "damaged"
    path.unlink(missing_ok=True)
    files.save({"x": [np.arange(3), torch.ones(2), {"a": 1.5}]}, [str(path)])
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
    with torch.serialization.safe_globals([Config]):
        assert sent(tmp_path / "x", Config(0.5)) == Config(0.5)
    with pytest.raises(JupyterDistError, match=r"test_restricted\.Config, which could run code here"):
        sent(tmp_path / "x", Config(0.5))


def test_an_array_of_arrow_that_would_read_beyond_its_memory_is_refused(tmp_path):
    """pandas 3 has texts in them; their offsets come from the sender."""
    import pyarrow

    offsets = pyarrow.py_buffer(struct.pack("3i", 0, 1, 1 << 30))

    class Forged:
        def __reduce__(self):
            array = (pyarrow.string(), 2, 0, 0, [None, offsets, pyarrow.py_buffer(b"ab")], [], None)
            return pyarrow.lib._restore_array, (array,)

    with pytest.raises(JupyterDistError, match=r"(?i)array|offset"):
        forged(tmp_path / "x", pickle.dumps({"x": Forged()}, 5))
