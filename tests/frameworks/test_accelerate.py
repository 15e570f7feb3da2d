"""Accelerate, and Hugging Face's Trainer on top of it."""

from __future__ import annotations

import pytest
from libraries import ACCELERATE as LIBRARIES  # noqa: F401 (of the zygote of `ranks`)

IMPORT = """
from accelerate import Accelerator, debug_launcher, notebook_launcher
from accelerate.state import AcceleratorState

def train(*arguments, **options):
    accelerator = Accelerator(**options)
    torch.manual_seed(rank)
    net = torch.nn.Linear(4, 1)
    data = torch.utils.data.DataLoader(torch.arange(32.0).reshape(8, 4) / 32, batch_size=2)
    net, optimizer, data = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.01), data)
    seen = 0
    for batch in data:
        loss = net(batch).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        seen += len(batch)
    total = round(float(sum(p.sum() for p in net.parameters())), 6)
    return seen, accelerator.num_processes, accelerator.mixed_precision, total, *arguments
"""


@pytest.fixture(scope="module", autouse=True)
def _imported(ranks):
    ranks.run(IMPORT)


def test_training_again_and_again(ranks):
    for _ in range(2):
        assert ranks.agree("print(train())").startswith("(4, 2, 'no', ")


def test_mixed_precision_changes_without_a_restart(ranks):
    for precision in ("bf16", "no", "bf16"):
        assert ranks.agree(f"print(train(mixed_precision='{precision}'))").startswith(f"(4, 2, '{precision}', ")
    assert ranks.agree("print(Accelerator(mixed_precision='no').mixed_precision, dist.is_initialized())") == "no True"


def test_end_training_leaves_the_process_group(ranks):
    ranks.run("Accelerator().end_training()\ndist.barrier()")
    assert ranks.agree("print(train())").startswith("(4, 2, ")


def test_gather_and_checkpoints(ranks):
    code = """
accelerator = Accelerator()
print(accelerator.gather(torch.tensor([rank])).tolist(), accelerator.gather_for_metrics([rank], use_gather_object=True))
net = accelerator.prepare(torch.nn.Linear(2, 1))
accelerator.save_state("state")
accelerator.wait_for_everyone()
accelerator.load_state("state")
with accelerator.main_process_first():
    print(accelerator.is_main_process == (rank == 0))
accelerator.free_memory()
"""
    assert ranks.agree(code) == "[0, 1] [0, 1]\nTrue"


def test_a_prepared_model_continues_after_hangs_were_freed(ranks):
    ranks.continues_after_hangs("""
def make():
    global accelerator, net, optimizer
    accelerator = Accelerator()
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1)
    net, optimizer = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), 0.1))

def step(number):
    torch.manual_seed(2 * number + rank)
    loss = net(torch.randn(2, 4)).square().mean()
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    return accelerator.gather(loss.detach()).tolist()
""")


def test_notebook_launcher_runs_in_place_and_returns_the_value(ranks):
    assert ranks.agree("print(notebook_launcher(train, (7,), num_processes=2))").endswith(", 7)")
    bf16 = ranks.agree("print(notebook_launcher(train, (), mixed_precision='bf16'))")
    assert bf16.startswith("(4, 2, 'bf16', ")
    assert ranks.agree("print(notebook_launcher(train))").startswith("(4, 2, 'no', ")
    assert ranks.run("print(notebook_launcher(lambda: rank))") == ["0\n", "1\n"]


def test_debug_launcher_runs_in_place(ranks):
    assert ranks.agree("print(debug_launcher(train, (7,), num_processes=2))").endswith(", 7)")


@pytest.mark.parametrize("launcher", ["notebook_launcher", "debug_launcher"])
def test_more_processes_than_ranks_are_refused_in_a_sentence(ranks, launcher):
    assert ranks.cell(f"{launcher}(train, (), num_processes=3)").state == "error"
    assert "num_processes=3, but this group has 2 ranks" in ranks.errors()


def test_fewer_processes_than_ranks_are_noticed(ranks):
    said = ranks.cell("notebook_launcher(lambda: None, num_processes=1)")
    assert (
        said.err
        == [
            f"{'The function runs on the 2 ranks of this group, not on num_processes=1.'} To use fewer processes, start a smaller group.\n"
        ]
        * 2
    )


def test_one_process_is_noticed_once(ranks):
    alone = """
import os
def alone(use_cpu):
    os.environ["ACCELERATE_USE_CPU"] = use_cpu
    AcceleratorState._reset_state(reset_partial_state=True)
    print(Accelerator().num_processes)
"""
    said = ranks.cell(f"{alone}alone('0')\nalone('0')\nalone('1')")
    assert said.out == ["1\n1\n2\n"] * 2
    assert [text.count("Accelerator() runs on 1 process, not on the 2 ranks") for text in said.err] == [1, 1]


HUGGING_FACE = """
import logging, warnings
warnings.filterwarnings("ignore")
from transformers import Trainer, TrainingArguments

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(rank)
        self.layer = torch.nn.Linear(2, 1)
    def forward(self, x, labels=None):
        return {"loss": ((self.layer(x)[:, 0] - labels) ** 2).mean()}

rows = [{"x": torch.ones(2) * i / 16, "labels": torch.tensor(1.0)} for i in range(16)]

def fit(**arguments):
    quiet = dict(report_to=[], save_strategy="no", disable_tqdm=True, logging_strategy="no", dataloader_pin_memory=False)
    chosen = TrainingArguments("out", per_device_train_batch_size=2, num_train_epochs=1, **quiet, **arguments)
    trainer = Trainer(Net(), chosen, train_dataset=rows)
    trainer.train()
    return trainer.state.global_step, chosen.world_size, round(float(sum(p.sum() for p in trainer.model.parameters())), 5)
"""


def test_hugging_face_trainer(ranks):
    ranks.run(HUGGING_FACE)
    for arguments in ("", "use_cpu=True, bf16=True", ""):  # another precision, and back
        fitted = ranks.run(f"value = fit({arguments})\nprint(value)")
        assert all("(4, 2, " in text for text in fitted)  # 16 rows, 2 at a time, on 2 ranks
        ranks.agree("print(value)")
    assert ranks.agree("print(dist.is_initialized())") == "True"


def test_the_rank_log_says_what_was_done(ranks):
    for line in ("mixed_precision may change", "notebook_launcher and debug_launcher run in place"):
        assert all(f"{line}" in ranks.log(rank) for rank in (0, 1))


def test_timeouts_are_those_of_the_process_group(ranks):
    shown = "print(dist.group.WORLD._get_backend(torch.device('cpu')).options._timeout)"
    ranks.run("from datetime import timedelta\nfrom accelerate import InitProcessGroupKwargs")
    ranks.run("Accelerator(kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(minutes=90))])")
    assert ranks.agree(shown) == "1:30:00"
    # As TrainingArguments(ddp_timeout=7200) does on devices; on CPU it passes none on.
    ranks.run("from accelerate import PartialState\nPartialState(timeout=timedelta(seconds=7200))")
    assert ranks.agree(shown) == "2:00:00"
    ranks.run("Accelerator()")  # says nothing about it
    assert ranks.agree(shown) == "2:00:00"
