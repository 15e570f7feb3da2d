"""fastai: unmodified calls on CPU ranks, in distrib_ctx and outside of it."""

from __future__ import annotations

import pytest
from libraries import FASTAI as LIBRARIES  # noqa: F401 (of the zygote of `ranks`)

IMPORT = """
from fastai.basics import *
from fastai.callback.all import *
from fastai.distributed import *

x = torch.linspace(-1, 1, 128).reshape(64, 2)
rows = list(zip(x, x @ torch.tensor([[1.0], [2.0]])))

def learner(*extra):
    torch.manual_seed(rank)
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), *extra, nn.Linear(8, 1))
    return Learner(DataLoaders.from_dsets(rows, rows, bs=4, device="cpu", num_workers=0), net, loss_func=nn.MSELoss(), lr=0.01)

def total(learn):
    return type(learn.model).__name__, round(float(sum(p.sum() for p in learn.model.parameters())), 5)

class Count(Callback):
    def before_fit(self): self.rows = 0
    def before_batch(self): self.rows += len(self.xb[0]) if self.training else 0
"""
TOGETHER = "with learn.distrib_ctx(): learn.{}\nprint(total(learn), dist.is_initialized())"


@pytest.fixture(scope="module", autouse=True)
def _imported(ranks):
    ranks.run(IMPORT)


def test_a_fit_outside_of_the_context_is_noticed_once(ranks):
    said = ranks.cell("learner().fit(1)")
    assert [text.count("fit() outside of distrib_ctx runs on 1 process, not on the 2 ranks") for text in said.err] == [
        1,
        1,
    ]
    assert ranks.cell("learner().fit(1)").err == ["", ""]
    assert ranks.cell("learn = learner()\nwith learn.distrib_ctx(): learn.fit(1)").err == ["", ""]


@pytest.mark.parametrize("call", ["fit(1)", "fit_one_cycle(1)", "fine_tune(1)", "fit_flat_cos(1)"])
def test_distrib_ctx(ranks, call):
    ranks.run("learn = learner()")
    totals = {ranks.agree(TOGETHER.format(call)) for _ in range(2)}  # trained on, in the second cell
    assert len(totals) == 2
    assert all(said.startswith("('Sequential', ") and said.endswith("True") for said in totals)


def test_distributed_dl_gives_each_rank_its_share(ranks):
    ranks.run("learn = learner()\ncount = Count()")
    assert ranks.agree("with learn.distrib_ctx(): learn.fit(1, cbs=count)\nprint(count.rows)") == "32"
    code = """
batches = DistributedDL(DataLoader(list(range(10)), bs=3, device="cpu"))
mine = torch.cat([batch for batch in batches])
"""
    assert ranks.run(f"{code}print(mine.tolist())") == ["[0, 1, 2, 3, 4]\n", "[5, 6, 7, 8, 9]\n"]


def test_in_notebook(ranks):
    ranks.run("learn = learner()")
    assert "Sequential" in ranks.run("with learn.distrib_ctx(in_notebook=True): learn.fit(1)\nprint(total(learn))")[0]
    ranks.agree("print(total(learn), dist.is_initialized())")


def test_in_notebook_where_the_process_group_was_destroyed(ranks):
    ranks.run("learn = learner()\ndist.destroy_process_group()")
    ranks.run("with learn.distrib_ctx(in_notebook=True): learn.fit(1)")
    assert ranks.agree("print(dist.is_initialized())") == "True"
    ranks.agree("print(total(learn))")


def test_sync_bn_falls_to_false_on_cpu_and_says_so_once(ranks):
    ranks.run("learn = learner(nn.BatchNorm1d(8))")
    said = ranks.cell("with learn.distrib_ctx(): learn.fit(1)")
    assert said.state == "ok", ranks.errors()
    assert said.err == ["sync_bn=True needs a device: each rank keeps its own BatchNorm statistics.\n"] * 2
    assert ranks.cell("with learn.distrib_ctx(): learn.fit(1)").err == ["", ""]
    ranks.agree("print(total(learn))")


def test_to_and_detach_distributed(ranks):
    ranks.run("learn = learner()")
    assert "Sequential" in ranks.agree(
        "learn.to_distributed()\nlearn.fit(1)\nlearn.detach_distributed()\nprint(total(learn))"
    )


def test_validate_and_predictions(ranks):
    ranks.run("learn = learner()")
    code = (
        "with learn.distrib_ctx():\n    learn.fit(1)\n    loss = learn.validate()\n    preds, _ = learn.get_preds()\n"
    )
    assert ranks.agree(f"{code}print(len(preds), round(float(loss[0]), 5))").startswith("64 ")


def test_save_and_load(ranks):
    ranks.run("learn = learner()\nwith learn.distrib_ctx():\n    learn.fit(1)\n    learn.save('kept')")
    before = ranks.agree("print(total(learn))")
    assert ranks.agree("learn = learner()\nlearn.load('kept')\nprint(total(learn))") == before


def test_rank0_first(ranks):
    code = "import time\nfrom pathlib import Path\nmark = Path('mark')\nfirst = rank0_first(lambda: (mark.exists(), mark.touch(), rank))"
    for _ in range(2):
        assert ranks.run(
            f"{code}\nprint(first[0], first[2])\ndist.barrier()\nif rank == 0: mark.unlink()\ndist.barrier()"
        ) == [
            "False 0\n",
            "True 1\n",
        ]


@pytest.mark.parametrize("context", ["learn.distrib_ctx()", "contextlib.nullcontext()"])
def test_lr_find(ranks, context):
    ranks.run(f"import contextlib\nlearn = learner()\nwith {context}: learn.fit(1)\nbefore = total(learn)")
    code = f"with {context}: found = learn.lr_find(show_plot=False, num_it=20, stop_div=False)\nprint(total(learn) == before)"
    assert ranks.agree(code) == "True"  # the weights are as before, on both
    seq = "print(dist.group.WORLD._get_sequence_number_for_group())"
    ranks.agree(seq)  # and both called as many collectives
    if "distrib" in context:
        assert float(ranks.agree("print(found.valley)")) > 0
    assert ranks.agree("t = torch.ones(1)\ndist.all_reduce(t)\nprint(t.item())") == "2.0"


def test_lr_find_draws_its_figure(ranks):
    before = len(ranks.agent.records)
    ranks.run("learn = learner()\nwith learn.distrib_ctx(): learn.lr_find(num_it=20, stop_div=False)")
    shown = [
        header["rank"]
        for header, data in ranks.agent.records[before:]
        if header["kind"] == "display_data" and b"image/png" in data
    ]
    assert sorted(shown) == [0, 1]


def test_one_rank_alone_waits_for_nobody(ranks):
    ranks.run(
        "learn = learner()\nlearn.lr_find(show_plot=False, num_it=10, stop_div=False)\nlearn.fit(1)\nlearn.validate()",
        (1,),
    )


def test_an_error_in_a_fit_leaves_the_model_as_it_was(ranks):
    ranks.run("class Bad(Callback):\n    def after_batch(self): raise ValueError('bad batch')\nlearn = learner()")
    assert ranks.cell("with learn.distrib_ctx(): learn.fit(1, cbs=Bad())").state == "error"
    assert ranks.run("print(type(learn.model).__name__)") == ["Sequential\n"] * 2
    assert "Sequential" in ranks.agree("with learn.distrib_ctx(): learn.fit(1)\nprint(total(learn))")


def test_setup_and_teardown_leave_the_process_group(ranks):
    ranks.run("setup_distrib(rank)\nteardown_distrib()\ndist.barrier()")
    assert ranks.agree("print(dist.is_initialized())") == "True"


def test_the_rank_log_says_what_was_done(ranks):
    for line in (
        "DistributedDL broadcasts its indices",
        "sync_bn is False",
        "lr_find works on every rank",
    ):
        assert all(line in ranks.log(rank) for rank in (0, 1))
