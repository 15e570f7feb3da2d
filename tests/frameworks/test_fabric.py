"""Lightning Fabric: every argument, launch() with and without a function, in cells that are run again and again."""

from __future__ import annotations

import pytest
from libraries import FABRIC as LIBRARIES  # noqa: F401 (of the zygote of `ranks`)

IMPORT = "from lightning.fabric import Fabric\n"
TRAIN = """
def train(fabric):
    torch.manual_seed(fabric.global_rank)
    net = torch.nn.Linear(4, 1)
    net, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), 0.01))
    data = torch.utils.data.TensorDataset(torch.arange(32.0).reshape(8, 4) / 32)
    seen = 0
    for (x,) in fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=2)):
        loss = net(x.to(next(net.parameters()).dtype)).square().mean()
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
        seen += len(x)
    return seen, round(float(sum(p.float().sum() for p in net.parameters())), 6)
"""


@pytest.fixture(scope="module", autouse=True)
def _imported(ranks):
    ranks.run(IMPORT + TRAIN)


def trained(ranks, arguments, before=""):
    """Train twice with these arguments; each rank has seen half of the data, and both have the same weights."""
    made = f"{before}\nfabric = Fabric({arguments})\n"
    launched = ranks.agree(f"{made}print(fabric.launch(train), fabric.world_size)")
    in_cells = ranks.agree(f"{made}fabric.launch()\nprint(train(fabric), fabric.world_size)")
    for said in (launched, in_cells):
        assert said.startswith("(4, ")
        assert said.endswith(" 2")
    assert ranks.agree("print(dist.is_initialized())") == "True"
    return ranks.agree("print(type(fabric.strategy).__name__)")


STRATEGIES = ["'auto'", "'ddp'", "'ddp_find_unused_parameters_true'", "'ddp_notebook'", "'ddp_fork'", "'ddp_spawn'"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategy(ranks, strategy):
    assert trained(ranks, f"accelerator='cpu', devices=2, strategy={strategy}") == "DDPStrategy"


@pytest.mark.parametrize("start_method", ["popen", "fork", "spawn"])
def test_strategy_as_an_object(ranks, start_method):
    strategy = "from lightning.fabric.strategies import DDPStrategy"
    arguments = f"accelerator='cpu', devices=2, strategy=DDPStrategy(start_method='{start_method}')"
    assert trained(ranks, arguments, strategy) == "DDPStrategy"


def test_strategy_dp_becomes_ddp_on_cpu(ranks):
    assert trained(ranks, "accelerator='cpu', devices=2, strategy='dp'") == "DDPStrategy"


def test_strategy_fsdp_is_refused_on_cpu_by_lightning(ranks):
    assert ranks.cell("Fabric(accelerator='cpu', devices=2, strategy='fsdp')").state == "error"
    assert "FSDP is only available on GPU" in ranks.errors()


def test_strategy_model_parallel(ranks):
    code = """
from lightning.fabric.strategies import ModelParallelStrategy
from torch.distributed.fsdp import fully_shard
def shard(module, mesh):
    return fully_shard(module, mesh=mesh["data_parallel"])
fabric = Fabric(accelerator="cpu", devices=2, strategy=ModelParallelStrategy(shard, data_parallel_size=2, tensor_parallel_size=1))
fabric.launch()
net = fabric.setup(torch.nn.Linear(4, 2))
fabric.backward(net(torch.ones(2, 4)).sum())
print(tuple(net.weight.grad.to_local().shape))
"""
    assert ranks.agree(code) == "(1, 4)"


@pytest.mark.parametrize("accelerator", ["cpu", "auto"])
def test_accelerator(ranks, accelerator):
    assert trained(ranks, f"accelerator='{accelerator}', devices=2") == "DDPStrategy"
    assert ranks.agree("print(type(fabric.accelerator).__name__, fabric.device)") == "CPUAccelerator cpu"


@pytest.mark.parametrize("devices", ["2", "'2'"])
def test_devices(ranks, devices):
    assert trained(ranks, f"accelerator='cpu', devices={devices}") == "DDPStrategy"


REFUSED = {
    "devices=3": "world size",
    "devices=-1": "int > 0",
    "devices=[0, 1]": "int > 0",
    "devices=2, num_nodes=2": "world size",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_this_group_is_not_is_refused_in_a_sentence(ranks, arguments):
    assert ranks.cell(f"Fabric(accelerator='cpu', {arguments}).launch()").state == "error"
    assert REFUSED[arguments] in ranks.errors()


def test_num_nodes(ranks):
    trained(ranks, "accelerator='cpu', devices=2, num_nodes=1")
    assert ranks.agree("print(fabric.strategy.num_nodes)") == "1"


@pytest.mark.parametrize(
    "precision", ["32-true", "bf16-mixed", "bf16-true", "16-true", "64-true", "16-mixed", 32, "64"]
)
def test_precision(ranks, precision):
    trained(ranks, f"accelerator='cpu', devices=2, precision={precision!r}")
    wanted = precision if "-" in str(precision) else f"{precision}-true"
    if wanted == "16-mixed":  # Lightning's own choice on a CPU
        wanted = "bf16-mixed"
    assert ranks.agree("print(fabric.strategy.precision.precision)") == wanted


PLUGINS = {
    "a cluster environment of one's own": (
        """
from lightning.fabric.plugins.environments import TorchElasticEnvironment
class Ours(TorchElasticEnvironment):
    @staticmethod
    def detect(): return False
    def global_rank(self): return rank
    def world_size(self): return world_size
""",
        "Ours()",
    ),
    "LightningEnvironment": (
        "from lightning.fabric.plugins.environments import LightningEnvironment",
        "LightningEnvironment()",
    ),
    "a precision and a checkpoint plugin": (
        "from lightning.fabric.plugins import MixedPrecision, TorchCheckpointIO",
        "[MixedPrecision('bf16-mixed', 'cpu'), TorchCheckpointIO()]",
    ),
}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_plugins(ranks, plugin):
    before, value = PLUGINS[plugin]
    trained(ranks, f"accelerator='cpu', devices=2, plugins={value}", before)
    assert ranks.agree("import os\nprint(os.environ['WORLD_SIZE'])") == "2"


def test_callbacks(ranks):
    code = """
class Callback:
    def on_step(self, step): print("step", step)
fabric = Fabric(accelerator="cpu", devices=2, callbacks=[Callback(), Callback()])
fabric.launch()
fabric.call("on_step", step=3)
fabric.call("on_what_it_lacks")
"""
    assert ranks.agree(code) == "step 3\nstep 3"


def test_loggers(ranks):
    code = """
from pathlib import Path
from lightning.fabric.loggers import CSVLogger
fabric = Fabric(accelerator="cpu", devices=2, loggers=CSVLogger("logs", flush_logs_every_n_steps=1))
fabric.launch()
fabric.log_dict({"loss": 0.5}, step=1)
fabric.logger.finalize("success")
fabric.barrier()
names, values = Path(fabric.broadcast(fabric.logger.log_dir), "metrics.csv").read_text().split()
print(sorted(zip(names.split(","), values.split(","))))
"""
    assert ranks.agree(code) == "[('loss', '0.5'), ('step', '1')]"


def test_collectives_and_checkpoints(ranks):
    code = """
fabric = Fabric(accelerator="cpu", devices=2)
fabric.launch()
print(fabric.broadcast(fabric.global_rank + 7, src=1), fabric.all_reduce(torch.tensor(1.0 + fabric.global_rank)).item())
print(fabric.all_gather(torch.tensor([fabric.global_rank])).tolist())
with fabric.rank_zero_first():
    pass
state = {"net": fabric.setup(torch.nn.Linear(2, 1)), "step": 5}
fabric.save("checkpoint", state)
state["step"] = 0
fabric.load("checkpoint", state)
print(state["step"], fabric.is_global_zero == (rank == 0), fabric.node_rank)
"""
    assert ranks.agree(code) == "8 1.5\n[[0], [1]]\n5 True 0"


def test_a_model_that_was_set_up_continues_after_hangs_were_freed(ranks):
    ranks.continues_after_hangs("""
def make():
    global fabric, net, optimizer
    fabric = Fabric(accelerator="cpu", devices=2)
    fabric.launch()
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1)
    net, optimizer = fabric.setup(net, torch.optim.AdamW(net.parameters(), 0.1))

def step(number):
    torch.manual_seed(2 * number + rank)
    loss = net(torch.randn(2, 4)).square().mean()
    optimizer.zero_grad()
    fabric.backward(loss)
    optimizer.step()
    return fabric.all_gather(loss.detach()).tolist()
""")


def test_each_rank_has_the_value_of_its_own_launch(ranks):
    code = "print(Fabric(accelerator='cpu', devices=2).launch(lambda fabric, x: fabric.global_rank + x, 10))"
    assert ranks.run(code) == ["10\n", "11\n"]


def test_an_error_in_the_function_leaves_the_next_cell_alone(ranks):
    fabric = "fabric = Fabric(accelerator='cpu', devices=2, strategy='ddp_notebook')\n"
    assert ranks.cell(f"{fabric}fabric.launch(lambda fabric: 1 / 0)").state == "error"
    assert "ZeroDivisionError" in ranks.errors()
    ranks.agree("print(fabric.launch(train))")


def test_a_process_group_that_was_destroyed_is_formed_by_launch(ranks):
    ranks.run("dist.destroy_process_group()")
    trained(ranks, "accelerator='cpu', devices=2")


def test_one_process_is_noticed_once(ranks):
    said = ranks.cell("Fabric()\nFabric(devices=1, accelerator='cpu')")
    assert said.state == "ok"
    assert [text.count("Fabric() runs on 1 process, not on the 2 ranks") for text in said.err] == [1, 1]
    assert "Use Fabric(devices=2) to train on all." in said.err[0]
    assert said.err[0] == said.err[1]  # so that they are folded
    assert ranks.cell("Fabric()").err == ["", ""]


def test_the_rank_log_says_what_was_done_and_cells_do_not(ranks):
    for rank in (0, 1):
        lines = ranks.log(rank).splitlines()
        (line,) = [line for line in lines if "run in place" in line and "Fabric:" in line]
        assert line.startswith("jupyter_dist: lightning 2.")
        assert len(lines) == len(set(lines))
    assert "jupyter_dist: lightning" not in ranks.agent.text(0, ranks.agent.submit("1", [0]), "stderr")


@pytest.mark.gpu
@pytest.mark.parametrize("devices", ["-1", "'auto'", "[0, 1]", "'0,1'"])
@pytest.mark.parametrize("strategy", ["auto", "ddp", "ddp_notebook", "fsdp"])
def test_devices_and_strategies_of_cuda(cuda_ranks, devices, strategy):
    cuda_ranks.run(IMPORT + TRAIN)
    code = (
        f"fabric = Fabric(accelerator='cuda', devices={devices}, strategy='{strategy}')\nprint(fabric.launch(train)[0])"
    )
    assert cuda_ranks.agree(code) == "4"


def test_the_timeout_of_a_strategy_is_that_of_the_process_group(ranks):
    ranks.run("""
from datetime import timedelta
from lightning.fabric.strategies import DDPStrategy
fabric = Fabric(devices=2, strategy=DDPStrategy(timeout=timedelta(minutes=90)))
fabric.launch()""")
    assert ranks.agree("print(dist.group.WORLD._get_backend(torch.device('cpu')).options._timeout)") == "1:30:00"
