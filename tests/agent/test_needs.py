"""Which cells need all ranks: a table of cells, with what they call."""

import time

import pytest

from jupyter_dist.agent.group.needs import find_need

HAS = {"model": "model", "trainer": "trainer", "accelerator": "accelerator"}

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


def test_a_long_cell_is_not_read():
    line = "x = [value * 2 for value in range(10)]\n"
    began = time.process_time()
    find_need(line * 100 + "dist.barrier()", HAS)
    print(f"{(time.process_time() - began) * 1000:.1f} ms")
    assert find_need(line * 110 + "dist.barrier()", HAS) is None
    assert find_need("a=f(b,c)+g(d)\n" * 250 + "dist.barrier()", HAS) is None  # short, but of many words
    assert find_need("a=f(b,c)+g(d)\n" * 150 + "dist.barrier()", HAS) == "barrier"
