"""Random values of types of the standard library, torch, NumPy, pandas and polars, as cells make and change them.

`cases` gives for each the code before a cell, the cell, and what is looked at, as in publiccode.py. The same seed gives
the same cases in every process.
"""

from __future__ import annotations

import random
import textwrap

# By what has to be imported: how a value is made, how a cell changes it in place.
VALUES: dict[str, list[tuple[str, str]]] = {
    "": [
        ("[1, 'a', None]", "V.append(2)"),
        ("{'a': 1, 2: [3]}", "V['b'] = V.pop('a'); V[2].append(4)"),
        ("{1, 'x', 2.5}", "V ^= {1, 'z'}"),
        ("(1, [2], {'k': []})", "V[1].append(3); V[2]['k'] += [V[1]]"),
        ("bytearray(b'abc')", "V[1:2] = b'zzz'"),
        ("memoryview(bytearray(b'abcd'))[1:3]", "V[0] = 9"),
        ("iter([1, 2, 3])", "next(V)"),
        ("(i * 2 for i in range(4))", "next(V)"),
        ("enumerate('abc')", "next(V)"),
        ("zip('ab', [1, 2])", "next(V)"),
        ("map(str, [1, 2])", "next(V)"),
        ("reversed([1, 2, 3])", "next(V)"),
        ("type('Made', (), {'shared': []})()", "V.own = 1; type(V).shared.append(V.own)"),
        ("type('Slots', (), {'__slots__': ('a', 'b')})()", "V.a = [1]"),
        ("ValueError('no', [1])", "V.args = (*V.args, 2); V.note = 1"),
        ("(lambda x, y=[]: y)", "V.__defaults__[0].append(1); V.tag = 2"),
        ("slice(1, [2], None)", "V.stop.append(3)"),
    ],
    "import collections": [
        ("collections.Counter('abca')", "V['a'] -= 5; V.update('zz')"),
        ("collections.OrderedDict(a=1, b=2)", "V.move_to_end('a'); V.extra = 5"),
        ("collections.defaultdict(list, a=[1])", "V['new']; V['a'].append(2); V.default_factory = None"),
        ("collections.deque([1, 2], maxlen=2)", "V.append(3); V.rotate()"),
        ("collections.ChainMap({'a': 1}, {'b': 2})", "V['a'] = 7; V.maps.append({})"),
        ("collections.UserList([1])", "V.append(2)"),
        ("collections.UserDict(a=1)", "V['b'] = V"),
    ],
    "import array, io, itertools, queue, heapq": [
        ("array.array('d', [1, 2])", "V.append(5); V[0] = 9"),
        ("io.StringIO('abc')", "V.read(1); V.write('zz')"),
        ("io.BytesIO(b'abc')", "V.seek(2); V.write(b'zz')"),
        ("itertools.count(3, 2)", "next(V)"),
        ("itertools.cycle('ab')", "next(V)"),
        ("itertools.islice([1, 2, 3], 2)", "next(V)"),
        ("queue.Queue(3)", "V.put(1)"),
        ("queue.PriorityQueue()", "V.put((1, 'a')); V.put((0, 'b'))"),
        ("queue.SimpleQueue()", "V.put([1])"),
    ],
    "import datetime, decimal, fractions, uuid, pathlib, re, zoneinfo, enum, types, string": [
        ("[datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin'))]", "V[0] += datetime.timedelta(1)"),
        ("[decimal.Decimal('1.10'), fractions.Fraction(1, 3)]", "V[1] += 1"),
        ("decimal.Context(prec=5)", "V.prec = 9; V.divide(1, 3)"),
        ("{pathlib.Path('/a'): re.compile('a+')}", "V[uuid.UUID(int=4)] = string.Template('$x')"),
        ("types.SimpleNamespace(a=[1])", "V.a.append(2); V.b = V"),
        ("types.MappingProxyType({'a': [1]})", "V['a'].append(2)"),
        ("enum.Enum('Color', 'RED BLUE')", "V.RED.shade = 5"),
    ],
    "import dataclasses, functools, operator, contextvars, threading, weakref, random, copy": [
        ("dataclasses.make_dataclass('Config', [('lr', float, 0.1), ('tags', list)])(tags=[])", "V.lr = 1; V.tags.append(V.lr)"),
        ("functools.partial(max, 1, key=abs)", "V.keywords['default'] = 3"),
        ("functools.lru_cache(2)(lambda x: [x])", "V(1); V(2); V(3)"),
        ("random.Random(3)", "V.random(); V.gauss(0, 1)"),
        ("contextvars.ContextVar('cv')", "V.set([1])"),
        ("threading.Lock()", "V.acquire()"),
        ("threading.Event()", "V.set()"),
        ("weakref.WeakValueDictionary()", "KEPT = type('K', (), {})(); V['a'] = KEPT"),
        ("operator.itemgetter(1, 2)", "V"),
    ],
    "import torch": [
        ("torch.arange(6.).reshape(2, 3)", "V.mul_(2); V[0, 0] = -1"),
        ("torch.arange(6.).reshape(2, 3).t()[1:]", "V += 1"),
        ("torch.ones(3, requires_grad=True)", "V.sum().backward(); V.data[0] = 5"),
        ("torch.nn.Parameter(torch.ones(2))", "V.grad = torch.ones(2); V.requires_grad_(False)"),
        ("torch.eye(3).to_sparse()", "V.mul_(3)"),
        ("torch.eye(3).to_sparse_csr()", "V.values().mul_(3)"),
        ("torch.ones(2, dtype=torch.bfloat16)", "V.add_(1)"),
        ("torch.ones(2, dtype=torch.complex64).conj()", "V.mul_(2j)"),
        ("torch.Generator().manual_seed(4)", "torch.rand(2, generator=V)"),
        ("torch.manual_seed(1) and torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1))", "V(torch.ones(3, 2) * torch.arange(3.)[:, None]); V.eval(); V.add_module('more', torch.nn.ReLU())"),
        ("torch.nn.ParameterDict({'a': torch.ones(1)})", "V['b'] = torch.zeros(1); V['a'].data += 1"),
        ("torch.manual_seed(1) and torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 1))", "V.weight = V.weight * 2"),
        ("torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=.1, momentum=.9)", "p = V.param_groups[0]['params'][0]; p.grad = torch.ones(2); V.step(); V.param_groups[0]['lr'] = 1"),
        ("torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1)], .1), 1)", "V.optimizer.step(); V.step()"),
        ("torch.utils.data.TensorDataset(torch.arange(4.))", "V.tensors[0].neg_()"),
        ("torch.utils.data.RandomSampler(range(5), generator=torch.Generator().manual_seed(1))", "list(V)"),
        ("torch.utils.data.DataLoader(torch.arange(4.), 2)", "list(V); V.dataset.add_(1)"),
        ("torch.distributions.Normal(torch.zeros(1), torch.ones(1))", "V.loc += 1"),
        ("torch.ones(4).untyped_storage()", "V.fill_(1)"),
        ("torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)])", "V.data.mul_(2)"),
        ("torch.quantize_per_tensor(torch.ones(2), .1, 0, torch.qint8)", "V.copy_(torch.quantize_per_tensor(torch.zeros(2), .1, 0, torch.qint8))"),
        ("torch.nested.nested_tensor([torch.ones(2), torch.ones(1)])", "V.mul_(2)"),
        ("torch.amp.GradScaler('cpu')", "V.update(4.)"),
        ("torch.utils.checkpoint", "V"),
    ],
    "import numpy as np": [
        ("np.arange(6).reshape(2, 3)", "V *= 2; V.shape = (3, 2)"),
        ("np.arange(8.)[::2]", "V += 1"),
        ("np.asfortranarray(np.ones((2, 3)))", "V[1] = 7"),
        ("np.array(['a', None, [1]], object)", "V[2].append(2); V[0] = V"),
        ("np.zeros(2, [('a', 'i4'), ('b', 'f8')])", "V['b'] = 3; V[0] = (1, 2)"),
        ("np.ma.masked_array([1, 2, 3], [0, 1, 0])", "V[0] = np.ma.masked; V.fill_value = 9"),
        ("np.array(['2026-01-01'], 'M8[D]')", "V += 1"),
        ("np.random.default_rng(3)", "V.normal(size=2)"),
        ("np.random.RandomState(3)", "V.rand(2)"),
        ("np.random.SeedSequence(5)", "V.spawn(2)"),
        ("np.matrix([[1, 2]])", "V[0, 0] = 5"),
        ("np.rec.array([(1, 'a')], dtype=[('n', 'i4'), ('s', 'U1')])", "V.n = 4"),
        ("np.poly1d([1, 2])", "V[2] = 5"),
        ("np.nditer(np.arange(3))", "next(V)"),
        ("np.broadcast_to(np.arange(3), (2, 3))", "V.base.flags.writeable = True; V.base[0] = 5"),
        ("np.ndindex(2, 2)", "next(V)"),
        ("np.vectorize(lambda x: x + 1)", "V([1])"),
    ],
    "import pandas as pd, numpy as np": [
        ("pd.DataFrame({'a': [1, 2], 'b': ['x', None]})", "V['c'] = V['a'] * 2; V.drop(index=0, inplace=True); V.attrs['k'] = 1"),
        ("pd.Series([1., 2.], index=['x', 'y'], name='s')", "V['x'] = 9; V.name = 't'; V.index.name = 'i'"),
        ("pd.Series(pd.Categorical(['a', 'b']))", "V.iloc[0] = 'b'"),
        ("pd.Series(pd.array([1, None], 'Int64'))", "V.iloc[1] = 4"),
        ("pd.Series(['a', None], dtype='string')", "V.iloc[1] = 'z'"),
        ("pd.DataFrame(np.zeros((2, 2)), index=pd.MultiIndex.from_tuples([(0, 'a'), (1, 'b')]))", "V.loc[(0, 'a')] = 5"),
        ("pd.date_range('2026', periods=3, tz='UTC')", "V.name = 'when'"),
        ("pd.DataFrame({'t': pd.date_range('2026', periods=3)}).set_index('t').rolling('2D')", "V.center = True"),
        ("pd.DataFrame({'k': [1, 1], 'v': [2, 3]}).groupby('k')", "V.obj.loc[0, 'v'] = 50"),
        ("pd.Index([3, 1])", "V.name = 'n'"),
        ("pd.arrays.SparseArray([0, 0, 1])", "V.fill_value = 1"),
        ("pd.Series([[1], [2]])", "V[0].append(5)"),
    ],
    "import polars as pl": [
        ("pl.DataFrame({'a': [1, 2], 'b': ['x', None]})", "V.insert_column(0, pl.Series('c', [5, 6])); V.extend(V)"),
        ("pl.Series('s', [1., 2.])", "V[0] = 9; V.append(V)"),
        ("pl.LazyFrame({'a': [1]})", "V"),
        ("pl.DataFrame({'o': [[1], [2, 3]]})", "V.columns = ['q']"),
    ],
}  # fmt: skip
POLARS = 7  # the seed with which about half of the values are of polars, which must be installed
WRAPS = (
    "a = {}",
    "a = {}; b = a",
    "a = {{'in': [{}]}}; b = a['in']",
    "a = ({}, 1); b = [a, a]",
    "a = type('Own', (), {{}})(); a.part = {}; b = a.part",
    "a = {}; f = lambda: a",
)
PLACES = ("a", "b", "b[0]", "a[0]", "a.part", "a")
LOOK = textwrap.dedent('''
    def look(v, seen=None, deep=0):
        """A text of all that can be seen of a value, without addresses, iterating over none of its iterators."""
        import re, sys, types
        seen = {} if seen is None else seen
        if id(v) in seen: return f"<{seen[id(v)][0]}>"
        if type(v) in (int, float, str, bytes, bool, complex, type(None)): return repr(v)
        if type(v) is tuple: return f"tuple({', '.join(look(x, seen, deep + 1) for x in v)})" if deep < 7 else "tuple"  # which is no other one
        seen[id(v)] = (len(seen), v)  # kept, so that no id is used twice
        np, torch, pd, pl = (sys.modules.get(n) for n in ("numpy", "torch", "pandas", "polars"))
        kind, name = type(v), type(v).__name__
        if deep > 6 or isinstance(v, (types.ModuleType, type, types.BuiltinFunctionType)): return name
        more = lambda x: look(x, seen, deep + 1)
        if torch and isinstance(v, torch.Tensor):
            d = v.detach()
            if v.layout == torch.strided and not v.is_nested and not v.is_quantized: d, how = d.resolve_conj().tolist(), (v.stride(), v.storage_offset(), v.is_conj())
            else: d, how = repr(d), ()
            return f"{name}{d}{v.dtype}{how}{v.requires_grad}{more(v.grad) if v.is_leaf else 0}"
        if torch and isinstance(v, torch.UntypedStorage): return f"storage{list(v)}"
        if torch and isinstance(v, torch.Generator): return f"{name}{sum(v.get_state().tolist())}"
        if np and isinstance(v, np.ndarray): return f"{name}{v.dtype}{v.shape}{[step for step, size in zip(v.strides, v.shape) if size > 1]}{v.flags.writeable}({', '.join(more(x) for x in v.ravel().tolist())}){getattr(v, 'mask', '')}{getattr(v, 'fill_value', '')}"
        if np and isinstance(v, np.random.Generator): return f"{name}{v.bit_generator.state}"
        if np and isinstance(v, np.random.RandomState): return f"{name}{v.get_state()[2]}{v.get_state()[1].tolist()}"
        if np and isinstance(v, np.random.SeedSequence): return f"{v!r}"
        if pd and isinstance(v, (pd.DataFrame, pd.Series)): return f"{name}{v.to_string()}{getattr(v, 'dtypes', '')}{v.index!r}{getattr(v, 'name', '')}{v.attrs}"
        if pd and isinstance(v, pd.Index): return f"{v!r}{v.name}"
        if pl and isinstance(v, (pl.DataFrame, pl.Series)): return f"{v!r}"
        if hasattr(v, "queue"): return f"{name}{list(v.queue)}"
        if hasattr(v, "getvalue"): return f"{name}{v.getvalue()!r}{v.tell()}"
        if hasattr(v, "getstate"): return f"{name}{v.getstate()}"
        if hasattr(v, "cache_info"): return f"{name}"
        if hasattr(v, "locked"): return f"{name}{v.locked()}"
        if isinstance(v, dict) or name in ("mappingproxy", "WeakValueDictionary", "ChainMap", "UserDict"): body = [f"{more(k)}: {more(x)}" for k, x in list(v.items())]
        elif isinstance(v, (set, frozenset)): body = sorted(map(more, v))
        elif isinstance(v, (list, tuple)) or name in ("deque", "UserList", "array", "memoryview", "bytearray"): body = [more(x) for x in v]
        elif isinstance(v, types.FunctionType): body = [more(v.__defaults__), more(v.__dict__)]
        elif isinstance(v, BaseException): body = [more(v.args)]
        elif isinstance(v, slice): body = [more(v.start), more(v.stop)]
        elif name == "partial": body = [more(v.args), more(v.keywords)]
        elif name in ("count", "cycle"): body = [repr(v)] if name == "count" else []
        elif hasattr(v, "qsize"): body = [v.qsize()]
        elif name == "generator": body = [v.gi_frame and v.gi_frame.f_lasti]
        elif hasattr(v, "__next__") and hasattr(v, "__setstate__"): body = [more(v.__reduce__()[1:])]
        else: body = [] if hasattr(v, "__dict__") else [re.sub(r" at 0x[0-9a-f]+", "", repr(v))]
        fields = {k: x for k, x in getattr(v, "__dict__", {}).items() if not k.startswith("_abc")} if not isinstance(v, types.FunctionType) else {}
        if name == "_WrappedHook": fields = {"hook": v.hook, "with_module": v.with_module}  # the rest are copies of the hook's texts
        if name in ("Slots",): fields = {k: getattr(v, k) for k in v.__slots__ if hasattr(v, k)}
        return f"{name}({', '.join(map(str, body))}{''.join(f' .{k}={more(x)}' for k, x in sorted(fields.items()))})"
''')


def cases(seed: int, number: int) -> dict[str, tuple[str, str, str]]:
    """Return so many cases: the code before, the cell, and an expression for what can be seen."""
    chance = random.Random(seed)
    kinds = [one for one in VALUES if seed == POLARS or not one.startswith("import polars")]
    kinds += [one for one in VALUES if one.startswith("import polars")] * 8 * (seed == POLARS)
    found = {}
    for count in range(number):
        imports = chance.choice(kinds)
        made, change = chance.choice(VALUES[imports])
        wrap = chance.randrange(len(WRAPS))
        place = PLACES[wrap]
        setup = f"{imports}\n{LOOK}\n{WRAPS[wrap].format(made)}"
        if chance.random() < 0.3:
            other_imports = chance.choice(kinds)
            setup = (
                f"{other_imports}\n{setup}\nextra = {chance.choice(VALUES[other_imports])[0]}\nboth = [extra, {place}]"
            )
        cell = (
            f"PLACE = {place}\n{change.replace('V', 'PLACE')}" if " ^= " not in change else change.replace("V", place)
        )
        found[f"{count} of {seed}: {made[:40]}"] = (
            setup,
            cell,
            "look([globals().get(n) for n in ('a', 'b', 'extra', 'both')])",
        )
    return found
