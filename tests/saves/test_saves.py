"""Saves and restores of whole groups, on real ranks."""

import json
from pathlib import Path

import pytest
from libraries import OPTIMIZERS as LIBRARIES  # noqa: F401 (of the groups that the tests start)
from waits import until

from jupyter_dist.client import Client, JupyterDistError, RankError
from jupyter_dist.protocol.operations import BY_NAME

TRAIN = """
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
torch.manual_seed(7)
model = DDP(nn.Linear(4, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
pair = dist.new_group([0, 1])
alias = model.module.weight
losses = []
def step():
    x = torch.randn(3, 4) + rank
    loss = model(x).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    total = loss.detach().clone(); dist.all_reduce(total, group=pair)
    losses.append(total.item())
    return losses[-1]
for _ in range(3): step()
"""
NOTEBOOK = json.loads((Path(__file__).parents[2] / "examples" / "ddp_digits.ipynb").read_text())
EXAMPLE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
GO_ON = "for _ in range(3): step()\nassert alias is model.module.weight"


def test_all_ranks_have_their_names_again(group, folder):
    group.run(
        "x = torch.arange(4) + rank\nalias = x\nnested = {'x': x[1:]}\ndef double(y): return 2 * y * scale\nscale = 3",
        check=True,
    )
    save = group.save("first", folder=folder)
    assert (save.name, save.world_size, save.skipped) == ("first", 2, [])
    group.run("x += 100; del scale, double; other = 1", check=True)
    restored = group.restore("first", folder=folder)
    assert repr(restored).startswith("Restored 'first'")
    assert group.gather("x.tolist()") == {0: [0, 1, 2, 3], 1: [1, 2, 3, 4]}
    group.run("x[1] = 50; assert alias is x and nested['x'][0] == 50 and double(2) == 12", check=True)
    assert group.gather("'other' in globals()") == {0: False, 1: False}


def test_training_goes_on_with_equal_losses_in_the_same_group_and_in_a_new_one(group, client, folder):
    group.run(TRAIN, check=True)
    first = group.save("middle", folder=folder)
    group.run(GO_ON, check=True)
    losses, weights = group.gather("losses"), group.gather("alias.tolist()")
    for _ in range(2):
        group.restore("middle", folder=folder)
        group.run(GO_ON, check=True)
        assert group.gather("losses") == losses
    new = client.start("another", num_ranks=2, accelerator="cpu")
    for _ in range(2):
        new.restore("middle", folder=folder)
        new.run(GO_ON, check=True)
        assert new.gather("losses") == losses
        assert new.gather("alias.tolist()") == weights
    assert new.gather("(rank, world_size, dist.get_rank(pair))") == {0: (0, 2, 0), 1: (1, 2, 1)}
    again = new.save("middle-again", folder=folder)
    assert first.total_bytes <= again.total_bytes


def test_an_example_that_is_saved_in_the_middle_ends_with_the_same_losses_in_a_new_group(group, client, folder):
    pytest.importorskip("sklearn")
    *begin, train, evaluate = EXAMPLE
    for cell in (*begin, train):
        group.run(cell, check=True)
    assert group.save("middle", folder=folder).skipped == []
    rest = [group.run(cell, check=True).text for cell in (train, evaluate)]
    assert "epoch 11: mean loss" in rest[0]
    assert "accuracy 0.9" in rest[1]
    new = client.start("example", accelerator="cpu", restore=f"{folder}/middle")
    assert [new.run(cell, check=True).text for cell in (train, evaluate)] == rest


def test_the_count_and_the_history_of_cells_go_on(group, client, folder):
    for number in range(3):
        group.run(f"n = {number}\nn * 2")
    save = group.save("counted", folder=folder)
    assert save.execution_count == 3
    new = client.start("counting", num_ranks=2, accelerator="cpu")
    new.restore("counted", folder=folder)
    result = new.run("(In[2], Out[3], n)")
    assert result.execution["execution_count"] == 4
    assert result.values[1] == repr(("n = 1\nn * 2", 4, 2))
    if "complete" in BY_NAME:
        assert "n" in new.complete("n").matches
    if "variables" in BY_NAME:
        assert "n" in repr(new.variables())


def test_a_save_waits_for_the_cell_of_another_client_and_keeps_the_next_one_waiting(group, folder):
    running = group.submit("import time\nfor done in range(400):\n    time.sleep(0.01)\n    if done == 60: x = 5")
    until(lambda: group.status().ranks[0].state == "busy")
    with Client.connect(group.client.url) as other:
        waiting = other.attach(group.id)
        assert waiting.save("patient", folder=folder).num_names >= 2
    assert running.done()
    group.run("x = done = 0")
    group.restore("patient", folder=folder)
    assert group.gather("(x, done)") == {0: (5, 399), 1: (5, 399)}


def test_what_cannot_be_saved_is_listed_before_and_its_cell_runs_again(group, folder):
    group.run("kept = [1, 2]")
    group.run("numbers = (n for n in kept)\nfirst = next(numbers)")
    preview = group.preview_save()
    assert [one.name for one in preview.names if one.name in ("kept", "first")] == ["first", "kept"]
    (skipped,) = preview.skipped
    assert (skipped.name, skipped.ranks, skipped.execution_count) == ("numbers", "0-1", 2)
    save = group.save("partly", folder=folder)
    assert save.skipped == preview.skipped
    group.run("kept = 0")
    restored = group.restore("partly", folder=folder)
    assert "Not saved: numbers (cell [2]), rank 0-1" in repr(restored)
    assert group.gather("'numbers' in globals()") == {0: False, 1: False}
    assert [(cell.names, cell.ranks) for cell in restored.cells] == [(("numbers",), "0-1")]
    group.restore("partly", folder=folder, rerun=True)
    assert group.gather("(next(numbers), kept)") == {0: (2, [1, 2]), 1: (2, [1, 2])}


def test_a_cell_that_fails_when_it_runs_again_is_an_error_of_that_cell(group, folder):
    group.run("lines = open('/proc/self/status') if 'before' not in globals() else 1 / 0\nbefore = 1")
    group.save("files", folder=folder)
    with pytest.raises(RankError, match="ZeroDivisionError"):
        group.restore("files", folder=folder, rerun=True)
    assert group.gather("before") == {0: 1, 1: 1}


def test_a_rank_that_is_killed_in_a_save_leaves_the_former_one(group, folder):
    group.run("x = 1")
    group.save("good", folder=folder)
    group.run(
        "x = 2\nclass Ends:\n    def __reduce__(self):\n        import os, signal\n"
        "        if rank: os.kill(os.getpid(), signal.SIGKILL)\n        return (Ends, ())\nends = Ends()"
    )
    with pytest.raises(JupyterDistError, match=r"Nothing was saved: Rank 1 was killed .*SIGKILL"):
        group.save("good", folder=folder)
    assert group.status().ranks[0].state == "idle"
    with pytest.raises(JupyterDistError, match="Rank 1 was killed"):
        group.save("good", folder=folder)
    group.replace()
    group.restore("good", folder=folder)
    assert group.gather("x") == {0: 1, 1: 1}
    assert [path.name for path in Path(folder, "saves", "good").iterdir() if path.is_dir()] == [
        json.loads(Path(folder, "saves", "good", "save.json").read_text())["save"]["id"]
    ]


def test_a_disk_that_is_full_on_one_rank_leaves_the_former_save(group, folder):
    group.run("x = torch.ones(1 << 20)")
    group.save("good", folder=folder)
    group.run(
        "import resource\nx = torch.rand(1 << 20)\nif rank: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, -1))"
    )
    with pytest.raises(
        JupyterDistError, match=rf"Nothing was saved: Rank 1: .*cannot write in {folder}: File too large"
    ):
        group.save("good", folder=folder)
    group.run("if rank: resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))")
    group.restore("good", folder=folder)
    assert group.gather("x.sum().item()") == {0: float(1 << 20), 1: float(1 << 20)}


def test_a_save_and_a_restore_are_interrupted_without_a_trace(group, folder):
    group.run("x = 1")
    group.save("good", folder=folder)
    slow = "x = 2\nclass Slow:\n    def __reduce__(self):\n        import time; time.sleep(1000)\n        return (Slow, ())\nif rank: slow = Slow()"
    group.run(slow)
    saving = group._loop._begun(group._group.save("good", folder=folder))
    until(lambda: group.status().ranks[1].state == "busy")
    group.interrupt()
    with pytest.raises(JupyterDistError, match="Nothing was saved: It was interrupted"):
        saving.result()
    assert [rank.state for rank in group.status().ranks] == ["idle", "idle"]
    group.restore("good", folder=folder)
    assert group.gather("x") == {0: 1, 1: 1}


def test_a_save_that_takes_too_long_is_given_up(group, folder):
    group.run(
        "class Slow:\n    def __reduce__(self):\n        import time; time.sleep(1000)\n        return (Slow, ())\nif rank: slow = Slow()"
    )
    with pytest.raises(JupyterDistError, match="Nothing was saved: It took longer than 1 s"):
        group.save("late", folder=folder, timeout_seconds=1)
    assert group.saves(folder) == []
    assert group.run("rank").ok


def test_a_damaged_save_changes_no_rank(group, folder):
    group.run("x = torch.rand(1 << 16)\ny = rank")
    group.save("broken", folder=folder)
    place = Path(folder, "saves", "broken")
    (content,) = [path for path in place.iterdir() if path.is_dir()]
    rank_file = content / "rank-1.json"
    whole = rank_file.read_bytes()
    rank_file.write_bytes(whole[:-20])
    group.run("x = y = 'new'")
    with pytest.raises(
        JupyterDistError,
        match=r"Nothing was restored: Rank \d: .*(rank-1.json of the save cannot be read|damaged: a checksum differs)",
    ):
        group.restore("broken", folder=folder)
    assert group.gather("(x, y)") == {0: ("new", "new"), 1: ("new", "new")}
    rank_file.write_bytes(whole)
    rank_file.chmod(0o666)
    with pytest.raises(JupyterDistError, match="can be written by others"):
        group.restore("broken", folder=folder)


def test_a_group_of_another_size_or_python_is_told_what_to_do(group, client, folder):
    group.run("x = 1")
    group.save("two", folder=folder)
    one = client.start("one", num_ranks=1, accelerator="cpu")
    with pytest.raises(JupyterDistError, match="has 2 ranks, and this group has 1"):
        one.restore("two", folder=folder)
    assert [save.problem for save in one.saves(folder)] == ["The save 'two' has 2 ranks, and this group has 1."]
    assert [save.problem for save in group.saves(folder)] == [None]
    path = Path(folder, "saves", "two", "save.json")
    saved = json.loads(path.read_text())
    saved["save"]["python_version"] = "3.9.1"
    path.write_text(json.dumps(saved))
    with pytest.raises(JupyterDistError, match=r"made by Python 3\.9\.1; this group runs 3"):
        group.restore("two", folder=folder)
    group.restore("two", folder=folder, any_version=True)
    assert group.gather("x") == {0: 1, 1: 1}


def test_saves_are_listed_and_deleted(group, client, folder):
    group.run("x = torch.rand(1 << 18)")
    group.save("a", folder=folder)
    group.save("b", folder=folder)
    assert [save.name for save in client.all_saves(folder)] == ["b", "a"]
    assert client.delete_save("a", folder).freed_bytes < 1 << 18, "b has the same tensor"
    assert client.delete_save("b", folder).freed_bytes > 1 << 19
    assert client.all_saves(folder) == []
    with pytest.raises(JupyterDistError, match="There is no save 'a'"):
        client.delete_save("a", folder)
    with pytest.raises(JupyterDistError, match=r"There is no save 'a'.*There are no saves in this folder"):
        group.restore("a", folder=folder)


@pytest.mark.part("drift")
def test_ranks_have_missed_no_cell_that_was_before_a_restore(group, folder):
    group.run("x = 1")
    group.save("before", folder=folder)
    group.kill(1)
    until(lambda: group.status().state == "degraded")
    group.replace()
    assert [step.ranks for step in group.drift().offered] == ["1"]
    group.restore("before", folder=folder)
    assert group.drift().offered == []
    assert group.gather("x") == {0: 1, 1: 1}
    group.run("y = 2", "0")
    assert [step.code for step in group.drift().missed] == ["y = 2"]


SHARDED = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
torch.manual_seed(3)
mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("data",))
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
fully_shard(net, mesh=mesh)
adam = torch.optim.AdamW(net.parameters(), lr=0.05)
def step():
    adam.zero_grad(); loss = net(torch.randn(4, 8) * (rank + 1)).square().mean(); loss.backward(); adam.step()
    return loss.item()
first = [step() for _ in range(3)]
"""


def test_a_sharded_model_goes_on_in_new_ranks_as_in_the_old_ones_again_and_again(group, folder):
    group.run(SHARDED, check=True)
    group.save("sharded", folder=folder)
    more = "[step() for _ in range(3)]"
    expected = group.gather(more)
    for renew in (group.restart, group.restart, group.reform):
        renew()
        group.restore("sharded", folder=folder)
        assert group.gather(more) == expected
        assert group.gather("next(net.parameters()).device_mesh is mesh") == {0: True, 1: True}


@pytest.mark.skipif("resize" not in BY_NAME, reason="without the part that resizes groups")
def test_a_group_that_was_resized_is_saved_with_the_ranks_that_it_has(client, folder):
    group = client.start("sizes", num_ranks=2, accelerator="cpu")
    group.run("def everywhere():\n    return dist.all_reduce(torch.ones(1))\nmine = 0", check=True)
    group.resize(4)
    group.run("mine = rank + 10\nhalf = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]", check=True)
    assert group.save("four", folder=folder).world_size == 4
    group.restart()
    group.restore("four", folder=folder)
    assert group.gather("mine") == {rank: rank + 10 for rank in range(4)}
    summed = "(total := torch.tensor([mine]), dist.all_reduce(total, group=half), total.item())[2]"
    assert group.gather(summed) == {0: 21, 1: 21, 2: 25, 3: 25}
    with pytest.raises(JupyterDistError, match="all_reduce needs all 4 ranks"):
        group.run("everywhere()", "0", ask_first=True)
    group.resize(2, others="keep")
    with pytest.raises(JupyterDistError, match="has 4 ranks, and this group has 2"):
        group.restore("four", folder=folder)


def test_a_program_that_is_interrupted_while_it_waits_for_a_save_ends_the_save(group, folder):
    group.run("class Slow:\n    def __reduce__(self):\n        import time; time.sleep(1000)\nif rank: slow = Slow()")
    saving = group._loop._begun(group._group.save("late", folder=folder))
    until(lambda: group.status().ranks[1].state == "busy")
    saving.cancel()  # as KeyboardInterrupt in a blocking call does
    until(lambda: [rank.state for rank in group.status().ranks] == ["idle", "idle"])
    assert group.saves(folder) == []


BESIDE = """
import logging, os, random, sys
from random import shuffle
os.chdir({place!r})
import own_config
from torch.distributed.optim import ZeroRedundancyOptimizer
own_config.lr = 0.5
own_config.Cfg.rate = 7 + rank
own_config.seen.append(rank)
env, seen = os.environ, own_config.seen
torch.manual_seed(0)
net = torch.nn.Linear(2, 2)
zero = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=0.1)
def step():
    net(torch.ones(1, 2)).sum().backward(); zero.step(); zero.zero_grad()
    return net.weight.tolist()
step()
said = []
class Keep(logging.Handler):
    def emit(self, record): said.append(record.getMessage())
logging.getLogger("own").addHandler(Keep())
"""
LOOK_BESIDE = (
    "(own_config.scaled(), own_config.Cfg().rate, seen is own_config.seen and seen, env is os.environ, step(), "
    "logging.getLogger('own').warning('x'), said, random.seed(3), [l := list(range(9)), shuffle(l)][0])"
)


def test_modules_of_users_loggers_and_objects_of_the_process_go_on_in_new_ranks(group, folder, tmp_path):
    module = tmp_path / "own_config.py"
    module.write_text("lr = 0.1\nseen = []\nclass Cfg:\n    rate = 1\ndef scaled():\n    return lr * 10\n")
    group.run(BESIDE.format(place=str(tmp_path)), check=True)
    group.run("lines = (line for line in 'ab')", check=True)
    preview = group.preview_save()
    assert ([one.name for one in preview.skipped], preview.notes) == (["lines"], [])
    group.save("beside", folder=folder)
    expected = group.gather(LOOK_BESIDE)
    group.restart()
    assert "lines" in repr(group.restore("beside", folder=folder))
    assert group.gather(LOOK_BESIDE) == expected
    module.write_text("lr = 0.2\nseen = []\n")
    group.restart()
    restored = repr(group.restore("beside", folder=folder))
    assert "The file of the module 'own_config' has changed since the save" in restored
    assert "own_config.Cfg.rate was not restored" in restored
    assert group.gather("own_config.lr") == {0: 0.5, 1: 0.5}
