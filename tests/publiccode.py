"""Cells in the manner of public files, which were read after the rules for saves and undo were written.

Each has the code before a cell, the cell, and what is looked at; its name is the file's address on GitHub.
"""

from __future__ import annotations

FOUND: dict[str, tuple[str, ...]] = {
    "K-Wu/python_and_bash_playground try_pytorch_nested_module_hooks.py": (
        "import torch\nfrom torch import nn\nseen = []\nnet = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))\nx = torch.ones(2, 3)",
        "handle = nn.modules.module.register_module_forward_hook(lambda m, i, o: seen.append(repr(m)))\nnet(x).sum().backward()",
        "(seen, len(nn.modules.module._global_forward_hooks), net[0].weight.grad)",
        "handle.remove()",
    ),
    "hanqi-qi/Revisit_monosemanticity llama_hook.py": (
        "import torch\nactivation = {}\ndef keep(name):\n    def hook(m, i, o): activation[name] = o.detach()\n    return hook\n"
        "net = torch.nn.Linear(2, 2)\nhandle = net.register_forward_hook(keep('first'))\nx = torch.ones(1, 2)",
        "y = net(x); handle.remove()",
        "(sorted(activation), len(net._forward_hooks), 'y' in globals())",
    ),
    "MANISH-K-07/ModelTrace modeltrace/core/hooks.py": (
        "import torch\nclass Keeper:\n    def __init__(s): s.kept = {}\n    def register(s, m):\n        for n, l in m.named_modules():\n"
        "            if n: l.register_forward_hook(s.of(n))\n    def of(s, n):\n        def hook(m, i, o): s.kept[n] = o.detach().cpu()\n        return hook\n"
        "net = torch.nn.Sequential(torch.nn.Linear(2, 2)); keeper = Keeper()",
        "keeper.register(net); net(torch.ones(1, 2))",
        "(sorted(keeper.kept), len(net[0]._forward_hooks))",
    ),
    "sanamedio/log-of-learning notes-03-nov-2018.md": (
        "def method_of(cls):\n    def deco(f): setattr(cls, f.__name__, f); return f\n    return deco\nclass Test: pass\nt = Test()",
        "@method_of(Test)\ndef hello(self): return 1\nTest.fella = property(lambda self: 2)",
        "(hasattr(t, 'hello'), hasattr(t, 'fella'))",
    ),
    "xubujie/DataScience_utils useful_notebook_settings.py": (
        "import logging, sys, warnings\nimport pandas as pd",
        "pd.options.display.float_format = '{:,.2f}'.format\npd.set_option('display.max_rows', 400)\nwarnings.filterwarnings('ignore')\n"
        "logging.basicConfig(level=logging.INFO, force=True)\nsys.path.append('../src/')",
        "(pd.options.display.float_format, pd.get_option('display.max_rows'), len(warnings.filters), logging.root.level, len(logging.root.handlers), sys.path[-1])",
    ),
    "kingmolnar/DataScienceProgramming nbheader.py": (
        "import pandas as pd\nchosen = {'max_columns': 50, 'max_colwidth': 100, 'precision': 3}",
        "for option, value in chosen.items(): pd.set_option(f'display.{option}', value)",
        "[pd.get_option(f'display.{option}') for option in chosen]",
    ),
    "amueller/introduction_to_ml_with_python preamble.py": (
        "import matplotlib; matplotlib.use('agg')\nimport matplotlib.pyplot as plt, numpy as np\nfrom cycler import cycler",
        "plt.rcParams['image.cmap'] = 'magma'\nplt.rc('axes', prop_cycle=cycler('color', ['r', 'g']))\nnp.set_printoptions(precision=3, suppress=True)",
        "(plt.rcParams['image.cmap'], repr(plt.rcParams['axes.prop_cycle']), np.get_printoptions()['precision'])",
    ),
    "Q-Cqianchen/RL utils.py": (
        "import random\nfrom collections import deque\nclass Replay:\n    def __init__(s, n): s.buffer = deque(maxlen=n)\n"
        "    def push(s, *one): s.buffer.append(one)\n    def sample(s, n): return random.sample(s.buffer, n)\nreplay = Replay(3)\n"
        "for i in range(3): replay.push(i)\nrandom.seed(1)",
        "replay.push(9); drawn = replay.sample(2)",
        "(list(replay.buffer), random.getstate())",
    ),
    "amjadmajid/ROS2-DRL-Turtlebot3-like-LIDAR-Robot replaybuffer.py": (
        "import collections\nclass Replay:\n    memory = 0\n    def __init__(s, n): s.memory = collections.deque(maxlen=n)\nr = Replay(2)",
        "Replay.memory = 5; r.memory.extend([1, 2, 3]); del r.memory",
        "(Replay.memory, r.memory)",
    ),
    "sajjadGG/book-python advanced/decorators/functools.rst": (
        "from functools import cached_property, lru_cache\n@lru_cache(maxsize=None)\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "class Iris:\n    calls = 0\n    @cached_property\n    def mean(s): Iris.calls += 1; return 1.5\nflower = Iris()",
        "fib(16); flower.mean",
        "(Iris.calls, vars(flower))",
    ),
    "mdmaid69/reimagined-giggle main.py": (
        "import functools\ndef memoize(f):\n    cache = {}\n    @functools.wraps(f)\n    def inner(*a):\n        if a not in cache: cache[a] = f(*a)\n"
        "        return cache[a]\n    return inner\n@memoize\ndef square(x): return x * x",
        "square(3)",
        "square.__closure__[0].cell_contents",
    ),
    "pytorch/pytorch torch/overrides.py": (
        "import torch\nfrom torch.overrides import TorchFunctionMode\nclass Count(TorchFunctionMode):\n    n = 0\n"
        "    def __torch_function__(s, f, t, a=(), k=None): Count.n += 1; return f(*a, **(k or {}))\nx = torch.ones(2)",
        "with Count(): x.add_(1); torch.relu(x)",
        "(Count.n, x.tolist())",
    ),
    "YHL04/memeagent utils/runningmeanstd.py": (
        "import numpy as np\nclass Moments:\n    def __init__(s): s.mean = np.zeros(1, np.float32); s.var = np.ones(1, np.float32); s.count = 0\n"
        "    def update(s, x):\n        s.count += len(x); step = x.mean(0) - s.mean; s.mean += step * len(x) / s.count; s.var = (s.var + x.var(0)) / 2\n"
        "    def mean(s): return s.mean.item()\nmoments = Moments()",
        "moments.update(np.ones((4, 1), np.float32)); moments.update(np.zeros((2, 1), np.float32))",
        "(moments.mean.tolist(), moments.var.tolist(), moments.count, callable(type(moments).mean))",
    ),
    "thlautenschlaeger/rl_algorithms rs_algorithm/normalizer.py": (
        "import numpy as np\nclass Normalizer():\n    def __init__(s, k): s.n, s.mean, s.gap, s.var = (np.zeros(k) for _ in range(4))\n"
        "    def observe(s, x):\n        s.n += 1.; last = s.mean.copy(); s.mean += (x - s.mean) / s.n; s.gap += (x - last) * (x - s.mean)\n"
        "        s.var = np.clip(s.gap / s.n, a_min=1e-7, a_max=None)\nnorm = Normalizer(2); view = norm.mean[:1]; norm.observe(np.ones(2))",
        "norm.observe(np.array([3., 5.])); norm.observe(norm.mean)",
        "(norm.n.tolist(), norm.mean.tolist(), norm.var.tolist(), view.tolist(), view.base is norm.mean)",
    ),
    "StanislasStrasman/CLD src/ema.py": (
        "import torch\nclass Average:\n    def __init__(s, m): s.model = m; s.shadow = {n: p.data.clone() for n, p in m.named_parameters()}; s.backup = {}\n"
        "    def apply(s):\n        for n, p in s.model.named_parameters(): s.backup[n] = p.data.clone(); p.data = s.shadow[n]\n"
        "net = torch.nn.Linear(2, 1)\nwith torch.no_grad():\n    for p in net.parameters(): p.fill_(1)\nema = Average(net)\nwith torch.no_grad(): net.bias.fill_(5)",
        "ema.apply(); net.weight.data.mul_(3)",
        "(net.weight.tolist(), net.bias.tolist(), ema.shadow['weight'].tolist(), sorted(ema.backup), net.weight.data_ptr() == ema.shadow['weight'].data_ptr())",
    ),
    "nlsgrndn/SCoBots src/metric_logger.py": (
        "from collections import defaultdict, deque\nclass Smoothed:\n    def __init__(s, n=2): s.values = deque(maxlen=n); s.count = 0; s.sum = 0.\n"
        "    def update(s, x): s.values.append(x); s.count += 1; s.sum += x\nclass Logger:\n    def __init__(s): s.values = defaultdict(Smoothed)\n"
        "    def __setitem__(s, k, x): s.values[k].update(x)\nlog = Logger(); log['loss'] = 1.",
        "log['loss'] = 2.; log['loss'] = 3.; log['lr'] = .1; log.values['seen']",
        "[(k, list(v.values), v.count, v.sum) for k, v in log.values.items()], log.values.default_factory is Smoothed",
    ),
    "andresdb91/evbr_megachess config_manager.py": (
        "class Singleton(type):\n    _instances = {}\n    def __call__(cls, *a, **k):\n        if cls not in cls._instances: cls._instances[cls] = super().__call__(*a, **k)\n"
        "        return cls._instances[cls]\nclass Manager(metaclass=Singleton):\n    current = None\n    def __init__(s, config): Manager.current = s; s.config = dict(config)\n"
        "    @classmethod\n    def set(cls, k, v): cls.current.config[k] = v\nManager({'lr': .1})",
        "Manager.set('lr', 5); Manager({'other': 1}); Manager.set('more', 2)",
        "(Manager.current.config, len(Singleton._instances), Manager(0) is Manager.current)",
    ),
    "rraadd88/rohan rohan/lib/__init__.py": (
        "import pandas as pd\nclass Tools:\n    def __init__(s, obj): s._obj = obj\npd.DataFrame.tools = property(lambda s: Tools(s))\n"
        "def method_of(cls):\n    def add(f): setattr(cls, f.__name__, lambda s, *a: f(s._obj, *a)); return f\n    return add\nframe = pd.DataFrame({'a': [1, 2]})",
        "@method_of(Tools)\ndef total(df): return int(df['a'].sum())\nframe.loc[0, 'a'] = 7",
        "(sorted(n for n in vars(Tools) if n[0] != '_'), frame['a'].tolist(), hasattr(frame, 'tools'))",
        "del pd.DataFrame.tools",
    ),
    "lucalista/shinestacker config/config.py": (
        "class Config:\n    _ready = False\n    _one = None\n    def __new__(cls):\n        if cls._one is None: cls._one = super().__new__(cls); cls._one._quiet = False\n"
        "        return cls._one\n    def init(s, **k):\n        for n, v in k.items(): setattr(s, f'_{n}', v)\n        s._ready = True\n"
        "    def __setattr__(s, n, v):\n        if s._ready: raise AttributeError(n)\n        super().__setattr__(n, v)\nconfig = Config()",
        "config.init(quiet=True, more=[1])",
        "(vars(config), Config._ready, Config() is config)",
    ),
    "QLYYLQ/when-SAM-meets-Continual-Learning model/utils/register.py": (
        "_known = {}\ndef register(f): _known['.'.join(f.__module__.split('.')[-1:] + [f.__name__])] = f; return f\n@register\ndef small(): return 1",
        "@register\ndef large(): return 2\n_known['__main__.small'] = _known.pop(next(iter(_known)))",
        "[(k, f()) for k, f in _known.items()]",
    ),
    "m-lundberg/cartpole-qlearning cartpole_qlearning/agent.py": (
        "import random\nfrom collections import defaultdict\nrandom.seed(3)\nclass Agent:\n    def __init__(s, n): s.q = defaultdict(lambda: [random.random() for _ in range(n)])\n"
        "    def learn(s, a, r): s.q[a][r] = .5 * s.q[a][r] + max(s.q[a + 1])\nagent = Agent(2); agent.learn(0, 1)",
        "agent.learn(4, 0); agent.learn(0, 1)",
        "(sorted(agent.q.items()), random.getstate()[1][-1])",
    ),
    "yeetao13/gpt-clone utils/ReplaceLinearWithLora.py": (
        "import torch\ntorch.manual_seed(0)\nclass Low(torch.nn.Module):\n    def __init__(s, inner): super().__init__(); s.inner = inner; s.a = torch.nn.Parameter(torch.rand(2, 1)); s.b = torch.nn.Parameter(torch.zeros(1, 2))\n"
        "    def forward(s, x): return s.inner(x) + x @ s.a @ s.b\nnet = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))\n"
        "for p in net.parameters(): p.requires_grad_(False)\n"
        "def exchange(m):\n    for n, c in m.named_children():\n        if isinstance(c, torch.nn.Linear): setattr(m, n, Low(c))\n        else: exchange(c)",
        "exchange(net); opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad]); net(torch.ones(1, 2)).sum().backward(); opt.step()",
        "(sorted(net.state_dict()), [p.tolist() for p in net.parameters()], [p.requires_grad for p in net.parameters()])",
    ),
    "JLEESH/cefl-test lora.py": (
        "import torch\nclass Layer(torch.nn.Module):\n    def __init__(s, l): super().__init__(); s.linear = l; s.added = None\n    def forward(s, x): return s.linear(x) if s.added is None else s.linear(x) + s.added @ x\n"
        "    def attach(s, w): s.added = w\nlayer = Layer(torch.nn.Linear(2, 2, bias=False)); layer.linear.weight.data.fill_(1); w = torch.ones(2, 2)",
        "layer.attach(w); w.mul_(3)",
        "(layer(torch.ones(2)).tolist(), layer.added is w, list(layer.state_dict()))",
    ),
    "xkilaboshix/python_programming lesson.py": (
        "import functools\ncalls = []\ndef memo(f):\n    known = {}\n    @functools.wraps(f)\n    def inner(n):\n        if n not in known: known[n] = f(n)\n        return known[n]\n    inner.known = known\n    return inner\n"
        "@memo\ndef fib(n):\n    calls.append(n)\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(4)",
        "fib(9); fib.known[1] = 7",
        "(fib(9), sorted(fib.known), fib.known is fib.__closure__[1].cell_contents, len(calls), fib.__wrapped__ is not fib)",
    ),
    "iamslash/TIL python/functools.md": (
        "from functools import singledispatch, total_ordering, partial, reduce\n@singledispatch\ndef show(x): return 'other'\n@show.register(int)\ndef _(x): return 'int'",
        "class Mine: pass\n@show.register(Mine)\ndef _(x): return 'mine'\n@show.register(list)\ndef _(x): return f'{len(x)} of ' + show(x[0])",
        "(show(1), show([1.0]), show(Mine()) if 'Mine' in globals() else None, sorted(one.__name__ for one in show.registry))",
    ),
    "paweln1975/python-matt 10.05-memoization/notes.py": (
        "class Cache(dict):\n    def __init__(s, f): s.f, s.misses = f, 0\n    def __call__(s, *a): return s[a]\n    def __missing__(s, a): s.misses += 1; s[a] = s.f(*a); return s[a]\n@Cache\ndef double(x): return 2 * x\ndouble(1)",
        "double(2); double(3)",
        "(dict(double), double.misses, double.f(4))",
    ),
    "drowning-in-codes/build-my-own-x building_makemore/mlp.py": (
        "import torch, torch.nn.functional as F\nwords = ['emma', 'olivia']; stoi = {c: i + 1 for i, c in enumerate(sorted(set(''.join(words))))}; stoi['.'] = 0; itos = {i: c for c, i in stoi.items()}\n"
        "g = torch.Generator().manual_seed(5); C = torch.randn((len(stoi), 2), generator=g, requires_grad=True); W = torch.randn((2, len(stoi)), generator=g, requires_grad=True); lossi = []\n"
        "X, Y = torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0])",
        "for _ in range(3):\n    loss = F.cross_entropy(C[X] @ W, Y)\n    for p in (C, W): p.grad = None\n    loss.backward()\n    for p in (C, W): p.data += -0.1 * p.grad\n    lossi.append(loss.item())\nix = torch.multinomial(torch.ones(3), 1, generator=g)",
        "(C.tolist(), W.grad is not None, lossi, g.get_state().tolist()[:20], itos)",
    ),
    "allanchan339/allanchan339.github.io 2023-01-10-Code-Review-DDPM.md": (
        "import torch\nfrom functools import partial\ntorch.manual_seed(2)\nclass Residual(torch.nn.Module):\n    def __init__(s, fn): super().__init__(); s.fn = fn\n    def forward(s, x): return s.fn(x) + x\n"
        "block = partial(torch.nn.Conv1d, 1, 1, padding=1); net = Residual(block(3)); betas = torch.linspace(.1, .2, 4); alphas = (1 - betas).cumprod(0); opt = torch.optim.Adam(net.parameters())",
        "t = torch.randint(0, 4, (1,)); noise = torch.randn(1, 1, 5); opt.zero_grad(); (net(alphas[t] * noise) - noise).square().mean().backward(); opt.step()",
        "([p.tolist() for p in net.parameters()], len(opt.state), torch.get_rng_state().tolist()[:30], block.keywords, 'noise' in globals())",
    ),
    "nikdom769/test_py_200 lab_03/observer.py": (
        "from weakref import ref\nclass Watcher:\n    def __init__(s): s.seen = []\n    def update(s, x): s.seen.append(x)\nclass Subject:\n    def __init__(s): s.o = set()\n    def add(s, w): s.o.add(ref(w))\n"
        "    def tell(s, x):\n        for r in s.o: r().update(x)\nfirst, second, subject = Watcher(), Watcher(), Subject(); subject.add(first)",
        "subject.add(second); subject.tell(4)",
        "(first.seen, second.seen, len(subject.o), all(r() in (first, second) for r in subject.o))",
    ),
    "hdchan/SWU_Image_Fetcher ApplicationCore/Observation/ObservationTower.py": (
        "import weakref\nclass Tower:\n    def __init__(s): s.subs = {}\n    def on(s, who, kind): s.subs.setdefault(kind, []).append(weakref.ref(who))\n"
        "    def notify(s, e):\n        s.subs[type(e)] = list(filter(lambda r: r() is not None, s.subs[type(e)]))\n        for r in s.subs[type(e)]: r().handle(e)\n"
        "class Event: pass\nclass Panel:\n    def __init__(s): s.n = 0\n    def handle(s, e): s.n += 1\ntower, panel, other = Tower(), Panel(), Panel(); tower.on(panel, Event); tower.on(other, Event)",
        "del other; tower.notify(Event())",
        "(panel.n, len(tower.subs[Event]), 'other' in globals())",
    ),
    "ItsMeThom/vsmm vsmm/signalling/observer.py": (
        "class Event: pass\nclass Source:\n    def __init__(s): s.callbacks = []\n    def subscribe(s, f): s.callbacks.append(f)\n"
        "    def fire(s, **a):\n        e = Event(); e.source = s; e.__dict__.update(a)\n        for f in s.callbacks: f(e)\nlast = []; source = Source(); source.subscribe(last.append); source.subscribe(lambda e: last.append(e.x + 1))",
        "source.fire(x=1); source.subscribe(print)",
        "(len(last), [getattr(e, 'x', e) for e in last], all(e.source is source for e in last[::2]), source.callbacks[-1] is print)",
    ),
    "gcalmettes/pandas-groupby-apply-chaining-extension README.md": (
        "import pandas as pd\ndf = pd.DataFrame({'k': list('aab'), 'v': [1., 2., 3.]})",
        "@pd.api.extensions.register_dataframe_accessor('chained_case')\nclass Chained:\n    def __init__(s, frame): s.frame, s.steps = frame, []\n    def then(s, f): s.steps.append(f); return s\ndf.chained_case.then(len)",
        "(hasattr(pd.DataFrame, 'chained_case'), len(df.chained_case.steps) if hasattr(df, 'chained_case') else None)",
        "for _ in range(hasattr(pd.DataFrame, 'chained_case')): del pd.DataFrame.chained_case; pd.DataFrame._accessors.discard('chained_case')",
    ),
    "XI-Lab/CatDNNs script/tensor_info.py": (
        "import torch\nold_repr = torch.Tensor.__repr__\nt = torch.ones(2)",
        "def info(tensor): return f'{tuple(tensor.shape)} {old_repr(tensor)}'\ntorch.Tensor.__repr__ = info",
        "(repr(t), torch.Tensor.__repr__ is old_repr)",
        "torch.Tensor.__repr__ = old_repr",
    ),
    "DApIA-Project/Anomaly-Detection _Utils/numpy_print.py": (
        "import numpy as np\nx = np.array([1 / 3])",
        "np.set_printoptions(formatter={'float': lambda x: '{0:0.6f}'.format(x)}, linewidth=np.inf, threshold=9999)",
        "(repr(x), np.get_printoptions()['threshold'], np.get_printoptions()['linewidth'])",
        "np.set_printoptions(formatter=None, linewidth=75, threshold=1000)",
    ),
    "fedotovroman/aaa_python 6decorator/problem1.py": (
        "import sys\nlines = []\noriginal_write = sys.stdout.write",
        "def my_write(text):\n    lines.append(text)\n    return original_write(text)\nsys.stdout.write = my_write\nprint('a')",
        "(lines, sys.stdout.write == original_write)",
        "sys.stdout.write = original_write",
    ),
    "REDxEYE/VK_BOT CustomPrint.py": (
        "import builtins\nprinted = []\nreal = builtins.print",
        "def stamped(*a, **k): printed.append(a); real('[now]', *a, **k)\nbuiltins.print = stamped\nprint('x')",
        "(printed, builtins.print is real)",
        "builtins.print = real",
    ),
    "zensum/validator-service utils/request_id.py": (
        "from contextvars import ContextVar, copy_context\nrequest_id = ContextVar('request_id', default='?')",
        "token = request_id.set('abc'); kept = copy_context()",
        "(request_id.get(), 'kept' in globals() and kept[request_id])",
    ),
    "VasciaveoLab/nsd2-paper-at-nature src/helper_funcs.py": (
        "stamps = []\ndef stamp(info): stamps.append(info is not None)",
        "get_ipython().events.register('pre_run_cell', stamp)",
        "(len(stamps), stamp in get_ipython().events.callbacks['pre_run_cell'])",
        "get_ipython().events.callbacks['pre_run_cell'][:] = [one for one in get_ipython().events.callbacks['pre_run_cell'] if getattr(one, '__name__', '') != 'stamp']",
    ),
}
