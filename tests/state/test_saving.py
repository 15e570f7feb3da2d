"""Names of cells, saved and restored: in this process, and in a new one."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import shells
import torch
from shells import Shell, restored

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.rank.state import replicas
from jupyter_dist.rank.state.process import environment


def test_shared_objects_stay_shared(shell: Shell) -> None:
    shell.run("a = [1, 2]; b = {'a': a}; c = (a, b); d = e = [3]; x = y = 1; lone = [4]")
    names = restored(shell).names
    assert names["b"]["a"] is names["a"]
    assert names["c"][0] is names["a"]
    assert names["c"][1] is names["b"]
    assert names["d"] is names["e"]
    assert names["lone"] == [4]
    assert names["x"] == names["y"] == 1


def test_tensors_share_storages_also_with_arrays(shell: Shell) -> None:
    shell.run("""
import numpy as np, torch
t = torch.arange(40000.)
u = t.view(200, 200)[3:7, ::2]
same = t
a = np.array([[0., 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
v = a[1:, ::-2]
w = torch.from_numpy(a)
row = torch.from_numpy(a[1])
n = t.numpy()
""")
    names = restored(shell).names
    assert names["same"] is names["t"]
    assert torch.equal(names["t"], torch.arange(40000.0))
    names["t"][600:620] = -1
    assert (names["u"][0, :10] == -1).all()
    assert names["u"].stride() == (200, 2)
    assert names["n"][601] == -1
    names["a"][1, 1] = 77
    assert names["v"].base is names["a"]
    assert names["v"][0, 1] == 77
    assert names["w"][1, 1] == 77
    assert names["row"][1] == 77


TENSORS = {
    "a part of a storage": "torch.arange(12.).view(3, 4)[1:, ::2]",
    "of no numbers": "torch.empty(0, 3, dtype=torch.int16)",
    "a leaf of a graph": "torch.ones(3, requires_grad=True)",
    "inside a graph": "torch.ones(3, requires_grad=True) * 2",
    "a parameter": "torch.nn.Parameter(torch.ones(2))",
    "conjugate": "torch.tensor([1 + 2j]).conj()",
    "negative": "torch.tensor([1 + 2j]).conj().imag",
    "of 8 bits": "torch.ones(3).to(torch.float8_e4m3fn)",
    "without signs": "torch.ones(3, dtype=torch.uint16)",
    "sparse": "torch.eye(3).to_sparse()",
    "nested": "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])",
    "without memory": "torch.empty(3, device='meta')",
    "quantized": "torch.quantize_per_tensor(torch.ones(3), .1, 0, torch.qint8)",
}


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.filterwarnings("ignore")  # of torch, about nested and quantized ones
def test_a_tensor_of_every_kind_is_as_it_was(shell: Shell, kind: str) -> None:
    shell.run(f"import torch; t = {TENSORS[kind]}; t.label = 'mine'; plain = {TENSORS[kind]}")
    names = restored(shell).names
    assert names["t"].label == "mine"
    for one, saved in ((names["t"], shell.names["t"]), (names["plain"], shell.names["plain"])):
        assert (type(one), one.dtype, one.layout, one.device) == (type(saved), saved.dtype, saved.layout, saved.device)
        assert (one.requires_grad, one.is_conj(), one.is_neg()) == (
            saved.requires_grad,
            saved.is_conj(),
            saved.is_neg(),
        )
        assert one.numel() == saved.numel()
        if kind not in ("nested", "sparse"):
            assert (one.size(), one.stride()) == (saved.size(), saved.stride())
            assert one.storage_offset() == saved.storage_offset()
        if kind != "without memory":
            assert str(one.detach()) == str(saved.detach())


def test_a_storage_inside_another_one_keeps_its_place(shell: Shell) -> None:
    """No array is saved that shows what they share: `from_numpy` makes a storage that begins in the middle."""
    shell.run("import torch; t = torch.arange(24.).view(4, 6); inner = torch.from_numpy(t[1:, ::2].numpy())")
    names = restored(shell).names
    assert names["inner"].tolist() == [[6, 8, 10], [12, 14, 16], [18, 20, 22]]
    names["t"][1, 2] = -1
    assert names["inner"][0, 1] == -1


def test_a_model_and_its_optimizer_go_on_alike(shell: Shell) -> None:
    shell.run("""
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
    def forward(self, x): return self.second(torch.relu(self.first(x)))
net = Net()
optimizer = torch.optim.Adam(net.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
def step():
    optimizer.zero_grad()
    loss = net(torch.rand(16, 8)).square().mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss.item()
before = [step() for _ in range(3)]
""")
    after = restored(shell)
    shell.run("losses = [step() for _ in range(3)]")
    losses = shell.names["losses"]
    after = Shell(shell.folder)
    after.restore()
    after.run("losses = [step() for _ in range(3)]; same = net.first.weight is optimizer.param_groups[0]['params'][0]")
    assert after.names["losses"] == losses
    assert after.names["same"]
    assert type(after.names["net"]) is after.names["Net"]


def test_functions_use_the_names_of_the_namespace(shell: Shell) -> None:
    shell.run("""
factor = 2
def double(x): return x * factor
def counter():
    count = 0
    def up():
        nonlocal count
        count += 1
        return count
    def value(): return count
    return up, value
up, value = counter()
up()
""")
    after = restored(shell)
    after.run("factor = 3; tripled = double(5); up(); now = value()")
    assert after.names["tripled"] == 15
    assert after.names["now"] == 2


def test_errors_in_restored_functions_show_their_cells(shell: Shell) -> None:
    shell.run("""
import functools
def careful(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)  # of careful
    return call
class Net:
    def forward(self, x):
        return divide(x)  # of Net
@careful
def divide(x):
    inner = lambda: x / 0  # of divide
    return inner()
net = Net()
""")
    shell.save()
    code = """
import inspect, sys, traceback
assert "# of divide" in inspect.getsource(inspect.unwrap(divide)), inspect.getsource(divide)
try:
    net.forward(1)
except ZeroDivisionError:
    shown = traceback.format_exc()
    assert "In[1]" in get_ipython().InteractiveTB.text(*sys.exc_info())
lines = [line.partition("#")[2] for line in shown.splitlines() if "# of" in line]
assert lines == [" of Net", " of careful", " of divide"], shown
"""
    run_in_new_process(shell.folder, code)


def test_what_cannot_be_saved_is_named_and_the_rest_is_saved(shell: Shell) -> None:
    shell.run("import threading; model = [1.0]; held = threading.Lock(); held.acquire()")
    shell.run("stream = (x for x in [1])\nholder = {'model': model, 'lock': held}")
    preview = shell.preview()
    reasons = {one["name"]: (one["reason"], one["cell"]) for one in preview.skipped}
    assert reasons["stream"] == ("it holds a generator, whose position in its code cannot be saved", 2)
    parts = {one["name"]: one["part"] for one in preview.skipped}
    assert parts["holder"] == "holder['lock']"
    assert reasons["holder"] == ("it holds a lock that is held", 2)
    assert set(reasons) == {"stream", "holder", "held"}
    names = restored(shell).names
    assert names["model"] == [1.0]
    (note,) = (one["reason"] for one in preview.notes if one["name"] == "model")
    assert note.startswith("shared objects with 'holder'")
    assert "holder" not in names


def test_values_are_alike_on_ranks_whatever_the_order_in_their_sets(shell: Shell) -> None:
    def found() -> dict[str, str]:
        answer = replicas.signatures(shell.shell, 1)["covariables"]
        return {key: one["hash"] for one in answer for key in one["keys"]}

    shell.run("some, frozen, nested, order = {0, 8}, frozenset(['a', 0, 8]), [{1: {0, 8}}, 'a'], [0, 8]")
    first = found()
    shell.run("some, frozen, nested, order = {8, 0}, frozenset(['a', 8, 0]), [{1: {8, 0}}, 'a'], [8, 0]")
    second = found()
    assert [name for name in ("some", "frozen", "nested", "order") if first[name] != second[name]] == ["order"]
    shell.run("some.add(1)")
    assert found()["some"] != second["some"]


def test_a_second_save_writes_what_changed(shell: Shell) -> None:
    shell.run("import torch; parts = [torch.rand(1 << 18) for _ in range(10)]")
    first = shell.save()
    shell.run("parts[3][7] = 5")
    second = shell.save()
    assert first.written_bytes > 10 << 20
    assert 1 << 20 <= second.written_bytes < 1.1 * (1 << 20)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in shell.folder.rglob("*") if path.is_file())


def test_results_inputs_and_random_numbers(shell: Shell) -> None:
    shell.run("import random, torch; random.seed(1); torch.manual_seed(1)")
    shell.run("[1, 2]")
    shell.save()
    numbers = "drawn = (random.random(), torch.rand(1).item())"
    shell.run(numbers)
    after = Shell(shell.folder)
    after.restore()
    after.run(f"old = Out[2]; code = In[2]; {numbers}")
    assert after.names["old"] == [1, 2]
    assert after.names["code"] == "[1, 2]"
    assert after.names["drawn"] == shell.names["drawn"]


def test_what_is_beside_the_names_is_restored(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SET_BY_A_CELL", "before")
    environment.remember()
    (tmp_path / "data").mkdir()
    shell.run("import os, torch; os.chdir('data'); os.environ['SET_BY_A_CELL'] = 'saved'; os.environ['RANK'] = '7'")
    shell.run("torch.set_default_dtype(torch.float64); torch.use_deterministic_algorithms(True, warn_only=True)")
    shell.save()
    shell.run("os.chdir('..'); os.environ['SET_BY_A_CELL'] = 'later'; os.environ['RANK'] = '3'")
    usual = "torch.set_default_dtype(torch.float32); torch.use_deterministic_algorithms(False)"
    shell.run(usual)
    assert not shell.restore().notes
    shell.run("found = (os.getcwd(), os.environ['SET_BY_A_CELL'], os.environ['RANK'], str(torch.get_default_dtype()))")
    assert shell.names["found"] == (str(tmp_path / "data"), "saved", "3", "torch.float64")
    shell.run(
        f"assert torch.is_deterministic_algorithms_warn_only_enabled(); {usual}; os.chdir('..'); del os.environ['RANK']"
    )


def test_a_full_disk_ends_a_save_and_leaves_the_chunks_of_others(shell: Shell) -> None:
    shell.run("import torch; t = torch.ones(1 << 14)")
    shell.save()
    shell.run("u = torch.rand(1 << 22)")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            shell.save()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(shell.folder.rglob("*.partial"))
    after = Shell(shell.folder)
    after.restore()
    assert after.names["t"].sum() == 1 << 14


def test_in_a_new_process(shell: Shell) -> None:
    shell.run("""
import torch, enum, dataclasses, collections.abc as abc
import json, xml.dom.pulldom
class Color(enum.Enum):
    RED = 1
@dataclasses.dataclass
class Point:
    x: int
    tensor: torch.Tensor
    color: Color = Color.RED
    def twice(self): return helper(self.x)
def helper(x): return 2 * x
class Point3(Point):
    def twice(self): return super().twice() + 1
point = Point3(4, torch.ones(3, requires_grad=True))
point.tensor.grad = torch.full((3,), 2.0)
""")
    shell.save()
    code = "assert point.twice() == 9 and point.color is Color.RED and isinstance(point, Point)"
    code += "\nassert point.tensor.grad.tolist() == [2, 2, 2] and abc.Mapping and xml.dom.pulldom"
    run_in_new_process(shell.folder, code)


def run_in_new_process(folder: Path, code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", shells.__file__, str(folder), code], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_damaged_or_missing_chunk_is_named_and_nothing_changes(shell: Shell) -> None:
    shell.run("import torch; t = torch.rand(1 << 16)")
    shell.save()
    chunk = max(shell.folder.glob("chunks/*/*"), key=lambda path: path.stat().st_size)
    data = bytearray(chunk.read_bytes())
    data[100] ^= 1
    chunk.write_bytes(data)
    shell.run("t = 5")
    with pytest.raises(JupyterDistError, match="was changed after it was saved"):
        shell.load()
    chunk.unlink()
    with pytest.raises(JupyterDistError, match="cannot be read"):
        shell.load()
    assert shell.names["t"] == 5


def test_loading_changes_nothing_until_it_is_committed(shell: Shell) -> None:
    shell.run("x = [1]")
    shell.save()
    shell.run("x = [2]; y = 3")
    loaded = shell.load()
    assert shell.names["x"] == [2]
    loaded.discard()
    assert shell.names["x"] == [2]
    shell.load().commit()
    assert shell.names["x"] == [1]
    assert shell.names["y"] == 3


KINDS = {
    "sparse tensors": (
        "import warnings; warnings.simplefilter('ignore')\nt = torch.sparse_coo_tensor([[0, 3], [1, 2]], [1., 2.], (1 << 16, 1 << 16)); c = torch.eye(3).to_sparse_csr()",
        "t._nnz() == 2 and t.shape == (1 << 16, 1 << 16) and c.layout == torch.sparse_csr",
    ),
    "tensors without memory, of small dtypes, and with lazy signs": (
        "m = torch.nn.Linear(3, 3, device='meta'); f = torch.ones(3).to(torch.float8_e4m3fn)\n"
        "z = torch.ones(3, dtype=torch.complex64); c = z.conj(); n = c.imag; u = torch.ones(2, dtype=torch.uint16)",
        "m.weight.is_meta and f.dtype == torch.float8_e4m3fn and c.is_conj() and n.is_neg() and u.dtype == torch.uint16",
    ),
    "subclasses": (
        "class T(torch.Tensor): pass\nt = torch.ones(3).as_subclass(T); t.extra = [1]\n"
        "p = torch.nn.Parameter(torch.ones(2)); p.tag = t.extra",
        "type(t) is T and p.tag is t.extra and type(p) is torch.nn.Parameter",
    ),
    "modules with parametrizations, and recurrent ones": (
        "from torch.nn.utils import parametrizations\nlayer = parametrizations.weight_norm(torch.nn.Linear(3, 3))\n"
        "recurrent = torch.nn.LSTM(3, 3); weight = recurrent.weight_ih_l0; expected = layer(torch.ones(1, 3)).tolist()",
        "layer(torch.ones(1, 3)).tolist() == expected and recurrent._flat_weights[0] is weight is recurrent.weight_ih_l0",
    ),
    "deep lists": ("d = []\nfor _ in range(10000): d = [d]", "depth(d) == 10000"),
    "circles": ("a = []; a.append(a); d = {}; d['d'] = (d, a)", "a[0] is a and d['d'][0] is d and d['d'][1] is a"),
    "random generators": (
        "import random; g = torch.Generator().manual_seed(3); r = random.Random(2); n = np.random.default_rng(1)\n"
        "s = torch.Generator(); s.set_state(g.get_state()); e = [torch.rand(1, generator=s).item()]",
        "torch.rand(1, generator=g).item() == e[0] and r.random() == random.Random(2).random()",
    ),
    "arrays": (
        "s = np.zeros(3, dtype=[('a', 'i4'), ('b', 'f8')]); v = s['a']; f = np.asfortranarray(np.ones((3, 4)))\n"
        "o = np.array([[1], 'a'], dtype=object); r = np.ones(3); r.flags.writeable = False\n"
        "b = np.broadcast_to(np.arange(3), (4, 3)); e = np.zeros((0, 3)); z = np.array(5)",
        "np.shares_memory(s, v) and f.flags.f_contiguous and f.flags.owndata and not r.flags.writeable"
        " and b.strides[0] == 0 and e.shape == (0, 3) and z == 5",
    ),
    "classes": (
        "import abc\nclass M(type):\n  def __call__(cls, *a): return super().__call__(*a)\n"
        "class C(metaclass=M):\n  known = []\n  def __init_subclass__(cls): C.known.append(cls)\n"
        "class D(C):\n  def own(self): return __class__\nd = D()\nknown = C.known\n"
        "class A(abc.ABC):\n  @abc.abstractmethod\n  def f(self): ...\nclass B(A):\n  __slots__ = ('x',)\n  def f(self): ...\n"
        "b = B(); b.x = known\nimport typing\nclass Options(typing.TypedDict, total=False):\n  size: int\n"
        "Pair = typing.NamedTuple('Pair', [('a', int)]); pair = Pair(1); options = Options(size=1)",
        "pair.a == 1 and type(pair) is Pair and Options.__optional_keys__ == {'size'} and C.known == [D] and C.known is known is b.x and d.own() is D and isinstance(b, A)",
    ),
    "slots": (
        "import dataclasses, datetime, typing\nT = typing.TypeVar('T')\nMade = type('Made', (), {'__slots__': ('a', 'b')})\n"
        "class Own(typing.Generic[T]):\n  __slots__ = ('__own', 'x')\n  def put(self, v): self.__own = v; return self\n"
        "  def get(self): return self.__own\nclass More(Own[int]):\n  __slots__ = ('__dict__', '__weakref__')\n"
        "@dataclasses.dataclass(slots=True)\nclass Data: a: int = 1\nclass Pair(typing.NamedTuple): a: int\n"
        "class Error(Exception): __slots__ = ('code',)\nclass Day(datetime.date): __slots__ = ('zone',)\n"
        "def one(kind, **slots):\n  v = kind(*([2026, 1, 1] if kind is Day else []))\n"
        "  for name, value in slots.items(): setattr(v, name, value)\n  return v\n"
        "shared = []; all = [one(Made, a=shared), Own().put(shared), Data(), Pair(1), one(type('Int', (int,), {'__slots__': ()})),"
        " one(type('Text', (), {'__slots__': 'a'}), a=shared), one(More, x=shared, more=1), one(Error, code=shared), one(Day, zone=shared)]\n"
        "def look(v): return (hasattr(v, '__dict__'), type(v).__slots__, sorted(n for n in vars(type(v)) if n != '__slotnames__'))\n"
        "looked = [look(v) for v in all]",
        "[look(v) for v in all] == looked and [hasattr(v, '__dict__') for v in all] == [False] * 6 + [True, True, False]"
        " and all[0].a is shared and all[1].get() is shared and all[6].x is all[7].code is all[8].zone is shared and all[6].more == 1",
    ),
    "what the standard library refuses": (
        "import functools, sys, threading, weakref\nclass W: pass\nw = W(); r = weakref.ref(w)\n"
        "k = weakref.WeakKeyDictionary(); k[w] = 1; lock = threading.Lock(); out = sys.stdout; names = globals()\n"
        "@functools.lru_cache\ndef cached(x): return x\nview = memoryview(buffer := bytearray(b'ab'))\n"
        "class E(Exception):\n  def __init__(self, a, b): super().__init__(a); self.b = b\nerror = E(1, 2)",
        "r() is w and k[w] == 1 and not lock.locked() and out is sys.stdout and names is globals()"
        " and cached(2) == 2 and view.obj is buffer and error.b == 2 and error.args == (1,)",
    ),
}
DEPTH = "import torch, numpy as np\ndef depth(d, n=0):\n    while d: d, n = d[0], n + 1\n    return n"


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_objects(shell: Shell, kind: str) -> None:
    made, whole = KINDS[kind]
    shell.run(DEPTH)
    shell.run(made)
    assert not shell.save().skipped
    after = Shell(shell.folder)
    assert not after.restore().failed
    after.run(f"assert {whole}")


def test_objects_in_a_chain_of_ten_thousand_are_saved_or_named(shell: Shell) -> None:
    """From Python 3.12 the interpreter limits calls through C, whatever the stack."""
    shell.run("class N: next = None\nn = None\nfor _ in range(10000):\n  m = N(); m.next = n; n = m\ngood = [1]")
    skipped = shell.save().skipped
    after = Shell(shell.folder)
    after.restore()
    assert after.names["good"] == [1]
    if sys.version_info < (3, 12) or not skipped:
        after.run("assert n is m and n.next.next.next")
    else:
        assert {one["reason"] for one in skipped} == {"its objects are nested too deep"}


HOSTILE = """
class Hostile:
    def __reduce__(self): raise SystemExit("no")
class Endless:
    def __reduce__(self): return (list, ([Endless()],))
class Unequal:
    def __eq__(self, other): raise RuntimeError("no")
    __hash__ = None
class Odd:
    def __getattr__(self, name): raise RuntimeError(name)
class Loud:
    def __del__(self): raise RuntimeError("no")
hostile, endless, unequal, odd, loud = Hostile(), Endless(), [Unequal()], Odd(), Loud()
also = unequal
file = open(__import__("os").devnull)
kept = {"hostile": hostile}
good = [1]
"""


def test_hostile_objects_harm_nothing_but_themselves(shell: Shell) -> None:
    shell.run(HOSTILE)
    skipped = {one["name"]: one["reason"] for one in shell.save().skipped}
    assert {"hostile", "endless", "file", "kept"} <= skipped.keys()
    assert skipped["endless"] == "its objects are nested too deep"
    assert skipped["file"] == "it holds an open file"
    after = Shell(shell.folder)
    after.restore()
    assert after.names["good"] == [1]
    assert after.names["also"] is after.names["unequal"]
    shell.names["file"].close()
    for one in (shell, after):
        one.run("del Loud.__del__")


def test_values_that_need_other_names_when_they_are_read(shell: Shell) -> None:
    shell.run("""
def again(text): return Text(text + suffix)
class Text:
    def __init__(self, text): self.text = text
    def __reduce__(self): return again, (self.text,)
text = Text("a")
suffix = "b"
""")
    assert restored(shell).names["text"].text == "ab"


def test_a_save_and_a_restore_keep_no_memory_of_users(shell: Shell) -> None:
    made = "import torch\nclass Net: pass\nnet = Net(); net.weight = torch.ones(1 << 15); "
    shell.run(made + "lost = Net(); lost.weight = net.weight; lost.gen = iter(Net, 1); lost.file = open('/dev/null')")
    gc.disable()
    try:
        shell.save()
        after = [weakref.ref(shell.names["net"]), weakref.ref(shell.names["net"].weight.untyped_storage())]
        shell.names["lost"].file.close()
        del shell.names["net"], shell.names["lost"]
        assert [one() for one in after] == [None, None]
        shell.restore()
        after = [weakref.ref(shell.names["net"]), weakref.ref(shell.names["net"].weight.untyped_storage())]
        del shell.names["net"]
        assert [one() for one in after] == [None, None]
    finally:
        gc.enable()


def test_two_thousand_names(shell: Shell) -> None:
    shell.run("import torch\nfor n in range(1000): globals().update({f'v{n}': [n], f't{n}': torch.ones(3) * n})")
    names = restored(shell).names
    assert all(names[f"v{n}"] == [n] and names[f"t{n}"][0] == n for n in range(1000))
    assert len(list(shell.folder.rglob("chunks/*/*"))) < 10
