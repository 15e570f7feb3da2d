"""Cells that change all kinds of objects: after undo each probe shows what it showed before, in the same objects."""

from __future__ import annotations

import atexit
import os
import sys

import pytest
from keeping import Undoable

from jupyter_dist.protocol.errors import JupyterDistError

MODEL = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 1))
optimizer = torch.optim.{}
x = torch.randn(8, 3)
def step():
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
def probe():
    state = [p.tolist() for p in model.state_dict().values()]
    grads = [p.grad.tolist() if p.grad is not None else None for p in model.parameters()]
    return state, grads, repr(optimizer.state_dict()), model.training, [m.training for m in model.modules()]
"""
ADAM = MODEL.format("AdamW(model.parameters(), lr=0.1)")
SGD = MODEL.format("SGD(model.parameters(), lr=0.1, momentum=0.9)")

CASES = {
    "names": ("a = 1; b = [2]", "a = 5; c = 6; del b", "(a, globals().get('b'), 'c' in globals())"),
    "function": ("def f(x=[1]): return x", "f().append(2); f.__defaults__ = (3,); f.extra = 1", "(f(), vars(f))"),
    "function redefined": ("def f(): return 1", "def f(): return 2", "f()"),
    "closure": (
        "def make():\n    n = 0\n    def count():\n        nonlocal n\n        n += 1\n        return n\n    return count\n"
        "c = make(); c()",
        "c(); c()",
        "c.__closure__[0].cell_contents",
    ),
    "global of a function": ("n = 0\ndef f():\n    global n\n    n += 1", "f(); f()", "n"),
    "global of a method": (
        "seen = []\nclass A:\n    def go(self): seen.append(1)\na = A()",
        "a.go()",
        "seen",
    ),
    "class": ("class A:\n    items = []", "A.items.append(1); A.new = 2; A.items = 3", "(A.items, hasattr(A, 'new'))"),
    "metaclass": (
        "class M(type):\n    def __setattr__(c, *a): raise SystemError\nclass A(metaclass=M):\n    x = [1]",
        "type.__setattr__(A, 'x', 2)",
        "A.x",
    ),
    "property": (
        "class A:\n    @property\n    def x(self): return self._x\n    @x.setter\n    def x(self, v): self._x = [v]\n"
        "a = A(); a.x = 1",
        "a.x = 2",
        "a.x",
    ),
    "instance without access": (
        "class A:\n    def __getattr__(s, n): raise SystemError\n    def __setattr__(s, n, v): raise SystemError\n"
        "    def __eq__(s, o): raise SystemError\n    def __hash__(s): raise SystemError\n    def __bool__(s): 1 / 0\n"
        "a = A(); vars(a)['x'] = 1",
        "vars(a)['x'] = 2; a2 = [a, a]",
        "vars(a)['x']",
    ),
    "module": (
        "import types\nm = types.ModuleType('own'); m.x = [1]",
        "m.x.append(2); m.y = 3",
        "(m.x, hasattr(m, 'y'))",
    ),
    "python random": ("import random; r = random.Random(1)", "random.random(); r.random()", "(random.getstate(), r.getstate())"),
    "numpy random": (
        "import numpy as np; r = np.random.default_rng(1); s = np.random.RandomState(2)",
        "np.random.rand(); r.random(); s.randn()",
        "(np.random.get_state()[1].tolist(), r.bit_generator.state, s.get_state()[1].tolist(), s.get_state()[2:])",
    ),
    "torch random": (
        "import torch; g = torch.Generator().manual_seed(1)",
        "torch.rand(1); torch.rand(1, generator=g)",
        "(torch.get_rng_state().tolist(), g.get_state().tolist())",
    ),
    "modes": (
        "import torch",
        "torch.set_grad_enabled(False); torch.set_default_dtype(torch.float64)",
        "(torch.is_grad_enabled(), torch.get_default_dtype())",
    ),
    "numpy": ("import numpy as np; a = np.arange(6.); v = a[::2]", "v += 1; a.shape = (2, 3)", "(a.tolist(), v.tolist())"),
    "numpy resized": ("import numpy as np; a = np.arange(6)", "a.resize(100, refcheck=False)", "a.tolist()"),
    "numpy objects": ("import numpy as np; a = np.array([[1], None], dtype=object)", "a[1] = 2; a[0].append(3)", "a.tolist()"),
    "numpy strided": ("import numpy as np; a = np.asfortranarray(np.eye(3))", "a[0, 2] = 7", "a.tolist()"),
    "numpy of bytes": ("import numpy as np; b = bytearray(8); a = np.frombuffer(b, 'u1')", "a[:] = 5", "(bytes(b), a.tolist())"),
    "tensor": ("import torch; t = torch.zeros(4); v = t[1:]", "t.add_(1); v.mul_(3)", "(t.tolist(), v.tolist())"),
    "tensor of numpy": ("import numpy as np, torch; a = np.zeros(3); t = torch.from_numpy(a)", "a[0] = 1; t[1] = 2", "a.tolist()"),
    "numpy of tensor": ("import torch; a = torch.zeros(3).numpy()", "a[0] = 1", "a.tolist()"),
    "data": ("import torch; t = torch.zeros(2); u = t.view(2, 1)", "t.data = torch.ones(5)", "(t.tolist(), u.tolist(), t.data_ptr() == u.data_ptr())"),
    "set_": ("import torch; t = torch.zeros(2)", "t.set_(torch.ones(5))", "t.tolist()"),
    "resize_": ("import torch; t = torch.arange(4.)", "t.resize_(1000); t.zero_()", "(t.tolist(), t.untyped_storage().nbytes())"),
    "shape": ("import torch; t = torch.arange(4.)", "t.t_(); t.unsqueeze_(0)", "(t.shape, t.tolist())"),
    "requires_grad": ("import torch; t = torch.ones(2)", "t.requires_grad_()", "(t.requires_grad, t.is_leaf)"),
    "in place with a gradient": (
        "import torch; w = torch.ones(2, requires_grad=True); t = torch.ones(2)",
        "t += w",
        "(t.tolist(), t.requires_grad, t.grad_fn)",
    ),
    "gradient": (
        "import torch; w = torch.ones(2, requires_grad=True); w.sum().backward()",
        "w.sum().backward(); g = w.grad; w.grad = None; w.square().sum().backward()",
        "(w.grad.tolist(), w.tolist(), 'g' in globals())",
    ),
    "hook": (
        "import torch; w = torch.ones(2, requires_grad=True); w.sum().backward(); w.grad = None",
        "w.register_hook(lambda g: g * 100)",
        "w._backward_hooks",
    ),
    "attribute": ("import torch; t = torch.ones(2); t.note = [1]", "t.note.append(2); t.other = 3", "vars(t)"),
    "sparse": ("import torch; t = torch.eye(3).to_sparse()", "t.mul_(5)", "t.to_dense().tolist()"),
    "bool and bfloat": ("import torch; t = torch.zeros(3, dtype=torch.bfloat16); b = t.bool()", "t += 1; b.fill_(True)", "(t.tolist(), b.tolist())"),
    "nan": ("import torch; t = torch.full((3,), float('nan'))", "t[0] = 1", "t.isnan().tolist()"),
    "module in training": (ADAM, "step(); model.eval(); step()", "probe()"),
    "second steps": (SGD + "step(); step()", "step(); step(); optimizer.param_groups[0]['lr'] = 9", "probe()"),
    "parameter replaced": (
        ADAM + "step()",
        "model[0].weight = nn.Parameter(torch.ones(4, 3)); model[3] = nn.Linear(4, 2); model.add_module('n', nn.ReLU())",
        "(probe(), len(model), id(model[0].weight))",
    ),
    "frozen": (
        ADAM,
        "for p in model.parameters(): p.requires_grad_(False)",
        "[p.requires_grad for p in model.parameters()]",
    ),
    "module hooks": (
        ADAM,
        "h = model[0].register_forward_hook(lambda *a: None); nn.modules.module.register_module_forward_hook(print)",
        "(dict(model[0]._forward_hooks), dict(nn.modules.module._global_forward_hooks))",
    ),
    "new group of parameters": (
        ADAM + "more = nn.Parameter(torch.ones(1)); step()",
        "optimizer.add_param_group({'params': [more], 'lr': 5}); step()",
        "(probe(), len(optimizer.param_groups))",
    ),
    "scheduler": (
        SGD + "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)",
        "step(); scheduler.step()",
        "(probe(), scheduler.state_dict())",
    ),
    "scaler": (
        SGD + "scaler = torch.amp.GradScaler('cpu')",
        "scaler.scale(model(x).mean()).backward(); scaler.step(optimizer); scaler.update(7.0)",
        "(probe(), scaler.state_dict())",
    ),
    "environment": (
        "import os; os.environ['UNDO_A'] = '1'",
        "os.environ['UNDO_A'] = '2'; os.environ['UNDO_B'] = '3'",
        "(os.environ['UNDO_A'], 'UNDO_B' in os.environ, os.getenv('UNDO_A'))",
    ),
    "folder and paths": (
        "import os, sys",
        "os.chdir('/'); sys.path.append('/nowhere')",
        "(os.getcwd(), list(sys.path))",
    ),
    "results": ("_oh[1] = 5; _ = 5", "_oh[2] = 6; _ = 6", "(dict(_oh), _)"),
    "weak": (
        "import weakref\nclass A:\n    x = 1\na = A(); keys = weakref.WeakKeyDictionary({a: 1}); r = weakref.ref(a)",
        "keys.clear(); r().x = 2",
        "(len(keys), a.x)",
    ),
    "exception": ("try:\n    1 / 0\nexcept ArithmeticError as err:\n    e = err", "e.note = 1", "vars(e)"),
    "dataclass": (
        "from dataclasses import dataclass\n@dataclass(slots=True)\nclass D:\n    x: list\nd = D([1])",
        "d.x.append(2); d.x = 3",
        "d.x",
    ),
    "partial": ("from functools import partial; f = partial(print, [1])", "f.args[0].append(2)", "f.args"),
    "cache": (
        "from functools import lru_cache\nn = [1]\n@lru_cache\ndef f(): return n[0]",
        "n[0] = 2; f()",
        "(n, f(), f.cache_clear())",
    ),
    "context variable": ("from contextvars import ContextVar; v = ContextVar('v'); v.set([1])", "v.get().append(2); v.set(3)", "v.get()"),
    "bound in C": ("d = {}; l = []; put = d.__setitem__; append = l.append", "put(1, 2); append(3)", "(d, l)"),
    "memoryview": ("b = bytearray(3); m = memoryview(b)", "m[0] = 1", "bytes(b)"),
    "builtins": ("import builtins", "builtins.print = len; builtins.undo_c = 1", "(print, hasattr(builtins, 'undo_c'))"),
    "metaclass with state": (
        "made = []\nclass M(type):\n    def __call__(c):\n        made.append(1)\nclass A(metaclass=M): pass",
        "A()",
        "made",
    ),
    "library": (
        "import torch; from torch import nn",
        "nn.functional.relu = len; nn.Linear.forward = len; torch.undo_x = 1; torch.nn.Linear.undo_y = 2",
        "(nn.functional.relu, nn.Linear.forward, hasattr(torch, 'undo_x'), hasattr(nn.Linear, 'undo_y'))",
    ),
    "settings": (
        "import numpy as np, torch",
        "np.seterr(all='ignore'); torch.set_float32_matmul_precision('medium'); torch.set_num_threads(1)",
        "(np.geterr(), torch.get_float32_matmul_precision(), torch.get_num_threads())",
    ),
    "table": (
        "import pandas as pd; t = pd.DataFrame({'a': [1, 2], 'b': [1.5, 2.5], 'c': ['x', 'y']}); s = t['a']; i = t.index",
        "t['d'] = 1; t.loc[0, 'a'] = 7; del t['b']; t.loc[1, 'c'] = 'q'; t.index = [5, 6]; s.iloc[0] = 9",
        "(t.to_dict(), s.tolist(), list(t.columns))",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _same_process():
    folder = os.getcwd()
    yield
    os.chdir(folder)
    for name in ("UNDO_A", "UNDO_B"):
        os.environ.pop(name, None)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("kind", CASES)
def test_a_cell_that_changed_it_is_undone(kind: str, times: int) -> None:
    setup, cell, probe = CASES[kind]
    space = Undoable()
    space.run(setup)
    before, seen = _ids(space), repr(eval(probe, space.names))
    for _ in range(times):
        space.run(cell)
        assert space.last["kept"] == ["e1", f"e{space.count}"], space.last
        assert repr(eval(probe, space.names)) != seen  # the cell changes what the probe shows
        assert space.undo() == []
        assert repr(eval(probe, space.names)) == seen
        assert _ids(space) == before


def _ids(space: Undoable) -> dict[str, int]:
    return {name: id(item) for name, item in space.names.items()}


def test_losses_are_the_same_when_cells_run_again() -> None:
    space = Undoable()
    space.run(ADAM + "losses = []")
    for _ in range(3):
        for _ in range(3):
            space.run("losses.append(step())")
        losses = list(space["losses"])
        space.undo(3)
        assert space["losses"] == []
        for _ in range(3):
            space.run("losses.append(step())")
        assert space["losses"] == losses
        space.undo(3)


def test_a_graph_from_before_the_cell_can_be_used_after_undo() -> None:
    space = Undoable()
    space.run("import torch; w = torch.ones(2, requires_grad=True); loss = w.square().sum()")
    space.run("with torch.no_grad(): w.mul_(3)")
    space.undo()
    space.run("loss.backward(); g = w.grad.tolist()")
    assert space["g"] == [2.0, 2.0]
    assert "frees the graph" in " ".join(space.last["cell"]["not_kept"])


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        ("g = (i for i in range(3))", "`g`: a generator keeps its place"),
        ("i = iter([1, 2])", "`i`: a list iterator keeps its place"),
        ("t = __import__('threading').Thread(target=len)", "`t`: a thread runs on"),
        ("p = __import__('subprocess').Popen(['true']); p.wait()", "`p`: a process runs on"),
        ("c = __import__('ctypes').c_int(1)", "`c`: a ctypes.c_int, whose contents cannot be read"),
        ("f = open('/dev/null')", "`f`: an open file keeps its position and its contents"),
        ("import socket; s = [socket.socket()]", "`s`: a socket keeps its connection"),
    ],
)
def test_what_cannot_be_kept_is_named_before_and_by_undo(setup: str, words: str) -> None:
    space = Undoable()
    space.run(setup)
    name = words[1]
    space.run(f"{name}; a = 1")
    assert words in space.last["cell"]["not_kept"]
    assert words in space.undo()
    closing = space[name][0] if name == "s" else space[name]
    getattr(closing, "close", lambda: None)()


EVERYDAY = """
import collections, ctypes, dataclasses, decimal, enum, functools, json, operator, re, struct, threading, typing, uuid, weakref
Pair = collections.namedtuple("Pair", "left right")
class Row(typing.NamedTuple):
    a: int = 1
class Color(enum.IntFlag):
    RED = 1
@dataclasses.dataclass(slots=True)
class Config:
    lr: float = 0.1
class Header(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_int)]
class Model(typing.Generic[typing.TypeVar("T")]):
    @functools.cached_property
    def size(self): return 1
    @functools.singledispatchmethod
    def forward(self, x): return x
    @functools.lru_cache
    def cached(self): return 1
    log = functools.partialmethod(print, 1)
values = [
    Pair(1, [2]), Row(), Color.RED, Config(), Model(), Model[int], struct.Struct("<i"), json.JSONEncoder(), json.JSONDecoder(), re.compile("a"),
    decimal.Context(), uuid.uuid4(), operator.itemgetter(1), operator.methodcaller("a"), threading.Lock(), threading.Condition(),
    weakref.WeakValueDictionary(), functools.partial(print), functools.cmp_to_key(len), collections.ChainMap({}), int | None, list[int],
]
"""


def test_everyday_objects_of_the_standard_library_are_not_said_to_be_lost() -> None:
    space = Undoable()
    space.run(EVERYDAY)
    space.run("values, Header")
    assert space.last["cell"]["not_kept"] == []


def test_a_graph_that_a_cell_extended_in_place_is_refused() -> None:
    space = Undoable()
    space.run("import torch; w = torch.ones(2, requires_grad=True); h = w * 2")
    space.run("h.add_(w)")
    with pytest.raises(JupyterDistError, match="changed in place, so its graph is another one now") as refused:
        space.undo()
    assert refused.value.code == "cannot_undo"


def test_a_cell_without_undo_ends_what_is_kept() -> None:
    space = Undoable()
    first = space.run("a = [1]")
    space.run("a.append(2)", keep=False)
    assert space.last["kept"] == []
    with pytest.raises(JupyterDistError, match="A cell ran after it that did not keep undo"):
        space.keeper.undo([first])


def test_a_request_between_cells_is_undone_with_the_cell_before_it() -> None:
    space = Undoable()
    space.run("a = [1]")
    space.run("a.append(2)")
    space.run("a.append(3)", keep=False, silent=True)
    assert space.last["kept"] == ["e1", "e2"]
    space.undo()
    assert space["a"] == [1]


def test_the_oldest_cells_go_first() -> None:
    space = Undoable({"cells": 2, "bytes": 1 << 30})
    first = space.run("a = 1")
    space.run("a = 2")
    space.run("a = 3")
    assert space.last["kept"] == ["e2", "e3"]
    with pytest.raises(JupyterDistError, match="More cells ran after it than are kept"):
        space.keeper.undo([first])


def test_memory_is_limited_and_given_back() -> None:
    space = Undoable({"cells": 50, "bytes": 3 << 20})
    space.run("import torch; t = torch.zeros(1 << 18)")
    for _ in range(6):
        space.run("t.add_(1)")
    assert 1 < len(space.last["kept"]) < 6
    assert space.keeper._held.num_bytes <= 3 << 20
    space.run("big = torch.zeros(1 << 20)")
    space.run("big.add_(1)")
    assert space.last["kept"] == []
    assert "the limit is 3 MiB" in space.last["cell"]["reason"]
    assert space.keeper._held.num_bytes == 0


@pytest.mark.parametrize("compares", ["by hash", "by bytes", "as on a device"])
def test_what_did_not_change_is_kept_once(compares: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from jupyter_dist.parts.undo.rank import walk
    from jupyter_dist.parts.undo.rank.states import memory

    if compares == "by bytes":  # the user's environment lacks xxhash
        monkeypatch.setattr(memory, "fast_hash", lambda: None)
    if compares == "as on a device":
        monkeypatch.setattr(walk, "StorageBytes", memory.DeviceBytes)
    space = Undoable()
    space.run("import torch; t = torch.zeros(3 << 20); n = t[1 << 20:].numpy(); u = torch.zeros(4)")
    space.run("t; u.add_(1)")
    assert space.last["cell"]["bytes"] > 12 << 20
    space.run("n[5] = 7")  # no counter of torch sees it
    assert space.last["cell"]["bytes"] < 1 << 20
    space.run("t; u.add_(1)")
    assert 4 << 20 <= space.last["cell"]["bytes"] < 5 << 20  # the changed piece of three
    space.undo(2)
    assert not space["t"].any()


def test_cells_reach_only_what_they_name() -> None:
    space = Undoable()
    space.run("import torch; t = torch.zeros(1 << 20); u = torch.zeros(4)\ndef f(): return t")
    space.run("u.add_(1)")
    assert space.last["cell"]["bytes"] < 1 << 20
    for cell in ("f()", "globals()['t']", "[].__class__.__base__.__subclasses__()", "import gc", "eval('t')"):
        space = Undoable()
        space.run("import torch; t = torch.zeros(1 << 20)\ndef f(): return t")
        space.run(cell)
        assert space.last["cell"]["bytes"] > 4 << 20, cell


def test_functions_behind_an_iterator_are_reached() -> None:
    space = Undoable()
    space.run("seen = []\ndef f(n): seen.append(n)\nm = map(f, [1, 2])\ng = (f(n) for n in [1, 2])")
    space.run("next(m); next(g)")
    assert space["seen"] == [1, 1]
    space.undo()
    assert space["seen"] == []


def test_views_with_gaps_of_memory_of_no_object() -> None:
    space = Undoable()
    space.run("import ctypes, numpy as np; a = np.ctypeslib.as_array((ctypes.c_int * 6)())[::2]")
    space.run("a += 1")
    space.undo()
    assert space["a"].tolist() == [0, 0, 0]


def test_no_torch_function_of_users_runs() -> None:
    cells = Undoable()
    cells.run(
        "import torch\nclass Trapped(torch.Tensor):\n"
        "    @classmethod\n    def __torch_function__(cls, *_, **__): raise SystemExit('torch function')\n"
        "whole = torch.zeros(4)\ntrapped = whole[:2].as_subclass(Trapped)",
        keep=False,
    )
    for _ in range(2):
        cells.run("whole += 1; globals()['trapped']")
        assert cells.last["cell"]["not_kept"] == []
    assert cells.undo(2) == []
    assert cells["whole"].tolist() == [0.0] * 4


LIBRARIES = {
    "at_import": "import atexit\natexit.register(int)\ndef quiet(): pass",
    "by_function": "import atexit\ndef begin(): atexit.register(int)",
    "of_both": "import atexit\natexit.register(int)\ndef begin(): atexit.register(int)",
    "in_import": "import by_function_2\nby_function_2.begin()",
    "by_function_2": "import atexit\ndef begin(): atexit.register(int)",
}


@pytest.mark.parametrize(
    ("cell", "is_named"),
    [
        ("import at_import; at_import.quiet()", False),
        ("import by_function", False),
        ("import by_function; by_function.begin()", True),
        ("import of_both; of_both.begin()", True),
        ("import at_import, by_function; by_function.begin()", True),
        ("import in_import", True),  # who called the function is not known
    ],
)
def test_a_function_for_the_end_of_the_process_is_named_whoever_registered_it(tmp_path, monkeypatch, cell, is_named):
    """But for libraries that do so while they are imported: they stay imported, too."""
    for name, text in LIBRARIES.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    space = Undoable()
    space.run("a = []")
    space.run(f"{cell}\na.append(1)")
    named = [one for one in space.undo() if "atexit.register" in one]
    atexit.unregister(int)
    for name in LIBRARIES:
        sys.modules.pop(name, None)
    assert (space["a"], bool(named)) == ([], is_named)
