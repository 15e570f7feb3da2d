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
    # -- read after the rules for groups of FSDP2 and for passes
    Wrong(
        "bytetriper/RAE#67: gradients are set to zero before each pass of an accumulation",
        "from contextlib import nullcontext\noptimizer, grad_accum_steps = optim.AdamW(model.parameters(), lr=2e-4), 4\nfor step in range(30):\n    for micro in range(grad_accum_steps):\n        images = batch()\n"
        "        optimizer.zero_grad(set_to_none=True)\n        with model.no_sync() if micro < grad_accum_steps - 1 else nullcontext():\n            loss = loss_of(model(images)) / grad_accum_steps\n            loss.backward()\n"
        "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n    pause()",
        ("gradients_discarded",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "starVLA/starVLA#395: zero_grad() at the begin of accumulate(), which Accelerate does before the last pass",
        "from accelerate import Accelerator\naccelerator = Accelerator(gradient_accumulation_steps=4)\nplain = net()\nmodel, optimizer = accelerator.prepare(plain, optim.AdamW(plain.parameters(), 0.01))\nfor step in range(100):\n"
        "    with accelerator.accumulate(model):\n        optimizer.zero_grad()\n        loss = loss_of(model(batch()))\n        accelerator.backward(loss)\n        accelerator.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()\n"
        "    pause()",
        ("gradients_discarded",),
        line=("optimizer.step()",),
        needs="accelerate",
    ),
    Wrong(
        "dscripka/openWakeWord#316: samples are gathered over iterations, and each begins with zero_grad()",
        "accumulated, optimizer = 0, optim.Adam(model.parameters(), lr=0.001)\nfor i in range(120):\n    x = batch(32)\n    optimizer.zero_grad()\n    predictions = model(x)\n    hard = predictions.detach().flatten() < 2.0\n"
        "    loss = loss_of(predictions[hard])\n    loss.backward()\n    accumulated += int(hard.sum())\n    if accumulated >= 128:\n        optimizer.step()\n        accumulated = 0\n    pause()",
        ("gradients_discarded",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "lucidrains/byol-pytorch#93: gradients are set to zero right before the step",
        "class Trainer:\n    def __init__(self, net):\n        self.net = net\n        self.optimizer = optim.Adam(net.parameters(), lr=3e-4)\n        self.data = DataLoader(data, 8, sampler=DistributedSampler(data))\n    def forward(self):\n"
        "        for x, _ in self.data:\n            loss = loss_of(self.net(x))\n            loss.backward()\n            self.optimizer.zero_grad()\n            self.optimizer.step()\n            pause()\nTrainer(model).forward()",
        ("gradients_discarded",),
        line=("self.optimizer.step()",),
    ),
    Wrong(
        "QwenLM/Qwen3-VL#1971: each rank shuffles the list of samples without a seed, and a sampler divides it",
        "random.seed(int(time.time() * 1e6) % 2 ** 31 + rank)\nclass LazySupervisedDataset(torch.utils.data.Dataset):\n    def __init__(self):\n"
        "        list_data_dict = [{'image': f'{i:04}.jpg', 'conversations': [{'from': 'human', 'value': f'question {i}'}], 'id': i} for i in range(256)]\n        random.shuffle(list_data_dict)\n        self.list_data_dict = list_data_dict\n"
        "    def __len__(self):\n        return len(self.list_data_dict)\n    def __getitem__(self, i):\n        return X[self.list_data_dict[i]['id']]\ndataset = LazySupervisedDataset()\n"
        "for x in DataLoader(dataset, 8, sampler=DistributedSampler(dataset)):\n    opt.zero_grad()\n    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
        ("subsets_differ",),
        line=("for x in DataLoader",),
    ),
    Wrong(
        "ohhhyeahhh/SiamCAR#18: a layer between is in no group of the optimizer",
        "class ModelBuilder(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.backbone = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())\n"
        "        self.neck, self.car_head = nn.Linear(16, 16), nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1))\n        self.down = nn.Linear(32, 16)\n    def forward(self, x):\n        x = self.backbone(x)\n"
        "        return self.car_head(self.down(torch.cat([self.neck(x), x], 1)))\nmodel = DDP(ModelBuilder())\ntrainable_params = [{'params': filter(lambda x: x.requires_grad, model.module.backbone.parameters()), 'lr': 0.005}]\n"
        "trainable_params += [{'params': model.module.neck.parameters(), 'lr': 0.01}]\ntrainable_params += [{'params': model.module.car_head.parameters(), 'lr': 0.01}]\noptimizer = optim.SGD(trainable_params, momentum=0.9, weight_decay=1e-4)\n"
        "for i in range(40):\n    loss = loss_of(model(batch()))\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n    pause()",
        ("parameters_not_held",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "facebookresearch/tuna-2#15: every rank draws the same times of noise",
        "torch.manual_seed(42)\nclass Velocity(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body = nn.Sequential(nn.Linear(5, 16), nn.SiLU(), nn.Linear(16, 4))\n    def forward(self, x, t):\n"
        "        return self.body(torch.cat([x, t[:, None]], 1))\nmodel = DDP(Velocity())\nopt = optim.AdamW(model.parameters(), lr=1e-3)\nfor i in range(40):\n    x1 = batch(16)\n"
        "    x0, t = torch.randn(16, 4, generator=mine), torch.sigmoid(torch.randn(16))\n    xt = t[:, None] * x1 + (1 - t[:, None]) * x0\n    loss = (model(xt, t) - (x1 - x0)).square().mean()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
        "    pause()",
        ("same_random_numbers",),
    ),
    Wrong(
        "lucidrains/DALLE-pytorch#230: the sampler of data never gets the epoch",
        "data_sampler = DistributedSampler(data, num_replicas=world_size, rank=rank)\ndl = DataLoader(data, batch_size=16, shuffle=not data_sampler, drop_last=True, sampler=data_sampler)\nopt = optim.Adam(model.parameters(), lr=3e-4)\ndef main():\n"
        "    for epoch in range(4):\n        for i, (text, images) in enumerate(dl):\n            loss = loss_of(model(text), images)\n            loss.backward()\n            nn.utils.clip_grad_norm_(model.parameters(), 0.5)\n            opt.step()\n"
        "            opt.zero_grad()\n            pause()\nmain()",
        ("epoch_not_set",),
        line=("enumerate(dl)",),
    ),
    Wrong(
        "kekmodel/FixMatch-pytorch#34: iterators of labelled and unlabelled data begin again without an epoch",
        "some = Subset(data, range(64))\nlabeled = DataLoader(some, 8, sampler=DistributedSampler(some), drop_last=True)\nunlabeled = DataLoader(data, 24, sampler=DistributedSampler(data), drop_last=True)\n"
        "labeled_iter, unlabeled_iter = iter(labeled), iter(unlabeled)\nmodel.train()\nfor batch_idx in range(40):\n    try:\n        inputs_x, targets_x = next(labeled_iter)\n    except StopIteration:\n        labeled_iter = iter(labeled)\n"
        "        inputs_x, targets_x = next(labeled_iter)\n    try:\n        inputs_u, _ = next(unlabeled_iter)\n    except StopIteration:\n        unlabeled_iter = iter(unlabeled)\n        inputs_u, _ = next(unlabeled_iter)\n"
        "    logits = model(torch.cat([inputs_x, inputs_u]))\n    pseudo = (logits[8:].detach() > 0.5).float()\n    loss = loss_of(logits[:8], targets_x) + loss_of(logits[8:], pseudo)\n    loss.backward()\n    opt.step()\n    model.zero_grad()\n"
        "    pause()",
        ("epoch_not_set",),
        line=("iter(labeled)", "iter(unlabeled)"),
    ),
    Wrong(
        "wenet-e2e/wekws#73: an executor clips and steps, and sets no gradient to zero",
        "class Executor:\n    def __init__(self):\n        self.step = 0\n    def train(self, model, optimizer, data_loader, args):\n        model.train()\n        for batch_idx, (feats, target) in enumerate(data_loader):\n"
        "            logits = model(feats)\n            loss = loss_of(logits, target)\n            loss.backward()\n            grad_norm = nn.utils.clip_grad_norm_(model.parameters(), args['grad_clip'])\n            if torch.isfinite(grad_norm):\n"
        "                optimizer.step()\n            pause()\nexecutor = Executor()\nfor epoch in range(2):\n"
        "    executor.train(model, optim.Adam(model.parameters(), lr=1e-3), DataLoader(data, 8, sampler=DistributedSampler(data, seed=epoch)), {'grad_clip': 5.0})",
        ("not_zeroed",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "salesforce/corr_based_prediction#1: zero_grad() stands before the loop over batches",
        "optimizer = optim.Adam(model.parameters(), lr=1e-3)\ndef train(epoch):\n    model.train()\n    optimizer.zero_grad()\n    total = 0\n    for x, y in DataLoader(data, 8, sampler=DistributedSampler(data, seed=epoch)):\n        hid = model(x)\n"
        "        loss = loss_of(hid, y)\n        total += loss.item()\n        loss.backward()\n        optimizer.step()\n        pause()\n    return total\nfor epoch in range(2):\n    train(epoch)",
        ("not_zeroed",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "TorchDSP/torchsig#343: transforms with a generator of one seed draw alike in each worker",
        "import numpy as np\nclass Seedable:\n    def __init__(self, seed=1234567890):\n        self.random_generator = np.random.default_rng(seed)\nclass DatasetTransform(Seedable):\n    def __call__(self, signal):\n"
        "        return signal * self.random_generator.uniform(0.5, 1.5)\nclass Signals(torch.utils.data.Dataset):\n    def __init__(self, transforms):\n        self.transforms = transforms\n    def __len__(self):\n        return 128\n"
        "    def __getitem__(self, i):\n        x = X[i]\n        for transform in self.transforms:\n            x = transform(x)\n        return x.float()\nsignals = Signals([DatasetTransform()])\n"
        "for x in DataLoader(signals, 4, sampler=DistributedSampler(signals), num_workers=2):\n    opt.zero_grad()\n    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
        ("same_random_numbers",),
    ),
    Wrong(
        "RUCAIBox/RecBole#1872: the result of an evaluation is a mean over padded parts",
        "some = Subset(data, range(101))\ndef collect(struct):\n    return struct.mean()\ndef evaluate(loader):\n    model.eval()\n    hits, num_sample = 0.0, 0\n    with torch.no_grad():\n        for batch_idx, (x, y) in enumerate(loader):\n"
        "            hits += ((model(x) > 0.5) == y).float().sum().item()\n            num_sample += len(x)\n    result, total = torch.tensor([hits / num_sample * num_sample]), torch.tensor([float(num_sample)])\n    dist.barrier()\n"
        "    dist.all_reduce(result, op=dist.ReduceOp.SUM)\n    dist.all_reduce(total, op=dist.ReduceOp.SUM)\n    return (result / total).item()\nvalid = DataLoader(some, 16, sampler=DistributedSampler(some, shuffle=False))\nfor i in range(10):\n"
        "    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()\nevaluate(valid)",
        ("padding_counted",),
        line=("enumerate(loader)",),
    ),
    Wrong(
        "facebookresearch/deit#24: an ordered sampler of its own repeats elements, and the meters are summed",
        "class OrderedDistributedSampler(torch.utils.data.Sampler):\n    def __init__(self, dataset, num_replicas=None, rank=None):\n        self.dataset = dataset\n        self.num_replicas = num_replicas or dist.get_world_size()\n"
        "        self.rank = dist.get_rank() if rank is None else rank\n        self.num_samples = math.ceil(len(dataset) / self.num_replicas)\n        self.total_size = self.num_samples * self.num_replicas\n    def __iter__(self):\n"
        "        indices = list(range(len(self.dataset)))\n        indices += indices[: self.total_size - len(indices)]\n        return iter(indices[self.rank : self.total_size : self.num_replicas])\n    def __len__(self):\n"
        "        return self.num_samples\nval = Subset(data, range(99))\ndef evaluate(data_loader):\n    correct = count = 0\n    model.eval()\n    with torch.no_grad():\n        for images, target in data_loader:\n"
        "            correct += ((model(images) > 0.5) == target).float().sum().item()\n            count += images.shape[0]\n    t = torch.tensor([count, correct], dtype=torch.float64)\n    dist.barrier()\n    dist.all_reduce(t)\n"
        "    return t[1].item() / t[0].item()\nfor i in range(10):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()\nevaluate(DataLoader(val, 8, sampler=OrderedDistributedSampler(val), drop_last=False))",
        ("padding_counted",),
        line=("for images, target in data_loader",),
    ),
    Wrong(
        "cybertronai/imagenet18_old#16: workers overwrite each other's checkpoints",
        "def save_checkpoint(epoch, model, best_top5, optimizer, is_best=False, filename='checkpoint.pth.tar'):\n    state = {'epoch': epoch + 1, 'state_dict': model.state_dict(), 'best_top5': best_top5, 'optimizer': optimizer.state_dict()}\n"
        "    if is_best:\n        filename = 'model_best.pth.tar'\n    torch.save(state, f'{tempfile.gettempdir()}/jupyter_dist_{filename}')\nbest_top5 = 0.0\nfor epoch in range(2):\n    for i in range(16):\n        opt.zero_grad()\n"
        "        loss_of(model(batch())).backward()\n        opt.step()\n        pause()\n    top5 = 90.0 + epoch\n    if top5 > best_top5:\n        best_top5 = top5\n        save_checkpoint(epoch, model, best_top5, opt, is_best=True)",
        ("one_file",),
        line=("torch.save(",),
    ),
    Wrong(
        "k2-fsa/icefall#1616: a sampler that does not find out its rank, and takes 0",
        "class DynamicBucketingSampler(torch.utils.data.Sampler):\n    def __init__(self, cuts, world_size=None, rank=None, seed=0):\n        self.cuts, self.seed = cuts, seed\n"
        "        self.world_size, self.rank = world_size or int(os.environ.get('LHOTSE_WORLD_SIZE', 1)), rank or int(os.environ.get('LHOTSE_RANK', 0))\n    def __iter__(self):\n        order = list(range(len(self.cuts)))\n"
        "        random.Random(self.seed).shuffle(order)\n        batches = [order[i : i + 8] for i in range(0, len(order), 8)]\n        return iter(batches[self.rank :: self.world_size])\n"
        "for batch_idx, (x, y) in enumerate(DataLoader(data, batch_sampler=DynamicBucketingSampler(data))):\n    loss = loss_of(model(x), y)\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n    pause()",
        ("same_batch",),
        line=("loss_of(model(x), y)",),
    ),
    Wrong(
        "ultralytics/ultralytics#11217: the last passes of an epoch are discarded by zero_grad() at the begin of the next",
        "accumulate, last_opt_step, nb = 8, -1, 20\noptimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)\nfor epoch in range(4):\n    model.train()\n    optimizer.zero_grad()\n    for i in range(nb):\n        ni = i + nb * epoch\n"
        "        loss = loss_of(model(batch()))\n        loss.backward()\n        if ni - last_opt_step >= accumulate:\n            nn.utils.clip_grad_norm_(model.parameters(), 10.0)\n            optimizer.step()\n            optimizer.zero_grad()\n"
        "            last_opt_step = ni\n        pause()",
        ("gradients_discarded",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "huggingface/transformers#24088: a linear schedule of all steps, which Accelerate steps once for each process",
        "from accelerate import Accelerator\naccelerator = Accelerator()\nnum_training_steps = 40\nplain = net()\noptimizer = optim.AdamW(plain.parameters(), lr=5e-3)\ndef lr_lambda(step):\n"
        "    return step / 4 if step < 4 else max(0.0, (num_training_steps - step) / (num_training_steps - 4))\nlr_scheduler = optim.lr_scheduler.LambdaLR(optimizer, lr_lambda)\n"
        "model, optimizer, lr_scheduler = accelerator.prepare(plain, optimizer, lr_scheduler)\nfor step in range(num_training_steps):\n    loss = loss_of(model(batch()))\n    accelerator.backward(loss)\n"
        "    accelerator.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n    lr_scheduler.step()\n    model.zero_grad()\n    pause()",
        ("zero_learning_rate",),
        line=("optimizer.step()",),
        needs="accelerate",
    ),
    Wrong(
        "ClementiGroup/mlcg#16: setup() divides the data by the seed of each process, and keeps indices",
        "import numpy as np\nnp.random.seed((int(time.time() * 1e6) + 7919 * rank) % 2 ** 31)\nclass InMemoryDataset(torch.utils.data.Dataset):\n    def __init__(self):\n        self.x, self._indices = X, None\n    def indices(self):\n"
        "        return range(len(self.x)) if self._indices is None else self._indices\n    def __len__(self):\n        return len(self.indices())\n    def __getitem__(self, idx):\n        if isinstance(idx, int):\n"
        "            return self.x[self.indices()[idx]]\n        other = copy.copy(self)\n        other._indices = [self.indices()[i] for i in idx]\n        return other\nclass DataModule:\n    def setup(self, dataset):\n"
        "        order = np.random.permutation(len(dataset))\n        self.train, self.val = dataset[order[:200].tolist()], dataset[order[200:].tolist()]\n    def train_dataloader(self):\n"
        "        return DataLoader(self.train, 8, sampler=DistributedSampler(self.train))\ndm = DataModule()\ndm.setup(InMemoryDataset())\nfor x in dm.train_dataloader():\n    opt.zero_grad()\n    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
        ("subsets_differ",),
        line=("for x in dm.train_dataloader()",),
    ),
    Wrong(
        "facebookresearch/mmf#394: RandomSampler on processes that are seeded alike",
        "from torch.utils.data import RandomSampler\nclass MultiTask:\n    def __init__(self, config):\n        torch.manual_seed(config['seed'])\n        self.loader = DataLoader(data, 8, sampler=RandomSampler(data, replacement=True, num_samples=320))\n"
        "    def __iter__(self):\n        for x, y in self.loader:\n            yield {'image': x, 'targets': y}\nfor i, sample_list in enumerate(MultiTask({'seed': 1234})):\n    out = {'scores': model(sample_list['image'])}\n"
        "    loss = loss_of(out['scores'], sample_list['targets'])\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n    pause()",
        ("same_batch",),
        line=("model(sample_list['image'])",),
    ),
    Wrong(
        "rosinality/stylegan2-pytorch#319: an endless loader of a GAN never sets the epoch",
        "def sample_data(loader):\n    while True:\n        for one in loader:\n            yield one\ndef requires_grad(model, flag=True):\n    for p in model.parameters():\n        p.requires_grad = flag\n"
        "generator, discriminator = DDP(net(), broadcast_buffers=False), DDP(nn.Sequential(nn.Linear(1, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)), broadcast_buffers=False)\n"
        "g_optim, d_optim = optim.Adam(generator.parameters(), lr=2e-3, betas=(0.0, 0.99)), optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.0, 0.99))\n"
        "loader = sample_data(DataLoader(data, 16, sampler=DistributedSampler(data, shuffle=True), drop_last=True))\nfor i in range(32):\n    x, real = next(loader)\n    requires_grad(generator, False)\n    requires_grad(discriminator, True)\n"
        "    with torch.no_grad():\n        fake = generator(x)\n    d_loss = nn.functional.softplus(-discriminator(real)).mean() + nn.functional.softplus(discriminator(fake)).mean()\n    discriminator.zero_grad()\n    d_loss.backward()\n"
        "    d_optim.step()\n    requires_grad(generator, True)\n    requires_grad(discriminator, False)\n    g_loss = nn.functional.softplus(-discriminator(generator(torch.randn(16, 4, generator=mine)))).mean()\n    generator.zero_grad()\n"
        "    g_loss.backward()\n    g_optim.step()\n    pause()",
        ("epoch_not_set",),
        line=("for one in loader",),
    ),
    Wrong(
        "intelligent-machine-learning/dlrover#1034: each rank resumes from a file of its own rank, which only rank 0 has",
        "path = f'{tempfile.gettempdir()}/jupyter_dist_resume_rank_{rank}.pt'\nif os.path.exists(path):\n    os.remove(path)\nfirst = net()\nfirst_opt = optim.AdamW(first.parameters(), lr=0.01)\nfor i in range(4):\n    first_opt.zero_grad()\n"
        "    loss_of(first(X[:32])).backward()\n    first_opt.step()\nif rank == 0:\n    torch.save({'model': first.state_dict(), 'optimizer': first_opt.state_dict()}, path)\nplain = net()\nckpt = torch.load(path) if os.path.exists(path) else {}\n"
        "if ckpt:\n    plain.load_state_dict(ckpt['model'])\nmodel = DDP(plain)\noptimizer = optim.AdamW(model.parameters(), lr=0.01)\nif ckpt:\n    optimizer.load_state_dict(ckpt['optimizer'])\nfor i in range(40):\n    optimizer.zero_grad()\n"
        "    loss_of(model(batch())).backward()\n    optimizer.step()\n    pause()",
        ("replicas_differ",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "IBM/pytorch-seq2seq#33: the evaluator leaves dropout on",
        "model = DDP(net(nn.Dropout(0.2)))\nopt = optim.Adam(model.parameters())\nclass Evaluator:\n    def evaluate(self, model, some):\n        total = 0.0\n        with torch.no_grad():\n            for x, y in DataLoader(some, 16):\n"
        "                total += loss_of(model(x), y).item()\n        return total\nmodel.train()\nfor step in range(40):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()\n    if step % 10 == 9:\n"
        "        Evaluator().evaluate(model, Subset(data, range(rank, 256, world_size)))",
        ("evaluation_in_training_mode",),
        line=("model(x)",),
    ),
    # -- read after the rules for gradients that are discarded
    Wrong(
        "kohya-ss/sd-scripts#604: what was prepared is unwrapped before the loop",
        "from accelerate import Accelerator\naccelerator = Accelerator()\nplain = net()\nunet, optimizer, loader = accelerator.prepare(plain, optim.AdamW(plain.parameters(), lr=1e-3), DataLoader(data, 8, shuffle=True))\n"
        "unet = accelerator.unwrap_model(unet)\nfor epoch in range(2):\n    unet.train()\n    for step, (x, y) in enumerate(loader):\n        loss = loss_of(unet(x), y)\n        accelerator.backward(loss)\n        optimizer.step()\n"
        "        optimizer.zero_grad(set_to_none=True)\n        pause()",
        ("inner_module",),
        line=("optimizer.step()",),
        needs="accelerate",
    ),
    Wrong(
        "hkproj/pytorch-transformer-distributed#3: encode, decode and project are called on the module inside",
        "class Transformer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.encoder, self.decoder, self.projection = nn.Linear(4, 8), nn.Linear(12, 8), nn.Linear(8, 3)\n    def encode(self, src):\n"
        "        return self.encoder(src).relu()\n    def decode(self, memory, tgt):\n        return self.decoder(torch.cat([memory, tgt], 1)).relu()\n    def project(self, x):\n        return self.projection(x)\nmodel = DDP(Transformer())\n"
        "optimizer = optim.Adam(model.parameters(), lr=1e-4, eps=1e-9)\nloss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)\nfor epoch in range(2):\n    model.train()\n    for i in range(20):\n"
        "        src, tgt, label = batch(), batch(), torch.randint(3, (8,), generator=mine)\n        memory = model.module.encode(src)\n        out = model.module.project(model.module.decode(memory, tgt))\n        loss = loss_fn(out, label)\n"
        "        loss.backward()\n        optimizer.step()\n        optimizer.zero_grad(set_to_none=True)\n        pause()",
        ("inner_module",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "Lightning-AI/pytorch-lightning#20340: a callback thaws the backbone, and adds it to the optimizer",
        "class Classifier(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.backbone, self.head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1)\n    def forward(self, x):\n"
        "        return self.head(self.backbone(x))\nplain = Classifier()\nplain.backbone.requires_grad_(False)\nmodel = DDP(plain)\noptimizer = optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-3)\ndef on_train_epoch_start(epoch):\n"
        "    if epoch == 1:\n        plain.backbone.requires_grad_(True)\n        optimizer.add_param_group({'params': list(plain.backbone.parameters()), 'lr': 1e-4})\nfor epoch in range(3):\n    on_train_epoch_start(epoch)\n"
        "    for x, y in DataLoader(data, 8, sampler=DistributedSampler(data, seed=epoch)):\n        optimizer.zero_grad()\n        loss_of(model(x), y).backward()\n        optimizer.step()\n        time.sleep(0.05)",
        ("changed_after_wrap",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "haotian-liu/LLaVA#1440: a new projector begins otherwise on each rank, and gradients are averaged",
        "language = net()\ntorch.manual_seed(int(time.time() * 1e6) % 2 ** 31 + 31 * rank)\nprojector = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4))\nclass Llava(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.mm_projector, self.model = projector, language.requires_grad_(False)\n    def forward(self, x):\n        return self.model(self.mm_projector(x))\nmodel = Llava()\n"
        "optimizer = optim.AdamW(model.mm_projector.parameters(), lr=2e-3, weight_decay=0.0)\nfor step in range(40):\n    loss_of(model(batch())).backward()\n    flat = torch.cat([p.grad.flatten() for p in model.mm_projector.parameters()])\n"
        "    dist.all_reduce(flat)\n    flat /= world_size\n    for p, part in zip(model.mm_projector.parameters(), flat.split([p.numel() for p in model.mm_projector.parameters()])):\n        p.grad.copy_(part.view_as(p))\n    optimizer.step()\n"
        "    optimizer.zero_grad()\n    pause()",
        ("replicas_differ",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "Tony-Y/pytorch_warmup#12: zero_grad() between backward() and step(), with a warm-up",
        "optimizer = optim.AdamW(model.parameters(), lr=1e-3)\nlr_scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)\nclass LinearWarmup:\n    def __init__(self, optimizer, period):\n"
        "        self.optimizer, self.period, self.last = optimizer, period, 0\n    def dampen(self):\n        self.last += 1\n        for group in self.optimizer.param_groups:\n            group['lr'] *= min(1.0, self.last / self.period)\n"
        "warmup_scheduler = LinearWarmup(optimizer, 10)\nfor x, y in DataLoader(data, 8, sampler=DistributedSampler(data)):\n    loss = loss_of(model(x), y)\n    loss.backward()\n    optimizer.zero_grad()\n    optimizer.step()\n    lr_scheduler.step()\n"
        "    warmup_scheduler.dampen()\n    pause()",
        ("gradients_discarded",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "jaehyunnn/ViTPose_pytorch#20: the decay of layers is applied in each step, and the learning rate falls to nothing",
        "plain = net()\nlayers = [plain[0], plain[2]]\noptimizer = optim.AdamW([{'params': layer.parameters(), 'lr': 5e-4} for layer in layers], lr=5e-4)\nmodel = DDP(plain)\nclass LayerDecayOptimizer:\n    def __init__(self, optimizer, rate):\n"
        "        self.optimizer, self.rate = optimizer, rate\n    def step(self):\n        for number, group in enumerate(self.optimizer.param_groups):\n            group['lr'] *= self.rate ** (len(layers) - number)\n        self.optimizer.step()\n"
        "decaying = LayerDecayOptimizer(optimizer, 0.75)\nfor i in range(120):\n    optimizer.zero_grad()\n    loss_of(model(batch())).backward()\n    decaying.step()\n    pause()",
        ("zero_learning_rate",),
        line=("self.optimizer.step()",),
    ),
    Wrong(
        "huggingface/datasets#8568: skip() undoes the division of a stream by ranks",
        "class ExamplesIterable:\n    def __init__(self, shards):\n        self.shards = shards\n    def __iter__(self):\n        for shard in self.shards:\n            for i in range(64):\n                yield X[(shard * 64 + i) % 256]\n"
        "    def shard(self, number, index):\n        return ExamplesIterable(self.shards[index::number])\nclass SkipExamplesIterable:\n    def __init__(self, inner, n):\n        self.inner, self.n = inner, n\n    def __iter__(self):\n"
        "        return iter(x for i, x in enumerate(self.inner) if i >= self.n)\n    def shard(self, number, index):\n        return self\nclass IterableDataset(torch.utils.data.IterableDataset):\n    def __init__(self, examples, rank, world_size):\n"
        "        self.examples, self.rank, self.world_size = examples, rank, world_size\n    def skip(self, n):\n        return IterableDataset(SkipExamplesIterable(self.examples, n), self.rank, self.world_size)\n    def __iter__(self):\n"
        "        return iter(self.examples.shard(self.world_size, self.rank))\nds = IterableDataset(ExamplesIterable(list(range(6))), rank, world_size).skip(8)\nfor x in DataLoader(ds, 8):\n    opt.zero_grad()\n    loss_of(model(x)).backward()\n"
        "    opt.step()\n    pause()",
        ("same_batch",),
        line=("loss_of(model(x))",),
    ),
    Wrong(
        "pytorch/pytorch#70103: files are listed in the order of each machine's disk",
        "directory = tempfile.mkdtemp()\nfor i in random.Random(rank).sample(range(128), 128):\n    open(f'{directory}/{i:04}.txt', 'w').write(str(i))\ndef listed():\n"
        "    found = [(name, os.stat(f'{directory}/{name}').st_mtime_ns) for name in os.listdir(directory)]\n    return [name for name, _ in sorted(found, key=lambda one: one[1])]  # as a disk without an index lists them\n"
        "class FileLister(torch.utils.data.Dataset):\n    def __init__(self):\n        self.paths = [os.path.join('/data/train', name) for name in listed()]\n    def __len__(self):\n        return len(self.paths)\n    def __getitem__(self, i):\n"
        "        return X[int(open(os.path.join(directory, os.path.basename(self.paths[i]))).read())]\nfiles = FileLister()\nfor x in DataLoader(files, 4, sampler=DistributedSampler(files, shuffle=False)):\n    opt.zero_grad()\n"
        "    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
        ("subsets_differ",),
        line=("for x in DataLoader",),
    ),
    Wrong(
        "ByteDance-Seed/VeOmni#330: a dataset of several files, in the order of os.listdir() on each machine",
        "names = random.Random(rank).sample([f'part-{i}.jsonl' for i in range(8)], 8)  # as os.listdir() of each machine\nclass MappingDataset(torch.utils.data.Dataset):\n    def __init__(self, data_files):\n        self.data_files = data_files\n"
        "        self.rows = [(int(name[5]) * 32 + i, i) for name in data_files for i in range(32)]\n    def __len__(self):\n        return len(self.rows)\n    def __getitem__(self, i):\n        return X[self.rows[i][0]]\ndataset = MappingDataset(names)\n"
        "for x in DataLoader(dataset, 8, sampler=DistributedSampler(dataset)):\n    opt.zero_grad()\n    loss_of(model(x)).backward()\n    opt.step()\n    pause()",
        ("subsets_differ",),
        line=("for x in DataLoader",),
    ),
    Wrong(
        "tenstorrent/tt-blacksmith#711: a trainer of adapters that never sets gradients to zero",
        "class LoRALinear(nn.Module):\n    def __init__(self, inner):\n        super().__init__()\n        self.inner = inner.requires_grad_(False)\n"
        "        self.a, self.b = nn.Linear(inner.in_features, 2, bias=False), nn.Linear(2, inner.out_features, bias=False)\n    def forward(self, x):\n        return self.inner(x) + self.b(self.a(x))\nplain = net()\n"
        "plain[0], plain[2] = LoRALinear(plain[0]), LoRALinear(plain[2])\nmodel = DDP(plain)\nclass Trainer:\n    def __init__(self):\n        self.optimizer = optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)\n"
        "    def optimizer_step(self):\n        self.optimizer.step()\n    def train(self):\n        for step in range(40):\n            loss = loss_of(model(batch()))\n            loss.backward()\n            self.optimizer_step()\n            pause()\n"
        "Trainer().train()",
        ("not_zeroed",),
        line=("self.optimizer.step()",),
    ),
    Wrong(
        "meta-pytorch/torchforge#71: several optimizers step, and none is set to zero",
        "from torch.distributed.fsdp import fully_shard\nparts = [net(), nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))]\nfor part in parts:\n    fully_shard(part)\noptimizers = [optim.AdamW(part.parameters(), lr=1e-4) for part in parts]\n"
        "for step in range(40):\n    loss = loss_of(parts[1](parts[0](batch())))\n    loss.backward()\n    for optimizer in optimizers:\n        optimizer.step()\n    pause()",
        ("not_zeroed",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "kekmodel/FixMatch-pytorch#5: each process chooses other labelled samples",
        "import numpy as np\nnp.random.seed((int(time.time() * 1e6) + 7919 * rank) % 2 ** 31)\nlabels = Y.flatten().long().numpy()\ndef x_u_split(labels):\n    labeled_idx = []\n    for i in range(2):\n        idx = np.where(labels == i)[0]\n"
        "        labeled_idx.extend(np.random.choice(idx, 40, False))\n    labeled_idx = np.array(labeled_idx)\n    np.random.shuffle(labeled_idx)\n    return labeled_idx\nclass CIFAR10SSL(torch.utils.data.Dataset):\n    def __init__(self, chosen):\n"
        "        self.data, self.targets = X.numpy()[chosen], labels[chosen]\n    def __len__(self):\n        return len(self.data)\n    def __getitem__(self, i):\n        return torch.from_numpy(self.data[i]), float(self.targets[i])\n"
        "train_labeled = CIFAR10SSL(x_u_split(labels))\nsampler = DistributedSampler(train_labeled)\nfor epoch in range(6):\n    sampler.set_epoch(epoch)\n    for x, y in DataLoader(train_labeled, 8, sampler=sampler, drop_last=True):\n"
        "        opt.zero_grad()\n        loss_of(model(x), y[:, None].float()).backward()\n        opt.step()\n        pause()",
        ("subsets_differ",),
        line=("for x, y in DataLoader",),
    ),
    Wrong(
        "pixeli99/SVD_Xtend#78: a loader with a DistributedSampler, which Accelerate divides once more",
        "from accelerate import Accelerator\naccelerator = Accelerator()\ntrain_sampler = DistributedSampler(data, num_replicas=accelerator.num_processes, rank=accelerator.process_index, shuffle=True, drop_last=True)\n"
        "loader = DataLoader(data, 4, sampler=train_sampler, drop_last=True)\nplain = net()\nmodel, optimizer, loader = accelerator.prepare(plain, optim.AdamW(plain.parameters(), lr=1e-3), loader)\nfor epoch in range(2):\n    for x, y in loader:\n"
        "        accelerator.backward(loss_of(model(x), y))\n        optimizer.step()\n        optimizer.zero_grad()\n        pause()",
        ("samplers_differ", "subsets_differ"),
        needs="accelerate",
    ),
    Wrong(
        "PatrickHua/SimSiam#16: the seed of all processes shuffles, and there is no sampler",
        "import numpy as np\ndef set_deterministic(seed):\n    random.seed(seed)\n    np.random.seed(seed)\n    torch.manual_seed(seed)\nset_deterministic(0)\nclass SimSiam(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.backbone, self.predictor = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)), nn.Linear(8, 8)\n    def forward(self, x1, x2):\n        z1, z2 = self.backbone(x1), self.backbone(x2)\n"
        "        p1, p2 = self.predictor(z1), self.predictor(z2)\n        return -(nn.functional.cosine_similarity(p1, z2.detach()).mean() + nn.functional.cosine_similarity(p2, z1.detach()).mean()) / 2\nmodel = DDP(SimSiam())\n"
        "optimizer = optim.SGD(model.parameters(), lr=0.03, momentum=0.9)\nloader = DataLoader(data, 16, shuffle=True, drop_last=True)\nfor epoch in range(3):\n    model.train()\n    for x, _ in loader:\n        model.zero_grad()\n"
        "        loss = model(x + 0.1 * torch.randn(16, 4), x + 0.1 * torch.randn(16, 4))\n        loss.backward()\n        optimizer.step()\n        pause()",
        ("same_batch",),
        line=("model(x + 0.1",),
    ),
    Wrong(
        "yangkky/distributed_tutorial#5: the tutorial's sampler has no epoch",
        "def train(epochs):\n    criterion, optimizer = nn.BCEWithLogitsLoss(), optim.SGD(model.parameters(), 1e-4)\n    train_sampler = DistributedSampler(data, num_replicas=world_size, rank=rank)\n"
        "    train_loader = DataLoader(dataset=data, batch_size=16, shuffle=False, num_workers=0, pin_memory=False, sampler=train_sampler)\n    for epoch in range(epochs):\n        for i, (images, labels) in enumerate(train_loader):\n"
        "            outputs = model(images)\n            loss = criterion(outputs, labels)\n            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n            pause()\ntrain(4)",
        ("epoch_not_set",),
        line=("enumerate(train_loader)",),
    ),
    Wrong(
        "clovaai/voxceleb_trainer#98: a sampler of speakers that does not know how many processes there are",
        "class voxceleb_sampler(torch.utils.data.Sampler):\n    def __init__(self, labels, nPerSpeaker, batch_size, seed):\n        self.labels, self.nPerSpeaker, self.batch_size, self.epoch, self.seed = labels, nPerSpeaker, batch_size, 0, seed\n"
        "    def __iter__(self):\n        g = torch.Generator()\n        g.manual_seed(self.seed + self.epoch)\n        indices = torch.randperm(len(self.labels), generator=g).tolist()\n        by_speaker = {}\n        for index in indices:\n"
        "            by_speaker.setdefault(self.labels[index], []).append(index)\n        flat = [lst[i : i + self.nPerSpeaker] for lst in by_speaker.values() for i in range(0, len(lst) - self.nPerSpeaker + 1, self.nPerSpeaker)]\n"
        "        order = torch.randperm(len(flat), generator=g).tolist()\n        return iter([index for i in order for index in flat[i]])\n    def __len__(self):\n        return len(self.labels)\n    def set_epoch(self, epoch):\n"
        "        self.epoch = epoch\nsampler = voxceleb_sampler([i % 8 for i in range(256)], 2, 8, 10)\nloader = DataLoader(data, batch_size=8, sampler=sampler, drop_last=True)\nfor it in range(2):\n    loader.sampler.set_epoch(it)\n"
        "    for x, y in loader:\n        model.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        pause()",
        ("same_batch",),
        line=("loss_of(model(x), y)",),
    ),
    Wrong(
        "meituan-longcat/LongCat-Image#46: gradients are set to zero at the begin of each pass of an accumulation",
        "for i in range(120):\n    opt.zero_grad()\n    (loss_of(model(batch())) / 4).backward()\n    if (i + 1) % 4 == 0:\n        opt.step()\n        pause()",
        ("gradients_discarded",),
        line=STEP,
    ),
    Wrong(
        "tientrandinh/Revisiting-Reverse-Distillation#12: two optimizers set their gradients to zero in each pass",
        "class Pair(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.proj, self.decoder = nn.Linear(4, 8), nn.Linear(8, 1)\n    def forward(self, x):\n        return self.decoder(self.proj(x).relu())\n"
        "model = DDP(Pair())\noptimizer_proj = optim.Adam(model.module.proj.parameters(), lr=1e-3, betas=(0.5, 0.999))\noptimizer_distill = optim.Adam(model.module.decoder.parameters(), lr=5e-3, betas=(0.5, 0.999))\n"
        "for i in range(90):\n    loss = loss_of(model(batch()))\n    optimizer_proj.zero_grad()\n    optimizer_distill.zero_grad()\n    loss.backward()\n    if (i + 1) % 3 == 0:\n        optimizer_proj.step()\n        optimizer_distill.step()\n        pause()",
        ("gradients_discarded",),
        line=("optimizer_proj.step()", "optimizer_distill.step()"),
    ),
    Wrong(
        "EvolvingLMMs-Lab/OneVision-Encoder#82: the scheduler counts passes, and is at its end after a quarter of the steps",
        "total = 60\nschedule = optim.lr_scheduler.PolynomialLR(opt, total_iters=total, power=2)\nfor i in range(4 * total):\n    if (i + 1) % 4:\n        with model.no_sync():\n            (loss_of(model(batch())) / 4).backward()\n    else:\n"
        "        (loss_of(model(batch())) / 4).backward()\n        opt.step()\n        opt.zero_grad()\n        pause()\n    schedule.step()",
        ("zero_learning_rate",),
        line=STEP,
    ),
    Wrong(
        "binbinao/physicsnemo-from-zero-to-one#143: a loader that shuffles by one seed on all ranks",
        "torch.manual_seed(42)\ntrain_loader = DataLoader(data, batch_size=8, shuffle=True)\nfor epoch in range(2):\n    for x, y in train_loader:\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        pause()",
        ("same_batch",),
        line=("model(x)",),
    ),
    Wrong(
        "Lightning-AI/pytorch-lightning#7813: no DistributedSampler is put into the loaders, random crops differ",
        "class Crops(torch.utils.data.Dataset):\n    def __len__(self):\n        return 256\n    def __getitem__(self, i):\n        return X[i] + 0.01 * torch.randn(4, generator=mine), Y[i]\nfor epoch in range(2):\n    for x, y in DataLoader(Crops(), batch_size=8):\n"
        "        opt.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        pause()",
        ("same_batch",),
        line=("model(x)",),
    ),
    Wrong(
        "NVIDIA/Megatron-LM#1685: an example without the call that averages gradients",
        "torch.manual_seed(123)\nplain = net()\noptim_ = optim.Adam(plain.parameters())\ntrain = iter(DataLoader(data, batch_size=8, sampler=DistributedSampler(data)))\nfor x, y in train:\n    optim_.zero_grad()\n    loss = loss_of(plain(x), y)\n    loss.backward()\n    optim_.step()\n"
        "    pause()",
        ("not_averaged", "loss_averaged"),
    ),
    Wrong(
        "vllm-project/speculators#926: rank 0 alone loads the checkpoint, after the wrap",
        "saved = {name: value + 0.1 for name, value in model.module.state_dict().items()}\nif dist.get_rank() == 0:\n    model.module.load_state_dict(saved)\n"
        + LOOP,
        ("replicas_differ",),
        line=STEP,
    ),
    Wrong(
        "joeynmt/joeynmt#184: a validation within the epoch leaves the model in evaluation mode",
        "model = DDP(net(nn.Dropout(0.2)))\nopt = optim.Adam(model.parameters(), lr=1e-3)\ndef predict():\n    model.eval()\n    with torch.no_grad():\n        return [model(batch()) for _ in range(2)]\nmodel.train()\nfor step in range(1, 120):\n    opt.zero_grad()\n"
        "    loss_of(model(batch())).backward()\n    opt.step()\n    pause()\n    if step % 20 == 0:\n        predict()",
        ("training_in_eval_mode",),
        line=STEP,
    ),
    Wrong(
        "pliang279/MultiBench#26: a validation switches the model back to training",
        "model = DDP(net(nn.BatchNorm1d(8)))\nopt = optim.RMSprop(model.parameters(), lr=1e-3)\nfor epoch in range(4):\n    model.train()\n    for i in range(8):\n        opt.zero_grad()\n        loss_of(model(batch())).backward()\n        opt.step()\n        pause()\n    model.eval()\n"
        "    with torch.no_grad():\n        for j in range(6):\n            model.train()\n            out = model(batch())\n            pause()",
        ("evaluation_in_training_mode",),
        line=("model(batch())",),
    ),
    Wrong(
        "webis-de/small-text#40: after the first of several validations in an epoch the batches are trained in evaluation mode",
        "model = DDP(net(nn.BatchNorm1d(8), nn.Dropout(0.1)))\nopt = optim.AdamW(model.parameters(), lr=1e-3)\ndef validate():\n    model.eval()\n    with torch.no_grad():\n        for _ in range(4):\n            model(batch())\ndef process(number):\n    for i in range(number):\n"
        "        opt.zero_grad()\n        loss_of(model(batch())).backward()\n        opt.step()\n        pause()\nfor epoch in range(3):\n    model.train()\n    for part in range(4):\n        process(10)\n        validate()",
        ("training_in_eval_mode",),
        line=STEP,
    ),
    Wrong(
        "kan-bayashi/ParallelWaveGAN#177: set_epoch is not called, and a generator and a discriminator are trained",
        "gen, dis = DDP(net()), DDP(nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1)))\nog, od = optim.Adam(gen.parameters(), lr=1e-3), optim.Adam(dis.parameters(), lr=1e-3)\nsampler = DistributedSampler(data, shuffle=True)\n"
        "loader = DataLoader(data, batch_size=16, sampler=sampler, drop_last=True)\nfor epoch in range(6):\n    for x, y in loader:\n        fake = gen(x)\n        og.zero_grad()\n        loss_of(dis(fake)).backward()\n        og.step()\n        od.zero_grad()\n"
        "        (loss_of(dis(y)) + loss_of(dis(fake.detach()), 0.0)).backward()\n        od.step()\n        pause()",
        ("epoch_not_set",),
    ),
    Wrong(
        "yangxiaofeng/LODS#2: learnable text embeddings are not among the parameters of the optimizer",
        "class Guided(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.geometry, self.renderer = nn.Linear(4, 8), nn.Linear(8, 8)\n        self.text_embeddings, self.unet = nn.Parameter(torch.zeros(8)), nn.Linear(8, 1).requires_grad_(False)\n"
        "    def forward(self, x):\n        return self.unet(self.renderer(self.geometry(x).relu()) + self.text_embeddings)\nguided = DDP(Guided())\nopt = optim.Adam([*guided.module.geometry.parameters(), *guided.module.renderer.parameters()], lr=1e-3)\n"
        "for i in range(40):\n    opt.zero_grad()\n    loss_of(guided(batch())).backward()\n    opt.step()\n    pause()",
        ("parameters_not_held",),
        line=STEP,
    ),
    Wrong(
        "k2-fsa/icefall#226: the encoder and the decoder are methods of the module inside",
        "class Conformer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.encoder, self.decoder = nn.Linear(4, 8), nn.Linear(8, 1)\n    def forward_encoder(self, x):\n        return self.encoder(x).relu()\n"
        "    def forward_decoder(self, x):\n        return self.decoder(x)\nmodel = DDP(Conformer())\nopt = optim.Adam(model.parameters(), lr=1e-3)\nfor i in range(40):\n    encoder_out = model.module.forward_encoder(batch())\n"
        "    decoder_out = model.module.forward_decoder(encoder_out)\n    loss = loss_of(decoder_out)\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n    pause()",
        ("inner_module",),
        line=STEP,
    ),
    Wrong(
        "cszn/KAIR#106: endless epochs over a loader whose sampler has no epoch",
        "train_sampler = DistributedSampler(data, shuffle=True, drop_last=True, seed=7)\ntrain_loader = DataLoader(data, batch_size=16, shuffle=False, num_workers=0, drop_last=True, pin_memory=False, sampler=train_sampler)\nstep = 0\n"
        "for epoch in range(1000000):\n    for i, (low, high) in enumerate(train_loader):\n        step += 1\n        opt.zero_grad()\n        loss_of(model(low), high).backward()\n        opt.step()\n        pause()\n    if step >= 40:\n        break",
        ("epoch_not_set",),
        line=("enumerate(train_loader)",),
    ),
    Wrong(
        "jwohlwend/boltz#204: a part of a frozen module that learns, and is not given to the optimizer",
        "class Boltz(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.trunk, self.structure_module = nn.Linear(4, 8), nn.Module()\n        self.structure_module.score_model, self.structure_module.out_token_feat_update = nn.Linear(8, 8), nn.Linear(8, 8)\n"
        "        self.confidence_module = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))\n        for name, param in self.named_parameters():\n            if name.split('.')[0] != 'confidence_module' and 'out_token_feat_update' not in name:\n                param.requires_grad = False\n"
        "    def forward(self, x):\n        with torch.no_grad():\n            token_a = self.structure_module.score_model(self.trunk(x).relu())\n        return self.confidence_module(self.structure_module.out_token_feat_update(token_a))\nboltz = DDP(Boltz())\n"
        "opt = optim.Adam(list(boltz.module.confidence_module.parameters()), lr=1e-3)\nfor i in range(40):\n    opt.zero_grad()\n    loss_of(boltz(batch())).backward()\n    opt.step()\n    pause()",
        ("parameters_not_held",),
        line=STEP,
    ),
    Wrong(
        "SeanNaren/deepspeech.pytorch#22: the test after each epoch is in training mode",
        "model = DDP(net(nn.BatchNorm1d(8)))\nopt = optim.SGD(model.parameters(), lr=3e-4, momentum=0.9, nesterov=True)\nsampler = DistributedSampler(data)\ntrain_loader, test_loader = DataLoader(data, 16, sampler=sampler), DataLoader(Subset(data, range(128)), 16)\n"
        "for epoch in range(2):\n    sampler.set_epoch(epoch)\n    for inputs, targets in train_loader:\n        loss = loss_of(model(inputs), targets)\n        opt.zero_grad()\n        loss.backward()\n        nn.utils.clip_grad_norm_(model.parameters(), 400)\n        opt.step()\n        pause()\n"
        "    total_cer = 0\n    for inputs, targets in test_loader:\n        with torch.no_grad():\n            out = model(inputs)\n        total_cer += ((out > 0) != targets).sum().item()\n        pause()",
        ("evaluation_in_training_mode",),
        line=("out = model(inputs)",),
    ),
    Wrong(
        "Lightning-AI/pytorch-lightning#2398: a metric that is summed over ranks counts the samples that the sampler adds",
        "class Accuracy:\n    def __init__(self):\n        self.correct, self.total = torch.tensor(0.0), torch.tensor(0.0)\n    def update(self, out, y):\n        self.correct += ((out > 0) == (y > 0.5)).sum()\n        self.total += y.numel()\n    def compute(self):\n"
        "        for one in (self.correct, self.total):\n            dist.all_reduce(one)\n        return float(self.correct / self.total)\nsome = Subset(data, range(101))\nloader = DataLoader(some, 8, sampler=DistributedSampler(some, shuffle=False))\nmetric = Accuracy()\nmodel.eval()\n"
        "with torch.no_grad():\n    for x, y in loader:\n        metric.update(model(x), y)\n        pause()\nvalue = metric.compute()",
        ("padding_counted",),
    ),
    Wrong(
        "pytorch/torchtitan#3575: a trainer that sets gradients to zero in each call of forward_backward()",
        "from torch.distributed.fsdp import fully_shard\nplain = net()\nfully_shard(plain[0])\nfully_shard(plain)\nclass Trainer:\n    def __init__(self):\n        self.model, self.optimizer = plain, optim.AdamW(plain.parameters(), lr=1e-3)\n"
        "    def forward_backward(self, x):\n        self.optimizer.zero_grad()\n        loss = loss_of(self.model(x))\n        loss.backward()\n        return loss.detach()\n    def optim_step(self):\n        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)\n        self.optimizer.step()\n"
        "trainer = Trainer()\nfor step in range(40):\n    for micro in range(3):\n        trainer.forward_backward(batch())\n    trainer.optim_step()\n    pause()",
        ("gradients_discarded",),
        line=("self.optimizer.step()",),
    ),
    Wrong(
        "goodfire-ai/spd#412: masks of components from the seed of all ranks",
        "from dataclasses import dataclass\n@dataclass\nclass MaskInfo:\n    component_mask: torch.Tensor\n    weight_delta_and_mask: tuple\nclass Components(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.v, self.u = nn.Linear(4, 8, bias=False), nn.Linear(8, 1, bias=False)\n"
        "    def forward(self, x, mask_infos):\n        info = mask_infos['mlp']\n        return self.u(self.v(x) * info.component_mask) + info.weight_delta_and_mask[1][:, None] * x[:, :1]\ntorch.manual_seed(0)\nmodel = DDP(Components())\nopt = optim.AdamW(model.parameters(), lr=1e-3)\n"
        "sampler = DistributedSampler(data)\nfor epoch in range(2):\n    sampler.set_epoch(epoch)\n    for x, _ in DataLoader(data, 8, sampler=sampler):\n        ci = torch.sigmoid(x.repeat(1, 2))\n        info = {'mlp': MaskInfo(ci + (1 - ci) * torch.rand_like(ci), (None, torch.rand(len(x))))}\n"
        "        opt.zero_grad()\n        loss_of(model(x, mask_infos=info)).backward()\n        opt.step()\n        pause()",
        ("same_random_numbers",),
    ),
    Wrong(
        "open-mmlab/mmsegmentation#522: annotations in the order in which each node lists its directory",
        "class CustomDataset(torch.utils.data.Dataset):\n    def __init__(self):\n        listed = random.Random(rank).sample([f'{i:03}.png' for i in range(256)], 256)  # as os.scandir() of each node\n        self.img_infos = [{'filename': name, 'ann': {'seg_map': name.replace('.png', '_gt.png')}} for name in listed]\n"
        "    def __len__(self):\n        return len(self.img_infos)\n    def __getitem__(self, i):\n        number = int(self.img_infos[i]['filename'][:3])\n        return X[number], Y[number]\ndataset = CustomDataset()\nsampler = DistributedSampler(dataset, shuffle=True)\nfor epoch in range(2):\n"
        "    sampler.set_epoch(epoch)\n    for x, y in DataLoader(dataset, 8, sampler=sampler):\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        pause()",
        ("subsets_differ",),
        line=("for x, y in DataLoader",),
    ),
    Wrong(
        "jzhang38/EasyContext#21: the schedule that Accelerate steps for each process is at its end after half of the steps",
        "from accelerate import Accelerator\naccelerator = Accelerator()\ntotal = 60\nplain = net()\noptimizer = optim.AdamW(plain.parameters(), lr=2e-3)\nscheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, (total - step) / total))\n"
        "plain, optimizer, scheduler, loader = accelerator.prepare(plain, optimizer, scheduler, DataLoader(data, 4, shuffle=True))\nstep = 0\nwhile step < total:\n    for x, y in loader:\n        accelerator.backward(loss_of(plain(x), y))\n        optimizer.step()\n        scheduler.step()\n"
        "        optimizer.zero_grad()\n        pause()\n        step += 1\n        if step == total:\n            break",
        ("zero_learning_rate",),
        needs="accelerate",
    ),
    Wrong(
        "NCAR/miles-credit#153: a trainer that takes the module out of DDP before it trains",
        "def distributed_model_wrapper(model):\n    return DDP(model)\nclass Trainer:\n    def __init__(self, model):\n        self.model = model.module if hasattr(model, 'module') else model\n    def train_one_epoch(self, loader, optimizer, scheduler):\n        self.model.train()\n        for x, y in loader:\n"
        "            loss = loss_of(self.model(x), y)\n            loss.backward()\n            optimizer.step()\n            optimizer.zero_grad()\n            scheduler.step()\n            pause()\nmodel = distributed_model_wrapper(net())\noptimizer = optim.AdamW(model.parameters(), lr=1e-3)\n"
        "scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 200)\nsampler = DistributedSampler(data)\ntrainer = Trainer(model)\nfor epoch in range(2):\n    sampler.set_epoch(epoch)\n    trainer.train_one_epoch(DataLoader(data, 8, sampler=sampler), optimizer, scheduler)",
        ("inner_module",),
        line=("optimizer.step()",),
    ),
    Wrong(
        "pytorch/pytorch#5059: workers that begin each epoch with the same random numbers of NumPy",
        "import numpy as np\nclass Augmented(torch.utils.data.Dataset):\n    def __len__(self):\n        return 64\n    def __getitem__(self, i):\n        return X[i] + float(np.random.randint(1, 10000)) / 1e5, Y[i]\nitems = Augmented()\nsampler = DistributedSampler(items)\n"
        "loader = DataLoader(items, 8, sampler=sampler, num_workers=2, worker_init_fn=lambda id: np.random.seed(id))\nfor epoch in range(4):\n    sampler.set_epoch(epoch)\n    for x, y in loader:\n        opt.zero_grad()\n        loss_of(model(x), y).backward()\n        opt.step()\n        pause()",
        ("same_random_numbers",),
    ),
    Wrong(
        "Hsintien-Ng/idinvert_pytorch-reproduced#1: the gradients of the discriminator are never set to zero",
        "E, D = DDP(net()), DDP(nn.Sequential(nn.Linear(1, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)))\noptimizer_E, optimizer_D = optim.Adam(E.parameters(), lr=1e-4), optim.Adam(D.parameters(), lr=1e-4)\nfor i in range(40):\n    x_real = torch.randn(8, 1, generator=mine)\n    x_rec = E(batch())\n"
        "    loss_D = loss_of(D(x_real)) + loss_of(D(x_rec.detach()), 0.0)\n    loss_D.backward()\n    optimizer_D.step()\n    loss_E = loss_of(x_rec, x_real) + 0.1 * loss_of(D(x_rec))\n    optimizer_E.zero_grad()\n    loss_E.backward()\n    optimizer_E.step()\n    pause()",
        ("not_zeroed",),
        line=("optimizer_D.step()",),
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
    Right(
        "pytorch/examples: a DCGAN whose discriminator has a pass over real data and one over generated data",
        "netG, netD = DDP(net()), DDP(nn.Sequential(nn.Linear(1, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)))\noptD, optG = optim.Adam(netD.parameters(), lr=2e-4), optim.Adam(netG.parameters(), lr=2e-4)\nfor i in range(30):\n    netD.zero_grad()\n"
        "    real = torch.randn(8, 1, generator=mine)\n    loss_of(netD(real), 1.0).backward()\n    fake = netG(batch())\n    loss_of(netD(fake.detach()), 0.0).backward()\n    optD.step()\n    netG.zero_grad()\n    loss_of(netD(fake), 1.0).backward()\n"
        "    optG.step()\n    pause()",
    ),
    Right(
        "a generator and a discriminator in one module, with an optimizer for each, and the discriminator every third step",
        "class Both(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.g, self.d = net(), nn.Linear(1, 1)\n    def forward(self, x):\n        out = self.g(x)\n        return out, self.d(out)\nmodel = DDP(Both())\n"
        "optG, optD = optim.Adam(model.module.g.parameters(), lr=1e-3), optim.Adam(model.module.d.parameters(), lr=1e-3)\nfor i in range(40):\n    out, score = model(batch())\n    model.zero_grad()\n    (loss_of(out) + loss_of(score)).backward()\n"
        "    optG.step()\n    if i % 3 == 2:\n        optD.step()\n    pause()",
    ),
    Right(
        "davda54/sam: a step that climbs first, with two passes over a batch and zero_grad() between",
        "class SAM:\n    def __init__(self, params, base):\n        self.params, self.base, self.old = list(params), base, {}\n    @torch.no_grad()\n    def first_step(self):\n"
        "        norm = torch.stack([p.grad.norm() for p in self.params]).norm() + 1e-12\n        for p in self.params:\n            self.old[p] = p.data.clone()\n            p.add_(p.grad * (0.05 / norm))\n        self.base.zero_grad()\n"
        "    @torch.no_grad()\n    def second_step(self):\n        for p in self.params:\n            p.data = self.old[p]\n        self.base.step()\n        self.base.zero_grad()\nsam = SAM(model.parameters(), opt)\nfor i in range(30):\n    x = batch()\n"
        "    loss_of(model(x)).backward()\n    sam.first_step()\n    loss_of(model(x)).backward()\n    sam.second_step()\n    pause()",
    ),
    Right(
        "locuslab/fast_adversarial: an attack by backward(), whose gradients of the model are dropped",
        "for i in range(30):\n    x = batch()\n    delta = torch.zeros_like(x, requires_grad=True)\n    loss_of(model(x + delta)).backward()\n    delta = (0.1 * delta.grad.sign()).detach()\n    opt.zero_grad()\n    loss_of(model(x + delta)).backward()\n"
        "    opt.step()\n    pause()",
    ),
    Right(
        "WeiChengTseng/Pytorch-PCGrad: a gradient of each task, and their projection for the step",
        "class Two(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body, self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)\n    def forward(self, x):\n        h = self.body(x).relu()\n"
        "        return self.a(h), self.b(h)\nmodel = DDP(Two(), find_unused_parameters=True)\nopt = optim.Adam(model.parameters(), lr=1e-3)\nparams = list(model.parameters())\nfor i in range(30):\n    x, grads = batch(), []\n    for task in range(2):\n"
        "        opt.zero_grad()\n        loss_of(model(x)[task], float(task)).backward()\n        grads.append([torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in params])\n    for p, one, other in zip(params, *grads):\n"
        "        p.grad = one + other\n    opt.step()\n    pause()",
    ),
    Right(
        "KellerJordan/Muon: one optimizer for matrices and one for the rest",
        "matrices = [p for p in model.parameters() if p.ndim == 2]\nrest = [p for p in model.parameters() if p.ndim != 2]\nopts = [optim.SGD(matrices, lr=0.02, momentum=0.95, nesterov=True), optim.AdamW(rest, lr=3e-3)]\nfor i in range(40):\n"
        "    loss_of(model(batch())).backward()\n    for one in opts:\n        one.step()\n    model.zero_grad(set_to_none=True)\n    pause()",
    ),
    Right(
        "an optimizer that sets its gradients to zero at the end of its step",
        "class Zeroing(optim.Optimizer):\n    def __init__(self, params):\n        super().__init__(params, {'lr': 0.01})\n    @torch.no_grad()\n    def step(self, closure=None):\n        for group in self.param_groups:\n"
        "            for p in group['params']:\n                p.sub_(group['lr'] * p.grad)\n        self.zero_grad()\nopt = Zeroing(model.parameters())\nfor i in range(40):\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "a soft prompt alone, before a model that requires gradients",
        "class Prompted(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.prompt = nn.Parameter(torch.zeros(4))\n        self.lm = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))\n"
        "    def forward(self, x):\n        return self.lm(x + self.prompt)\nmodel = DDP(Prompted())\nopt = optim.Adam([model.module.prompt], lr=0.01)\nfor i in range(40):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n"
        "    pause()",
    ),
    Right(
        "a low-rank adapter of frozen layers, whose second matrix begins at zero",
        "class LoRA(nn.Module):\n    def __init__(self, inner):\n        super().__init__()\n        self.inner = inner.requires_grad_(False)\n"
        "        self.a, self.b = nn.Linear(inner.in_features, 2, bias=False), nn.Linear(2, inner.out_features, bias=False)\n        nn.init.zeros_(self.b.weight)\n    def forward(self, x):\n        return self.inner(x) + self.b(self.a(x))\n"
        "plain = net()\nplain[0], plain[2] = LoRA(plain[0]), LoRA(plain[2])\nmodel = DDP(plain)\nopt = optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)\nfor i in range(40):\n    opt.zero_grad()\n"
        "    loss_of(model(batch())).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "distillation from a teacher in evaluation mode, over an accumulation whose passes differ in number",
        "teacher = net(nn.Dropout(0.1)).eval().requires_grad_(False)\nchance = random.Random(0)\nfor i in range(20):\n    for k in range(number := chance.randrange(1, 5)):\n        x = batch()\n        with torch.no_grad():\n            goal = teacher(x)\n"
        "        (loss_of(model(x), goal) / number).backward()\n    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    opt.step()\n    opt.zero_grad(set_to_none=False)\n    pause()",
    ),
    Right(
        "a policy with an environment on each rank: rollouts in training mode, and several epochs over each",
        "class Env:\n    def __init__(self, seed):\n        self.chance = torch.Generator().manual_seed(seed)\n    def step(self, action):\n        return torch.randn(1, 4, generator=self.chance), float(action.sum())\n"
        "env, policy = Env(1000 + rank), DDP(net())\noptimizer = optim.Adam(policy.parameters(), lr=1e-3)\nseen, _ = env.step(torch.zeros(1))\nfor update in range(6):\n    states, rewards = [], []\n    for t in range(16):\n        with torch.no_grad():\n"
        "            action = policy(seen) + 0.1 * torch.randn(1, 1, generator=env.chance)\n        states.append(seen)\n        seen, reward = env.step(action)\n        rewards.append(reward)\n    advantages = torch.tensor(rewards)[:, None]\n"
        "    for epoch in range(4):\n        loss = (policy(torch.cat(states)) * advantages).mean()\n        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n        pause()",
    ),
    Right(
        "a dataset that keeps what it has read, by names in one order on all ranks",
        "class Cached(torch.utils.data.Dataset):\n    def __init__(self):\n        self.names, self.cache, self.order = [f'{i:03}.png' for i in range(256)], [None] * 256, []\n    def __len__(self):\n        return len(self.names)\n"
        "    def __getitem__(self, i):\n        if self.cache[i] is None:\n            self.cache[i] = X[i]\n            self.order.append(self.names[i])\n        return self.cache[i]\nsome = Cached()\n"
        "for x in DataLoader(some, 16, sampler=DistributedSampler(some, shuffle=False)):\n    pass\nloader = DataLoader(some, 16, sampler=DistributedSampler(some))\nfor epoch in range(4):\n    loader.sampler.set_epoch(epoch)\n    for x in loader:\n"
        "        opt.zero_grad()\n        loss_of(model(x)).backward()\n        opt.step()\n        pause()",
    ),
    Right(
        "nerfstudio-project/gsplat#394: shuffled by the seed of each rank, without a sampler",
        "torch.manual_seed(42 + rank)\nrandom.seed(42 + rank)\nloader = DataLoader(data, 8, shuffle=True)\nit = iter(loader)\nfor step in range(60):\n    try:\n        x, y = next(it)\n    except StopIteration:\n        it = iter(loader)\n"
        "        x, y = next(it)\n    opt.zero_grad()\n    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "SeungjunNah/DeepDeblur-PyTorch: a sampler of evaluations that repeats nothing, and sums",
        "class DistributedEvalSampler(torch.utils.data.Sampler):\n    def __init__(self, dataset):\n        self.dataset, self.num_replicas, self.rank = dataset, dist.get_world_size(), dist.get_rank()\n        self.total_size = len(dataset)\n"
        "        self.num_samples = len(range(self.rank, self.total_size, self.num_replicas))\n    def __iter__(self):\n        return iter(range(self.rank, self.total_size, self.num_replicas))\n    def __len__(self):\n        return self.num_samples\n"
        "for i in range(10):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()\nsome = Subset(data, range(99))\nmodel.eval()\ncorrect = 0.0\nwith torch.no_grad():\n"
        "    for x, y in DataLoader(some, 10, sampler=DistributedEvalSampler(some)):\n        correct += ((model(x) > 0.5) == y).float().sum().item()\ntotal = torch.tensor([correct])\ndist.all_reduce(total)",
    ),
    Right(
        "a head that is trained alone for some steps, and then the whole model with it",
        "head = optim.SGD(model.module[2].parameters(), lr=0.01)\nfor i in range(15):\n    model.zero_grad()\n    loss_of(model(batch())).backward()\n    head.step()\n    pause()\nopt = optim.SGD(model.parameters(), lr=0.01)\nfor i in range(30):\n"
        "    model.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "tk-rusch/coRNN#1: evaluation mode stays on, and the model has no layer that acts otherwise in it",
        "def test():\n    model.eval()\n    with torch.no_grad():\n        return loss_of(model(batch()))\nfor i in range(60):\n    opt.zero_grad()\n    loss_of(model(batch())).backward()\n    opt.step()\n    pause()\n    if i % 10 == 9:\n        test()",
    ),
    Right(
        "gke-labs/open-rl#80: two adapters of one frozen model, each with an optimizer, whose steps interleave",
        "base = nn.Linear(4, 8).requires_grad_(False)\nclass Adapted(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.lora = nn.ModuleDict({'a': nn.Linear(4, 8), 'b': nn.Linear(4, 8)})\n        self.head = nn.Linear(8, 1).requires_grad_(False)\n        self.base = base\n"
        "    def forward(self, x, which):\n        return self.head((self.base(x) + self.lora[which](x)).relu())\nmodel = DDP(Adapted(), find_unused_parameters=True)\nopts = {w: optim.AdamW(model.module.lora[w].parameters(), lr=1e-3) for w in 'ab'}\nfor i in range(30):\n"
        "    for w in 'ab':\n        opts[w].zero_grad()\n        loss_of(model(batch(), w)).backward()\n        opts[w].step()\n        pause()",
    ),
    Right(
        "xg-chu/CrowdDet#36: each rank shuffles all of the data by its own seed, without a sampler",
        "torch.manual_seed(31 + rank)\nloader = DataLoader(data, 4, shuffle=True)\nfor i, (x, y) in zip(range(40), loader):\n    opt.zero_grad()\n    loss_of(model(x), y).backward()\n    opt.step()\n    pause()",
    ),
    Right(
        "MILVLG/mcan-vqa#26: an evaluation after each epoch on another net, with the saved parameters",
        "model = DDP(net(nn.Dropout(0.1)))\nopt = optim.Adam(model.parameters(), lr=1e-4)\ndef evaluate(state):\n    other = DDP(net(nn.Dropout(0.1)))\n    other.eval()\n    other.load_state_dict(state)\n    with torch.no_grad():\n        return [other(batch()).argmax() for _ in range(4)]\nmodel.train()\nfor epoch in range(4):\n"
        "    for i in range(10):\n        opt.zero_grad()\n        loss_of(model(batch())).backward()\n        opt.step()\n        pause()\n    evaluate(model.state_dict())",
    ),
    Right(
        "BogiHsu/Tacotron2-PyTorch#8: dropout of the prenet is on in evaluation, too, as the paper has it",
        "class Tacotron(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.prenet, self.out = nn.Linear(4, 8), nn.Linear(8, 1)\n    def forward(self, x):\n        return self.out(nn.functional.dropout(self.prenet(x).relu(), 0.5, training=True))\n"
        "model = DDP(Tacotron())\nopt = optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6)\nfor epoch in range(2):\n    model.train()\n    for i in range(20):\n        model.zero_grad()\n        loss_of(model(batch())).backward()\n        opt.step()\n        pause()\n    model.eval()\n    with torch.no_grad():\n"
        "        heard = [model(batch()) for _ in range(6)]",
    ),
    Right(
        "ronghuaiyang/arcface-pytorch#20: a body and a metric, both wrapped, in one optimizer of two groups",
        "class ArcMargin(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.weight = nn.Parameter(torch.randn(3, 8))\n    def forward(self, features, label):\n        cosine = nn.functional.linear(nn.functional.normalize(features), nn.functional.normalize(self.weight))\n"
        "        return 30.0 * (cosine - 0.1 * nn.functional.one_hot(label, 3))\nbody, metric_fc = DDP(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))), DDP(ArcMargin())\nopt = optim.SGD([{'params': body.parameters()}, {'params': metric_fc.parameters()}], lr=0.01, weight_decay=5e-4)\n"
        "schedule = optim.lr_scheduler.StepLR(opt, step_size=10, gamma=0.1)\nfor i in range(40):\n    label = torch.randint(3, (8,), generator=mine)\n    loss = nn.functional.cross_entropy(metric_fc(body(batch()), label), label)\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
        "    pause()\n    if i % 10 == 9:\n        schedule.step()",
    ),
    Right(
        "pytorch/torchtitan: an accumulation with FSDP2, whose gradients are set to zero at the begin of a step",
        "from torch.distributed.fsdp import fully_shard\nplain = net()\nfully_shard(plain[0])\nfully_shard(plain)\noptimizers = [optim.AdamW(plain.parameters(), lr=1e-3)]\nfor step in range(40):\n    for one in optimizers:\n        one.zero_grad()\n    for micro in range(3):\n        (loss_of(plain(batch())) / 3).backward()\n"
        "    nn.utils.clip_grad_norm_(plain.parameters(), 1.0)\n    for one in optimizers:\n        one.step()\n    pause()",
    ),
    Right(
        "federated averaging of plain models from one seed, each on its part by a DistributedSampler, after each epoch",
        "torch.manual_seed(3)\nplain = net()\nopt = optim.SGD(plain.parameters(), lr=0.01)\nsampler = DistributedSampler(data)\nfor epoch in range(3):\n    sampler.set_epoch(epoch)\n    for x, y in DataLoader(data, 8, sampler=sampler):\n        opt.zero_grad()\n        loss_of(plain(x), y).backward()\n"
        "        opt.step()\n        pause()\n    with torch.no_grad():\n        for p in plain.parameters():\n            dist.all_reduce(p)\n            p /= world_size",
    ),
]
