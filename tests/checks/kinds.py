"""The bench of checks: loops with a planted error that nothing else shows, and innocent ones that look like it.

On two ranks, unless it has another number. Each takes a second or two: a few dozen steps with a pause in each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

EVERYONE = "0-1"

# Runs before each kind, on all ranks.
FIRST = """import copy, gc, math, os, random, tempfile, time
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset, random_split
nn, optim = torch.nn, torch.optim
torch.set_num_threads(1)
torch.manual_seed(0)
mine = torch.Generator().manual_seed(100 + rank)
X = torch.randn(256, 4, generator=torch.Generator().manual_seed(1))
Y = (X.sum(1, keepdim=True) > 0).float()
data = TensorDataset(X, Y)
def net(*between):
    return nn.Sequential(nn.Linear(4, 8), *between, nn.ReLU(), nn.Linear(8, 1))
def batch(number=8):
    return torch.randn(number, 4, generator=mine)
def loss_of(out, y=1.0):
    return (out - y).square().mean()
def pause():
    time.sleep(0.02)
model = DDP(net())
opt = optim.SGD(model.parameters(), lr=0.01)
gc.collect()
"""


@dataclass(frozen=True)
class Wrong:
    """A loop with an error: of which kind, through which ranks, and where."""

    name: str
    code: str
    kinds: tuple[str, ...]
    ranks: str = EVERYONE
    line: tuple[str, ...] = ()  # any of these parts of a line must be in the line that is named
    before: tuple[tuple[str, str], ...] = ()  # cells before it: their ranks and their code
    num_ranks: int = 2
    needs: str = ""  # a package


@dataclass(frozen=True)
class Right:
    """A loop as its author wants it, of which nothing may be named."""

    name: str
    code: str
    before: tuple[tuple[str, str], ...] = field(default=())
    num_ranks: int = 2
    needs: str = ""  # a package


LOOP = "for i in range(40):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()"
STEP = ("opt.step()",)

WRONG = [
    # -- data
    Wrong(
        "a loader without a sampler",
        "for x, y in DataLoader(data, 8):\n    opt.zero_grad()\n    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
        ("same_batch",),
        line=("loss_of(model(x), y)",),
    ),
    Wrong(
        "a shuffled loader with the seed of all ranks",
        "torch.manual_seed(0)\nfor x, y in DataLoader(data, 8, shuffle=True):\n    out = model(x)\n    opt.zero_grad()\n"
        "    loss_of(out, y).backward()\n    opt.step()\n    pause()",
        ("same_batch",),
        line=("out = model(x)",),
    ),
    Wrong(
        "random batches from one seed",
        "torch.manual_seed(0)\nfor i in range(40):\n    x = torch.randn(8, 4)\n    opt.zero_grad()\n    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
        ("same_batch",),
    ),
    Wrong(
        "a sampler with rank 0 on all ranks",
        "loader = DataLoader(data, 8, sampler=DistributedSampler(data, 2, 0))\nfor x, y in loader:\n    opt.zero_grad()\n"
        "    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
        ("same_batch", "samplers_differ"),
    ),
    Wrong(
        "two of three ranks with one part",
        "loader = DataLoader(data, 8, sampler=DistributedSampler(data, 3, max(rank - 1, 0)))\nfor x, y in loader:\n    opt.zero_grad()\n"
        "    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
        ("same_batch", "samplers_differ"),
        num_ranks=3,
    ),
    Wrong(
        "samplers with a seed by rank",
        "loader = DataLoader(data, 8, sampler=DistributedSampler(data, seed=rank))\nfor x, y in loader:\n    opt.zero_grad()\n"
        "    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
        ("samplers_differ",),
        line=("for x, y in loader",),
    ),
    Wrong(
        "a sampler for more replicas than there are",
        "loader = DataLoader(data, 4, sampler=DistributedSampler(data, 4, rank))\nfor x, y in loader:\n    opt.zero_grad()\n"
        "    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
        ("samplers_differ",),
    ),
    Wrong(
        "an epoch that is set on rank 0 alone",
        "sampler = DistributedSampler(data)\nloader = DataLoader(data, 16, sampler=sampler)\nfor epoch in range(4):\n"
        "    if rank == 0:\n        sampler.set_epoch(epoch)\n    for x, y in loader:\n        opt.zero_grad()\n"
        "        loss_of(model(x), y).backward()\n        opt.step()\n        pause()",
        ("samplers_differ", "epoch_not_set"),
    ),
    Wrong(
        "set_epoch is forgotten",
        "loader = DataLoader(data, 16, sampler=DistributedSampler(data))\nfor epoch in range(4):\n    for x, y in loader:\n"
        "        opt.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        pause()",
        ("epoch_not_set",),
        line=("for x, y in loader",),
    ),
    Wrong(
        "random_split with a seed by rank",
        "train, rest = random_split(data, [200, 56], generator=torch.Generator().manual_seed(rank))\n"
        "loader = DataLoader(train, 8, sampler=DistributedSampler(train))\nfor epoch in range(2):\n"
        "    loader.sampler.set_epoch(epoch)\n    for x, y in loader:\n        opt.zero_grad()\n"
        "        loss_of(model(x), y).backward()\n        opt.step()\n        pause()",
        ("subsets_differ",),
    ),
    # -- model
    Wrong(
        "the module inside of DDP",
        LOOP.replace("model(batch())", "model.module(batch())"),
        ("inner_module",),
        line=STEP,
    ),
    Wrong(
        "a method of the module inside of DDP",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body = nn.Linear(4, 1)\n"
        "    def forward(self, x):\n        return self.body(x)\n    def loss(self, x):\n        return loss_of(self.body(x))\n"
        "model = DDP(Net())\nopt = optim.SGD(model.parameters(), lr=0.01)\nfor i in range(40):\n    opt.zero_grad()\n"
        "    model.module.loss(batch()).backward()\n    opt.step()\n    pause()",
        ("inner_module",),
        line=STEP,
    ),
    Wrong(
        "the model before it was wrapped",
        "plain = net()\nmodel = DDP(plain)\nopt = optim.SGD(model.parameters(), lr=0.01)\n"
        + LOOP.replace("model(", "plain("),
        ("inner_module",),
        line=STEP,
    ),
    Wrong(
        "a model that is unwrapped before it is trained",
        "model = DDP(net())\nopt = optim.SGD(model.parameters(), lr=0.01)\nmodel = model.module\ngc.collect()\n" + LOOP,
        ("inner_module",),
        line=STEP,
    ),
    Wrong(
        "the optimizer of an earlier model",
        LOOP,
        ("other_optimizer",),
        line=STEP,
        before=(("all", "model = net()\nopt = optim.SGD(model.parameters(), lr=0.01)"), ("all", "model = DDP(net())")),
    ),
    Wrong(
        "a head that came after the optimizer",
        "plain = net()\nopt = optim.Adam(plain.parameters(), lr=0.01)\nplain[2] = nn.Linear(8, 1)\nmodel = DDP(plain)\n"
        + LOOP,
        ("parameters_not_held",),
        line=STEP,
    ),
    Wrong(
        "a layer that was unfrozen after the wrap",
        "plain = net()\nplain[0].requires_grad_(False)\nmodel = DDP(plain)\nplain[0].requires_grad_(True)\n"
        "opt = optim.SGD(model.parameters(), lr=0.01)\n" + LOOP,
        ("changed_after_wrap",),
        line=STEP,
    ),
    Wrong(
        "a layer that was added after the wrap",
        "model = DDP(net())\nmodel.module[2] = nn.Sequential(model.module[2], nn.Linear(1, 1))\nopt = optim.SGD(model.parameters(), lr=0.01)\n"
        + LOOP,
        ("changed_after_wrap",),
        line=STEP,
    ),
    Wrong(
        "a checkpoint on rank 0 alone",
        LOOP,
        ("replicas_differ",),
        line=STEP,
        before=(("0", "model.module.load_state_dict({k: v + 1 for k, v in model.module.state_dict().items()})"),),
    ),
    Wrong(
        "one of three ranks has other parameters",
        LOOP,
        ("replicas_differ",),
        "0-2",
        STEP,
        before=(("2", "nn.init.zeros_(model.module[0].weight); None"),),
        num_ranks=3,
    ),
    Wrong(
        "noise on the parameters of each rank",
        LOOP.replace(
            "    pause()",
            "    with torch.no_grad():\n        for p in model.parameters():\n"
            "            p.add_(0.01 * torch.randn(p.shape, generator=mine))\n    pause()",
        ),
        ("replicas_differ",),
    ),
    # -- steps
    Wrong(
        "no_sync for the last pass of an accumulation",
        "import contextlib\nfor i in range(40):\n    opt.zero_grad()\n    for k in range(2):\n"
        "        with model.no_sync() if k == 1 else contextlib.nullcontext():\n            loss_of(model(batch())).backward()\n"
        "    opt.step()\n    pause()",
        ("no_sync",),
        line=STEP,
    ),
    Wrong(
        "no_sync around the whole loop",
        "with model.no_sync():\n    for i in range(40):\n        opt.zero_grad()\n        loss_of(model(batch())).backward()\n"
        "        opt.step()\n        pause()",
        ("no_sync",),
        line=STEP,
    ),
    Wrong(
        "FSDP2 that never averages",
        "from torch.distributed.fsdp import fully_shard\nmodel = net()\nfully_shard(model[0])\nfully_shard(model)\n"
        "opt = optim.SGD(model.parameters(), lr=0.01)\nmodel.set_requires_gradient_sync(False)\n" + LOOP,
        ("no_sync",),
        line=STEP,
    ),
    Wrong(
        "a buffer that one rank loads",
        LOOP,
        ("replicas_differ",),
        line=STEP,
        before=(
            (
                "all",
                "class Scaled(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = net()\n        self.register_buffer('scale', torch.ones(4))\n"
                "    def forward(self, x):\n        return self.net(x * self.scale)\nmodel = DDP(Scaled(), broadcast_buffers=False)\nopt = optim.SGD(model.parameters(), lr=0.01)",
            ),
            ("0", "model.module.scale.fill_(2.0); None"),
        ),
    ),
    Wrong(
        "by hand, without the last layer",
        "model = net()\nopt = optim.SGD(model.parameters(), lr=0.01)\nfor i in range(40):\n    opt.zero_grad()\n"
        "    loss_of(model(batch())).backward()\n    for p in list(model.parameters())[:-1]:\n        dist.all_reduce(p.grad)\n"
        "        p.grad /= world_size\n    opt.step()\n    pause()",
        ("layer_not_averaged",),
        line=STEP,
    ),
    Wrong(
        "by hand, from other parameters on each rank",
        "torch.manual_seed(rank)\nmodel = net()\nopt = optim.SGD(model.parameters(), lr=0.01)\nfor i in range(40):\n    opt.zero_grad()\n"
        "    loss_of(model(batch())).backward()\n    for p in model.parameters():\n        dist.all_reduce(p.grad)\n"
        "        p.grad /= world_size\n    opt.step()\n    pause()",
        ("replicas_differ",),
        line=STEP,
    ),
    Wrong("zero_grad is forgotten", LOOP.replace("    opt.zero_grad()\n", ""), ("not_zeroed",), line=STEP),
    Wrong(
        "zero_grad in each pass of an accumulation",
        "for i in range(40):\n    for k in range(3):\n        opt.zero_grad()\n        loss_of(model(batch())).backward()\n    opt.step()\n    pause()",
        ("gradients_discarded",),
        line=STEP,
    ),
    Wrong(
        "zero_grad before the step",
        "for i in range(40):\n    loss_of(model(batch())).backward()\n    opt.zero_grad()\n    opt.step()\n    pause()",
        ("gradients_discarded",),
        line=STEP,
    ),
    Wrong(
        "a layer in no group of the optimizer",
        "model = DDP(net(nn.ReLU(), nn.Linear(8, 8)))\nopt = optim.SGD([*model.module[0].parameters(), *model.module[4].parameters()], lr=0.01)\n"
        + LOOP,
        ("parameters_not_held",),
        line=STEP,
    ),
    Wrong(
        "a list of files that each rank has in another order",
        "class Files(torch.utils.data.Dataset):\n    def __init__(self):\n        self.paths = random.Random(rank).sample([f'{i}.jpg' for i in range(256)], 256)\n"
        "    def __len__(self):\n        return len(self.paths)\n    def __getitem__(self, i):\n        return X[int(self.paths[i][:-4])]\n"
        "files = Files()\nfor x in DataLoader(files, 8, sampler=DistributedSampler(files)):\n    opt.zero_grad()\n    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
        ("subsets_differ",),
        line=("for x in DataLoader",),
    ),
    Wrong(
        "zero_grad of another optimizer",
        "other = optim.SGD(net().parameters(), lr=0.01)\n" + LOOP.replace("opt.zero_grad", "other.zero_grad"),
        ("not_zeroed",),
        line=STEP,
    ),
    Wrong(
        "a rank that never steps",
        LOOP.replace("    opt.step()", "    if rank == 0:\n        opt.step()"),
        ("fewer_steps",),
        "1",
    ),
    Wrong(
        "a learning rate by rank",
        "opt = optim.SGD(model.parameters(), lr=0.01 * (1 + rank))\n" + LOOP,
        ("settings_differ",),
        line=STEP,
    ),
    Wrong(
        "a scheduler on rank 0 alone",
        "scheduler = optim.lr_scheduler.ExponentialLR(opt, 0.9)\n"
        + LOOP.replace("    pause()", "    if rank == 0:\n        scheduler.step()\n    pause()"),
        ("settings_differ",),
        line=STEP,
    ),
    Wrong(
        "a weight decay by rank",
        "opt = optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1 if rank else 0.01)\n" + LOOP,
        ("settings_differ",),
        line=STEP,
    ),
    Wrong(
        "a learning rate of zero",
        "scheduler = optim.lr_scheduler.LambdaLR(opt, lambda step: step // 1000)\n"
        + LOOP.replace("    pause()", "    scheduler.step()\n    pause()"),
        ("zero_learning_rate",),
        line=STEP,
    ),
    # -- modes and numbers
    Wrong(
        "training after an evaluation, in its mode",
        "model = DDP(net(nn.Dropout(0.5)))\nopt = optim.SGD(model.parameters(), lr=0.01)\nmodel.eval()\n" + LOOP,
        ("training_in_eval_mode",),
        line=STEP,
    ),
    Wrong(
        "an evaluation in training mode",
        "model.train()\nwith torch.no_grad():\n    for i in range(20):\n        model(batch())\n        pause()",
        ("evaluation_in_training_mode",),
        line=("model(batch())",),
        before=(("all", "model = DDP(net(nn.BatchNorm1d(8)))\nopt = optim.SGD(model.parameters(), lr=0.01)\n" + LOOP),),
    ),
    Wrong(
        "a batch with NaN on rank 1",
        LOOP.replace(
            "loss_of(model(batch()))",
            "x = batch()\n    if i == 12 and rank == 1:\n        x[0, 0] = float('nan')\n    loss_of(model(x))",
        ),
        ("not_finite",),
        "1",
        STEP,
    ),
    Wrong(
        "a logarithm of zero in the loss",
        LOOP.replace("loss_of(model(batch()))", "(model(batch()) * (1.0 if i < 20 else math.inf)).mean()"),
        ("not_finite",),
        line=STEP,
    ),
    Wrong(
        "a learning rate that is too large",
        "opt = optim.SGD(model.parameters(), lr=1e6)\n" + LOOP,
        ("not_finite",),
        line=STEP,
    ),
    # -- what calls of libraries show
    Wrong(
        "padding that an evaluation counts",
        "model.eval()\nsome = Subset(data, range(65))\nloader = DataLoader(some, 8, sampler=DistributedSampler(some, shuffle=False))\n"
        "right = torch.zeros(2)\nwith torch.no_grad():\n    for x, y in loader:\n        out = model(x) > 0\n"
        "        right += torch.tensor([(out == y).sum(), len(y)])\n        pause()\n    dist.all_reduce(right)",
        ("padding_counted",),
        line=("for x, y in loader",),
    ),
    Wrong(
        "a GradScaler that skips every step",
        "scaler = torch.amp.GradScaler('cpu', init_scale=4.0)\nfor i in range(40):\n    opt.zero_grad()\n"
        "    scaler.scale(loss_of(model(batch())) * math.inf).backward()\n    scaler.step(opt)\n    scaler.update()\n    pause()",
        ("steps_skipped",),
        line=("scaler.step(opt)",),
    ),
    Wrong(
        "a body that is detached from its head",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1)\n"
        "    def forward(self, x):\n        return self.head(self.body(x).relu().detach())\n"
        "model = DDP(Net(), find_unused_parameters=True)\nopt = optim.SGD(model.parameters(), lr=0.01)\n" + LOOP,
        ("layer_without_gradient",),
        line=STEP,
    ),
    Wrong(
        "noise that is alike on all ranks",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body = nn.Linear(4, 1)\n"
        "    def forward(self, x, noise):\n        return self.body(x + noise)\nmodel = DDP(Net())\nopt = optim.SGD(model.parameters(), lr=0.01)\n"
        "torch.manual_seed(0)\n" + LOOP.replace("model(batch())", "model(batch(), torch.randn(8, 4))"),
        ("same_random_numbers",),
    ),
    Wrong(
        "a seed of NumPy in each worker",
        "import numpy as np\nclass Noisy(torch.utils.data.Dataset):\n    def __len__(self):\n        return 64\n"
        "    def __getitem__(self, i):\n        return X[i] + torch.from_numpy(np.random.randn(4)).float(), Y[i]\n"
        "noisy = Noisy()\nloader = DataLoader(noisy, 4, sampler=DistributedSampler(noisy), num_workers=2, worker_init_fn=lambda worker: np.random.seed(rank))\n"
        "for epoch in range(2):\n    loader.sampler.set_epoch(epoch)\n    for x, y in loader:\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n"
        "        opt.step()\n        pause()",
        ("same_random_numbers",),
    ),
    Wrong(
        "workers that draw alike on all ranks",
        "class Noisy(torch.utils.data.Dataset):\n    def __len__(self):\n        return 64\n"
        "    def __getitem__(self, i):\n        return X[i] + torch.randn(4), Y[i]\n"
        "torch.manual_seed(0)\nnoisy = Noisy()\nloader = DataLoader(noisy, 4, sampler=DistributedSampler(noisy), num_workers=1)\n"
        "for epoch in range(2):\n    loader.sampler.set_epoch(epoch)\n    for x, y in loader:\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n"
        "        opt.step()\n        pause()",
        ("same_random_numbers",),
    ),
    Wrong(
        "labels that are numbered in the order of a set",
        "names = {'cat', 'dog', 'bird', 'fish'}\nlabels = {name: i for i, name in enumerate(sorted(names, reverse=rank == 1))}\n"
        + LOOP,
        ("labels_differ",),
    ),
    Wrong(
        "a checkpoint that all ranks write",
        "for i in range(40):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()\n"
        "    if i % 20 == 10:\n        torch.save(model.state_dict(), os.path.join(tempfile.gettempdir(), 'jupyter_dist_test.pt'))",
        ("one_file",),
        line=("torch.save",),
    ),
    Wrong(
        "a loss that is averaged in place of gradients",
        "model = net()\nopt = optim.SGD(model.parameters(), lr=0.01)\nfor i in range(40):\n    opt.zero_grad()\n"
        "    loss = loss_of(model(batch()))\n    dist.all_reduce(loss)\n    loss = loss / world_size\n    loss.backward()\n"
        "    opt.step()\n    pause()",
        ("loss_averaged",),
        line=STEP,
    ),
]

RIGHT = [
    Right("DDP", LOOP),
    Right(
        "DDP with a sampler and its epochs",
        "loader = DataLoader(data, 16, sampler=DistributedSampler(data))\nfor epoch in range(4):\n    loader.sampler.set_epoch(epoch)\n"
        "    for x, y in loader:\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        pause()",
    ),
    Right(
        "an accumulation with no_sync",
        "import contextlib\nfor i in range(40):\n    opt.zero_grad()\n    for k in range(3):\n"
        "        with model.no_sync() if k < 2 else contextlib.nullcontext():\n            loss_of(model(batch())).backward()\n"
        "    opt.step()\n    pause()",
    ),
    Right(
        "an accumulation without zero_grad between",
        "for i in range(80):\n    loss_of(model(batch())).backward()\n    if i % 2:\n        opt.step()\n        opt.zero_grad(set_to_none=False)\n    pause()",
    ),
    Right(
        "one batch that is fitted on purpose",
        "x = X[:8]\nfor i in range(40):\n    opt.zero_grad()\n    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "a model that is unwrapped after it was trained, and tuned on each rank by itself",
        "for i in range(10):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()\n"
        "model = model.module\nopt = optim.SGD(model.parameters(), lr=0.01 * (rank + 1))\ngc.collect()\n" + LOOP,
    ),
    Right(
        "separate models",
        "torch.manual_seed(rank)\nmodel = net()\nopt = optim.SGD(model.parameters(), lr=0.01 * (1 + rank))\n" + LOOP,
    ),
    Right(
        "separate models from one seed",
        "model = net()\nopt = optim.SGD(model.parameters(), lr=0.01 * (1 + rank))\nfor x, y in DataLoader(data, 8):\n"
        "    opt.zero_grad()\n    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "local SGD",
        "model = net()\nopt = optim.SGD(model.parameters(), lr=0.01)\n"
        + LOOP.replace(
            "    pause()",
            "    if i % 8 == 7:\n        for p in model.parameters():\n            dist.all_reduce(p.data)\n            p.data /= world_size\n    pause()",
        ),
    ),
    Right(
        "local SGD with no_sync of DDP",
        "with model.no_sync():\n    for i in range(40):\n        opt.zero_grad()\n        loss_of(model(batch())).backward()\n        opt.step()\n"
        "        if i % 8 == 7:\n            for p in model.parameters():\n                dist.all_reduce(p.data)\n                p.data /= world_size\n        pause()",
    ),
    Right(
        "local SGD with torch's hook",
        "from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook\n"
        "from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager\n"
        "from torch.distributed.optim import PostLocalSGDOptimizer\nmodel = DDP(net())\n"
        "model.register_comm_hook(PostLocalSGDState(None, dist.new_subgroups(1)[0], 2), post_localSGD_hook)\n"
        "opt = PostLocalSGDOptimizer(optim.SGD(model.parameters(), lr=0.01), PeriodicModelAverager(period=4, warmup_steps=2))\n"
        + LOOP,
    ),
    Right(
        "a GAN",
        "g, d = DDP(net(nn.BatchNorm1d(8))), DDP(nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1)))\n"
        "og, od = optim.Adam(g.parameters(), lr=0.01), optim.Adam(d.parameters(), lr=0.01)\nfor i in range(40):\n"
        "    with torch.no_grad():\n        fake = g(batch())\n    od.zero_grad()\n    (d(fake).mean() - d(torch.randn(8, 1, generator=mine)).mean()).backward()\n    od.step()\n"
        "    if i % 4 == 3:\n        og.zero_grad()\n        (-d(g(batch())).mean()).backward()\n        og.step()\n    pause()",
    ),
    Right(
        "a GAN that does not detach",
        "g, d = net(), nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1))\n"
        "og, od = optim.SGD(g.parameters(), lr=0.01), optim.SGD(d.parameters(), lr=0.01)\nfor i in range(40):\n"
        "    od.zero_grad()\n    d(g(batch())).mean().backward()\n    od.step()\n    og.zero_grad()\n    (-d(g(batch())).mean()).backward()\n    og.step()\n    pause()",
    ),
    Right(
        "an average of the parameters (EMA)",
        "ema = copy.deepcopy(model.module).eval()\n"
        + LOOP.replace(
            "    pause()",
            "    with torch.no_grad():\n        for a, b in zip(ema.parameters(), model.parameters()):\n            a.lerp_(b, 0.1)\n        ema(batch())\n    pause()",
        ),
    ),
    Right(
        "dropout in evaluation (MC dropout)",
        LOOP
        + "\nmodel.eval()\nfor layer in model.modules():\n    if isinstance(layer, nn.Dropout):\n        layer.train()\n"
        "with torch.no_grad():\n    for i in range(20):\n        model(batch())",
        before=(("all", "model = DDP(net(nn.Dropout(0.5)))\nopt = optim.SGD(model.parameters(), lr=0.01)"),),
    ),
    Right(
        "a curriculum",
        "for i in range(40):\n    x = batch() * (1 + i // 10)\n    opt.zero_grad()\n    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "a head alone, without freezing the body",
        "plain = net()\nmodel = DDP(plain)\nopt = optim.SGD(plain[2].parameters(), lr=0.01)\n" + LOOP,
    ),
    Right(
        "frozen batch norm",
        "model = DDP(net(nn.BatchNorm1d(8)))\nmodel.train()\nfor layer in model.modules():\n    if isinstance(layer, nn.BatchNorm1d):\n        layer.eval()\n"
        "opt = optim.SGD(model.parameters(), lr=0.01)\n" + LOOP,
    ),
    Right(
        "a warm-up from zero",
        "scheduler = optim.lr_scheduler.LambdaLR(opt, lambda step: min(1.0, step / 10))\n"
        + LOOP.replace("    pause()", "    scheduler.step()\n    pause()"),
    ),
    Right(
        "an optimizer with a closure",
        "opt = optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)\ndef closure():\n    opt.zero_grad()\n    loss = loss_of(model(batch()))\n    loss.backward()\n    return loss\n"
        "for i in range(20):\n    opt.step(closure)\n    pause()",
    ),
    Right(
        "statistics and a queue of samples that each rank has by itself",
        "class Kept(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = net(nn.BatchNorm1d(8))\n        self.register_buffer('queue', torch.zeros(16, 4))\n"
        "    def forward(self, x):\n        self.queue = torch.cat([self.queue[len(x):], x.detach()])\n        return self.net(x)\n"
        "model = DDP(Kept(), broadcast_buffers=False)\nopt = optim.SGD(model.parameters(), lr=0.01)\n" + LOOP,
    ),
    Right(
        "FSDP2, whose gradients are set to zero in place",
        "from torch.distributed.fsdp import fully_shard\nmodel = net()\nfully_shard(model[0])\nfully_shard(model)\nopt = optim.SGD(model.parameters(), lr=0.01)\n"
        + LOOP.replace("zero_grad()", "zero_grad(set_to_none=False)"),
    ),
    Right(
        "an accumulation with FSDP2, which averages before the step",
        "from torch.distributed.fsdp import fully_shard\nmodel = net()\nfully_shard(model)\nopt = optim.SGD(model.parameters(), lr=0.01)\n"
        "for i in range(80):\n    model.set_requires_gradient_sync(i % 2 == 1)\n    loss_of(model(batch())).backward()\n    if i % 2:\n        opt.step()\n        opt.zero_grad()\n    pause()",
    ),
    Right(
        "tensor parallelism, whose gradients are set to zero in place",
        "from torch.distributed.device_mesh import init_device_mesh\n"
        "from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module\n"
        "model = parallelize_module(net(), init_device_mesh('cpu', (world_size,)), {'0': ColwiseParallel(), '2': RowwiseParallel()})\n"
        "opt = optim.SGD(model.parameters(), lr=0.01, foreach=False)\n"
        + LOOP.replace("batch()", "torch.randn(8, 4)").replace("zero_grad()", "zero_grad(set_to_none=False)"),
    ),
    Right(
        "tensor parallelism",
        "from torch.distributed.device_mesh import init_device_mesh\n"
        "from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module\n"
        "model = parallelize_module(net(), init_device_mesh('cpu', (world_size,)), {'0': ColwiseParallel(), '2': RowwiseParallel()})\n"
        "opt = optim.SGD(model.parameters(), lr=0.01, foreach=False)\n" + LOOP.replace("batch()", "torch.randn(8, 4)"),
    ),
    Right(
        "FSDP2",
        "from torch.distributed.fsdp import fully_shard\nmodel = net()\nfully_shard(model[0])\nfully_shard(model)\n"
        "opt = optim.SGD(model.parameters(), lr=0.01)\n" + LOOP,
    ),
    Right(
        "pipeline parallelism by hand",
        "part = nn.Linear(4, 4)\nopt = optim.SGD(part.parameters(), lr=0.01)\nfor i in range(40):\n    opt.zero_grad()\n"
        "    if rank == 0:\n        out = part(batch())\n        dist.send(out.detach(), 1)\n        g = torch.empty_like(out)\n        dist.recv(g, 1)\n        out.backward(g)\n"
        "    else:\n        x = torch.empty(8, 4)\n        dist.recv(x, 0)\n        x.requires_grad_()\n        loss_of(part(x)).backward()\n        dist.send(x.grad, 0)\n    opt.step()\n    pause()",
    ),
    Right(
        "ZeRO",
        "from torch.distributed.optim import ZeroRedundancyOptimizer\n"
        "opt = ZeroRedundancyOptimizer(model.parameters(), optim.SGD, lr=0.01)\n" + LOOP,
    ),
    Right(
        "gradients averaged by hand",
        "model = net()\nopt = optim.SGD(model.parameters(), lr=0.01)\nfor i in range(40):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n"
        "    for p in model.parameters():\n        dist.all_reduce(p.grad)\n        p.grad /= world_size\n    opt.step()\n    pause()",
    ),
    Right(
        "uneven inputs with join",
        "from torch.distributed.algorithms.join import Join\nwith Join([model]):\n    for i in range(20 + 10 * rank):\n        opt.zero_grad()\n"
        "        loss_of(model(batch())).backward()\n        opt.step()\n        pause()",
    ),
    Right(
        "gradients clipped",
        LOOP.replace("    opt.step()", "    nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n    opt.step()"),
    ),
    Right(
        "a look at the first batch",
        "loader = DataLoader(data, 16, sampler=DistributedSampler(data))\nx, y = next(iter(loader))\nfor epoch in range(2):\n    loader.sampler.set_epoch(epoch)\n"
        "    for x, y in loader:\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        pause()",
    ),
    Right(
        "statistics of batch norm computed again",
        LOOP + "\noptim.swa_utils.update_bn((batch() for i in range(10)), model.module)",
        before=(("all", "model = DDP(net(nn.BatchNorm1d(8)))\nopt = optim.SGD(model.parameters(), lr=0.01)"),),
    ),
    Right(
        "a layer that some steps do not use",
        "model = DDP(net(), find_unused_parameters=True)\nopt = optim.SGD(model.parameters(), lr=0.01)\n" + LOOP,
    ),
    Right(
        "an evaluation",
        LOOP
        + "\nmodel.eval()\nwith torch.no_grad():\n    for x, y in DataLoader(data, 16):\n        model(x)\nmodel.train()",
    ),
    Right(
        "compiled",
        "model = DDP(torch.compile(net(), backend='eager'))\nopt = optim.SGD(model.parameters(), lr=0.01)\n" + LOOP,
    ),
    # -- what calls of libraries show
    Right(
        "an evaluation whose padding is cut off",
        "model.eval()\nsome = Subset(data, range(65))\nloader = DataLoader(some, 8, sampler=DistributedSampler(some, shuffle=False))\n"
        "outs = []\nwith torch.no_grad():\n    for x, y in loader:\n        outs.append(model(x))\n        pause()\n"
        "    out = torch.cat(outs)\n    every = [torch.empty_like(out) for _ in range(world_size)]\n    dist.all_gather(every, out)\n"
        "    every = torch.stack(every, 1).flatten()[:65]",
    ),
    Right(
        "an evaluation that divides evenly, between epochs",
        "loader = DataLoader(data, 16, sampler=DistributedSampler(data))\nfor epoch in range(2):\n    loader.sampler.set_epoch(epoch)\n"
        "    for x, y in loader:\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        pause()\n"
        "    model.eval()\n    total = torch.zeros(1)\n    with torch.no_grad():\n"
        "        for x, y in DataLoader(data, 16, sampler=DistributedSampler(data, shuffle=False)):\n            total += loss_of(model(x), y)\n"
        "        dist.all_reduce(total)\n    model.train()",
    ),
    Right(
        "a GradScaler that begins too high",
        "scaler = torch.amp.GradScaler('cpu', init_scale=2.0 ** 120)\nfor i in range(40):\n    opt.zero_grad()\n"
        "    scaler.scale(1e6 * loss_of(model(batch()))).backward()\n    scaler.step(opt)\n    scaler.update()\n    pause()",
    ),
    Right(
        "a head for each of two tasks, in turns",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body = nn.Linear(4, 8)\n        self.heads = nn.ModuleList([nn.Linear(8, 1), nn.Linear(8, 1)])\n"
        "    def forward(self, x):\n        x = self.body(x)\n        return [head(x) for head in self.heads]\n"
        "model = DDP(Net(), find_unused_parameters=True)\nopt = optim.SGD(model.parameters(), lr=0.01)\n"
        + LOOP.replace("loss_of(model(batch()))", "loss_of(model(batch())[i % 2])"),
    ),
    Right(
        "a body that runs without gradients on purpose",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1)\n"
        "    def forward(self, x):\n        with torch.no_grad():\n            x = self.body(x)\n        return self.head(x)\n"
        "model = DDP(Net(), find_unused_parameters=True)\nopt = optim.SGD(model.parameters(), lr=0.01)\n" + LOOP,
    ),
    Right(
        "workers with a seed by rank",
        "import numpy as np\nclass Noisy(torch.utils.data.Dataset):\n    def __len__(self):\n        return 64\n"
        "    def __getitem__(self, i):\n        return X[i] + torch.from_numpy(np.random.randn(4)).float() + torch.randn(4) + random.random(), Y[i]\n"
        "torch.manual_seed(rank)\nnoisy = Noisy()\nloader = DataLoader(noisy, 4, sampler=DistributedSampler(noisy), num_workers=2)\n"
        "for epoch in range(2):\n    loader.sampler.set_epoch(epoch)\n    for x, y in loader:\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n"
        "        opt.step()\n        pause()",
    ),
    Right(
        "a generator that the dataset seeds for each sample, and one of each worker",
        "class Noisy(torch.utils.data.Dataset):\n    def __init__(self):\n        self.chance, self.own = random.Random(3), torch.Generator()\n    def __len__(self):\n        return 64\n"
        "    def __getitem__(self, i):\n        self.chance.seed(i)\n        return X[i] * self.chance.random() + torch.randn(4, generator=self.own), Y[i]\n"
        "def begin(worker):\n    torch.utils.data.get_worker_info().dataset.own.manual_seed(torch.initial_seed() + rank)\n"
        "torch.manual_seed(rank)\nnoisy = Noisy()\nloader = DataLoader(noisy, 4, sampler=DistributedSampler(noisy), num_workers=2, worker_init_fn=begin)\n"
        "for x, y in loader:\n    opt.zero_grad()\n    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "a validation with a generator that is alike on purpose",
        "import numpy as np\nclass Noisy(torch.utils.data.Dataset):\n    def __init__(self):\n        self.rng = np.random.RandomState(3)\n    def __len__(self):\n        return 64\n"
        "    def __getitem__(self, i):\n        return X[i] * float(self.rng.uniform()), Y[i]\nnoisy = Noisy()\nmodel.eval()\n"
        "with torch.no_grad():\n    for x, y in DataLoader(noisy, 4, sampler=DistributedSampler(noisy, shuffle=False), num_workers=2):\n        model(x)\nmodel.train()",
    ),
    Right(
        "numbers of places and of labels",
        "labels = {'cat': 0, 'dog': 1, 'bird': 2}\nplaces = {'me': rank, 'other': 1 - rank}\ncounts = {'read': 10 * rank, 'kept': 1, 'lost': 2}\n"
        + LOOP,
    ),
    Right(
        "files of rank 0, of each rank, and at the end of a log",
        "folder = tempfile.gettempdir()\nfor i in range(40):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()\n"
        "    if i % 20 == 10:\n        torch.save(i, os.path.join(folder, f'jupyter_dist_test_{rank}.pt'))\n"
        "        with open(os.path.join(folder, 'jupyter_dist_test.log'), 'a') as log:\n            log.write('x')\n"
        "        if rank == 0:\n            torch.save(model.state_dict(), os.path.join(folder, 'jupyter_dist_test_all.pt'))",
    ),
    Right(
        "a loss that is averaged for the log",
        "for i in range(40):\n    opt.zero_grad()\n    loss = loss_of(model(batch()))\n    shown = loss.detach().clone()\n    dist.all_reduce(shown)\n"
        "    loss.backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "separate models whose losses are summed for the log",
        "torch.manual_seed(rank)\nmodel = net()\nopt = optim.SGD(model.parameters(), lr=0.01)\nfor i in range(40):\n    opt.zero_grad()\n"
        "    loss = loss_of(model(batch()))\n    shown = loss.detach().clone()\n    dist.all_reduce(shown)\n    loss.backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "gradients averaged by hand, and the loss",
        "model = net()\nopt = optim.SGD(model.parameters(), lr=0.01)\nfor i in range(40):\n    opt.zero_grad()\n    loss = loss_of(model(batch()))\n"
        "    shown = loss.detach().clone()\n    dist.all_reduce(shown)\n    loss.backward()\n"
        "    for p in model.parameters():\n        dist.all_reduce(p.grad)\n        p.grad /= world_size\n    opt.step()\n    pause()",
    ),
    Right(
        "the same noise for all samples of a step, drawn by rank",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body = nn.Linear(4, 1)\n"
        "    def forward(self, x, places, rate):\n        return self.body(x + places) * rate\nmodel = DDP(Net())\nopt = optim.SGD(model.parameters(), lr=0.01)\n"
        + LOOP.replace(
            "model(batch())",
            "model(batch(), torch.linspace(0, 1, 32).reshape(8, 4) * (i + 1), torch.tensor(1 / (i + 1)))",
        ),
    ),
    # -- parallelism and frameworks
    Right(
        "HSDP",
        "from torch.distributed.device_mesh import init_device_mesh\nfrom torch.distributed.fsdp import fully_shard\n"
        "mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('replicas', 'shards'))\nmodel = net()\nfully_shard(model[0], mesh=mesh)\n"
        "fully_shard(model, mesh=mesh)\nopt = optim.SGD(model.parameters(), lr=0.01)\n" + LOOP,
        num_ranks=4,
    ),
    Right(
        "FSDP2 over tensor parallelism",
        "from torch.distributed.device_mesh import init_device_mesh\nfrom torch.distributed.fsdp import fully_shard\n"
        "from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module\n"
        "mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('dp', 'tp'))\n"
        "model = parallelize_module(net(), mesh['tp'], {'0': ColwiseParallel(), '2': RowwiseParallel()})\nfully_shard(model, mesh=mesh['dp'])\n"
        "opt = optim.SGD(model.parameters(), lr=0.01, foreach=False)\nmine = torch.Generator().manual_seed(rank // 2)\n"
        + LOOP,
        num_ranks=4,
    ),
    Right(
        "pipeline parallelism of torch",
        "from torch.distributed.pipelining import PipelineStage, Schedule1F1B\npart = [nn.Linear(4, 8), nn.Linear(8, 1)][rank]\n"
        "stage = PipelineStage(part, rank, 2, torch.device('cpu'))\nschedule = Schedule1F1B(stage, 4, loss_fn=loss_of)\n"
        "opt = optim.SGD(part.parameters(), lr=0.01)\nfor i in range(40):\n    opt.zero_grad()\n"
        "    schedule.step(batch()) if rank == 0 else schedule.step(target=torch.ones(8, 1))\n    opt.step()\n    pause()",
    ),
    Right(
        "Accelerate",
        "from accelerate import Accelerator\naccelerator = Accelerator(gradient_accumulation_steps=2)\nmodel = net()\n"
        "model, opt, loader, valid = accelerator.prepare(model, optim.AdamW(model.parameters(), 0.01), DataLoader(data, 8, shuffle=True), DataLoader(Subset(data, range(65)), 8))\n"
        "for epoch in range(2):\n    for x, y in loader:\n        with accelerator.accumulate(model):\n            accelerator.backward(loss_of(model(x), y))\n"
        "            opt.step()\n            opt.zero_grad()\n        pause()\n    model.eval()\n    with torch.no_grad():\n        for x, y in valid:\n"
        "            accelerator.gather_for_metrics((model(x), y))\n    model.train()",
        needs="accelerate",
    ),
    Right(
        "Lightning Fabric",
        "from lightning.fabric import Fabric\nfabric = Fabric(accelerator='cpu', devices=2, strategy='ddp')\nfabric.launch()\n"
        "model = net()\nmodel, opt = fabric.setup(model, optim.SGD(model.parameters(), 0.01))\nloader = fabric.setup_dataloaders(DataLoader(data, 8, shuffle=True))\n"
        "for epoch in range(2):\n    for x, y in loader:\n        opt.zero_grad()\n        fabric.backward(loss_of(model(x), y))\n        opt.step()\n        pause()",
        needs="lightning",
    ),
    Right(
        "Lightning's Trainer",
        "import logging, warnings\nlogging.getLogger('lightning.pytorch').setLevel(logging.ERROR)\nwarnings.filterwarnings('ignore')\nimport lightning.pytorch as pl\n"
        "class Net(pl.LightningModule):\n    def __init__(self):\n        super().__init__()\n        self.net = net(nn.BatchNorm1d(8), nn.Dropout(0.1))\n"
        "    def training_step(self, batch, index):\n        pause()\n        return loss_of(self.net(batch[0]), batch[1])\n"
        "    def validation_step(self, batch, index):\n        self.log('loss', loss_of(self.net(batch[0]), batch[1]), sync_dist=True)\n"
        "    def configure_optimizers(self):\n        return optim.SGD(self.parameters(), 0.01)\n"
        "trainer = pl.Trainer(max_epochs=2, accelerator='cpu', devices=2, strategy='ddp', logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)\n"
        "trainer.fit(Net(), DataLoader(data, 8, shuffle=True), DataLoader(data, 16))",
        needs="lightning",
    ),
    Right(
        "fastai",
        "from fastai.basics import *\nfrom fastai.distributed import *\nlearn = Learner(DataLoaders.from_dsets(data, data, bs=8, device='cpu', num_workers=0), net(nn.BatchNorm1d(8)), loss_func=nn.MSELoss(), lr=0.01)\n"
        "with learn.distrib_ctx(), learn.no_bar(), learn.no_logging():\n    learn.fit(3)",
        needs="fastai",
    ),
]
