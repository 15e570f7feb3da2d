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
    # -- read after the rules for calls of libraries
    Wrong(
        "huggingface/transformers#37932: workers take their seeds from a state that ranks have alike",
        "import numpy as np\ndef seed_worker(_):\n    seed = torch.initial_seed() % 2 ** 32\n    random.seed(seed)\n    np.random.seed(seed)\n    torch.manual_seed(seed)\n"
        "class Items(torch.utils.data.Dataset):\n    def __len__(self):\n        return 64\n    def __getitem__(self, i):\n"
        "        return X[i] * (1 + torch.randint(low=0, high=len(self), size=()).item() / 64), Y[i]\ntorch.manual_seed(42)\nitems = Items()\n"
        "loader = DataLoader(items, 4, sampler=DistributedSampler(items), num_workers=2, worker_init_fn=seed_worker)\nfor x, y in loader:\n"
        "    opt.zero_grad()\n    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
        ("same_random_numbers",),
    ),
    Wrong(
        "pyannote/pyannote-audio#526: a generator of a seed and the number of the worker",
        "class Task(torch.utils.data.IterableDataset):\n    def __iter__(self):\n        chance = random.Random(f'0{torch.utils.data.get_worker_info().id}')\n"
        "        for _ in range(80):\n            yield X[chance.randrange(256)]\nfor x in DataLoader(Task(), 4, num_workers=2):\n    opt.zero_grad()\n"
        "    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
        ("same_batch",),
    ),
    Wrong(
        "facebookresearch/fastMRI#123: masks of a generator that each rank seeds alike",
        "import numpy as np\nclass Masked(torch.utils.data.Dataset):\n    def __init__(self):\n        self.rng = np.random.RandomState(7)\n    def __len__(self):\n        return 160\n"
        "    def __getitem__(self, i):\n        mask = torch.from_numpy(self.rng.uniform(size=4) < 0.5).float()\n        return X[i] * mask, mask\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body = nn.Linear(8, 1)\n    def forward(self, x, mask):\n"
        "        return self.body(torch.cat([x, mask], 1))\nmodel = DDP(Net())\nopt = optim.SGD(model.parameters(), lr=0.01)\nmasked = Masked()\n"
        "for x, mask in DataLoader(masked, 8, sampler=DistributedSampler(masked)):\n    opt.zero_grad()\n    loss_of(model(x, mask)).backward()\n    opt.step()\n    pause()",
        ("same_random_numbers",),
    ),
    Wrong(
        "kakaobrain/scrl#5: all processes write checkpoint_best.pth",
        "def save_checkpoint(tag):\n    path = f'{tempfile.gettempdir()}/jupyter_dist_checkpoint_{tag}.pth'\n    torch.save({'tag': tag, 'model': model.module.state_dict()}, path)\n"
        + LOOP
        + "\n    if i == 10:\n        save_checkpoint('best')",
        ("one_file",),
        line=("torch.save(",),
    ),
    Wrong(
        "GuHuangAI/ADM-Public#14: a schedule that counts its steps once for each device",
        "step = 0\nscheduler = optim.lr_scheduler.LambdaLR(opt, lambda _: max(0.0, 1 - step / 40))\nfor i in range(80):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n"
        "    opt.step()\n    step += world_size\n    scheduler.step()\n    pause()",
        ("zero_learning_rate",),
        line=STEP,
    ),
    Wrong(
        "rwth-i6, issue 1493: the learning rate falls by the score of each rank",
        "scheduler = optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.9, patience=0)\nfor epoch in range(12):\n    for i in range(10):\n        opt.zero_grad()\n"
        "        loss = loss_of(model(batch()))\n        loss.backward()\n        opt.step()\n        pause()\n    scheduler.step(1.0 + 0.1 * epoch * (rank or -1))",
        ("settings_differ",),
        line=STEP,
    ),
    Wrong(
        "adapter-hub/adapters#260: the adapter comes after the optimizer, and the rest is frozen",
        "plain = net()\nopt = optim.AdamW([p for p in plain.parameters() if p.requires_grad], lr=0.01)\nplain.requires_grad_(False)\n"
        "plain.add_module('adapter', nn.Linear(1, 1))\nmodel = DDP(plain)\n" + LOOP,
        ("parameters_not_held", "other_optimizer"),
        line=STEP,
    ),
    Wrong(
        "rasbt/dora-from-scratch#1: the optimizer of another variant of the model",
        "model_lora, model_dora = net(), DDP(net())\noptimizer_dora = optim.Adam(model_lora.parameters(), lr=0.01)\nfor i in range(40):\n    optimizer_dora.zero_grad()\n"
        "    loss_of(model_dora(batch())).backward()\n    optimizer_dora.step()\n    pause()",
        ("other_optimizer",),
        line=("optimizer_dora.step()",),
    ),
    Wrong(
        "pytorch/examples#769: meters of a validation with padding are summed",
        "class Meter:\n    sum = count = 0\n    def update(self, value, n):\n        self.sum += value * n\n        self.count += n\n    def all_reduce(self):\n"
        "        total = torch.tensor([self.sum, self.count], dtype=torch.float32)\n        dist.all_reduce(total, dist.ReduceOp.SUM, async_op=False)\n"
        "        self.sum, self.count = total.tolist()\ndef validate(loader):\n    top1 = Meter()\n    model.eval()\n    with torch.no_grad():\n"
        "        for x, y in loader:\n            top1.update(((model(x) > 0) == y).float().mean().item(), len(x))\n    top1.all_reduce()\n    return top1.sum / top1.count\n"
        "some = Subset(data, range(101))\nvalid = DataLoader(some, 10, sampler=DistributedSampler(some, shuffle=False, drop_last=False))\nfor epoch in range(2):\n"
        "    for i in range(10):\n        opt.zero_grad()\n        loss_of(model(batch())).backward()\n        opt.step()\n        pause()\n    validate(valid)\n    model.train()",
        ("padding_counted",),
        line=("for x, y in loader",),
    ),
    Wrong(
        "wkentaro/pytorch-fcn#57: a validation within an epoch leaves the model in its mode",
        "model = DDP(net(nn.BatchNorm1d(8), nn.Dropout(0.2)))\nopt = optim.SGD(model.parameters(), lr=0.01)\ndef validate():\n    model.eval()\n    with torch.no_grad():\n        model(X)\n"
        "for epoch in range(2):\n    model.train()\n    for i in range(60):\n        if i == 4:\n            validate()\n        opt.zero_grad()\n        loss_of(model(batch())).backward()\n"
        "        opt.step()\n        pause()",
        ("training_in_eval_mode",),
        line=STEP,
    ),
    Wrong(
        "pliang279/MultiBench#26: model.train() within the validation",
        "model = DDP(net(nn.BatchNorm1d(8)))\nopt = optim.SGD(model.parameters(), lr=0.01)\nfor epoch in range(2):\n    model.train()\n    for i in range(10):\n        opt.zero_grad()\n"
        "        loss_of(model(batch())).backward()\n        opt.step()\n        pause()\n    model.eval()\n    with torch.no_grad():\n        for i in range(10):\n            model.train()\n"
        "            model(batch())",
        ("evaluation_in_training_mode",),
        line=("model(batch())",),
    ),
    Wrong(
        "Tsinghua-MARS-Lab/DenseTNT#11: the scores of a layer are detached",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body, self.goals, self.head = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)\n"
        "    def forward(self, x):\n        x = self.body(x)\n        goals = self.goals(x).softmax(1).detach()\n        return self.head(x * goals)\n"
        "model = DDP(Net(), find_unused_parameters=True)\nopt = optim.Adam(model.parameters(), lr=0.01)\n" + LOOP,
        ("layer_without_gradient",),
        line=STEP,
    ),
    # -- read after the rules had become rows of a table
    Wrong(
        "texttron/tevatron#89: a trainer's loader without a sampler for ranks",
        "from torch.utils.data import RandomSampler\nclass Trainer:\n    def get_train_dataloader(self):\n"
        "        generator = torch.Generator().manual_seed(42)\n        return DataLoader(data, 8, sampler=RandomSampler(data, generator=generator), drop_last=True)\n"
        "    def train(self):\n        for x, y in self.get_train_dataloader():\n            loss = loss_of(model(x), y)\n            loss.backward()\n"
        "            opt.step()\n            opt.zero_grad()\n            pause()\nTrainer().train()",
        ("same_batch",),
        line=("loss_of(model(x), y)",),
    ),
    Wrong(
        "pytorch/pytorch#104336: a wrapped model that went elsewhere and back",
        # A change of the type makes new accumulators of gradients, as a change of the device does.
        "model.double()\nindex = model(batch().double()).detach()\nmodel.float()\n" + LOOP,
        ("not_averaged",),
        line=STEP,
    ),
    Wrong(
        "pytorch/pytorch#136009: a GradScaler with another scale on each rank",
        "scaler = torch.amp.GradScaler('cpu', init_scale=2.0 ** (10 + rank))\nfor i in range(40):\n    opt.zero_grad()\n"
        "    scaler.scale(loss_of(model(batch()))).backward()\n    scaler.step(opt)\n    scaler.update()\n    pause()",
        ("not_averaged",),
        line=("scaler.step(opt)",),
    ),
    Wrong(
        "geoopt/geoopt#168: an optimizer whose steps differ though the gradients do not",
        "class Stabilized(optim.SGD):\n    def step(self, closure=None):\n        super().step(closure)\n        with torch.no_grad():\n"
        "            for group in self.param_groups:\n                for p in group['params']:\n                    p.add_(torch.randn(p.shape, generator=mine), alpha=1e-3)\n"
        "opt = Stabilized(model.parameters(), lr=0.01)\n" + LOOP,
        ("replicas_differ",),
        line=("super().step(closure)",),
    ),
    Wrong(
        "allenai/open-instruct#646: a schedule that each process counts, over two epochs",
        "steps = 20\nscheduler = optim.lr_scheduler.LinearLR(opt, 1.0, 0.0, total_iters=steps)\nfor epoch in range(2):\n    for i in range(steps):\n"
        "        loss_of(model(batch())).backward()\n        opt.step()\n        opt.zero_grad()\n        for _ in range(world_size):\n            scheduler.step()\n        pause()",
        ("zero_learning_rate",),
        line=STEP,
    ),
    Wrong(
        "areal-project/AReaL#1096: a validation that is padded and cut",
        "some = Subset(data, range(67))\nvalid = DataLoader(some, 4, sampler=DistributedSampler(some, shuffle=False), drop_last=True)\n"
        "LOOP_STEPS = 6\nfor i in range(LOOP_STEPS):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()\n"
        "model.eval()\nstats = {'loss': 0.0, 'count': 0}\nwith torch.no_grad():\n    for x, y in valid:\n        stats['loss'] += loss_of(model(x), y).item() * len(x)\n        stats['count'] += len(x)\n"
        "total = torch.tensor([stats['loss'], stats['count']], dtype=torch.float64)\ndist.all_reduce(total)",
        ("padding_counted",),
        line=("for x, y in valid",),
    ),
    Wrong(
        "wolny/pytorch-3dunet#32: transformers with a generator that the workers share",
        "import numpy as np\nclass RandomRotate:\n    def __init__(self, random_state):\n        self.random_state = random_state\n    def __call__(self, x):\n"
        "        return torch.roll(x, int(self.random_state.randint(4))) * float(self.random_state.uniform(0.9, 1.1))\n"
        "class Volumes(torch.utils.data.Dataset):\n    def __init__(self):\n        self.transform = RandomRotate(np.random.RandomState(47))\n    def __len__(self):\n        return 160\n"
        "    def __getitem__(self, i):\n        return self.transform(X[i]), Y[i]\nvolumes = Volumes()\nfor x, y in DataLoader(volumes, 8, sampler=DistributedSampler(volumes), num_workers=2):\n"
        "    opt.zero_grad()\n    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
        ("same_random_numbers",),
    ),
    Wrong(
        "ermongroup/ncsn#2: a loss of the test data for the log, and evaluation mode ever after",
        "score = DDP(net(nn.BatchNorm1d(8)))\noptimizer = optim.Adam(score.parameters(), lr=0.001)\nstep = 0\nfor epoch in range(2):\n    for i in range(30):\n"
        "        if step == 0:\n            score.train()\n        step += 1\n        loss = loss_of(score(batch()))\n        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n        pause()\n"
        "        if step % 10 == 0:\n            score.eval()\n            with torch.no_grad():\n                test_loss = loss_of(score(X[:32]))",
        ("training_in_eval_mode",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "princeton-vl/pytorch_stacked_hourglass#44: model.train() in the phase of validation, too",
        "poseNet = DDP(net(nn.BatchNorm1d(8)))\noptimizer = optim.Adam(poseNet.parameters(), lr=0.001)\ndef make_network(phase):\n    poseNet.train()\n    x = batch()\n"
        "    if phase != 'train':\n        with torch.no_grad():\n            return loss_of(poseNet(x))\n    loss = loss_of(poseNet(x))\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n    return loss.detach()\n"
        "for epoch in range(2):\n    for phase, number in (('train', 20), ('valid', 8)):\n        for i in range(number):\n            make_network(phase)\n            pause()",
        ("evaluation_in_training_mode",),
        line=("loss_of(poseNet(x))",),
    ),
    Wrong(
        "ServiceNow/LCFCN#20: the function of the loss sets the mode of evaluation",
        "model = DDP(net(nn.BatchNorm1d(8), nn.Dropout(0.3)))\nopt = optim.Adam(model.parameters(), lr=1e-3)\ndef get_blob_dict(x):\n    model.eval()\n    with torch.no_grad():\n        return model(x).round()\n"
        "def lc_loss(x):\n    model.train()\n    blobs = get_blob_dict(x)\n    return loss_of(model(x), blobs)\nfor i in range(40):\n    opt.zero_grad()\n    loss = lc_loss(batch())\n    loss.backward()\n    opt.step()\n    pause()",
        ("training_in_eval_mode",),
        line=STEP,
    ),
    Wrong(
        "yastrebksv/TennisCourtDetector#7: a trainer that never sets gradients to zero",
        "def train(model, optimizer, epochs):\n    model.train()\n    for epoch in range(epochs):\n        for i in range(20):\n            out = model(batch())\n            loss = loss_of(out)\n"
        "            loss.backward()\n            optimizer.step()\n            pause()\ntrain(model, optim.Adam(model.parameters(), lr=1e-5, betas=(0.9, 0.999), weight_decay=0), 2)",
        ("not_zeroed",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "facebookresearch/detectron2#2486: a head is unfrozen in the middle of training",
        "plain = net()\nfor p in plain[2].parameters():\n    p.requires_grad = False\nmodel = DDP(plain)\nopt = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)\nfor iteration in range(120):\n"
        "    if iteration == 20:\n        for p in model.module[2].parameters():\n            p.requires_grad = True\n    loss = loss_of(model(batch()))\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n    pause()",
        ("changed_after_wrap",),
        line=STEP,
    ),
    Wrong(
        "Lightning-AI/pytorch-lightning#7728: setup() splits at random on each rank",
        "class DataModule:\n    def setup(self):\n        self.train, self.val = random_split(data, [200, 56])\n    def loader(self, some, shuffle):\n        return DataLoader(some, 8, sampler=DistributedSampler(some, shuffle=shuffle))\n"
        "torch.manual_seed(int(time.time() * 1e6) % 2 ** 31 + rank)\ndm = DataModule()\ndm.setup()\ntrain_loader = dm.loader(dm.train, True)\nfor x, y in train_loader:\n    opt.zero_grad()\n"
        "    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
        ("subsets_differ",),
        line=("for x, y in train_loader",),
    ),
    Wrong(
        "facebookresearch/detectron2#1732: the checkpoint is on the first machine's disk alone",
        "path = f'{tempfile.gettempdir()}/jupyter_dist_machine_{rank}.pth'\nif os.path.exists(path):\n    os.remove(path)\n"
        "if rank == 0:\n    torch.save({k: v + 0.1 for k, v in model.module.state_dict().items()}, path)\ndef resume_or_load():\n    if os.path.exists(path):\n        model.module.load_state_dict(torch.load(path))\n"
        "resume_or_load()\n" + LOOP,
        ("replicas_differ",),
        line=STEP,
    ),
    Wrong(
        "sktime/pytorch-forecasting#2293: groups get the hashes of their names, other ones on each rank",
        "import zlib\ngroups = ['aa', 'bb', 'cc', 'dd', 'ee', 'ff', 'gg', 'hh', 'ii', 'jj']\n"
        "group_ids = {name: zlib.crc32(f'{rank} {name}'.encode()) % 1000 for name in groups}  # as hash() with a seed of each process\n"
        "for i in range(40):\n    x = batch()\n    x[:, 0] = torch.tensor([group_ids[groups[(i + j) % 10]] for j in range(8)]) / 1000\n    opt.zero_grad()\n    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
        ("labels_differ",),
    ),
    # -- read after looks had been mended for long loops
    Wrong(
        "modelscope/FunASR#3472: the first pass of an accumulation averages, and the one before the step does not",
        "from contextlib import nullcontext\naccum_grad = 4\nfor batch_idx in range(160):\n    my_context = model.no_sync if batch_idx % accum_grad != 0 else nullcontext\n"
        "    with my_context():\n        loss = loss_of(model(batch())) / accum_grad\n        loss.backward()\n    if (batch_idx + 1) % accum_grad == 0:\n"
        "        opt.step()\n        opt.zero_grad()\n    pause()",
        ("no_sync",),
        line=STEP,
    ),
    Wrong(
        "kan-bayashi/ParallelWaveGAN#177: a GAN's trainer whose sampler never gets the epoch",
        "class Trainer:\n    def __init__(self):\n        self.model = {'generator': DDP(net()), 'discriminator': DDP(nn.Linear(1, 1))}\n"
        "        self.optimizer = {name: optim.Adam(one.parameters(), lr=0.001) for name, one in self.model.items()}\n"
        "        self.sampler = {'train': DistributedSampler(data, shuffle=True)}\n        self.data_loader = {'train': DataLoader(data, 16, sampler=self.sampler['train'])}\n"
        "    def _train_step(self, x):\n        y = self.model['generator'](x)\n        gen_loss = -self.model['discriminator'](y).mean()\n        self.optimizer['generator'].zero_grad()\n"
        "        gen_loss.backward()\n        self.optimizer['generator'].step()\n        with torch.no_grad():\n            y = self.model['generator'](x)\n"
        "        dis_loss = self.model['discriminator'](y.detach()).mean()\n        self.optimizer['discriminator'].zero_grad()\n        dis_loss.backward()\n        self.optimizer['discriminator'].step()\n        pause()\n"
        "    def _train_epoch(self):\n        for x, _ in self.data_loader['train']:\n            self._train_step(x)\n    def run(self):\n        for epoch in range(4):\n            self._train_epoch()\nTrainer().run()",
        ("epoch_not_set",),
        line=("self.data_loader['train']",),
    ),
    Wrong(
        "shubhamagarwal92/mmd#14: evaluate() within an epoch, and no train() after it",
        "model = DDP(net(nn.Dropout(0.3)))\nopt = optim.Adam(model.parameters(), lr=0.001)\nclass Trainer:\n    def evaluate(self):\n        model.eval()\n        losses = []\n        with torch.no_grad():\n"
        "            for i in range(3):\n                losses.append(loss_of(model(batch())).item())\n        return sum(losses)\n    def train(self):\n        for epoch in range(2):\n            model.train()\n"
        "            for i in range(100):\n                opt.zero_grad()\n                loss_of(model(batch())).backward()\n                nn.utils.clip_grad_norm_(model.parameters(), 5.0)\n                opt.step()\n"
        "                time.sleep(0.01)\n                if i % 40 == 39:\n                    self.evaluate()\nTrainer().train()",
        ("training_in_eval_mode",),
        line=STEP,
    ),
    Wrong(
        "wolny/pytorch-3dunet#53: validation without eval(), every few iterations",
        "class UNetTrainer:\n    def __init__(self):\n        self.model = DDP(net(nn.BatchNorm1d(8)))\n        self.optimizer = optim.Adam(self.model.parameters(), lr=0.0002)\n"
        "    def _forward_pass(self, x, target):\n        output = self.model(x)\n        return output, loss_of(output, target)\n    def validate(self):\n        losses = []\n        with torch.no_grad():\n"
        "            for x, target in DataLoader(data, 32):\n                output, loss = self._forward_pass(x, target)\n                losses.append(loss.item())\n        return sum(losses)\n"
        "    def train(self, loader):\n        self.model.train()\n        for i, (x, target) in enumerate(loader):\n            output, loss = self._forward_pass(x, target)\n            self.optimizer.zero_grad()\n"
        "            loss.backward()\n            self.optimizer.step()\n            pause()\n            if i % 8 == 7:\n                self.validate()\n"
        "UNetTrainer().train(DataLoader(data, 4, sampler=DistributedSampler(data)))",
        ("evaluation_in_training_mode",),
        line=("self.model(x)",),
    ),
    Wrong(
        "Tramac/awesome-semantic-segmentation-pytorch#67: validation() saves on every rank",
        "def save_checkpoint(model, is_best):\n    directory = os.path.join(tempfile.gettempdir(), 'jupyter_dist_segmentation')\n    os.makedirs(directory, exist_ok=True)\n    filename = os.path.join(directory, 'fcn_vgg16.pth')\n"
        "    torch.save(model.module.state_dict(), filename)\n    if is_best:\n        import shutil\n        shutil.copyfile(filename, os.path.join(directory, 'best.pth'))\n"
        "def validation():\n    model.eval()\n    with torch.no_grad():\n        model(X)\n    save_checkpoint(model, True)\n    dist.barrier()\n"
        "for iteration in range(40):\n    loss = loss_of(model(batch()))\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n    pause()\n    if iteration % 20 == 19:\n        validation()\n        model.train()",
        ("one_file",),
        line=("torch.save(",),
    ),
    Wrong(
        "xingyizhou/CenterNet#233: workers augment alike in every epoch",
        "import numpy as np\nclass FalseDataset(torch.utils.data.Dataset):\n    def __len__(self):\n        return 64\n    def __getitem__(self, i):\n        return X[i] * float(np.random.uniform(0.9, 1.1)), Y[i]\n"
        "false_instance = FalseDataset()\nsampler = DistributedSampler(false_instance)\ntrain_loader = DataLoader(false_instance, 4, sampler=sampler, num_workers=2, worker_init_fn=lambda id: np.random.seed(1000 * rank + id))\n"
        "def train_epoch(loader, epoch):\n    sampler.set_epoch(epoch)\n    for x, y in loader:\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        pause()\n"
        "for epoch in range(3):\n    train_epoch(train_loader, epoch)",
        ("same_random_numbers",),
    ),
    Wrong(
        "intelligent-machine-learning/dlrover#584: an optimizer that was made before FSDP",
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nmodel = net()\noptimizer = optim.AdamW(model.parameters(), lr=0.01)\nmodel = FSDP(model, device_id=torch.device('cpu'))\n"
        "for i in range(40):\n    loss = loss_of(model(batch()))\n    optimizer.zero_grad(set_to_none=True)\n    loss.backward()\n    optimizer.step()\n    pause()",
        ("other_optimizer",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "zjunlp/HVPNeT#5: the groups of the last layers are made, and not appended",
        "class HMNet(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.bert, self.crf, self.fc = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)\n    def forward(self, x):\n        return self.fc(self.crf(self.bert(x).relu()).relu())\n"
        "model = DDP(HMNet())\nparameters = []\nparams = {'lr': 0.01, 'weight_decay': 0.01, 'params': []}\nfor name, param in model.named_parameters():\n    if 'bert' in name:\n        params['params'].append(param)\nparameters.append(params)\n"
        "params = {'lr': 0.05, 'weight_decay': 0.01, 'params': []}\nfor name, param in model.named_parameters():\n    if 'crf' in name or 'fc' in name:\n        params['params'].append(param)\n"
        "optimizer = optim.AdamW(parameters)\nfor i in range(40):\n    loss_of(model(batch())).backward()\n    optimizer.step()\n    optimizer.zero_grad()\n    pause()",
        ("parameters_not_held",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "facebookresearch/nwm#16: zero_grad() in the branch without bfloat16 alone",
        "bfloat_enable, scaler = True, torch.amp.GradScaler('cpu', enabled=True)\nfor i in range(40):\n    with torch.amp.autocast('cpu', enabled=bfloat_enable, dtype=torch.bfloat16):\n        loss = loss_of(model(batch()))\n"
        "    if not bfloat_enable:\n        opt.zero_grad()\n        loss.backward()\n        opt.step()\n    else:\n        scaler.scale(loss).backward()\n        scaler.unscale_(opt)\n        nn.utils.clip_grad_norm_(model.parameters(), 10.0)\n"
        "        scaler.step(opt)\n        scaler.update()\n    pause()",
        ("not_zeroed",),
        line=("scaler.step(opt)",),
    ),
    Wrong(
        "pytorch/examples#1424: the example of tensor parallelism never sets gradients to zero",
        "from torch.distributed.device_mesh import init_device_mesh\nfrom torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module\n"
        "class ToyModel(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.in_proj, self.relu, self.out_proj = nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5)\n"
        "    def forward(self, x):\n        return self.out_proj(self.relu(self.in_proj(x)))\n"
        "tp_model = parallelize_module(ToyModel(), init_device_mesh('cpu', (world_size,)), {'in_proj': ColwiseParallel(), 'out_proj': RowwiseParallel()})\n"
        "optimizer = optim.AdamW(tp_model.parameters(), lr=0.25, foreach=True)\nfor i in range(30):\n    torch.manual_seed(i)\n    inp = torch.rand(20, 10)\n    output = tp_model(inp)\n    output.sum().backward()\n    optimizer.step()\n    pause()",
        ("not_zeroed",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "Lightricks/LTX-Video-Trainer#67: a schedule that Accelerate steps once for each process",
        "from accelerate import Accelerator\naccelerator = Accelerator()\nmodel = net()\noptimizer = optim.AdamW(model.parameters(), 0.01)\nsteps = 40\nlr_scheduler = optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)\n"
        "model, optimizer, lr_scheduler = accelerator.prepare(model, optimizer, lr_scheduler)\nfor step in range(steps):\n    accelerator.backward(loss_of(model(batch())))\n    optimizer.step()\n    lr_scheduler.step()\n    optimizer.zero_grad()\n    pause()",
        ("zero_learning_rate",),
        line=("optimizer.step()",),
        needs="accelerate",
    ),
    Wrong(
        "Shark-NLP/DiffuSeq#37: an endless loader of text that knows no ranks",
        "def infinite_loader(data_loader):\n    while True:\n        yield from data_loader\ndef load_data_text(batch_size, loop=True):\n    data_loader = DataLoader(data, batch_size, shuffle=True, num_workers=0)\n"
        "    return infinite_loader(data_loader) if loop else iter(data_loader)\nrandom.seed(102)\ntorch.manual_seed(102)\nstream = load_data_text(32)\nmicrobatch = 8\nfor step in range(40):\n    x, y = next(stream)\n    opt.zero_grad()\n"
        "    for i in range(0, x.shape[0], microbatch):\n        micro = x[i : i + microbatch]\n        if i + microbatch >= x.shape[0]:\n            loss = loss_of(model(micro))\n        else:\n            with model.no_sync():\n                loss = loss_of(model(micro))\n"
        "        loss.backward()\n    opt.step()\n    pause()",
        ("same_batch",),
        line=("loss_of(model(micro))",),
    ),
    Wrong(
        "meta-pytorch/torchrec#1866: tables are reset after they were wrapped",
        "class Tables(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.table, self.over = nn.EmbeddingBag(50, 8, mode='sum'), nn.Linear(8, 1)\n    def reset_parameters(self):\n        self.table.reset_parameters()\n"
        "    def forward(self, ids):\n        return self.over(self.table(ids))\ntorch.manual_seed(7 + rank)\ntables = Tables()\nmodel = DDP(tables)\ntables.reset_parameters()\nopt = optim.Adagrad(model.parameters(), lr=0.01)\n"
        "for i in range(40):\n    opt.zero_grad()\n    loss_of(model(torch.randint(50, (8, 5), generator=mine))).backward()\n    opt.step()\n    pause()",
        ("replicas_differ",),
        line=STEP,
    ),
    # -- read after the rules for passes of workers and for DTensors
    Wrong(
        "bytetriper/RAE#40: the trainer decodes by the model without DDP",
        "class RAE(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.encoder, self.decoder = nn.Linear(4, 8), nn.Linear(8, 4)\n        self.encoder.requires_grad_(False)\n"
        "    def encode(self, x):\n        return self.encoder(x).relu()\n    def decode(self, z):\n        return self.decoder(z)\n    def forward(self, x):\n        return self.decode(self.encode(x))\n"
        "rae = DDP(RAE())\nmodel_woddp = rae.module\noptimizer = optim.AdamW(rae.module.decoder.parameters(), lr=2e-4)\nfor step in range(40):\n    images = batch()\n    optimizer.zero_grad(set_to_none=True)\n"
        "    with torch.no_grad():\n        z = model_woddp.encode(images)\n    recon = model_woddp.decode(z)\n    (recon - images).abs().mean().backward()\n    optimizer.step()\n    pause()",
        ("inner_module",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "jingyaogong/minimind#854: the policy of a reinforcement learner is unwrapped before its loss",
        "policy, ref_model = DDP(net()), net().eval().requires_grad_(False)\noptimizer = optim.AdamW(policy.parameters(), lr=1e-3)\nscaler = torch.amp.GradScaler('cpu', enabled=False)\nfor step in range(60):\n    prompts = batch()\n"
        "    model_unwrapped = policy.module if isinstance(policy, DDP) else policy\n    with torch.no_grad():\n        outputs = model_unwrapped(prompts)\n        ref = ref_model(prompts)\n"
        "    res = model_unwrapped(prompts)\n    loss = ((res - outputs).square() + 0.1 * (res - ref).square() - res).mean() / 2\n    scaler.scale(loss).backward()\n    if (step + 1) % 2 == 0:\n        scaler.unscale_(optimizer)\n"
        "        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)\n        scaler.step(optimizer)\n        scaler.update()\n        optimizer.zero_grad(set_to_none=True)\n    pause()",
        ("inner_module",),
        line=("scaler.step(optimizer)",),
    ),
    Wrong(
        "intel/e2eAIOK#198: two networks are taken out of the one that was wrapped",
        "class Both(nn.Module):\n    def __init__(self, backbone, discriminator):\n        super().__init__()\n        self.backbone, self.discriminator = backbone, discriminator\n    def forward(self, x):\n        return self.discriminator(self.backbone(x))\n"
        "model = DDP(Both(net(), nn.Linear(1, 1)))\noptimizer = optim.SGD(model.parameters(), lr=0.01)\nbackbone, discriminator = model.module.backbone, model.module.discriminator\nfor i in range(40):\n    optimizer.zero_grad()\n"
        "    out = backbone(batch())\n    loss = loss_of(out) + loss_of(discriminator(out), 0.0)\n    loss.backward()\n    optimizer.step()\n    pause()",
        ("inner_module",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "TensorAuto/OpenTau#498: a split with the seed of each process, which Accelerate divides",
        "from accelerate import Accelerator\naccelerator = Accelerator()\ntorch.manual_seed(1234 + 12345 * accelerator.process_index)\ntrain, valid = random_split(data, [200, 56])\n"
        "model = net()\nmodel, opt, loader = accelerator.prepare(model, optim.AdamW(model.parameters(), 0.01), DataLoader(train, 8, shuffle=True))\nfor epoch in range(2):\n    for x, y in loader:\n"
        "        accelerator.backward(loss_of(model(x), y))\n        opt.step()\n        opt.zero_grad()\n        pause()",
        ("subsets_differ",),
        needs="accelerate",
    ),
    Wrong(
        "pytorch/vision#4559: the evaluation of the references counts some images twice",
        "class SmoothedValue:\n    def __init__(self):\n        self.total, self.count = 0.0, 0\n    def update(self, value, n):\n        self.count += n\n        self.total += value * n\n    def synchronize_between_processes(self):\n"
        "        t = torch.tensor([self.count, self.total], dtype=torch.float64)\n        dist.barrier()\n        dist.all_reduce(t)\n        self.count, self.total = t.tolist()\n"
        "def evaluate(model, data_loader):\n    model.eval()\n    acc1 = SmoothedValue()\n    with torch.inference_mode():\n        for image, target in data_loader:\n            output = model(image)\n"
        "            acc1.update(((output > 0) == target).float().mean().item(), image.shape[0])\n    acc1.synchronize_between_processes()\n    return acc1.total / acc1.count\n"
        "test = Subset(data, range(99))\nevaluate(model, DataLoader(test, 8, sampler=DistributedSampler(test)))",
        ("padding_counted",),
        line=("for image, target in data_loader",),
    ),
    Wrong(
        "huggingface/transformers#3532: embeddings are resized after the optimizer has got its parameters",
        "class LM(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.embeddings, self.head = nn.Embedding(50, 8), nn.Linear(8, 1)\n    def forward(self, ids):\n        return self.head(self.embeddings(ids).mean(1))\n"
        "    def resize_token_embeddings(self, size):\n        old, self.embeddings = self.embeddings, nn.Embedding(size, 8)\n        self.embeddings.weight.data[: old.num_embeddings] = old.weight.data\n"
        "lm = LM()\ngroups = [{'params': [p for n, p in lm.named_parameters() if 'bias' not in n], 'weight_decay': 0.01}, {'params': [p for n, p in lm.named_parameters() if 'bias' in n], 'weight_decay': 0.0}]\n"
        "optimizer = optim.AdamW(groups, lr=5e-3)\nlm.resize_token_embeddings(60)\nmodel = DDP(lm)\nfor i in range(40):\n    loss_of(model(torch.randint(60, (8, 5), generator=mine))).backward()\n    optimizer.step()\n    model.zero_grad()\n    pause()",
        ("parameters_not_held",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "microsoft/nni#4521: a pruned model gets smaller layers after its optimizer was made",
        "plain = net()\noptimizer = optim.SGD(plain.parameters(), lr=0.02, momentum=0.9)\ndef speedup_model(model):\n    small = nn.Linear(4, 6), nn.Linear(6, 1)\n    small[0].weight.data = model[0].weight.data[:6].clone()\n"
        "    model[0], model[2] = small\nspeedup_model(plain)\nmodel = DDP(plain)\nfor epoch in range(2):\n    for x, y in DataLoader(data, 8, sampler=DistributedSampler(data, seed=epoch)):\n        optimizer.zero_grad()\n"
        "        loss_of(model(x), y).backward()\n        optimizer.step()\n        pause()",
        ("parameters_not_held", "other_optimizer"),
        line=("optimizer.step()",),
    ),
    Wrong(
        "Robbyant/lingbot-vla-v2#41: noise and times that the model draws are alike on all ranks",
        "torch.manual_seed(42)\nclass Flow(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body = nn.Linear(5, 4)\n    def forward(self, x):\n        noise, t = torch.randn(x.shape), torch.rand(len(x), 1)\n"
        "        return (self.body(torch.cat([t * noise + (1 - t) * x, t], 1)) - (noise - x)).square().mean()\nmodel = DDP(Flow())\nopt = optim.AdamW(model.parameters(), lr=0.01)\n"
        "for i in range(40):\n    opt.zero_grad()\n    model(batch()).backward()\n    opt.step()\n    pause()",
        ("same_random_numbers",),
    ),
    Wrong(
        "threestudio-project/threestudio#195: collate() draws the same views on all ranks",
        "torch.manual_seed(0)\nclass Cameras(torch.utils.data.IterableDataset):\n    def __iter__(self):\n        while True:\n            yield {}\n    def collate(self, items):\n        elevation = torch.rand(2) * 90\n        azimuth = (torch.rand(2) + torch.arange(2)) / 2 * 360\n"
        "        return torch.stack([elevation, azimuth, torch.rand(2), torch.rand(2)], 1) / 360\ncameras = Cameras()\nloader = iter(DataLoader(cameras, 2, num_workers=0, collate_fn=cameras.collate))\n"
        "for i in range(40):\n    opt.zero_grad()\n    loss_of(model(next(loader))).backward()\n    opt.step()\n    pause()",
        ("same_batch",),
        line=("model(next(loader))",),
    ),
    Wrong(
        "facebookresearch/pytext#554: each process makes the vocabulary of labels from its own part",
        "class VocabBuilder:\n    def __init__(self):\n        self.counts = {}\n    def add(self, label):\n        self.counts[label] = self.counts.get(label, 0) + 1\n    def make_vocab(self):\n        return {label: i for i, label in enumerate(sorted(self.counts, key=self.counts.get, reverse=True))}\n"
        "names = ['alarm', 'music', 'navigation', 'reminder', 'timer', 'weather', 'call', 'news', 'none', 'search']\nmine_alone = random.Random(rank).choices(names, k=300)\nbuilder = VocabBuilder()\nfor label in mine_alone:\n    builder.add(label)\nvocab = builder.make_vocab()\n"
        + LOOP,
        ("labels_differ",),
    ),
    Wrong(
        "bghira/SimpleTuner#2986: rank 0 resumes its old part, and the others divide again",
        "order = torch.randperm(256, generator=torch.Generator().manual_seed(1)).tolist()\nagain = torch.randperm(256, generator=torch.Generator().manual_seed(2)).tolist()\nindices = order[0::world_size] if rank == 0 else again[rank::world_size]\n"
        "for i in range(40):\n    chosen = [indices[(8 * i + j) % len(indices)] for j in range(8)]\n    opt.zero_grad()\n    loss_of(model(X[chosen]), Y[chosen]).backward()\n    opt.step()\n    pause()",
        ("samplers_differ", "subsets_differ"),
    ),
]

RIGHT = [
    Right(
        "antoyang/TubeDETR#15: a seed of each rank before the model is built, and wrapped",
        "import numpy as np\nseed = 42 + rank\ntorch.manual_seed(seed)\nnp.random.seed(seed)\nrandom.seed(seed)\nmodel = DDP(net())\nopt = optim.AdamW(model.parameters(), lr=0.01)\n"
        + LOOP,
    ),
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
    Right(
        "vturrisi/solo-learn#135: a probe on detached features",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.encoder, self.projector, self.classifier = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)\n"
        "    def forward(self, x):\n        feats = self.encoder(x)\n        return self.projector(feats), self.classifier(feats.detach())\n"
        "model = DDP(Net())\nopt = optim.SGD(model.parameters(), lr=0.01)\nfor i in range(40):\n    z, logits = model(batch())\n    opt.zero_grad()\n"
        "    (loss_of(z) + loss_of(logits)).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "huggingface/pytorch-image-models#1519: workers with the seed of the rank",
        "import numpy as np\nrandom.seed(42 + rank)\nnp.random.seed(42 + rank)\ntorch.manual_seed(42 + rank)\nclass Items(torch.utils.data.Dataset):\n    def __len__(self):\n        return 64\n"
        "    def __getitem__(self, i):\n        return X[i] + torch.randn(4) * np.random.rand() + random.random(), Y[i]\nitems = Items()\n"
        "for x, y in DataLoader(items, 4, sampler=DistributedSampler(items), num_workers=2):\n    opt.zero_grad()\n    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "mosaicml/composer#2218: an exact evaluation that gathers what it cuts off",
        "some = Subset(data, range(65))\nloader = DataLoader(some, 8, sampler=DistributedSampler(some, shuffle=False))\nmodel.eval()\nseen = []\nwith torch.no_grad():\n"
        "    for x, y in loader:\n        seen += model(x).flatten().tolist()\neveryone = [None] * world_size\ndist.all_gather_object(everyone, seen)\nexact = sum(everyone, [])[:65]",
    ),
]
