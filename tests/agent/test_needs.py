"""Which cells need all ranks: a table of cells, with what they call."""

import time

import pytest

from jupyter_dist.agent.group.cellcode.definitions import Definitions
from jupyter_dist.agent.group.cellcode.needs import MAX_CELL_BYTES, WORDS, find_need

HAS = {"model": "model", "fsdp": "sharded", "trainer": "trainer", "accelerator": "accelerator"}

NEEDS = [
    ("dist.all_reduce(x)", "all_reduce"),
    ("y = 1\ndist.broadcast(x, 0)", "broadcast"),
    ("torch.distributed.barrier()", "barrier"),
    ("import torch.distributed as td\ntd.all_gather(xs, x)", "all_gather"),
    ("from torch import distributed as d\nd.barrier()", "barrier"),
    ("from torch.distributed import all_reduce\nall_reduce(x)", "all_reduce"),
    ("from torch.distributed import all_reduce as ar\nar(x)", "all_reduce"),
    ("dist.all_reduce(x, group=None)", "all_reduce"),
    ("dist.all_reduce(x, group=dist.group.WORLD)", "all_reduce"),
    ("dist.all_reduce(x, dist.ReduceOp.SUM)", "all_reduce"),
    ("dist.all_reduce(x, async_op=True).wait()", "all_reduce"),
    ("for x in range(3):\n    dist.barrier()", "barrier"),
    ("if steps > 3:\n    dist.barrier()", "barrier"),
    ("with torch.no_grad():\n    dist.all_reduce(x)", "all_reduce"),
    ("try:\n    dist.barrier()\nfinally:\n    pass", "barrier"),
    ("def step():\n    dist.barrier()\nstep()", "barrier"),
    ("%time dist.barrier()", "barrier"),
    ("%%time\ndist.barrier()", "barrier"),
    ("!ls\ndist.barrier()", "barrier"),
    ("%matplotlib inline\ndist.barrier()", "barrier"),
    ("print(dist.all_gather_object(xs, 1))", "all_gather_object"),
    ("x = [dist.barrier() for _ in range(2)]", "barrier"),
    ("from torch.nn.parallel import DistributedDataParallel as DDP\nm = DDP(net)", "DistributedDataParallel"),
    ("m = torch.nn.parallel.DistributedDataParallel(net)", "DistributedDataParallel"),
    ("from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nm = FSDP(net)", "FullyShardedDataParallel"),
    ("out = model(x)", "model"),
    ("model(x).sum().backward()", "model"),
    ("model.forward(x)", "model.forward"),
    ("loss.backward()", "loss.backward"),
    ("trainer.fit(net)", "trainer.fit"),
    ("m, o = accelerator.prepare(net, opt)", "accelerator.prepare"),
    ("from functools import partial\npartial(dist.all_reduce, x)()", "all_reduce"),
    ("def f(): dist.barrier()\ng = partial(f)\ng()", "barrier"),
    ("red = dist.all_reduce\nfor x in xs: red(x)", "all_reduce"),
    ("list(map(lambda x: dist.all_reduce(x), xs))", "all_reduce"),
    ("(lambda: dist.barrier())()", "barrier"),
    ("torch.distributed.nn.functional.all_reduce(x)", "all_reduce"),
    ("import torch.distributed.nn.functional as F\nF.all_gather(x)", "all_gather"),
    ("import asyncio\nawait asyncio.to_thread(dist.all_reduce, x)", "all_reduce"),
    ("import threading\nthreading.Thread(target=dist.barrier).start()", "barrier"),
    ("def f(): dist.barrier()\npool.submit(f)", "barrier"),
    ("with torch.no_grad():\n    fsdp(x)", "fsdp"),
    ("def see(m):\n    with torch.no_grad(): return m(x)\nsee(fsdp)", "m"),
    ("net = fsdp\nnet(x)", "net"),
    ("fsdp.unshard()", "fsdp.unshard"),
]

NEEDS_NOT = [
    "x = 1",
    "",
    "dist.all_reduce(x, group=mine)",
    "dist.all_reduce(x, dist.ReduceOp.SUM, mine)",
    "dist.barrier(mine)",
    "dist.broadcast(x, 0, group=pair)",
    "dist.all_reduce(*arguments)",
    "dist.all_reduce(x, **options)",
    "def step():\n    dist.barrier()",
    "step = lambda: dist.barrier()",
    "class A:\n    def step(self):\n        dist.barrier()",
    "# dist.barrier()",
    "print('dist.barrier()')",
    "'''\ndist.barrier()\n'''",
    "if rank == 0:\n    dist.barrier()",
    "if dist.get_rank() in (0, 1):\n    dist.barrier()\nelse:\n    dist.barrier()",
    "if int(os.environ['RANK']) < 2:\n    dist.barrier()",
    "if accelerator.is_main_process:\n    dist.barrier()",
    "while rank < 2:\n    dist.barrier()",
    "dist.barrier(",
    "dist.send(x, 1)",
    "dist.recv(x, 0)",
    "dist.get_rank(), dist.get_world_size(), dist.is_initialized()",
    "%%bash\ndist.barrier()",
    "%%writefile a.py\ndist.barrier()",
    "!echo dist.barrier()",
    "import scipy.stats as dist\ndist.barrier()",
    "dist = mine\ndist.barrier()",
    "def all_reduce(x): pass\nall_reduce(x)",
    "frame.reduce(x); pool.barrier()",
    "classifier.fit(x, y)",
    "with model.no_sync():\n    model(x).backward()",
    "with torch.no_grad():\n    model(x)",
    "model.eval(); model.state_dict(); model.module(x)",
    "model = torch.nn.Linear(2, 1)\nmodel(x)",
    "loss = other(x).sum()\nloss.backward()",
    "m = torch.nn.parallel.DistributedDataParallel(net, process_group=pair)",
    "print(model)",
    "partial(dist.all_reduce, x)",
    "red = dist.all_reduce",
    "red = dist.all_reduce\nred = print\nred(x)",
    "torch.distributed.nn.functional.all_gather(x, mine)",
    "list(map(lambda x: dist.all_reduce(x, group=mine), xs))",
    "await asyncio.to_thread(dist.all_reduce, x, group=mine)",
    "frame.map(str)",
    "list(map(int, xs))",
    "fsdp.state_dict",
    "model",
    "\0",
]


@pytest.mark.parametrize(("code", "need"), NEEDS)
def test_a_cell_that_needs_all_ranks_names_the_call(code, need):
    assert find_need(code, HAS) == need


@pytest.mark.parametrize("code", NEEDS_NOT)
def test_no_other_cell_does(code):
    assert find_need(code, HAS) is None


def test_names_that_ranks_do_not_have_mean_nothing():
    assert [find_need(code, {}) for code in ("model(x)", "loss.backward()", "trainer.fit(net)")] == [None] * 3


# What notebooks look like: imports and functions above, a call below. Cells that were run before, in order.
ABOVE = [
    "import torch, torch.distributed as td\nfrom torch.distributed import all_reduce, barrier as meet",
    "from torch.nn.parallel import DistributedDataParallel as DDP\nimport torch.distributed.checkpoint as dcp",
    "def sync(tensor):\n    td.all_reduce(tensor)\n    return tensor",
    "def train_one_epoch(net, batches):\n    for batch in batches:\n        loss = net(batch).sum()\n        loss.backward()",
    "def evaluate(net):\n    with torch.no_grad():\n        return net(1)",
    "def outer():\n    return inner()\n\ndef inner():\n    meet()",
    "def in_pair(tensor, group):\n    dist.all_reduce(tensor, group=group)",
    "def only_first():\n    if rank != 0:\n        return\n    td.barrier()",
    "def log(text):\n    print(text)",
    "step = lambda: dist.barrier()",
    "total = dist.all_reduce; again = total",
    "later = partial(sync, x)",
    "of_pair = functools.partial(dist.all_reduce, group=pair)",
    "shown = dist.barrier\nshown = print",
    "class Loop:\n    def __init__(self, model):\n        self.model = model\n    def run(self):\n        self.one()\n    def one(self):\n        self.model(1).backward()\n    def save(self):\n        dist.barrier()\n    def name(self):\n        return 'loop'",
    "loop = Loop(wrapped)",
    "def replaced():\n    dist.barrier()",
    "def replaced():\n    pass",
    "@torch.no_grad()\ndef decorated():\n    all_reduce(x)",
    "def recursive(n):\n    recursive(n - 1)\n    dist.barrier()",
]
HOLDS = {**HAS, "wrapped": "ddp", "models[]": "model", "loop.model": "ddp", "big.net": "model"}

NEEDS_MORE = [
    ("train_one_epoch(wrapped, batches)", "net"),
    ("train_one_epoch(model, batches)", "net"),
    ("train_one_epoch(batches=b, net=model)", "net"),
    ("sync(x)", "all_reduce"),
    ("y = sync(x).mean()", "all_reduce"),
    ("all_reduce(x)", "all_reduce"),
    ("meet()", "barrier"),
    ("td.barrier()", "barrier"),
    ("outer()", "barrier"),
    ("decorated()", "all_reduce"),
    ("recursive(3)", "barrier"),
    ("step()", "barrier"),
    ("total(x)", "all_reduce"),
    ("list(map(total, xs))", "all_reduce"),
    ("later()", "all_reduce"),
    ("m = DDP(net)", "DistributedDataParallel"),
    ("if rank == 0:\n    print('begin')\ndist.barrier()", "barrier"),
    ("if dist.get_rank() == 0: log('x')\nsync(x)", "all_reduce"),
    ("print('a') if rank == 0 else None\ndist.barrier()", "barrier"),
    ("for i in range(2):\n    if rank == 0:\n        print(i)\n    all_reduce(x)", "all_reduce"),
    ("models['a'](x)", "models['a']"),
    ("big.net(x)", "big.net"),
    ("loop.run()", "self.model"),
    ("loop.save()", "barrier"),
    ("tensor.full_tensor()", "tensor.full_tensor"),
    ("print(weights['w'].full_tensor())", "weights['w'].full_tensor"),
    ("dcp.save(state, checkpoint_id='a')", "dcp.save"),
    ("dcp.async_save(state)", "dcp.async_save"),
    ("torch.distributed.checkpoint.load(state)", "torch.distributed.checkpoint.load"),
    ("getattr(dist, 'barrier')()", "barrier"),
    ("wrapped(x).sum().backward()", "wrapped"),
    ("loss = wrapped(x).sum()\nloss.backward()", "wrapped"),
    ("if dist.get_world_size() > 1:\n    dist.barrier()", "barrier"),
    ("if world_size == 1:\n    pass\nelse:\n    dist.barrier()", "barrier"),
    ("x = 1  # a long cell\n" * 300 + "sync(x)", "all_reduce"),
]
NEEDS_NO_MORE = [
    "wrapped(x)",
    "out = wrapped(x)\nprint(out.sum())",
    "with torch.no_grad():\n    wrapped(x)",
    "evaluate(wrapped)",
    "evaluate(model)",
    "if False:\n    dist.barrier()",
    "while 0:\n    dist.barrier()",
    "if dist.get_world_size() > 8:\n    dist.barrier()",
    "if world_size < 4:\n    all_reduce(x)",
    "if world_size > limit:\n    all_reduce(x)",
    "in_pair(x, pair)",
    "only_first()",
    "log('dist.barrier')",
    "replaced()",
    "of_pair(x)",
    "shown(x)",
    "total = print\ntotal(x)",
    "loop.name()",
    "sync",
    "def sync(x): pass\nsync(x)",
    "all_reduce = print\nall_reduce(x)",
    "if rank == 0:\n    raise SystemExit\ndist.barrier()",
    "for i in range(3):\n    if rank == i: continue\n    dist.barrier()",
    "dcp.save(state, process_group=pair)",
    "models['a']; models.keys(); torch.save(model.state_dict(), 'a')",
    "big.name(x); loop.model",
    "other.run(); file.save(); yaml.load(x)",
    "getattr(pool, 'barrier')()",
    "train = train_one_epoch",
]


def above(ranks=(0, 1, 2, 3), cells=ABOVE):
    definitions = Definitions()
    for cell in cells:
        definitions.note(cell, ranks)
    return definitions


def need_below(code, definitions, ranks=(0,)):
    return find_need(code, HOLDS, definitions.about(WORDS.union(HOLDS), ranks), 4)


@pytest.mark.parametrize(("code", "need"), NEEDS_MORE)
def test_a_cell_is_read_with_what_cells_above_have_defined(code, need):
    assert need_below(code, above()) == need


@pytest.mark.parametrize("code", NEEDS_NO_MORE)
def test_no_other_cell_below_does(code):
    assert need_below(code, above()) is None


def test_a_definition_counts_on_the_ranks_that_have_it_until_its_name_is_bound_again():
    definitions = above(ranks=[2, 3])
    assert need_below("sync(x)", definitions) is None
    assert need_below("sync(x)", definitions, [3]) == "all_reduce"
    definitions.note("sync = make()", [3])
    assert need_below("sync(x)", definitions, [3]) is None
    definitions.clear()
    assert need_below("outer()", definitions, [3]) is None


def test_many_definitions_are_kept_within_bounds_and_read_in_little_time():
    padding = "    # what it does\n" * 100
    definitions = above(cells=[f"def f{number}():\n{padding}    f{number + 1}()" for number in range(500)])
    assert definitions._num_chars <= 64_000
    definitions.note("def f500():\n    dist.barrier()", [0])
    began = time.process_time()
    assert need_below("f499()", definitions) == "barrier"
    need_below("f480()", definitions)  # deeper than what is parsed for one cell
    print(f"{(time.process_time() - began) * 1000:.1f} ms")


def test_of_a_long_cell_what_matters_is_read():
    line = "x = [value * 2 for value in range(10)]\n"
    began = time.process_time()
    find_need(line * 100 + "dist.barrier()", HAS)
    print(f"{(time.process_time() - began) * 1000:.1f} ms")
    assert find_need(line * 110 + "dist.barrier()", HAS) == "barrier"
    assert find_need(line * 110 + "def step():\n    dist.barrier()", HAS) is None
    assert find_need("a=f(b,c)+g(d)\n" * 250 + "dist.barrier()", HAS) == "barrier"  # short, but of many words
    assert find_need("rank=f(b,c)+g(d)\n" * 400 + "dist.barrier()", HAS) is None  # much that matters
    assert find_need(line * (MAX_CELL_BYTES // len(line) + 1) + "dist.barrier()", HAS) is None
    assert find_need("a=f(b,c)+g(d)\n" * 150 + "dist.barrier()", HAS) == "barrier"


# What calls reach: by other names, in containers, as arguments, in texts.
TWO = "def f():\n    dist.barrier()\ndef g(): return 1\n"
REACHED = [
    "fns = [f]\nfns[0]()",
    "fns = [g, f]\nfns[1]()",
    "fns = [g, f]\nfns[-1]()",
    "fns = [f, g]\n[g() for g in fns]",
    "fns = [\n    g,\n    f,\n]\nfor fn in fns:\n    fn()",
    "for fn in (f,): fn()",
    "for fn in [g, f]: fn()",
    "for name, fn in {'a': g, 'b': f}.items(): fn()",
    "ops = {'meet': f, 'none': g}\nops['meet']()",
    "ops = dict(meet=f)\nops['meet']()",
    "ops = {'meet': f}\nops.get('meet')()",
    "ops = {'a': f, 'b': f}\nops[which]()",
    "for fn in ops_of.values(): pass\nops = {'a': f}\nfor fn in ops.values(): fn()",
    "for i, fn in enumerate([g, f]): fn()",
    "for x, fn in zip(xs, [g, f]): fn()",
    "fns = []\nfns.append(f)\nfor fn in fns: fn()",
    "fns = [f]\nfor f in fns: f()",
    "[f() for f in (g, f)]",
    "fns = list()\nfns += [g, f]\nfor fn in fns: fn()",
    "ops = {'b': g}\nops.update({'a': f})\nops['a']()",
    "fns = [g]\nfns += [f]\nfns[1]()",
    "ops = {}\nops['a'] = f\nops['a']()",
    "fns = [f]\nfns.pop()()",
    "next(iter([f]))()",
    "fns = [fn for fn in (g, f)]\n_ = [fn() for fn in fns]",
    "{fn() for fn in (f,)}",
    "list(fn() for fn in (f,))",
    "(lambda fn: fn())(f)",
    "call = lambda fn: fn()\ncall(f)",
    "call = lambda fn: fn()\ncall(g)\ncall(f)",
    "def call(fn): fn()\ncall(f)",
    "def call(fn, *args): fn(*args)\ncall(f)",
    "def call(*fns):\n    for fn in fns: fn()\ncall(g, f)",
    "def call(fn=f): fn()\ncall()",
    "def call(fn): return (lambda: fn())()\ncall(fn=f)",
    "exec('dist.barrier()')",
    "exec('f()')",
    "code = 'f()'\nexec(code)",
    'code = """\nfor i in range(2):\n    f()\n"""\nexec(code)',
    "exec(compile('f()', 'a', 'exec'))",
    "eval('f()')",
    "exec('f()', globals())",
    "get_ipython().run_cell('f()')",
    "globals()['f']()",
    "(h := f)()",
    "(f or g)()",
    "(f if True else g)()",
    "a = b = f\nb()",
    "a, b = g, f\nb()",
    "def make():\n    def inner(): dist.barrier()\n    return inner\nmake()()",
    "def make():\n    return lambda: dist.barrier()\nh = make()\nh()",
    "class Box: pass\nbox = Box()\nbox.fn = f\nbox.fn()",
    "class Box:\n    def __init__(self, fn): self.fn = fn\n    def run(self): self.fn()\nbox = Box(f)\nbox.run()",
    "f.__call__()",
    "import functools\nfunctools.reduce(lambda a, b: f(), xs)",
    "torch.compile(f)()",
    "d = dist\nd.barrier()",
    "for fn in (dist.barrier, print): fn()",
    "exec('import torch.distributed as td\\ntd.barrier()')",
]
NOT_REACHED = [
    "fns = [f]",
    "fns = [f, g]\nfns[1]()",
    "fns = [f]\nfns[rank]()",
    "fns = [g]\nfns.append(f)\nfns[0]()",
    "for f in (g,): f()",
    "fns = [f, g]\nfns[which]()",
    "fns = [f]\nfns = [g]\nfns[0]()",
    "fns = [f]\nfns.clear()\nfor fn in fns: fn()",
    "for fn in (g,): fn()",
    "for fn in (f,): print(fn)",
    "for fn in (): fn()",
    "[fn for fn in (f, g)]",
    "[fn() for fn in (f,) if rank == 0]",
    "[f() for f in (g,)]",
    "for fn in (f, g):\n    if rank == 0: fn()",
    "ops = {'a': f, 'b': g}\nops['b']()",
    "ops = {'a': f, 'b': g}\nops[which]()",
    "ops = {'a': f}\nops.keys(); ops.get('a'); list(ops.values())",
    "(lambda fn: fn())(g)",
    "(lambda fn: fn)(f)",
    "lambda fn: fn(f)",
    "def call(fn): fn()\ncall(g)",
    "def call(f): f()\ncall(print)",
    "def call(f): f()\ncall(other)",
    "def call(fn): return fn\ncall(f)",
    "def call(fn=f): fn()\ncall(g)",
    "exec('x = 1')",
    "exec('if rank == 0: f()')",
    "exec('def later(): f()')",
    "exec('f(')",
    "exec(text)",
    "exec('f()', {'f': g})",
    "print('f()')",
    "code = 'f()'\nprint(code)",
    "globals()['g']()",
    "(f if rank == 0 else g)()",
    "(f if flag else g)()",
    "a, b = g, f\na()",
    "def make():\n    def inner(): dist.barrier()\n    return inner\nmake()",
    "def make():\n    def inner(): dist.barrier()\n    return inner\nh = make()",
    "class Box: pass\nbox = Box()\nbox.fn = f",
    "for fn in (lambda: dist.all_reduce(x, group=mine),): fn()",
    "frame.apply(str); frame.reduce(1); pool.map(g, xs)",
    "for i, fn in enumerate([g]): fn()",
    "for a, b in zip([f], [g]): b()",
    "fns = [f]\ndel fns\nfns = other()\nfns[0]()",
    "losses = [f, g]\nlosses.index(f)",
    "torch.compile(f)",
]


def need_of_two(code, *cells):
    definitions = above(ranks=[0], cells=[TWO, *cells])
    return find_need(code, HAS, definitions.about(WORDS.union(HAS), [0]), 4)


@pytest.mark.parametrize("code", REACHED)
def test_a_call_is_followed_to_the_function_that_it_reaches(code):
    assert find_need(TWO + code, HAS) == "barrier"
    assert need_of_two(code) == "barrier"


@pytest.mark.parametrize("code", NOT_REACHED)
def test_a_function_that_is_only_named_or_may_be_another_is_not_called(code):
    assert find_need(TWO + code, HAS) is None
    assert need_of_two(code) is None


EARLIER = [
    ("fns = [f, g]", "fns[0]()", True),
    ("fns = [f, g]", "fns[1]()", False),
    ("fns = [f, g]", "for fn in fns: fn()", True),
    ("ops = {'a': f}", "ops['a']()", True),
    ("code = 'f()'", "exec(code)", True),
    ("call = lambda fn: fn()", "call(f)", True),
    ("call = lambda fn: fn()", "call(g)", False),
    ("def call(fn): fn()", "call(f)", True),
    ("fns = (f,)", "[fn() for fn in fns]", True),
    ("fns = [\n    g,\n    f,\n]", "fns[1]()", True),
    ("fns = list((f,))", "fns[0]()", True),
    ("h = torch.compile(f)", "h()", True),
    ("fns = [f]\nfns = other", "fns[0]()", False),
    ("fns = []\nfns.append(f)", "for f in fns: f()", True),
    ("fns = [g]\nfns.append(f)", "fns[1]()", True),
    ("fns = [g]\nfns.append(f)", "fns[0]()", False),
    ("fns = list()\nfns += [g, f]", "for fn in fns: fn()", True),
    ("fns = []\nfns.extend((g, f))", "[fn() for fn in fns]", True),
    ("fns = []\nfns.insert(0, f)", "fns[0]()", True),
    ("ops = {}\nops['a'] = f", "ops['a']()", True),
    ("ops = {}\nops['a'] = f", "ops['b']()", False),
    ("ops = {'b': g}\nops.update({'a': f})", "ops['a']()", True),
    ("fns = []; fns.append(f)", "for fn in fns: fn()", True),
    ("fns = []\nfns.append(f)\nfns.clear()", "for fn in fns: fn()", False),
    ("fns = []\nfns.append(g)", "for fn in fns: fn()", False),
    ("fns.append(f)", "for fn in fns: fn()", False),
]


@pytest.mark.parametrize(("before", "code", "needs"), EARLIER)
def test_what_an_earlier_cell_holds_is_reached_from_a_later_one(before, code, needs):
    assert need_of_two(code, before) == ("barrier" if needs else None)


def test_what_is_added_to_a_container_in_a_cell_of_its_own_is_reached_too():
    assert need_of_two("for f in fns: f()", "fns = []", "fns.append(g)", "fns.append(f)") == "barrier"
    assert need_of_two("for f in fns: f()", "fns = []", "fns.append(f)", "fns = []") is None
    long = ["fns = [f]", *(f"fns.append({'g' * 100}{number})" for number in range(100))]
    assert need_of_two("fns[0]()", *long) == "barrier"


def test_what_some_ranks_have_added_to_a_container_counts_on_these_alone():
    definitions = above(cells=["fns = []"])
    definitions.note("def f():\n    dist.barrier()", [0, 1, 2, 3])
    definitions.note("fns.append(f)", [0, 1])
    assert need_below("for f in fns: f()", definitions, (0,)) == "barrier"
    assert need_below("for f in fns: f()", definitions, (2,)) is None


def test_models_in_containers_are_called_by_loops():
    assert find_need("for m in models: m(x)", {"models[]": "model"}) == "m"
    assert find_need("[m(x) for m in (model,)]", HAS) == "model"
    assert find_need("for m in models: print(m)", {"models[]": "model"}) is None
