"""Lightning's Trainer, imported by the zygote before ranks are forked; also as `pytorch_lightning`."""

from __future__ import annotations

import pytest

PRELOAD = ["lightning.pytorch"]
MODULE = """
import logging, time, warnings
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
import lightning.pytorch as pl

class Net(pl.LightningModule):
    seconds = 0
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        time.sleep(self.seconds)
        return self.layer(batch).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)

class Shout(pl.Callback):
    def on_train_batch_start(self, *_):
        print("step", flush=True)

def fit(callbacks=(), net=None, **arguments):
    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer = pl.Trainer(max_epochs=1, callbacks=list(callbacks), **quiet, **arguments)
    torch.manual_seed(rank)
    net = net or Net()
    trainer.fit(net, torch.utils.data.DataLoader(torch.arange(32.0).reshape(8, 4) / 32, batch_size=2))
    return trainer.global_step, trainer.world_size, round(float(sum(p.sum() for p in net.parameters())), 6)
"""


@pytest.fixture(scope="module", autouse=True)
def _imported(ranks):
    ranks.run(MODULE)


@pytest.mark.parametrize(
    "strategy", ["auto", "ddp", "ddp_notebook", "ddp_spawn", "ddp_fork_find_unused_parameters_true"]
)
def test_strategy(ranks, strategy):
    for _ in range(2):
        said = ranks.agree(f"print(fit(accelerator='cpu', devices=2, strategy={strategy!r}))")
        assert said.startswith("(2, 2, ")  # each rank has seen half of the four batches
    assert ranks.agree("print(dist.is_initialized())") == "True"


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
def test_precision(ranks, precision):
    assert ranks.agree(f"print(fit(accelerator='cpu', devices=2, precision={precision!r}))").startswith("(2, 2, ")


def test_its_teardown_leaves_the_environment_as_it_was(ranks):
    plugin = "from lightning.pytorch.plugins.environments import LightningEnvironment\n"
    ranks.run(f"{plugin}fit(accelerator='cpu', devices=2, plugins=LightningEnvironment())")
    assert ranks.agree("import os\nprint(os.environ['WORLD_SIZE'])") == "2"


def test_an_error_leaves_the_next_fit_alone(ranks):
    failing = "net = Net()\nnet.training_step = lambda *_: 1 / 0\n"
    assert ranks.cell(f"{failing}fit(accelerator='cpu', devices=2, net=net)").state == "error"
    assert "ZeroDivisionError" in ranks.errors()
    ranks.agree("print(fit(accelerator='cpu', devices=2))")


@pytest.mark.parametrize("attempt", [1, 2])  # it took SIGINT for itself: the next cell can be interrupted as well
def test_an_interrupt_ends_a_fit(ranks, attempt):
    slow = "net = Net()\nnet.seconds = 1000\n"
    fitting = ranks.agent.submit(f"{slow}fit([Shout()], accelerator='cpu', devices=2, net=net)", [0, 1])
    ranks.agent.wait(lambda: all("step" in ranks.agent.text(rank, fitting) for rank in (0, 1)))
    ranks.agent.request("interrupt", ranks=[0, 1])
    assert ranks.said(fitting).state == "interrupted"
    assert "KeyboardInterrupt" in ranks.errors().splitlines()[-1]
    assert ranks.agree("print(fit(accelerator='cpu', devices=2))").startswith("(2, 2, ")


def test_one_process_is_noticed_once(ranks):
    said = ranks.cell("fit(accelerator='cpu', devices=1)")
    assert [text.count("Trainer() runs on 1 process, not on the 2 ranks") for text in said.err] == [1, 1]
    assert all("on 1 process" not in text for text in ranks.cell("fit(accelerator='cpu', devices=1)").err)


def test_what_the_zygote_imported_is_fixed_and_said_in_every_ranks_log(ranks):
    for rank in (0, 1):
        assert "jupyter_dist: lightning" in ranks.log(rank)
        assert "Trainer: strategies that fork or spawn" in ranks.log(rank)


def test_the_twins_of_lightning_are_fixed_as_well(ranks):
    ranks.run(MODULE.replace("lightning.pytorch as pl", "pytorch_lightning as pl"))
    assert ranks.agree("print(pl.__name__)") == "pytorch_lightning"
    assert ranks.agree("print(fit(accelerator='cpu', devices=2, strategy='ddp_notebook'))").startswith("(2, 2, ")
    code = "from lightning_fabric import Fabric\nprint(Fabric(devices=2, strategy='ddp_spawn').launch(lambda fabric: fabric.world_size))"
    assert ranks.agree(code) == "2"


def test_a_rank_is_no_interactive_session_even_where_sys_ps1_is_set(ranks):
    code = "import sys\nsys.ps1 = '>>> '\nfor name in [n for n in sys.modules if n.startswith('lightning_fabric')]: del sys.modules[name]\n"
    check = "import lightning_fabric.utilities.imports as imports\ndel sys.ps1\nprint(imports._IS_INTERACTIVE)"
    assert ranks.agree(code + check) == "False"
