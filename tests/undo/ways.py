"""Ways in which a cell changes a list without naming it, and states that cells change: each is undone, named or refused.

The set-up runs in a cell before; what it leaves in libraries is taken back by the last part, after the undo.
"""

from __future__ import annotations

# The list is `hist`; a cell of the set-up may name it, the changing cell mostly does not.
WAYS: dict[str, tuple[str, ...]] = {
    "by name": ("", "hist.append(1)"),
    "another name": ("other = hist", "other.append(1)"),
    "in a dictionary": ("d = {'h': hist}", "d['h'].append(1)"),
    "in a tuple": ("t = (1, hist)", "t[1].append(1)"),
    "in a frozenset's member": (
        "class Box:\n    def __init__(s, v): s.v = v\nfs = frozenset([Box(hist)])",
        "next(iter(fs)).v.append(1)",
    ),
    "attribute": ("class A: pass\na = A(); a.h = hist", "a.h.append(1)"),
    "slot": ("class S:\n    __slots__ = ('h',)\ns = S(); s.h = hist", "s.h.append(1)"),
    "class attribute": ("class C: h = hist", "C.h.append(1)"),
    "attribute of a base class": ("class Base: h = hist\nclass Sub(Base): pass\nsub = Sub()", "sub.h.append(1)"),
    "metaclass": ("class M(type):\n    def add(c): hist.append(1)\nclass K(metaclass=M): pass", "K.add()"),
    "function": ("def f(): hist.append(1)", "f()"),
    "function of a function": ("def f(): hist.append(1)\ndef g(): f()", "g()"),
    "lambda": ("f = lambda: hist.append(1)", "f()"),
    "default": ("def f(x, h=hist): h.append(x)", "f(1)"),
    "keyword default": ("def f(x, *, h=hist): h.append(x)", "f(1)"),
    "closure": ("def make(h):\n    def f(): h.append(1)\n    return f\nf = make(hist)", "f()"),
    "attribute of a function": ("def f(): pass\nf.h = hist", "f.h.append(1)"),
    "annotations": ("def f(x: hist): pass", "f.__annotations__['x'].append(1)"),
    "method": ("class A:\n    def go(s): hist.append(1)\na = A()", "a.go()"),
    "bound method": ("class A:\n    def go(s): hist.append(1)\ngo = A().go", "go()"),
    "bound method of C": ("add = hist.append", "add(1)"),
    "method wrapper": ("add = hist.__iadd__", "add([1])"),
    "partial": ("import functools\np = functools.partial(list.append, hist, 1)", "p()"),
    "partialmethod": (
        "import functools\nclass A:\n    def go(s, x): hist.append(x)\n    one = functools.partialmethod(go, 1)\na = A()",
        "a.one()",
    ),
    "property": ("class A:\n    @property\n    def x(s): hist.append(1)\na = A()", "a.x"),
    "descriptor": ("class D:\n    def __get__(s, o, t): hist.append(1)\nclass A: x = D()\na = A()", "a.x"),
    "cached property": (
        "import functools\nclass A:\n    @functools.cached_property\n    def x(s): hist.append(1)\na = A()",
        "a.x",
    ),
    "__getattr__": ("class A:\n    def __getattr__(s, n): hist.append(n)\na = A()", "a.anything"),
    "__del__": ("class A:\n    def __del__(s): hist.append(1)\na = A()", "del a"),
    "finalizer": ("import weakref\nclass A: pass\na = A(); fin = weakref.finalize(a, hist.append, 1)", "del a"),
    "weak reference's callback": (
        "import weakref\nclass A: pass\na = A(); r = weakref.ref(a, lambda _: hist.append(1))",
        "del a",
    ),
    "operator": ("class A:\n    def __add__(s, o): hist.append(1)\na = A()", "a + 1"),
    "context manager": (
        "import contextlib\n@contextlib.contextmanager\ndef cm():\n    hist.append(1); yield",
        "with cm(): pass",
    ),
    "exit stack": ("import contextlib\nst = contextlib.ExitStack(); st.callback(hist.append, 1)", "st.close()"),
    "decorator": (
        "import functools\ndef deco(f):\n    @functools.wraps(f)\n    def g(): hist.append(1); return f()\n    return g\n@deco\ndef f(): pass",
        "f()",
    ),
    "singledispatch": (
        "import functools\n@functools.singledispatch\ndef f(x): pass\n@f.register\ndef _(x: int): hist.append(x)",
        "f(1)",
    ),
    "lru_cache": ("import functools\n@functools.lru_cache\ndef f(x): hist.append(x)", "f(1)"),
    "cmp_to_key": (
        "import functools\nk = functools.cmp_to_key(lambda a, b: hist.append(1) or 0)",
        "sorted([1, 2], key=k)",
    ),
    "generator": ("def gen():\n    while True: hist.append(1); yield\ng = gen()", "next(g)"),
    "map": ("m = map(hist.append, [1, 2])", "next(m)"),
    "filter": ("m = filter(lambda x: hist.append(x), [1, 2])", "list(m)"),
    "iterator of a callable": ("m = iter(lambda: hist.append(1), 5)", "next(m)"),
    "itertools": ("import itertools\nm = itertools.starmap(lambda x: hist.append(x), [(1,), (2,)])", "next(m)"),
    "accumulate": ("import itertools\nm = itertools.accumulate([1, 2], lambda a, b: hist.append(b))", "list(m)"),
    "coroutine": ("async def go(): hist.append(1)\nco = go()", "try: co.send(None)\nexcept StopIteration: pass"),
    "globals": ("", "globals()['hist'].append(1)"),
    "kept globals": ("ns = globals()", "ns['hist'].append(1)"),
    "kept globals in a list": ("nss = [globals()]", "nss[0]['hist'].append(1)"),
    "vars of main": ("import __main__ as main", "main.hist.append(1)"),
    "eval": ("", "eval('hist.append(1)')"),
    "kept eval": ("e = eval", "e('hist.append(1)')"),
    "kept exec": ("d = {'r': exec}", "d['r']('hist.append(1)')"),
    "partial of eval": ("import functools\nev = functools.partial(eval, 'hist.append(1)', globals())", "ev()"),
    "compiled code": (
        "import types\ncode_ = compile('hist.append(1)', 'x', 'exec'); fn = types.FunctionType(code_, globals())",
        "fn()",
    ),
    "kept exception": (
        "try: 1 / 0\nexcept Exception as err: kept = err",
        "kept.__traceback__.tb_frame.f_globals['hist'].append(1)",
    ),
    "locals of a kept exception": (
        "def fails():\n    mine = hist\n    1 / 0\ntry: fails()\nexcept Exception as err: kept = err",
        "kept.__traceback__.tb_next.tb_frame.f_locals['mine'].append(1)",
    ),
    "kept frame": ("import inspect\nfr = inspect.currentframe()", "fr.f_globals['hist'].append(1)"),
    "kept get_ipython": (
        "try: ip = get_ipython()\nexcept NameError: ip = globals()",
        "getattr(ip, 'user_ns', ip)['hist'].append(1)",
    ),
    "globals of a function": ("def f(): pass", "f.__globals__['hist'].append(1)"),
    "getattr of globals": ("def f(): pass\nname = '__glob' 'als__'", "getattr(f, name)['hist'].append(1)"),
    "referrers": ("import gc", "[d for d in gc.get_referrers(hist) if isinstance(d, dict)][0]['hist'].append(1)"),
    "mapping proxy": ("import types\nmp = types.MappingProxyType({'h': hist})", "mp['h'].append(1)"),
    "chain map": ("import collections\ncm = collections.ChainMap({'h': hist})", "cm['h'].append(1)"),
    "named tuple": ("import collections\nP = collections.namedtuple('P', 'h'); p = P(hist)", "p.h.append(1)"),
    "dataclass": ("import dataclasses\n@dataclasses.dataclass\nclass D: h: list\nd = D(hist)", "d.h.append(1)"),
    "enum": ("import enum\nclass E(enum.Enum): H = hist", "E.H.value.append(1)"),
    "simple namespace": ("import types\nsn = types.SimpleNamespace(h=hist)", "sn.h.append(1)"),
    "slice": ("sl = slice(hist, None)", "sl.start.append(1)"),
    "queue": ("import queue\nq = queue.Queue(); q.put(hist)", "q.queue[0].append(1)"),
    "simple queue": ("import queue\nq = queue.SimpleQueue(); q.put(hist)", "q.get(block=False).append(1)"),
    "asyncio queue": ("import asyncio\nq = asyncio.Queue(); q.put_nowait(hist)", "q.get_nowait().append(1)"),
    "context variable": ("import contextvars\ncv = contextvars.ContextVar('cv'); cv.set(hist)", "cv.get().append(1)"),
    "kept context": (
        "import contextvars\ncv = contextvars.ContextVar('cv2'); ctx = contextvars.copy_context(); ctx.run(cv.set, hist)",
        "ctx[cv].append(1)",
    ),
    "thread local": ("import threading\ntl = threading.local(); tl.h = hist", "tl.h.append(1)"),
    "weak dictionary": (
        "import weakref\nclass A: pass\nkey = A(); wk = weakref.WeakKeyDictionary({key: hist})",
        "wk[key].append(1)",
    ),
    "array of objects": ("import numpy as np\narr = np.empty(1, dtype=object); arr[0] = hist", "arr[0].append(1)"),
    "frompyfunc": ("import numpy as np\nuf = np.frompyfunc(lambda x: hist.append(x), 1, 1)", "uf([1])"),
    "vectorize": ("import numpy as np\nvf = np.vectorize(lambda x: hist.append(x) or 0)", "vf([1])"),
    "series of objects": ("import pandas as pd\ncolumn = pd.Series([hist], dtype=object)", "column.iloc[0].append(1)"),
    "attrs of a table": (
        "import pandas as pd\ndf = pd.DataFrame({'a': [1]}); df.attrs['h'] = hist",
        "df.attrs['h'].append(1)",
    ),
    "ctypes callback": ("import ctypes\ncb = ctypes.CFUNCTYPE(None)(lambda: hist.append(1))", "cb()"),
    "py_object": ("import ctypes\npo = ctypes.py_object(hist)", "po.value.append(1)"),
    "sqlite function": (
        "import sqlite3\ndb = sqlite3.connect(':memory:'); db.create_function('f', 0, lambda: hist.append(1))",
        "db.execute('select f()').fetchall()",
    ),
    "own module": ("import types\nmod = types.ModuleType('mine'); mod.h = hist", "mod.h.append(1)"),
    "module hook": (
        "import torch\nnet = torch.nn.Linear(2, 2); net.register_forward_hook(lambda *a: hist.append(1))",
        "net(torch.ones(2))",
    ),
    "tensor hook": (
        "import torch\nw = torch.ones(2, requires_grad=True); w.register_hook(lambda g: hist.append(1))",
        "w.sum().backward()",
    ),
    "autograd function": (
        "import torch\nclass F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x): hist.append(1); return x\n"
        "    @staticmethod\n    def backward(ctx, g): return g",
        "F.apply(torch.ones(1))",
    ),
    "optimizer hook": (
        "import torch\nopt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=.1); opt.register_step_post_hook(lambda *a: hist.append(1))",
        "opt.step()",
    ),
    "collate of a loader": (
        "import torch\ndl = torch.utils.data.DataLoader([1, 2], collate_fn=lambda b: hist.append(1))",
        "list(dl)",
    ),
    "lambda scheduler": (
        "import torch\nopt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=.1)\n"
        "sch = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: hist.append(e) or 1.0)",
        "opt.step(); sch.step()",
    ),
    "subclass of tensor": (
        "import torch\nclass T(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, f, t, a=(), k=None):\n        hist.append(1)\n"
        "        return super().__torch_function__(f, t, a, k or {})\ntt = torch.ones(1).as_subclass(T)",
        "tt + 1",
    ),
    "global module hook": (
        "import torch\nnet = torch.nn.Linear(2, 2); hk = torch.nn.modules.module.register_module_forward_hook(lambda *a: hist.append(1))",
        "net(torch.ones(2))",
        "hk.remove()",
    ),
    "method of torch replaced": (
        "import torch\nnet = torch.nn.Linear(2, 2); old = torch.nn.Linear.forward\n"
        "def patched(self, x): hist.append(1); return old(self, x)\ntorch.nn.Linear.forward = patched",
        "net(torch.ones(2))",
        "torch.nn.Linear.forward = old",
    ),
    "custom operator": (
        "import torch\n@torch.library.custom_op('ways::op', mutates_args=())\ndef op(x: torch.Tensor) -> torch.Tensor:\n    hist.append(1); return x.clone()\n"
        "packet = torch.ops.ways.op.default",
        "packet(torch.ones(1))",
    ),
    "named logger": (
        "import logging\nclass H(logging.Handler):\n    def emit(self, r): hist.append(1)\nlogging.getLogger('ways').addHandler(H()); logging.getLogger('ways').setLevel(10)",
        "logging.getLogger('ways').info('x')",
        "logging.getLogger('ways').handlers.clear()",
    ),
    "filter of a named logger": (
        "import logging\ndef only(r): hist.append(1); return False\nlogging.getLogger('ways2').addFilter(only)",
        "logging.getLogger('ways2').warning('x')",
        "logging.getLogger('ways2').filters.clear()",
    ),
    "logger in a name": (
        "import logging\nclass H2(logging.Handler):\n    def emit(self, r): hist.append(1)\nlog = logging.getLogger('ways3'); log.addHandler(H2()); log.setLevel(10)",
        "log.info('x')",
        "log.handlers.clear()",
    ),
    "showwarning": (
        "import warnings\nold = warnings.showwarning\nwarnings.showwarning = lambda *a, **k: hist.append(1)",
        "with warnings.catch_warnings():\n    warnings.simplefilter('always'); warnings.showwarning = warnings.showwarning\n    warnings.warn('x')",
        "warnings.showwarning = old",
    ),
    "json encoder": (
        "import json\nold = json.JSONEncoder.default\njson.JSONEncoder.default = lambda s, o: hist.append(1) or 0",
        "json.dumps(object())",
        "json.JSONEncoder.default = old",
    ),
    "seterrcall": (
        "import numpy as np\nold = np.seterrcall(lambda *a: hist.append(1)); olds = np.seterr(all='call')",
        "np.array([1.0]) / np.array([0.0])",
        "np.seterrcall(old); np.seterr(**olds)",
    ),
    "copyreg": (
        "import copy, copyreg\nclass B: pass\nb = B()\ndef red(o): hist.append(1); return (B, ())\ncopyreg.pickle(B, red)",
        "copy.copy(b)",
        "del copyreg.dispatch_table[B]",
    ),
    "accessor of tables": (
        "import pandas as pd\n@pd.api.extensions.register_dataframe_accessor('ways')\nclass Acc:\n    def __init__(s, o): hist.append(1)\ndf = pd.DataFrame({'a': [1]})",
        "df.ways",
        "del pd.DataFrame.ways",
    ),
    "codec": (
        "import codecs\ndef look(n):\n    if n == 'waysx': hist.append(1)\ncodecs.register(look)",
        "try: 'a'.encode('waysx')\nexcept LookupError: pass",
        "codecs.unregister(look)",
    ),
    "error handler": (
        "import codecs\ndef bad(e): hist.append(1); return ('', e.end)\ncodecs.register_error('waysbad', bad)",
        "b'\\xff'.decode('ascii', 'waysbad')",
    ),
    "finder": (
        "import sys\nclass Finder:\n    @staticmethod\n    def find_spec(n, p=None, t=None): hist.append(1)\nsys.meta_path.append(Finder)",
        "try: import nothing_of_this_name\nexcept ImportError: pass",
        "sys.meta_path.remove(Finder)",
    ),
    "builtin replaced": (
        "import builtins\nold = builtins.print\nbuiltins.print = lambda *a, **k: hist.append(1)",
        "print('x')",
        "builtins.print = old",
    ),
    "display hook": (
        "import sys\nold = sys.excepthook\nsys.excepthook = lambda *a: hist.append(1)",
        "sys.excepthook(ValueError, ValueError(), None)",
        "sys.excepthook = old",
    ),
    "audit of a thread that ended": (
        "import threading\nth = threading.Thread(target=hist.append, args=(1,))",
        "th.start(); th.join()",
    ),
    "abc hook": (
        "import abc\nclass Abc(abc.ABC):\n    @classmethod\n    def __subclasshook__(cls, c): hist.append(1); return NotImplemented\nclass Other: pass",
        "isinstance(Other(), Abc)",
    ),
    "trace function": (
        "import sys\ndef tr(f, e, a): hist.append(1)\ndef f(): pass",
        "sys.settrace(tr); f(); sys.settrace(None)",
    ),
    "profile in a name": (
        "import sys\nsp = sys.setprofile\ndef pr(f, e, a): hist.append(1)\ndef f(): pass",
        "sp(pr); f(); sp(None)",
    ),
}

# A state: how it is made, changed and shown.
STATES: dict[str, tuple[str, ...]] = {
    "storage": ("import torch\ns = torch.zeros(2).untyped_storage()", "s.fill_(1)", "list(s)"),
    "typed storage": (
        "import torch\ns = torch.zeros(2)._typed_storage()",
        "s._untyped_storage.fill_(1)",
        "s._untyped_storage.tolist()",
    ),
    "decimal context": ("import decimal\nc = decimal.Context()", "c.prec = 5; c.divide(1, 3)", "(c.prec, c.flags)"),
    "global decimal context": ("import decimal", "decimal.getcontext().prec = 7", "decimal.getcontext().prec"),
    "asyncio event": ("import asyncio\nev = asyncio.Event()", "ev.set()", "ev.is_set()"),
    "asyncio queue": ("import asyncio\nq = asyncio.Queue()", "q.put_nowait(1)", "q.qsize()"),
    "asyncio lock": ("import asyncio\nlk = asyncio.Semaphore(2)", "lk._value -= 1", "lk._value"),
    "lock": ("import threading\nlk = threading.Lock()", "_ = lk.acquire()", "lk.locked()"),
    "rlock": ("import threading\nlk = threading.RLock()", "_ = lk.acquire()", "'count=0' in repr(lk)"),
    "event": ("import threading\nev = threading.Event()", "ev.set()", "ev.is_set()"),
    "context run": (
        "import contextvars\ncv = contextvars.ContextVar('c1'); ctx = contextvars.Context()",
        "ctx.run(cv.set, 1)",
        "len(ctx)",
    ),
    "context variable": (
        "import contextvars\ncv = contextvars.ContextVar('c2', default=0); cv.set(1)",
        "cv.set(2)",
        "cv.get()",
    ),
    "seed sequence": ("import numpy as np\nss = np.random.SeedSequence(1)", "ss.spawn(2)", "ss.n_children_spawned"),
    "scripted module": (
        "import torch\nclass N(torch.nn.Module):\n    def __init__(s):\n        super().__init__(); s.n = 1\n    def forward(s, x): return x\nm = torch.jit.script(N())",
        "m.n = 5",
        "m.n",
    ),
    "list in a slice": ("sl = slice([], None)", "sl.start.append(1)", "sl.start"),
    "generator of numpy": (
        "import numpy as np\nr = np.random.default_rng(1)",
        "r.random()",
        "r.bit_generator.state['state']['state']",
    ),
    "generator of torch": (
        "import torch\ng = torch.Generator().manual_seed(1)",
        "torch.rand(1, generator=g)",
        "g.get_state().sum().item()",
    ),
    "global generators": (
        "import random, torch, numpy as np",
        "random.random(); torch.rand(1); np.random.rand()",
        "(random.getstate()[1][:3], torch.get_rng_state().sum().item())",
    ),
    "print options of numpy": (
        "import numpy as np",
        "np.set_printoptions(precision=2)",
        "np.get_printoptions()['precision']",
    ),
    "print options of torch": (
        "import torch",
        "torch.set_printoptions(precision=2)",
        "str(torch.tensor([1.23456789]))",
    ),
    "options of pandas": (
        "import pandas as pd",
        "pd.set_option('display.max_rows', 5)",
        "pd.get_option('display.max_rows')",
    ),
    "recursion limit": ("import sys", "sys.setrecursionlimit(3000)", "sys.getrecursionlimit()"),
    "warnings": ("import warnings", "warnings.simplefilter('ignore', ResourceWarning)", "warnings.filters"),
    "level of a logger": ("import logging", "logging.getLogger('st1').setLevel(7)", "logging.getLogger('st1').level"),
    "handler of a logger": (
        "import logging",
        "logging.getLogger('st2').addHandler(logging.NullHandler())",
        "len(logging.getLogger('st2').handlers)",
    ),
    "grad mode": ("import torch", "torch.set_grad_enabled(False)", "torch.is_grad_enabled()"),
    "default type": ("import torch", "torch.set_default_dtype(torch.float64)", "torch.get_default_dtype()"),
    "autocast": ("import torch", "torch.set_autocast_enabled('cpu', True)", "torch.is_autocast_enabled('cpu')"),
    "environment": ("import os", "os.environ['WAYS'] = '1'", "os.environ.get('WAYS')"),
    "search path": ("import sys", "sys.path.insert(0, '/ways')", "sys.path[0]"),
    "locale": (
        "import locale",
        "locale.setlocale(locale.LC_NUMERIC, 'C.UTF-8')",
        "locale.setlocale(locale.LC_NUMERIC)",
    ),
    "switch interval": ("import sys", "sys.setswitchinterval(0.01)", "sys.getswitchinterval()"),
    "umask": ("import os", "_ = os.umask(0o77)", "open('/proc/self/status').read().split('Umask:')[1].split()[0]"),
    "file position": ("f = open('/etc/hostname'); n0 = f.tell()", "_ = f.read(2)", "f.tell()"),
    "string buffer": ("import io\nb = io.StringIO(); b.write('a')", "b.write('b')", "b.getvalue()"),
    "bytes buffer": ("import io\nb = io.BytesIO(b'a')", "b.write(b'bb')", "b.getvalue()"),
    "deque": ("import collections\nd = collections.deque([1, 2])", "d.rotate(1)", "d"),
    "ordered dictionary": ("import collections\nd = collections.OrderedDict(a=1, b=2)", "d.move_to_end('a')", "d"),
    "counter": ("import collections\nd = collections.Counter('aab')", "d.update('b')", "d"),
    "iterator": ("it = iter([1, 2, 3])", "next(it)", "it.__length_hint__()"),
    "count": ("import itertools\nit = itertools.count()", "next(it)", "it"),
    "ctypes": ("import ctypes\nc = ctypes.c_int(1)", "c.value = 2", "c.value"),
    "struct of ctypes": (
        "import ctypes\nclass P(ctypes.Structure):\n    _fields_ = [('x', ctypes.c_int)]\np = P(1)",
        "p.x = 2",
        "p.x",
    ),
    "memory map": ("import mmap\nmm = mmap.mmap(-1, 16)", "mm[0] = 7", "mm[0]"),
    "hash": ("import hashlib\nh = hashlib.sha256()", "h.update(b'a')", "h.hexdigest()"),
    "compressor": ("import zlib\nz = zlib.compressobj()", "z.compress(b'a' * 99999)", "z.copy().flush()"),
    "xml element": (
        "import xml.etree.ElementTree as ET\ne = ET.Element('a')",
        "e.append(ET.Element('b')); e.set('k', 'v')",
        "ET.tostring(e)",
    ),
    "sqlite": (
        "import sqlite3\ndb = sqlite3.connect(':memory:'); _ = db.execute('create table t (a)')",
        "_ = db.execute('insert into t values (1)')",
        "db.execute('select count(*) from t').fetchall()",
    ),
    "array": ("import array\na = array.array('d', [1.0])", "a.append(2.0)", "a"),
    "bytearray": ("b = bytearray(b'ab')", "b.extend(b'c')", "b"),
    "memory view": ("b = bytearray(b'ab'); v = memoryview(b)", "v[0] = 0", "b"),
    "masked array": ("import numpy as np\nm = np.ma.array([1, 2], mask=[0, 1])", "m[0] = np.ma.masked", "m"),
    "structured array": ("import numpy as np\na = np.zeros(2, dtype=[('x', 'i4')])", "a['x'] = 5", "a"),
    "broadcast iterator": ("import numpy as np\nit = np.nditer(np.arange(3))", "next(it)", "it.iterindex"),
    "table": (
        "import pandas as pd\ndf = pd.DataFrame({'a': [2, 1]})",
        "df.sort_values('a', inplace=True); df['b'] = 1",
        "df.to_dict()",
    ),
    "series": ("import pandas as pd\ns = pd.Series([1, 2])", "s.iloc[0] = 9; s.name = 'x'", "(s.to_dict(), s.name)"),
    "index": ("import pandas as pd\nix = pd.Index([1, 2])", "ix.name = 'i'", "ix.name"),
    "categorical": ("import pandas as pd\nc = pd.Categorical(['a', 'b'])", "c[0] = 'b'", "list(c)"),
    "strings of arrow": (
        "import pandas as pd\ns = pd.Series(['a', 'b'], dtype='string')",
        "s.iloc[0] = 'z'",
        "list(s)",
    ),
    "sparse tensor": ("import torch\nt = torch.eye(2).to_sparse()", "t.mul_(5)", "t.to_dense()"),
    "quantized tensor": (
        "import torch\nt = torch.quantize_per_tensor(torch.ones(2), .1, 0, torch.quint8)",
        "t.fill_(0)",
        "t.dequantize()",
    ),
    "nested tensor": (
        "import torch\nt = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])",
        "t.mul_(2)",
        "[x.tolist() for x in t.unbind()]",
    ),
    "parametrized": (
        "import torch\nm = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))",
        "with torch.no_grad(): m.parametrizations.weight.original1.mul_(3)",
        "m.weight.tolist()",
    ),
    "fx module": (
        "import torch\nm = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2)))",
        "m.graph.erase_node; m.extra = 1",
        "hasattr(m, 'extra')",
    ),
    "scaler": (
        "import torch\ng = torch.amp.GradScaler('cpu')",
        "g.scale(torch.ones(1)); g.update(7.0)",
        "g.get_scale()",
    ),
    "sampler": ("import torch\ns = torch.utils.data.DistributedSampler(range(4), 2, 0)", "s.set_epoch(3)", "s.epoch"),
    "metric of torch": (
        "import torch\nm = torch.nn.BatchNorm1d(2)",
        "m(torch.ones(4, 2) * 3)",
        "m.running_mean.tolist()",
    ),
    "ema": (
        "import torch\nn = torch.nn.Linear(1, 1); e = torch.optim.swa_utils.AveragedModel(n)",
        "e.update_parameters(n)",
        "e.n_averaged.item()",
    ),
    "parser": ("import argparse\np = argparse.ArgumentParser()", "p.add_argument('--x')", "p.parse_args([])"),
    "config parser": ("import configparser\nc = configparser.ConfigParser()", "c['a'] = {'b': '1'}", "c.sections()"),
    "path": ("import pathlib\np = pathlib.Path('a')", "p = p / 'b'", "p"),
    "fraction": ("import fractions\nf = fractions.Fraction(1, 3)", "f += 1", "f"),
    "user dictionary": ("import collections\nd = collections.UserDict(a=1)", "d['b'] = 2", "d"),
    "shelf": ("import shelve\nd = shelve.Shelf({})", "d['b'] = 2", "sorted(d)"),
    "template": ("import string\nf = string.Formatter(); f.n = 1", "f.n = 2", "f.n"),
    "heap": ("import heapq\nh = [3, 1]; heapq.heapify(h)", "heapq.heappush(h, 0)", "h"),
    "exception": (
        "e = ValueError('a')",
        "e.args = ('b',); e.add_note('n') if hasattr(e, 'add_note') else None",
        "(e.args, getattr(e, '__notes__', None))",
    ),
    "cause of an exception": ("e = ValueError('a')", "e.__cause__ = KeyError()", "e.__cause__"),
    "code of a function": ("def f(): return 1\ndef g(): return 2", "f.__code__ = g.__code__", "f()"),
    "bases of a class": ("class A: x = 1\nclass B: x = 2\nclass C(A): pass", "C.__bases__ = (B,)", "C.x"),
    "class of an instance": ("class A: x = 1\nclass B: x = 2\na = A()", "a.__class__ = B", "a.x"),
    "name of a class": ("class A: pass", "A.__name__ = 'Z'; A.__qualname__ = 'Z'", "(A.__name__, A.__qualname__)"),
    "cell": (
        "def mk():\n    n = 0\n    def inc():\n        nonlocal n\n        n += 1\n        return n\n    return inc\ninc = mk()",
        "inc()",
        "inc.__closure__[0].cell_contents",
    ),
    "registered virtual subclass": (
        "import abc\nclass A(abc.ABC): pass\nclass B: pass",
        "A.register(B)",
        "issubclass(B, A)",
    ),
    "dispatch registered": (
        "import functools\n@functools.singledispatch\ndef f(x): return 0",
        "f.register(int)(lambda x: 1)",
        "f(1)",
    ),
    "named module hook": (
        "import torch.nn.modules.module as mm",
        "mm.register_module_forward_hook(print)",
        "len(mm._global_forward_hooks)",
    ),
    "codec error": (
        "import codecs; codecs.register_error('st_bad', len)",
        "codecs.register_error('st_bad', lambda e: ('', e.end))",
        "codecs.lookup_error('st_bad')",
    ),
    "hook for exceptions": ("import sys", "sys.excepthook = lambda *a: None", "sys.excepthook"),
    "trace": ("import sys\ndef tr(*a): return None", "sys.setprofile(tr)", "sys.getprofile()", "sys.setprofile(None)"),
    "function given to numpy": (
        "import numpy as np",
        "np.seterrcall(lambda *a: None)",
        "np.geterrcall()",
        "np.seterrcall(None)",
    ),
    "mode left on": (
        "import torch\nfrom torch.utils._python_dispatch import TorchDispatchMode\nclass Mode(TorchDispatchMode):\n"
        "    def __torch_dispatch__(s, f, t, a=(), k=None): raise RuntimeError('mode')\nt = torch.zeros(2)",
        "t.add_(1); mode = Mode(); mode.__enter__()",
        "t.tolist()",
    ),
}

# Written after the rules, from what public code does: trainers, callbacks, registries, buffers, singletons.
PUBLIC: dict[str, tuple[str, ...]] = {
    "registry of a decorator": (
        "REG = {}\ndef register(n):\n    def deco(c):\n        REG[n] = c; return c\n    return deco",
        "@register('a')\nclass A: pass",
        "sorted(REG)",
    ),
    "callbacks in a class": (
        "class Hooks:\n    _callbacks = dict()\n    @staticmethod\n    def register(f, args=None): Hooks._callbacks[f.__name__] = (f, args or ())\n"
        "    @staticmethod\n    def call():\n        for f, a in Hooks._callbacks.values(): f(*a)\nlog = []\ndef say(): log.append(1)\nHooks.register(say)",
        "Hooks.call(); Hooks.register(len)",
        "(log, sorted(Hooks._callbacks))",
    ),
    "singleton": (
        "class Config:\n    _one = None\n    def __new__(cls):\n        if cls._one is None: cls._one = super().__new__(cls); cls._one.lr = 1\n        return cls._one\nConfig()",
        "Config().lr = 5",
        "Config().lr",
    ),
    "borg": (
        "class Borg:\n    _shared = {}\n    def __init__(s): s.__dict__ = s._shared\nBorg().x = 1",
        "Borg().x = 2",
        "Borg().x",
    ),
    "trainer with callbacks": (
        "import torch\nclass Early:\n    def __init__(s): s.best = 9.0; s.bad = 0\n    def end(s, t):\n        s.bad = 0 if t.loss < s.best else s.bad + 1; s.best = min(s.best, t.loss)\n"
        "class Trainer:\n    def __init__(s, m, cbs):\n        s.m, s.cbs, s.step_, s.history = m, cbs, 0, []; s.opt = torch.optim.AdamW(m.parameters())\n"
        "    def fit(s, n):\n        for _ in range(n):\n            l = s.m(torch.ones(2, 3)).sum(); s.opt.zero_grad(); l.backward(); s.opt.step()\n"
        "            s.loss = l.item(); s.step_ += 1; s.history.append(s.loss)\n            for c in s.cbs: c.end(s)\nt = Trainer(torch.nn.Linear(3, 1), [Early()])",
        "t.fit(3)",
        "(t.step_, t.history, vars(t.cbs[0]), [p.tolist() for p in t.m.parameters()], len(t.opt.state))",
    ),
    "shadow weights": (
        "import torch\nclass EMA:\n    def __init__(s, m): s.m = m; s.shadow = {n: p.data.clone() for n, p in m.named_parameters()}\n"
        "    def update(s):\n        for n, p in s.m.named_parameters(): s.shadow[n].mul_(.9).add_(p.data, alpha=.1)\n    def apply(s):\n        for n, p in s.m.named_parameters(): p.data = s.shadow[n]\n"
        "ema = EMA(torch.nn.Linear(2, 1))",
        "ema.m.weight.data.fill_(3); ema.update(); ema.apply()",
        "([p.tolist() for p in ema.m.parameters()], {n: p.tolist() for n, p in ema.shadow.items()})",
    ),
    "activations by hooks": (
        "import torch\nacts = {}\ndef keep(n):\n    def hook(m, i, o): acts[n] = o.detach()\n    return hook\nnet = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())\n"
        "handles = [m.register_forward_hook(keep(n)) for n, m in net.named_children()]",
        "net(torch.ones(1, 2)); handles[0].remove()",
        "(sorted(acts), len(net[0]._forward_hooks))",
    ),
    "replay buffer": (
        "import collections, random\nT = collections.namedtuple('T', 's a r')\nclass Buffer:\n    def __init__(s): s.m = collections.deque(maxlen=3)\n    def push(s, *a): s.m.append(T(*a))\nbuf = Buffer(); [buf.push(i, 0, 0) for i in range(3)]",
        "buf.push(9, 1, 1); random.sample(list(buf.m), 2)",
        "(list(buf.m), random.getstate()[1][-1])",
    ),
    "averages": (
        "import collections\nclass Meter:\n    def __init__(s): s.sum = s.n = 0\n    def update(s, v): s.sum += v; s.n += 1\nms = collections.defaultdict(Meter); ms['loss'].update(2)",
        "ms['loss'].update(3); ms['acc'].update(1)",
        "{n: vars(m) for n, m in ms.items()}",
    ),
    "cached dataset": (
        "import torch, functools\nclass Data(torch.utils.data.Dataset):\n    def __init__(s): s.cache = {}; s.reads = 0\n    def __len__(s): return 4\n"
        "    def __getitem__(s, i):\n        if i not in s.cache: s.reads += 1; s.cache[i] = torch.full((2,), i)\n        return s.cache[i]\ndata = Data(); dl = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)",
        "batches = [b for b in dl]",
        "(data.reads, sorted(data.cache), torch.get_rng_state().sum().item())",
    ),
    "patched forward": (
        "import torch, types\nnet = torch.nn.Linear(2, 2)\ndef forward(self, x): return x * 0",
        "net.forward = types.MethodType(forward, net)",
        "net(torch.ones(2)).tolist()",
    ),
    "low-rank layers put in": (
        "import torch\nclass Lora(torch.nn.Module):\n    def __init__(s, l): super().__init__(); s.l = l; s.a = torch.nn.Parameter(torch.zeros(2, 2))\n    def forward(s, x): return s.l(x) + x @ s.a\n"
        "net = torch.nn.Sequential(torch.nn.Linear(2, 2))",
        "for n, m in list(net.named_children()): setattr(net, n, Lora(m))\nnet[0].l.weight.requires_grad_(False)",
        "[(n, p.requires_grad) for n, p in net.named_parameters()]",
    ),
    "spectral norm": (
        "import torch\nnet = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 3))",
        "net(torch.ones(1, 3))",
        "(net.weight_u.tolist(), net.weight.tolist())",
    ),
    "gradient clipping and accumulation": (
        "import torch\nm = torch.nn.Linear(2, 1); m(torch.ones(1, 2)).sum().backward()",
        "for _ in range(3): (m(torch.ones(1, 2)).sum() / 3).backward()\ntorch.nn.utils.clip_grad_norm_(m.parameters(), .1)",
        "[p.grad.tolist() for p in m.parameters()]",
    ),
    "look-ahead optimizer": (
        "import torch\nclass Look(torch.optim.Optimizer):\n    def __init__(s, base): s.base, s.k = base, 0; s.slow = [[p.clone() for p in g['params']] for g in base.param_groups]; s.param_groups = base.param_groups; s.state = base.state\n"
        "    def step(s):\n        s.base.step(); s.k += 1\n        for g, ws in zip(s.param_groups, s.slow):\n            for p, w in zip(g['params'], ws): w.data.add_(p.data - w.data, alpha=.5); p.data.copy_(w.data)\n"
        "w = torch.ones(2, requires_grad=True); o = Look(torch.optim.SGD([w], lr=.1, momentum=.9))",
        "w.square().sum().backward(); o.step()",
        "(w.tolist(), o.k, o.slow[0][0].tolist(), w.grad)",
    ),
    "memory bank in a buffer": (
        "import torch\nclass Bank(torch.nn.Module):\n    def __init__(s): super().__init__(); s.register_buffer('q', torch.zeros(4, 2)); s.ptr = 0\n    def put(s, x): s.q[s.ptr] = x; s.ptr = (s.ptr + 1) % 4\nb = Bank()",
        "b.put(torch.ones(2)); b.register_buffer('more', torch.ones(1))",
        "(b.q.tolist(), b.ptr, sorted(dict(b.named_buffers())))",
    ),
    "timers of a context": (
        "import contextlib, collections\ntimes = collections.Counter(); depth = []\n@contextlib.contextmanager\ndef timed(n):\n    depth.append(n)\n    try: yield\n    finally: times[n] += 1; depth.pop()",
        "with timed('a'):\n    1 / 0",
        "(times, depth)",
    ),
    "event system": (
        "import weakref\nclass Bus:\n    def __init__(s): s.subs = weakref.WeakSet()\n    def emit(s, e):\n        for x in list(s.subs): x.on(e)\nclass Sub:\n    def __init__(s): s.got = []\n    def on(s, e): s.got.append(e)\nbus, sub = Bus(), Sub(); bus.subs.add(sub)",
        "bus.emit(1); del sub.got[:0]; bus.subs.discard(sub)",
        "(sub.got, len(bus.subs))",
    ),
    "signal handler": (
        "import signal\ngot = []",
        "old = signal.signal(signal.SIGUSR2, lambda *a: got.append(1)); signal.raise_signal(signal.SIGUSR2)",
        "(got, signal.getsignal(signal.SIGUSR2))",
        "signal.signal(signal.SIGUSR2, signal.SIG_DFL)",
    ),
    "exit handlers of an earlier function": (
        "from atexit import register as at_end, unregister\nran = []\ndef later(x): at_end(ran.append, x)\nimport atexit as _exits",
        "later(1)",
        "_exits._ncallbacks()",
        "unregister(ran.append)",
    ),
    "exit handlers": (
        "import atexit\nran = []",
        "atexit.register(ran.append, 1)",
        "atexit._ncallbacks()",
        "atexit.unregister(ran.append)",
    ),
    "vectorized environment": (
        "import numpy as np\nclass Env:\n    def __init__(s): s.s = np.zeros(2); s.rng = np.random.default_rng(0); s.t = 0\n    def step(s): s.s += s.rng.normal(size=2); s.t += 1; return s.s\nenvs = [Env() for _ in range(3)]",
        "[e.step() for e in envs]",
        "[(e.s.tolist(), e.t, e.rng.bit_generator.state['state']) for e in envs]",
    ),
    # Classes that a library makes while it runs, and changes.
    "parametrization that is removed": (
        "import torch\nfrom torch.nn.utils import parametrize as P\nclass Half(torch.nn.Module):\n    def forward(s, w): return w / 2\nnet = torch.nn.Linear(2, 3); P.register_parametrization(net, 'weight', Half())",
        "P.remove_parametrizations(net, 'weight', leave_parametrized=True)",
        "(type(net).__name__, P.is_parametrized(net), net.weight.tolist(), [n for n, _ in net.named_parameters()])",
    ),
    "one more parametrization": (
        "import torch\nfrom torch.nn.utils import parametrizations as N\nnet = torch.nn.Linear(2, 3); N.weight_norm(net)",
        "N.orthogonal(net, 'bias') if net.bias.dim() > 1 else N.spectral_norm(net)",
        "(type(net).__name__, sorted(n for n, _ in net.named_parameters()), net(torch.ones(2)).shape)",
    ),
    "class of a mock": (
        "from unittest.mock import MagicMock\nm = MagicMock()",
        "type(m).made = 1; m.x = 2",
        "(hasattr(type(m), 'made'), 'x' in vars(m))",
    ),
    "class of make_dataclass": (
        "import dataclasses\nPoint = dataclasses.make_dataclass('Point', ['x'])\np = Point(1)",
        "Point.__repr__ = lambda s: 'p'; p.x = 3",
        "(repr(p), p.x)",
    ),
}
