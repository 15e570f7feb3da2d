"""Errors of training from public reports, which were read after the rules were written, and innocent loops from such reports."""

from __future__ import annotations

from .kinds import FIRST, LOOP, STEP, Right, Wrong

__all__ = ["FIRST", "RIGHT", "WRONG"]

WRONG = [
    Wrong(
        "kohya-ss/sd-scripts#924: a helper unwraps the model",
        "def unwrap(model):\n    return model.module if isinstance(model, DDP) else model\nunet = unwrap(model)\n"
        + LOOP.replace("model(", "unet("),
        ("inner_module",),
        line=STEP,
    ),
    Wrong(
        "OpenTSLM/OpenTSLM#49: the loss is a method of the module inside",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1)\n"
        "    def forward(self, x):\n        return self.head(self.body(x).relu())\n    def compute_loss(self, batch):\n"
        "        return loss_of(self(batch))\nclass Trainer:\n    def __init__(self):\n        self.model = DDP(Net())\n"
        "        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.01)\n    def _get_model(self):\n        return self.model.module\n"
        "    def train(self):\n        for i in range(40):\n            self.optimizer.zero_grad()\n            self._get_model().compute_loss(batch()).backward()\n"
        "            self.optimizer.step()\n            pause()\nTrainer().train()",
        ("inner_module",),
        line=("self.optimizer.step()",),
    ),
    Wrong(
        "huggingface/trl#7246: a fused loss runs on the unwrapped model",
        "def fused_loss(model, hidden_of):\n    body, head = model[:2], model[2]\n    return loss_of(nn.functional.linear(body(hidden_of), head.weight, head.bias))\n"
        "for i in range(40):\n    opt.zero_grad()\n    fused_loss(model.module, batch()).backward()\n    opt.step()\n    pause()",
        ("inner_module",),
        line=STEP,
    ),
    Wrong(
        "huggingface/datasets#5360: a stream that is not divided",
        "class Stream(torch.utils.data.IterableDataset):\n    def __iter__(self):\n        return zip(X, Y)\n"
        "for x, y in DataLoader(Stream(), 8):\n    opt.zero_grad()\n    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
        ("same_batch",),
    ),
    Wrong(
        "openspeech-team/openspeech#149: a sampler of its own that knows no ranks",
        "class Buckets(torch.utils.data.Sampler):\n    def __init__(self, data):\n        self.number = len(data)\n    def __iter__(self):\n"
        "        return iter(torch.randperm(self.number, generator=torch.Generator().manual_seed(0)).tolist())\n    def __len__(self):\n        return self.number\n"
        "for x, y in DataLoader(data, 8, sampler=Buckets(data)):\n    opt.zero_grad()\n    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
        ("same_batch",),
    ),
    Wrong(
        "meta-pytorch/opacus#432: layers are replaced after the optimizer was made",
        "plain = net(nn.BatchNorm1d(8))\nopt = optim.SGD(plain.parameters(), lr=0.01)\nplain[1] = nn.GroupNorm(2, 8)\nmodel = DDP(plain)\n"
        + LOOP,
        ("parameters_not_held",),
        line=STEP,
    ),
    Wrong(
        "karpathy/build-nanogpt#30: the switch for averaging comes after the forward pass",
        "for i in range(40):\n    opt.zero_grad()\n    for micro in range(4):\n        loss = loss_of(model(batch())) / 4\n"
        "        model.require_backward_grad_sync = micro == 3\n        loss.backward()\n    opt.step()\n    pause()",
        ("no_sync",),
        line=STEP,
    ),
    Wrong(
        "huggingface/nanoVLM#124: the epoch never moves, in a sampler of batches",
        "from torch.utils.data import BatchSampler\nloader = DataLoader(data, batch_sampler=BatchSampler(DistributedSampler(data), 16, True))\n"
        "for epoch in range(4):\n    for x, y in loader:\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        pause()",
        ("epoch_not_set",),
        line=("for x, y in loader",),
    ),
    Wrong(
        "pytorch/pytorch#14467: a network that was built again after its optimizer",
        "def build():\n    return net()\ndef main():\n    network = build()\n    optimizer = optim.RMSprop(network.parameters())\n    network = DDP(build())\n"
        "    for i in range(40):\n        optimizer.zero_grad()\n        loss_of(network(batch())).backward()\n        optimizer.step()\n        pause()\nmain()",
        ("other_optimizer",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "huggingface/accelerate#3547: data that was divided already is divided once more",
        "mine_alone = Subset(data, range(rank, 256, world_size))\nloader = DataLoader(mine_alone, 4, sampler=DistributedSampler(mine_alone))\n"
        "for x, y in loader:\n    opt.zero_grad()\n    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
        ("subsets_differ",),
    ),
]

RIGHT = [
    Right(
        "karpathy/llama2.c#522: a stream with a seed by rank",
        "class Stream(torch.utils.data.IterableDataset):\n    def __iter__(self):\n        chance = random.Random(42 + 1337 * rank)\n"
        "        while True:\n            yield X[chance.randrange(256)]\nfor i, x in zip(range(40), DataLoader(Stream(), 8)):\n    opt.zero_grad()\n"
        "    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "MIC-DKFZ/nnUNet#1109: random cases without a sampler",
        "chance = random.Random(rank)\nfor i in range(40):\n    x = torch.stack(chance.choices(list(X), k=8))\n    opt.zero_grad()\n    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "a momentum encoder in training mode without gradients (MoCo)",
        "model = DDP(net(nn.BatchNorm1d(8)))\nkey = copy.deepcopy(model.module)\nopt = optim.SGD(model.parameters(), lr=0.01)\nfor i in range(40):\n"
        "    x = batch()\n    with torch.no_grad():\n        for a, b in zip(key.parameters(), model.parameters()):\n            a.lerp_(b, 0.01)\n        goal = key(x)\n"
        "    opt.zero_grad()\n    loss_of(model(x), goal).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "huggingface/datasets#6437: uneven streams with join",
        "from torch.distributed.algorithms.join import Join\nwith Join([model]):\n    for x in DataLoader(X[: 160 + 64 * rank], 8):\n        opt.zero_grad()\n"
        "        loss_of(model(x + rank)).backward()\n        opt.step()\n        pause()",
    ),
]
