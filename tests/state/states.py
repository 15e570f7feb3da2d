"""States that users have in notebooks, and how they go on: each is (set-up, what is asked after a restore).

A name has a `+` where the set-up is in the user's own module `own_N.py`, whose text comes first, up to a line `---`.
"""

from __future__ import annotations

import textwrap

from publiccode import FOUND

STATES: dict[str, tuple[str, str]] = {}
LAST: dict[str, str] = {}  # what is run afterwards, so that nothing of a state is left


def state(name: str, setup: str, *asked: str) -> None:
    """Add a state."""
    assert name not in STATES, name
    STATES[name] = (textwrap.dedent(setup), "; ".join(asked))


# -- training ---------------------------------------------------------------------------------------------

NET = "import torch\ntorch.manual_seed(0)\nnet = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))\n"
GO = "x = torch.ones(2, 3)\ndef step():\n    opt.zero_grad(); loss = net(x).square().mean(); loss.backward(); opt.step(); return loss.item()\nstep(); step()"
for optimizer in (
    *(
        "SGD(net.parameters(), lr=.1, momentum=.9)",
        "AdamW(net.parameters(), amsgrad=True)",
        "Adam(net.parameters(), fused=True)",
    ),
    *(
        "RMSprop(net.parameters())",
        "Adagrad(net.parameters())",
        "Adadelta(net.parameters())",
        "NAdam(net.parameters())",
    ),
    *("RAdam(net.parameters())", "Adamax(net.parameters())", "Rprop(net.parameters())", "ASGD(net.parameters())"),
):
    state(
        f"optimizer {optimizer.partition('(')[0]}",
        f"{NET}opt = torch.optim.{optimizer}\n{GO}",
        "[step() for _ in range(2)]",
    )
for scheduler in (
    *("CosineAnnealingLR(opt, 5)", "StepLR(opt, 2)", "OneCycleLR(opt, .1, total_steps=20)", "ExponentialLR(opt, .9)"),
    *("LambdaLR(opt, lambda n: 1 / (n + 1))", "ReduceLROnPlateau(opt, patience=0)", "CyclicLR(opt, .01, .1)"),
):
    code = f"{NET}opt = torch.optim.SGD(net.parameters(), lr=.1, momentum=.9)\n{GO}\n"
    call = "sched.step(1.0)" if "Plateau" in scheduler else "sched.step()"
    name = scheduler.partition("(")[0]
    state(
        f"scheduler {name}",
        f"{code}sched = torch.optim.lr_scheduler.{scheduler}\nstep(); {call}",
        f"[(step(), {call}, opt.param_groups[0]['lr']) for _ in range(3)]",
    )
OWN = """
class Scaled(torch.optim.Optimizer):
    def __init__(self, params, lr=.1): super().__init__(params, {"lr": lr}); self.count = 0; self.seen = {}
    @torch.no_grad()
    def step(self):
        self.count += 1
        for g in self.param_groups:
            for p in g["params"]: p.sub_(p.grad, alpha=g["lr"] / self.count); self.seen[p] = self.count
opt = Scaled(net.parameters())
"""
state("own optimizer with attributes", f"{NET}{OWN}{GO}", "step(), opt.count, list(opt.seen.values())")
state(
    "hooks of an optimizer",
    f"{NET}calls = []\nopt = torch.optim.SGD(net.parameters(), lr=.1)\nopt.register_step_post_hook(lambda *a: calls.append(1))\n{GO}",
    "step(), len(calls)",
)
state(
    "hook of an optimizer, removed later",
    f"{NET}calls = []\nopt = torch.optim.SGD(net.parameters(), lr=.1)\nh = opt.register_step_pre_hook(lambda *a: calls.append(1))\n{GO}",
    "h.remove(), step(), len(calls)",
)
state(
    "EMA of a model",
    f"{NET}opt = torch.optim.SGD(net.parameters(), lr=.1)\n{GO}\nema = torch.optim.swa_utils.AveragedModel(net); ema.update_parameters(net)",
    "step(), ema.update_parameters(net), float(ema.module[0].weight.sum())",
)
state(
    "GradScaler",
    "import torch\nscaler = torch.amp.GradScaler('cpu'); scaler.scale(torch.ones(1))",
    "scaler.state_dict()",
)
state(
    "gradients in the middle of accumulation",
    f"{NET}net(torch.ones(1, 3)).sum().backward()",
    "net(torch.ones(1, 3)).sum().backward(), net[0].weight.grad.tolist()",
)
state(
    "tied weights",
    f"{NET}net[2].weight = torch.nn.Parameter(torch.ones(4, 4)); head = torch.nn.Linear(4, 4); head.weight = net[2].weight",
    "head.weight is net[2].weight",
)
state(
    "BatchNorm in training",
    "import torch\nbn = torch.nn.BatchNorm1d(3); bn(torch.arange(12.).view(4, 3))",
    "bn(torch.arange(12.).view(4, 3)).tolist(), bn.running_mean.tolist()",
)
state(
    "dropout with the global generator",
    "import torch\ntorch.manual_seed(3); d = torch.nn.Dropout()",
    "d(torch.ones(9)).tolist()",
)
state(
    "forward hook that records",
    f"{NET}seen = []\nh = net[0].register_forward_hook(lambda m, i, o: seen.append(tuple(o.shape)))\nnet(torch.ones(1, 3))",
    "net(torch.ones(1, 3)).shape, seen, h.remove(), net(torch.ones(1, 3)).shape, seen",
)
state(
    "new hook beside a saved one",
    f"{NET}seen = []\nfor _ in range(3): net[0].register_forward_hook(lambda m, i, o: seen.append(1))",
    "[net[0].register_forward_hook(lambda m, i, o: None) for _ in range(4)] and None, net(torch.ones(1, 3)).shape, len(seen)",
)
state(
    "global module hook",
    f"{NET}count = []\nh = torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: count.append(type(m).__name__))",
    "net(torch.ones(1, 3)).shape, count, h.remove(), net(torch.ones(1, 3)).shape, len(count)",
)
state(
    "parametrization",
    f"{NET}from torch.nn.utils import parametrizations\nparametrizations.weight_norm(net[0])",
    "net(torch.ones(1, 3)).tolist()",
)
state(
    "pruned layer",
    f"{NET}import torch.nn.utils.prune as prune\nprune.l1_unstructured(net[0], 'weight', amount=4)",
    "net[0].weight.tolist(), prune.is_pruned(net)",
)
state("frozen layers", f"{NET}net[0].requires_grad_(False)", "[p.requires_grad for p in net.parameters()]")
state(
    "model of an own class",
    "import torch\nclass Net(torch.nn.Module):\n    calls = 0\n    def __init__(self):\n        super().__init__(); self.a = torch.nn.Linear(2, 2); self.note = {}\n    def forward(self, x):\n        Net.calls += 1; self.note['n'] = Net.calls; return self.a(x)\ntorch.manual_seed(0); net = Net(); net(torch.ones(1, 2))",
    "net(torch.ones(1, 2)).tolist(), Net.calls, net.note",
)
state(
    "autograd function",
    "import torch\nclass Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x): return 2 * x\n    @staticmethod\n    def backward(ctx, g): return 2 * g\nw = torch.ones(2, requires_grad=True); Double.apply(w).sum().backward()",
    "Double.apply(w).sum().backward(), w.grad.tolist()",
)
state(
    "tensor with a graph",
    "import torch\nw = torch.ones(2, requires_grad=True); loss = (w * 3).sum()",
    "loss.backward(), w.grad.tolist()",
)
state(
    "hook of a tensor",
    "import torch\nw = torch.ones(2, requires_grad=True); w.register_hook(lambda g: g * 5)",
    "(w * 3).sum().backward(), w.grad.tolist()",
)
state(
    "data loader in the middle",
    "import torch\nloader = torch.utils.data.DataLoader(list(range(9)), batch_size=2); it = iter(loader); next(it)",
    "next(it).tolist()",
)
state(
    "data loader with a generator",
    "import torch\ng = torch.Generator().manual_seed(4); loader = torch.utils.data.DataLoader(list(range(9)), shuffle=True, generator=g)",
    "[b.item() for b in loader]",
)
state(
    "sampler and epochs",
    "import torch\nfrom torch.utils.data import RandomSampler\ns = RandomSampler(range(9), generator=torch.Generator().manual_seed(2)); list(s)",
    "list(s)",
)
state(
    "views of one storage",
    "import torch\nbase = torch.zeros(6); a, b = base[:3], base[2:]",
    "a.fill_(1), b.tolist(), base.tolist()",
)
state(
    "array and tensor of one memory",
    "import torch, numpy as np\na = np.zeros(4); t = torch.from_numpy(a)",
    "t.fill_(2), a.tolist()",
)
state(
    "sparse and quantized tensors",
    "import torch\ns = torch.eye(3).to_sparse(); q = torch.quantize_per_tensor(torch.ones(2), .1, 0, torch.qint8)",
    "s.to_dense().tolist(), q.dequantize().tolist()",
)
state(
    "half precision",
    "import torch\nt = torch.arange(4, dtype=torch.bfloat16); f = torch.ones(2, dtype=torch.float8_e4m3fn)",
    "t.tolist(), f.float().tolist()",
)
state(
    "subclass of a tensor",
    "import torch\nclass T(torch.Tensor): pass\nt = torch.ones(2).as_subclass(T); t.tag = 'x'",
    "type(t).__name__, t.tag, (t + 1).tolist()",
)
state(
    "vmap and functional state",
    f"{NET}params = dict(net.named_parameters()); f = torch.func.functional_call",
    "f(net, params, (torch.ones(1, 3),)).tolist(), params['0.weight'] is net[0].weight",
)
state(
    "fx graph",
    f"{NET}import torch.fx\ng = torch.fx.symbolic_trace(net); g.note = 3",
    "g(torch.ones(1, 3)).tolist(), g.note",
)
state("scripted module", f"{NET}s = torch.jit.script(net)", "s(torch.ones(1, 3)).tolist()")
state("state_dict that shares", f"{NET}sd = net.state_dict()", "sd['0.weight'].data_ptr() == net[0].weight.data_ptr()")
state(
    "metrics in dictionaries",
    "from collections import defaultdict, deque\nhist = defaultdict(list); hist['loss'] += [.5, .25]; window = deque(hist['loss'], maxlen=2)",
    "hist['acc'].append(1), dict(hist), window.append(3), list(window)",
)
state(
    "trainer that holds all",
    f"{NET}{GO.replace('step(); step()', '')}\nclass Trainer:\n    def __init__(self): self.net = net; self.opt = torch.optim.SGD(net.parameters(), lr=.1); self.best = None; self.log = []\nt = Trainer(); opt = t.opt; step(); t.log.append(1)",
    "t.net is net and t.opt is opt, step(), t.log",
)

# -- random numbers ---------------------------------------------------------------------------------------

state(
    "random, numpy and torch",
    "import random, numpy as np, torch\nrandom.seed(1); np.random.seed(1); torch.manual_seed(1); random.random()",
    "random.random(), np.random.rand(), torch.rand(1).item()",
)
state(
    "from random import shuffle",
    "import random\nfrom random import shuffle, random as draw",
    "random.seed(4), draw(), [l := list(range(9)), shuffle(l)][0]",
)
state(
    "from numpy.random import randn",
    "import numpy as np\nfrom numpy.random import randn, randint",
    "np.random.seed(2), float(randn()), int(randint(9))",
)
state(
    "own generators",
    "import random, numpy as np, torch\nr = random.Random(3); g = np.random.default_rng(3); t = torch.Generator().manual_seed(3); r.random()",
    "r.random(), float(g.random()), torch.rand(1, generator=t).item()",
)
state(
    "generator of an own class",
    "import random\nclass R(random.Random): pass\nr = R(5); r.calls = 2",
    "r.random(), r.calls",
)
state("spawned seeds", "import numpy as np\ns = np.random.SeedSequence(7); s.spawn(2)", "s.spawn(1)[0].spawn_key")
state(
    "default generator in a name",
    "import torch\ng = torch.default_generator; torch.manual_seed(5)",
    "torch.rand(1, generator=g).item(), g is torch.default_generator",
)

# -- own classes ------------------------------------------------------------------------------------------

state(
    "dataclass",
    "from dataclasses import dataclass, field\n@dataclass\nclass P:\n    x: int\n    l: list = field(default_factory=list)\np = P(1); q = p; p.l.append(2)",
    "q.l.append(3), p, P(2)",
)
state(
    "slots and properties",
    "class P:\n    __slots__ = ('_x',)\n    @property\n    def x(self): return self._x\n    @x.setter\n    def x(self, v): self._x = v\np = P(); p.x = 3",
    "p.x, setattr(p, 'x', 4), p.x",
)
state(
    "counter of a class",
    "class C:\n    made = 0\n    def __init__(self): C.made += 1\na, b = C(), C()",
    "C() and C.made",
)
state(
    "registry by a decorator",
    "REG = {}\ndef register(f): REG[f.__name__] = f; return f\n@register\ndef one(): return 1",
    "register(lambda: 2) and sorted(REG), REG['one'] is one",
)
state(
    "registry by __init_subclass__",
    "class Base:\n    kinds = []\n    def __init_subclass__(cls): Base.kinds.append(cls)\nclass A(Base): pass",
    "type('B', (Base,), {}) and [k.__name__ for k in Base.kinds], Base.kinds[0] is A",
)
state(
    "metaclass with state",
    "class M(type):\n    def __call__(cls, *a):\n        if not hasattr(cls, 'one'): cls.one = super().__call__(*a)\n        return cls.one\nclass S(metaclass=M): pass\ns = S()",
    "S() is s",
)
state(
    "enum and flags",
    "import enum\nclass C(enum.Enum):\n    A = 1\nclass F(enum.Flag):\n    X = 1; Y = 2\nc, f = C.A, F.X | F.Y",
    "c is C.A, f == F.X | F.Y, C(1)",
)
state(
    "named tuple and typed dict",
    "from typing import NamedTuple, TypedDict\nclass N(NamedTuple):\n    a: int\nclass D(TypedDict):\n    b: int\nn = N(1); d: D = {'b': 2}",
    "n._replace(a=3), d, isinstance(n, N)",
)
state(
    "generic and protocol",
    "from typing import Generic, TypeVar, Protocol, runtime_checkable\nT = TypeVar('T')\nclass Box(Generic[T]):\n    def __init__(self, v: T): self.v = v\n@runtime_checkable\nclass Has(Protocol):\n    v: int\nb = Box[int](3)",
    "b.v, isinstance(b, Has), isinstance(b, Box)",
)
state(
    "closure with state",
    "def counter():\n    n = 0\n    def up():\n        nonlocal n; n += 1; return n\n    def get(): return n\n    return up, get\nup, get = counter(); up()",
    "up(), get()",
)
state("defaults that change", "def f(x, seen=[]):\n    seen.append(x); return list(seen)\nf(1)", "f(2)")
state("attribute of a function", "def f():\n    f.calls += 1; return f.calls\nf.calls = 0; f()", "f()")
state(
    "partial and bound methods",
    "import functools\nclass A:\n    def __init__(self): self.l = []\n    def add(self, x): self.l.append(x); return self.l\na = A(); add = a.add; p = functools.partial(add, 5); add(1)",
    "p(), add.__self__ is a",
)
state(
    "cache of a function",
    "import functools\ncalls = []\n@functools.lru_cache\ndef f(x): calls.append(x); return x\nf(1)",
    "f(2), f.cache_info().maxsize",
)
state(
    "cached property",
    "import functools\nclass A:\n    @functools.cached_property\n    def v(self): return [1]\na = A(); a.v.append(2)",
    "a.v",
)
state(
    "singledispatch",
    "import functools\n@functools.singledispatch\ndef f(x): return 'any'\n@f.register\ndef _(x: int): return 'int'",
    "f(1), f('a')",
)
state(
    "class that leaves out a file",
    "import io\nclass L:\n    def __init__(self): self.n = 1; self.file = open('/dev/null')\n    def __getstate__(self): d = dict(self.__dict__); del d['file']; return d\n    def __setstate__(self, d): self.__dict__.update(d); self.file = open('/dev/null')\nl = L()",
    "l.n, l.file.name",
)
state(
    "subclass of one that leaves out",
    "class L:\n    def __init__(self): self.n = 1\n    def __getstate__(self): return {'n': self.n}\nclass M(L):\n    def __init__(self): super().__init__(); self.more = [2]\nm = M()",
    "m.n, m.more",
)
state(
    "subclass that holds an open file",
    "class L:\n    def __init__(self): self.n = 1\n    def __getstate__(self): return {'n': self.n}\nclass M(L):\n    def __init__(self): super().__init__(); self.more = open('/dev/null')\nm = M()",
    "m.n, m.more.name",
)
state(
    "subclass of defaultdict",
    "from collections import defaultdict\nclass D(defaultdict):\n    pass\nd = D(list); d.note = 'x'; d[1].append(2)",
    "d.note, d[3], dict(d)",
)
state(
    "subclass of Counter, list and str",
    "from collections import Counter\nclass C(Counter): pass\nclass L(list): pass\nclass S(str): pass\nc, l, s = C('ab'), L([1]), S('x'); c.n, l.n, s.n = 1, 2, 3",
    "c.n, l.n, s.n, c['a'], l, s",
)
state(
    "subclass of an array",
    "import numpy as np\nclass A(np.ndarray): pass\na = np.zeros(2).view(A); a.unit = 'm'",
    "a.unit, type(a).__name__, a.tolist()",
)
state(
    "weak references",
    "import weakref\nclass A: pass\na = A(); w = weakref.ref(a); d = weakref.WeakValueDictionary(a=a)",
    "w() is a, d['a'] is a",
)
state("cycles", "class N: pass\na, b = N(), N(); a.o, b.o = b, a; l = []; l.append(l)", "a.o.o is a, l[0] is l")
state(
    "exception that was kept",
    "try: 1 / 0\nexcept ZeroDivisionError as err: kept = err\nclass E(Exception):\n    def __init__(self, a, b): super().__init__(a); self.b = b\ne = E(1, 2)",
    "type(kept).__name__, e.b, e.args",
)
state("names that are one object", "a = b = [1]; c = {'a': a}; t = (a, b)", "a.append(2), b, c, t[0] is a")
state(
    "context manager and iterator of own classes",
    "class It:\n    def __init__(self): self.n = 3\n    def __iter__(self): return self\n    def __next__(self):\n        self.n -= 1\n        if self.n < 0: raise StopIteration\n        return self.n\nit = It(); next(it)",
    "list(it)",
)
state("generator in the middle", "gen = (i for i in range(3)); next(gen)", "next(gen)")
state("generator beside a model", f"{NET}gen = (i for i in range(3))", "net(torch.ones(1, 3)).tolist()")
state(
    "itertools in the middle",
    "import itertools\nc = itertools.count(5); next(c); y = itertools.cycle([1, 2]); next(y)",
    "next(c), next(y)",
)
state(
    "functions that call each other",
    "def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - 1)",
    "even(10)",
)
state("function that uses globals()", "k = 2\ndef f(): return globals()['k']", "f()")

# -- the process ------------------------------------------------------------------------------------------

state(
    "env = os.environ",
    "import os\nenv = os.environ; env['A_CASE'] = '1'",
    "os.environ['A_CASE'], env is os.environ, env.__setitem__('B_CASE', '2'), os.environ['B_CASE']",
)
state(
    "path = sys.path", "import sys\npath = sys.path; sys.path.insert(0, '/a/folder')", "path is sys.path, sys.path[0]"
)
state("modules = sys.modules", "import sys\nmods = sys.modules", "mods is sys.modules")
state(
    "folder of the process",
    "import os, tempfile\nplace = os.path.realpath(tempfile.gettempdir()); os.chdir(place)",
    "os.getcwd() == place",
)
state(
    "rc = plt.rcParams",
    "import matplotlib.pyplot as plt\nrc = plt.rcParams; rc['lines.linewidth'] = 7.5; plt.rc('font', size=17)",
    "plt.rcParams['lines.linewidth'], plt.rcParams['font.size'], rc is plt.rcParams",
)
state(
    "figure with axes",
    "import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\nfig, ax = plt.subplots(); line, = ax.plot([1, 2])",
    "line in ax.lines, fig.axes[0] is ax",
)
state(
    "logger with a handler",
    "import logging\nseen = []\nclass Keep(logging.Handler):\n    def emit(self, record): seen.append(record.getMessage())\nlog = logging.getLogger('case.a'); log.addHandler(Keep()); log.setLevel('INFO'); log.info('a')",
    "log.info('b'), seen, logging.getLogger('case.a').level",
)
state(
    "basicConfig with a format",
    "import logging, io\nout = io.StringIO(); logging.basicConfig(stream=out, format='%(message)s', level='INFO', force=True)",
    "logging.warning('x'), out.getvalue()",
)
state(
    "logger that writes a file",
    "import logging, tempfile, os\nlogging.getLogger('case.f').addHandler(logging.FileHandler(os.path.join(tempfile.gettempdir(), 'case.log')))",
    "len(logging.getLogger('case.f').handlers)",
)
state(
    "logger that is quiet",
    "import logging\nlogging.getLogger('case.q').disabled = True; logging.getLogger('case.p').propagate = False",
    "logging.getLogger('case.q').disabled, logging.getLogger('case.p').propagate",
)
state(
    "method of torch that a cell replaced",
    f"{NET}calls = []\nbefore = torch.nn.Linear.forward\ndef forward(self, x): calls.append(1); return before(self, x)\ntorch.nn.Linear.forward = forward",
    "net(torch.ones(1, 3)).tolist(), len(calls), setattr(torch.nn.Linear, 'forward', before)",
)
state(
    "constant of a library",
    "import json.encoder, textwrap\njson.encoder.INFINITY = 5.0; setattr(textwrap, 'ours', 1)",
    "json.encoder.INFINITY, textwrap.ours",
)
state(
    "flag of torch's backends",
    "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True",
    "torch.backends.cuda.matmul.allow_tf32, setattr(torch.backends.cuda.matmul, 'allow_tf32', False)",
)
state(
    "default dtype",
    "import torch\ntorch.set_default_dtype(torch.float64)",
    "torch.ones(1).dtype, torch.set_default_dtype(torch.float32)",
)
state(
    "printing of torch",
    "import torch\ntorch.set_printoptions(precision=2, sci_mode=False)",
    "repr(torch.tensor(3.14159)), torch.set_printoptions(profile='default')",
)
state(
    "printing of NumPy",
    "import numpy as np\nnp.set_printoptions(precision=3, threshold=5)",
    "repr(np.array([3.14159])), np.set_printoptions(precision=8, threshold=1000)",
)
state(
    "options of pandas",
    "import pandas as pd\npd.set_option('display.max_rows', 7); pd.options.display.precision = 2",
    "pd.get_option('display.max_rows'), pd.options.display.precision, pd.reset_option('display')",
)
state(
    "decimal context",
    "import decimal\ndecimal.getcontext().prec = 5; ctx = decimal.getcontext()",
    "decimal.Decimal(1) / 3, ctx is decimal.getcontext(), setattr(ctx, 'prec', 28)",
)
state(
    "limit of recursion",
    "import sys\nsys.setrecursionlimit(4321)",
    "sys.getrecursionlimit(), sys.setrecursionlimit(1000)",
)
state(
    "number of threads", "import torch\ntorch.set_num_threads(3)", "torch.get_num_threads(), torch.set_num_threads(1)"
)
state(
    "filters of warnings",
    "import warnings\nwarnings.filterwarnings('error', message='ours'); warnings.simplefilter('ignore', DeprecationWarning)",
    "[f[:2][0] for f in warnings.filters[:2]]",
)
state(
    "errors of NumPy",
    "import numpy as np\nnp.seterr(all='raise')",
    "np.geterr()['over'], np.seterr(all='warn', under='ignore')['over']",
)
state(
    "event of IPython",
    "calls = []\nip = get_ipython()\ndef after(*a): calls.append(1)\nip.events.register('pre_run_cell', after)",
    "ip.events.trigger('pre_run_cell', None), len(calls), ip.events.unregister('pre_run_cell', after)",
)
state(
    "gradients switched off",
    "import torch\ntorch.set_grad_enabled(False)",
    "torch.is_grad_enabled(), torch.set_grad_enabled(True)",
)
state(
    "hook of unraisable errors",
    "import sys\nseen = []\nsys.unraisablehook = lambda u: seen.append(1)",
    "sys.unraisablehook(None), seen, setattr(sys, 'unraisablehook', sys.__unraisablehook__)",
)

# -- own modules ------------------------------------------------------------------------------------------

state(
    "+ module: import config; config.lr = .5",
    "lr = 0.1\nsizes = [1]\n---\nimport own_N as config\nconfig.lr = 0.5; config.sizes.append(2); config.extra = {'a': 1}",
    "config.lr, config.sizes, config.extra",
)
state(
    "+ module: counter in a function",
    "count = 0\ndef bump():\n    global count; count += 1; return count\n---\nimport own_N as m\nm.bump()",
    "m.bump()",
)
state(
    "+ module: registry",
    "REG = {}\ndef register(f): REG[f.__name__] = f; return f\n@register\ndef base(): return 0\n---\nimport own_N as m\n@m.register\ndef ours(): return 1",
    "sorted(m.REG), m.REG['ours'] is ours, m.REG['base'] is m.base",
)
state(
    "+ module: attribute of a class",
    "class Cfg:\n    rate = 0.1\n    seen = []\n    def eff(self): return self.rate * 10\n---\nimport own_N as m\nm.Cfg.rate = 0.7; m.Cfg.seen.append(1); c = m.Cfg(); m.Cfg.added = 2",
    "c.eff(), m.Cfg.seen, c.added",
)
state(
    "+ module: object that a name shares",
    "class Cfg: pass\nCFG = Cfg()\n---\nimport own_N as m\nfrom own_N import CFG\nCFG.x = [1]",
    "CFG is m.CFG, m.CFG.x",
)
state(
    "+ module: function that cells replaced",
    "def f(): return 1\ndef g(): return f()\n---\nimport own_N as m\nm.f = lambda: 2",
    "m.g()",
)
state(
    "+ module: attribute of a function", "def f(): f.n += 1; return f.n\nf.n = 0\n---\nfrom own_N import f\nf()", "f()"
)
state(
    "+ module: model and optimizer",
    "import torch\nnet = torch.nn.Linear(2, 2)\nopt = torch.optim.SGD(net.parameters(), lr=.1)\ndef step():\n    net(torch.ones(1, 2)).sum().backward(); opt.step(); return float(net.weight.sum())\n---\nimport torch\ntorch.manual_seed(0)\nfrom own_N import step, net\nstep()",
    "step(), net.weight is __import__('own_N').net.weight",
)
state(
    "+ module: open file",
    "log = open('/dev/null', 'w')\nlog.tag = 1 if hasattr(log, '__dict__') else 0\n---\nimport own_N as m\nm.log.close()",
    "m.log.closed",
)
state(
    "+ module: lock and logger",
    "import threading, logging\nlock = threading.Lock()\nlog = logging.getLogger(__name__)\nn = 0\ndef up():\n    global n\n    with lock: n += 1\n    return n\n---\nfrom own_N import up\nup()",
    "up()",
)
state("+ module: variable that cells deleted", "a = 1\nb = 2\n---\nimport own_N as m\ndel m.a", "hasattr(m, 'a'), m.b")

# -- data -------------------------------------------------------------------------------------------------

state(
    "data frame and its views",
    "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2], 'b': ['x', 'y']}); df.attrs['k'] = 1; s = df['a']; g = df.groupby('b')",
    "df.to_dict(), df.attrs, g.sum().to_dict(), s.sum()",
)
state(
    "categories, dates, index",
    "import pandas as pd\ns = pd.Series(['a', 'b'], dtype='category'); i = pd.date_range('2026-01-01', periods=2, tz='UTC'); m = pd.MultiIndex.from_product([[1], [2]])",
    "s.cat.categories.tolist(), i.tz, m.tolist()",
)
state(
    "arrays of all kinds",
    "import numpy as np\nr = np.zeros(2, dtype=[('a', 'i4')]); o = np.array([[1], 'x'], dtype=object); f = np.asfortranarray(np.ones((2, 3))); m = np.ma.array([1, 2], mask=[0, 1]); v = f[::-1]",
    "r.dtype.names, o.tolist(), f.flags.f_contiguous, m.sum(), v.base is f",
)
state("read-only array", "import numpy as np\na = np.ones(2); a.flags.writeable = False", "a.flags.writeable")
state(
    "regular expressions, dates, paths",
    "import re, datetime, pathlib, decimal, fractions, uuid\np = re.compile('a(b)'); d = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc); f = pathlib.Path('/x'); q = fractions.Fraction(1, 3); u = uuid.UUID(int=3)",
    "p.match('ab')[1], d, f.name, q + 1, u.int",
)
state(
    "StringIO and BytesIO in the middle",
    "import io\ns = io.StringIO('abc'); s.read(1); b = io.BytesIO(b'abc'); b.seek(2)",
    "s.read(), b.read()",
)
state(
    "queue, deque, heap",
    "import queue, heapq, collections\nq = collections.deque([1, 2], 3); h = [3, 1]; heapq.heapify(h)",
    "q.append(4), list(q), heapq.heappop(h)",
)
state("thread queue", "import queue\nq = queue.Queue(); q.put(1)", "q.get_nowait()")
state("open file", "f = open('/dev/null')", "f.name")
state(
    "lock, event, condition",
    "import threading\nl, e = threading.Lock(), threading.Event(); e.set()",
    "l.acquire(), e.is_set()",
)
state(
    "thread that runs",
    "import threading\nstop = threading.Event(); t = threading.Thread(target=stop.wait, daemon=True); t.start()",
    "t.is_alive()",
)
state(
    "database in memory",
    "import sqlite3\ndb = sqlite3.connect(':memory:'); db.execute('create table a(x)')",
    "db.execute('select count(*) from a').fetchone()",
)
state("context variables", "import contextvars\nv = contextvars.ContextVar('v', default=1); v.set(2)", "v.get()")
state(
    "argparse and types",
    "import argparse, types\np = argparse.ArgumentParser(); p.add_argument('--lr', type=float, default=.1); args = p.parse_args([]); ns = types.SimpleNamespace(a=1)",
    "p.parse_args(['--lr', '2']).lr, args.lr, ns.a",
)
state("results of cells", "x = 41\nx + 1", "_, Out[1] if 1 in Out else None")
state(
    "widget",
    "import ipywidgets\nw = ipywidgets.IntSlider(value=3); seen = []; w.observe(lambda c: seen.append(c['new']), 'value'); w.value = 4",
    "setattr(w, 'value', 5), seen",
)
state(
    "scikit-learn model",
    "from sklearn.linear_model import SGDClassifier\nimport numpy as np\nm = SGDClassifier(random_state=0); m.partial_fit(np.array([[0.], [1.]]), [0, 1], classes=[0, 1]); m.note = 'x'",
    "m.partial_fit(np.array([[0.], [1.]]), [0, 1]) and m.coef_.tolist(), m.note",
)

# -- as public notebooks and repositories have them, found after the rules of a save were written -----------

state(
    "optimizer that wraps another, without its __init__",
    f"{NET}from collections import defaultdict\nclass Ahead(torch.optim.Optimizer):\n    def __init__(self, base, k=2):\n        self.base, self.k, self.n = base, k, 0; self.param_groups, self.defaults = base.param_groups, base.defaults; self.state = defaultdict(dict)\n        for p in net.parameters(): self.state[p]['slow'] = p.detach().clone()\n    def zero_grad(self): self.base.zero_grad()\n    def step(self):\n        self.base.step(); self.n += 1\n        for p, s in self.state.items(): p.data.lerp_(s['slow'], .5)\nopt = Ahead(torch.optim.Adam(net.parameters()))\n{GO}",
    "step(), opt.n, opt.base.param_groups is opt.param_groups",
)
state(
    "optimizer in two steps with a base",
    f"{NET}class Sam(torch.optim.Optimizer):\n    def __init__(self, params, base, rho=.05, **k):\n        super().__init__(params, dict(rho=rho, **k)); self.base_optimizer = base(self.param_groups, **k); self.param_groups = self.base_optimizer.param_groups; self.first = True\n    def step(self): self.first = not self.first; self.base_optimizer.step()\nopt = Sam(net.parameters(), torch.optim.SGD, lr=.1, momentum=.9)\n{GO}",
    "step(), opt.first, opt.base_optimizer.param_groups is opt.param_groups",
)
state(
    "replay memory",
    "import random, torch\nfrom collections import namedtuple, deque\nTransition = namedtuple('Transition', ('state', 'action'))\nclass Memory:\n    def __init__(self): self.memory = deque([], maxlen=5)\n    def push(self, *a): self.memory.append(Transition(*a))\nm = Memory(); random.seed(1); [m.push(torch.ones(1) * i, i) for i in range(7)]",
    "Transition(*zip(*random.sample(m.memory, 3))).action, isinstance(m.memory[0], Transition)",
)
state(
    "meters of averages",
    "class Meter:\n    def __init__(self, name): self.name = name; self.reset()\n    def reset(self): self.sum = self.n = 0\n    def update(self, v): self.sum += v; self.n += 1\n    @property\n    def avg(self): return self.sum / self.n\nmeters = {k: Meter(k) for k in 'ab'}; first = meters['a']; first.update(2)",
    "first.update(4), meters['a'].avg",
)
state(
    "early stopping with the best weights",
    f"{NET}import copy\nclass Stop:\n    best = float('inf')\n    def __call__(self, loss, net):\n        if loss < self.best: self.best, self.weights = loss, copy.deepcopy(net.state_dict())\nstop = Stop(); stop(.5, net)",
    "stop(.6, net), stop.best, stop.weights['0.bias'].tolist()",
)
state(
    "logger of a function, to stdout",
    "import logging, sys\ndef get_logger(name='case.s'):\n    log = logging.getLogger(name)\n    if not log.handlers:\n        h = logging.StreamHandler(sys.stdout); h.setFormatter(logging.Formatter('%(message)s')); log.addHandler(h)\n    log.setLevel(logging.INFO); return log\nlogger = get_logger()",
    "len(get_logger().handlers), logger.handlers[0].formatter._fmt, logger.handlers[0].stream is sys.stdout",
)
state(
    "handlers of the root that were removed",
    "import logging\nfor h in logging.root.handlers[:]: logging.root.removeHandler(h)\nlogging.root.setLevel('ERROR')",
    "logging.root.handlers, logging.root.level, logging.root.setLevel('WARNING')",
)
state(
    "seeds and flags of one function",
    "import os, random, numpy as np, torch\ndef set_seed(s):\n    random.seed(s); np.random.seed(s); torch.manual_seed(s); torch.backends.cudnn.deterministic = True; os.environ['PYTHONHASHSEED'] = str(s)\nset_seed(42)",
    "torch.backends.cudnn.deterministic, os.environ['PYTHONHASHSEED'], random.random(), setattr(torch.backends.cudnn, 'deterministic', False)",
)
state(
    "Adam by hand",
    f"{NET}class Hand(torch.optim.Optimizer):\n    def __init__(self, params, lr=.01): super().__init__(params, dict(lr=lr))\n    def step(self):\n        for g in self.param_groups:\n            for p in g['params']:\n                s = self.state[p]; s['n'] = s.get('n', 0) + 1; s['m'] = .9 * s.get('m', torch.zeros_like(p)) + .1 * p.grad; p.data.add_(s['m'], alpha=-g['lr'] / s['n'])\nopt = Hand(net.parameters())\n{GO}",
    "step(), opt.state[net[0].bias]['n']",
)
state(
    "vocabulary with a default",
    "from collections import Counter, defaultdict\ncounts = Counter('to be or not to be'.split()); vocab = defaultdict(lambda: 0, {w: i + 1 for i, w in enumerate(counts)})",
    "vocab['be'], vocab['unknown'], counts.most_common(1)",
)
state(
    "collate function in a loader",
    "import torch, functools\ndef collate(batch, pad): return torch.stack([torch.nn.functional.pad(b, (0, pad - len(b))) for b in batch])\nclass Data(torch.utils.data.Dataset):\n    def __len__(self): return 3\n    def __getitem__(self, i): return torch.ones(i + 1)\nloader = torch.utils.data.DataLoader(Data(), 2, collate_fn=functools.partial(collate, pad=4))",
    "[b.shape for b in loader]",
)
state(
    "callbacks that are bound methods",
    "class Hook:\n    def __init__(self): self.log = []\n    def on_end(self, x): self.log.append(x)\nh = Hook(); callbacks = {'end': [h.on_end, lambda x: h.log.append(-x)]}",
    "[c(3) for c in callbacks['end']], h.log",
)
state(
    "finder of a learning rate",
    f"{NET}import math\nclass Finder:\n    def __init__(self, net, opt): self.net, self.opt, self.history = net, opt, {{'lr': [], 'loss': []}}; self.saved = {{k: v.clone() for k, v in net.state_dict().items()}}\n    def back(self): self.net.load_state_dict(self.saved)\nopt = torch.optim.SGD(net.parameters(), lr=.1); f = Finder(net, opt)\n{GO}",
    "step(), f.back(), net[0].bias.tolist(), f.opt is opt",
)
state(
    "progress bar",
    "from tqdm import tqdm\nimport io\nbar = tqdm(range(5), file=io.StringIO()); bar.update(2)",
    "bar.n, bar.total",
)
state(
    "two networks that play",
    "import torch\ntorch.manual_seed(1); G, D = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1); optG, optD = torch.optim.Adam(G.parameters(), betas=(.5, .999)), torch.optim.Adam(D.parameters()); noise = torch.randn(3, 2)\ndef play():\n    optD.zero_grad(); (-D(G(noise).detach()).mean()).backward(); optD.step(); optG.zero_grad(); l = D(G(noise)).mean(); l.backward(); optG.step(); return l.item()\nplay()",
    "play(), play(), noise.tolist()",
)
state(
    "buffers that no state_dict has",
    "import torch\nclass P(torch.nn.Module):\n    def __init__(self): super().__init__(); self.register_buffer('pe', torch.arange(3.), persistent=False); self.k_cache = None\n    def forward(self, x): self.k_cache = x if self.k_cache is None else torch.cat([self.k_cache, x]); return self.k_cache + self.pe.sum()\np = P(); p(torch.ones(1))",
    "p(torch.ones(1)).tolist(), list(p.state_dict())",
)
state(
    "transforms in a list",
    "import torch\nclass Compose:\n    def __init__(self, ts): self.ts = ts\n    def __call__(self, x):\n        for t in self.ts: x = t(x)\n        return x\ntf = Compose([torch.nn.Flatten(0), lambda x: x * 2, torch.abs])",
    "tf(-torch.ones(1, 2)).tolist()",
)
state(
    "operator of a library of torch",
    "import torch\n@torch.library.custom_op('own_case::twice', mutates_args=())\ndef twice(x: torch.Tensor) -> torch.Tensor: return x * 2",
    "twice(torch.ones(1)).tolist()",
)
state(
    "pipeline of scikit-learn",
    "from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import StandardScaler, FunctionTransformer\nfrom sklearn.linear_model import LogisticRegression\nimport numpy as np\npipe = make_pipeline(FunctionTransformer(lambda x: x + 1), StandardScaler(), LogisticRegression()); X = np.array([[0.], [1.], [2.], [3.]]); pipe.fit(X, [0, 0, 1, 1])",
    "pipe.predict(X).tolist()",
)
state(
    "settings of an object with attributes by name",
    "class Config(dict):\n    __getattr__ = dict.__getitem__\n    __setattr__ = dict.__setitem__\ncfg = Config(lr=.1, model=Config(width=2)); cfg.model.width = 3",
    "cfg.model.width, cfg.lr, isinstance(cfg.model, Config)",
)
state(
    "time and results in a run of an experiment",
    "import time, datetime, json\nclass Run:\n    runs = {}\n    def __init__(self, name): self.name, self.began, self.rows = name, datetime.datetime(2026, 1, 1), []; Run.runs[name] = self\n    def __enter__(self): return self\n    def __exit__(self, *a): self.rows.append(json.dumps({'end': True}))\nwith Run('a') as r: r.rows.append(1)",
    "Run.runs['a'] is r, r.rows, r.began.year",
)

# -- registries of libraries -------------------------------------------------------------------------------

state(
    "accessor of pandas",
    "import pandas as pd\n@pd.api.extensions.register_series_accessor('acc')\nclass Acc:\n    def __init__(s, f): s.f = f",
    "hasattr(pd.Series, 'acc')",
)
state(
    "pickling of a class",
    "import copyreg, copy\nclass B: pass\ndef red(b): return (B, ())\ncopyreg.pickle(B, red)",
    "B in copyreg.dispatch_table",
)
state(
    "codec",
    "import codecs\ndef find(n): return codecs.lookup('utf-8') if n == 'own_codec' else None\ncodecs.register(find)",
    "'a'.encode('own_codec')",
)
state(
    "virtual subclass",
    "import collections.abc\nclass Mine: pass\ncollections.abc.Sequence.register(Mine)",
    "issubclass(Mine, collections.abc.Sequence)",
)
state(
    "colormap",
    "import matplotlib\nfrom matplotlib.colors import ListedColormap\nmatplotlib.colormaps.register(ListedColormap(['r'], name='own'))",
    "'own' in matplotlib.colormaps",
)
state(
    "handler of a signal",
    "import signal\ndef onusr(*a): pass\nsignal.signal(signal.SIGUSR2, onusr)",
    "signal.getsignal(signal.SIGUSR2) is onusr",
)
state(
    "function for errors of NumPy",
    "import numpy as np\ndef oops(*a): pass\nnp.seterrcall(oops)",
    "np.geterrcall() is oops",
)
state(
    "finder of modules",
    "import sys\nclass Finder:\n    @staticmethod\n    def find_spec(*a): return None\nsys.meta_path.append(Finder)",
    "Finder in sys.meta_path",
)
state("type of files", "import mimetypes\nmimetypes.add_type('a/b', '.own')", "mimetypes.guess_type('x.own')")
state("name in builtins", "import builtins\nbuiltins.own_name = [1]", "own_name")
state("hook for results", "import sys\ndef show(x): pass\nsys.displayhook = show", "sys.displayhook is show")
state(
    "safe class of torch",
    "import torch\nclass S: pass\ntorch.serialization.add_safe_globals([S])",
    "S in torch.serialization.get_safe_globals()",
)
state(
    "divergence of distributions",
    "import torch\nclass D(torch.distributions.Normal): pass\n@torch.distributions.register_kl(D, D)\ndef kl(p, q): return 7",
    "torch.distributions.kl_divergence(D(0., 1.), D(0., 1.))",
)
state(
    "magic of a cell",
    "from IPython.core.magic import register_line_magic\n@register_line_magic\ndef own_magic(line): return line",
    "get_ipython().find_line_magic('own_magic') is not None",
)
state(
    "HTML of a class",
    "class F: pass\nget_ipython().display_formatter.formatters['text/html'].for_type(F, lambda f: 'html')",
    "get_ipython().display_formatter.format(F())[0].get('text/html')",
)
state(
    "handler of IPython's errors",
    "def handler(*a, **k): pass\nget_ipython().set_custom_exc((ZeroDivisionError,), handler)",
    "get_ipython().custom_exceptions",
)
state(
    "transformer of cells",
    "def tr(lines): return lines\nget_ipython().input_transformers_post.append(tr)",
    "tr in get_ipython().input_transformers_post",
)
state(
    "transformer of syntax trees",
    "import ast\nclass T(ast.NodeTransformer): pass\nt = T(); get_ipython().ast_transformers.append(t)",
    "t in get_ipython().ast_transformers",
)
state(
    "alias of a command",
    "get_ipython().run_line_magic('alias', 'own_ls ls')",
    "get_ipython().find_line_magic('own_ls') is not None",
)
state(
    "display of warnings", "import warnings\ndef sw(*a): pass\nwarnings.showwarning = sw", "warnings.showwarning is sw"
)
state("text of warnings", "import warnings\nwarnings.formatwarning = lambda *a: 'w'", "warnings.formatwarning(1,2,3,4)")
state("name of a level of logging", "import logging\nlogging.addLevelName(15, 'NOTE')", "logging.getLevelName(15)")
state(
    "configuration of scikit-learn",
    "import sklearn\nsklearn.set_config(display='text', transform_output='pandas')",
    "sklearn.get_config()['transform_output']",
)
state("setting of a class of tqdm", "from tqdm import tqdm\ntqdm.monitor_interval = 0", "tqdm.monitor_interval")
state("encoder of json", "import json\njson._default_encoder.ensure_ascii = False", "json.dumps('é')")
state("lengths of reprlib", "import linecache, reprlib\nreprlib.aRepr.maxlist = 2", "reprlib.repr([1,2,3])")
state(
    "units of Matplotlib",
    "import matplotlib.units as mu\nclass U: pass\nclass Conv(mu.ConversionInterface): pass\nmu.registry[U] = Conv()",
    "U in mu.registry",
)
state("protocol of pickle", "import pickle, io\npickle.DEFAULT_PROTOCOL = 2", "pickle.DEFAULT_PROTOCOL")
LAST["codec"] = "codecs.unregister(find) if hasattr(codecs, 'unregister') else None"
LAST["handler of IPython's errors"] = "get_ipython().set_custom_exc((), None)"
LAST["transformer of syntax trees"] = "get_ipython().ast_transformers.clear()"
LAST["transformer of cells"] = "get_ipython().input_transformers_post.clear()"

# -- public code ------------------------------------------------------------------------------------------

for address, (before, cell, look, *last) in FOUND.items():
    state(address, f"{before}\n{cell}", look)
    LAST[address] = "".join(last)
