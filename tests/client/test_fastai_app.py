"""The app for fastai: cells that know nothing of ranks train distributed."""

from importlib.util import find_spec

import pytest

pytestmark = [
    pytest.mark.part("ddip"),
    pytest.mark.skipif(not (find_spec("fastai") and find_spec("accelerate")), reason="needs fastai"),
]

LEARNER = """
from fastai.basics import *
torch.manual_seed(rank)
x = torch.rand(64, 3)
data = L(zip(x, x.sum(1)))
dls = DataLoaders.from_dsets(data[:48], data[48:], bs=4, device=device, num_workers=0)
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1), nn.Flatten(0))
learn = Learner(dls, net, loss_func=nn.MSELoss(), lr=0.1)
"""
AGREE = """
weights = torch.cat([each.detach().flatten() for each in learn.model.parameters()])
others = [torch.zeros_like(weights) for _ in range(world_size)]
dist.all_gather(others, weights)
all(torch.equal(other, weights) for other in others), len(learn.recorder.losses), type(learn.model).__name__
"""


@pytest.fixture(scope="module")
def fastai(notebook):
    said = notebook.run("%makedip -a fastai")
    assert "App 'fastai' is in use on all ranks." in said.text, said.error
    notebook.run(f"%%dip -q\n{LEARNER}")
    yield notebook
    notebook.run("%%dip -q\nfrom jupyter_dist.apps.registry import apps\napps.leave()")


def test_an_unmodified_fit_trains_on_all_ranks(fastai):
    cell = fastai.run("%%dip --see all\nlearn.fit(2)")
    assert cell.status == "ok", cell.error
    shown = [ranks for ranks, text in cell.said if text]
    assert "0" in shown  # the table of losses, and the bars
    assert not any("1" in ranks for ranks in shown)
    # 12 batches of 4 from 48 on one rank: here 6 on each, twice.
    assert fastai.run(f"%%dip --see all\n{AGREE}").said == [("0-1", "(True, 12, 'Sequential')")]


def test_again_in_its_own_context_and_after_an_error(fastai):
    assert fastai.run("%%dip\nwith learn.distrib_ctx(): learn.fit(1)").status == "ok"
    assert fastai.run("%%dip\nlearn.fit(1)").status == "ok"
    assert fastai.run(f"%%dip\n{AGREE}").said == [("0", "(True, 6, 'Sequential')")]
    failing = "class Stop(Callback):\n    def after_batch(self): 1 / 0\nlearn.fit(1, cbs=Stop())"
    assert "ZeroDivisionError" in fastai.run(f"%%dip\n{failing}").error
    assert fastai.run("%%dip\nlearn.fit(1)").status == "ok"
    assert fastai.run(f"%%dip\n{AGREE}").said == [("0", "(True, 6, 'Sequential')")]
    assert fastai.run("%%dip\nlen(learn.validate()), learn.get_preds()[0].shape").said[-1] == (
        "0",
        "(1, torch.Size([16]))",
    )


def test_learners_are_fastais_own_when_the_app_is_left(fastai):
    fastai.run("%%dip -q\nfrom jupyter_dist.apps.registry import apps\napps.leave()")
    fastai.run(f"%%dip -q\n{LEARNER}")
    own = fastai.run("%%dip\n[type(each).__name__ for each in learn.cbs]").said[-1][1]
    assert "EveryLearner" not in own
    assert "DistributedTrainer" not in own


def test_as_the_default_it_is_set_up_after_a_cell_that_imported_fastai(fastai):
    names = "[each.__name__ for each in fastai.basics.defaults.callbacks]"
    hide = "import sys\nfrom jupyter_dist.apps.registry import apps\nhidden = sys.modules.pop('fastai')"
    fastai.run(f"%%dip -q\n{hide}\napps.use_when_imported('fastai')")
    assert fastai.run("%%dip\napps.in_use").said == [("0", "('fastai', False, True)")]
    assert fastai.run("%%dip -q\nsys.modules['fastai'] = hidden\nimport fastai.basics").status == "ok"
    assert "EveryLearner" in fastai.run(f"%%dip\n{names}").said[-1][1]
    assert fastai.run("%%dip\napps.in_use").said == [("0", "('fastai', False, False)")]
