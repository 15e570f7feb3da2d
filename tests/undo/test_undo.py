"""Undo of cells on real ranks: by the client, by magics and on the command line; models of DDP and FSDP2."""

from __future__ import annotations

import concurrent.futures

import pytest

from jupyter_dist.client import Group, JupyterDistError
from jupyter_dist.protocol.operations import BY_NAME

TRAINING = """
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
model = {}
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
torch.manual_seed(rank)
losses, ids = [], [id(p) for p in model.parameters()]
def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 4)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
def state():
    local = [getattr(p, '_local_tensor', p).tolist() for p in model.parameters()]
    return local, losses, [id(p) for p in model.parameters()] == ids
"""
LAST = ["a.append(rank); t.resize_(1); len(a)"]
MODELS = {
    "ddp": "DistributedDataParallel(net)",
    "fsdp": "fully_shard(net, mesh=init_device_mesh('cpu', (world_size,)))",
}

MESH = "init_device_mesh('cpu', (2, 2), mesh_dim_names=('replicate', 'shard'))"
HSDP = f"fully_shard(net, mesh=(mesh := {MESH}))"
# As in torch's tutorial, with the default mesh.
BLOCKS = "[fully_shard(net[0]), fully_shard(net[2]), fully_shard(net)][-1]"


@pytest.fixture
def undoable(group: Group):
    """The group, whose cells keep undo."""
    group.keep_undo = True
    yield group
    group.keep_undo = False
    group.run("pass")


@pytest.mark.parametrize("kind", MODELS)
def test_training_is_undone_and_repeated_with_the_same_losses(undoable: Group, kind: str) -> None:
    group = undoable
    group.run(TRAINING.format(MODELS[kind]), check=True)
    group.run("train(1)", check=True)  # what is made at the first step (buckets, the optimizer's state) stays
    before = group.gather("repr(state())")
    seen = []
    for _ in range(3):
        for _ in range(2):
            assert group.run("train(2)", check=True).execution["undo"]["not_kept"] == []
        seen.append(group.gather("repr(state())"))
        group.undo(2)
        assert group.gather("repr(state())") == before
        group.redo()
        group.redo()
        assert group.gather("repr(state())") == seen[-1]
        group.undo(2)
        assert group.gather("repr(state())") == before
    assert seen[0] == seen[1] == seen[2] != before
    group.undo()  # the first step, too
    assert group.gather("losses") == {0: [], 1: []}
    group.run("train(1)", check=True)
    assert group.gather("repr(state())") == before


def test_a_failed_and_an_interrupted_cell_are_undone(undoable: Group) -> None:
    group = undoable
    group.run("import time; a = [1]; t = torch.zeros(2)")
    assert group.run("a.append(2); t += 1; b = 1; 1 / 0").state == "error"
    assert "Undone: cell [" in group.undo().text
    assert group.gather("[a, t.tolist(), 'b' in globals()]") == {rank: [[1], [0.0, 0.0], False] for rank in (0, 1)}
    cell = group.submit("a.append(2)\nprint('here', flush=True)\ntime.sleep(1000)")
    for result in cell.stream():
        if "here" in result.text:
            group.interrupt()
            break
    assert cell.result().state == "interrupted"
    cell.undo()
    assert group.gather("a") == {0: [1], 1: [1]}


def test_cells_of_some_ranks_are_undone_in_order(undoable: Group) -> None:
    group = undoable
    group.run("a = []")
    first = group.submit("a.append(1)", "0")
    second = group.submit("a.append(2)", "1")
    third = group.submit("a.append(3)")
    third.result()
    assert [cell.ranks for cell in group.undoable()][:3] == ["0-1", "1", "0"]
    with pytest.raises(JupyterDistError, match="Cells ran after it") as refused:
        first.undo()
    assert refused.value.code == "cannot_undo"
    assert group.gather("a") == {0: [1, 3], 1: [2, 3]}  # of no rank, not even of one that could
    third.undo()
    second.undo()
    assert group.gather("a") == {0: [1], 1: []}
    with pytest.raises(JupyterDistError, match="has been undone"):
        second.undo()


def test_undone_cells_do_not_count(undoable: Group) -> None:
    group = undoable
    group.restart()
    group.run("kept = 1", notebook="lesson.ipynb", cell_id="c1")
    gone = group.run("gone = 1", notebook="lesson.ipynb", cell_id="c2")
    group.undo()
    executions = {execution.id: execution for execution in group.executions()}
    assert executions[gone.id].undone_at is not None
    if "drift" in BY_NAME:
        drift = group.client.ask("GET", "groups", group.id, "drift")
        assert [cell["cell_id"] for cell in drift["cells"]] == ["c1"]
    if "script" in BY_NAME:
        script = str(group.client.ask("POST", "groups", group.id, "script", body={"notebook": "lesson.ipynb"}))
        assert "kept = 1" in script
        assert "gone = 1" not in script


def test_undone_cells_are_done_again_until_a_cell_changes_something(undoable: Group) -> None:
    group = undoable
    seen = "[a, t.tolist(), globals().get('new', {}).get('a') is a]"
    group.run("a = [1]; t = torch.zeros(2)")
    first = group.submit("a.append(2); t += 1; new = {'a': a}; torch.rand(1)", notebook="lesson.ipynb", cell_id="c1")
    first.result()
    group.run("a.append(rank); t.resize_(1); len(a)")
    after = group.gather(seen)
    group.undo(2)
    assert [cell.line for cell in group.redoable()] == ["a.append(2); t += 1; new = {'a': a}; torch.rand(1)", *LAST]
    assert "1" in group.run("len(a)").text  # it looks only
    assert "Done again: cell [" in first.redo().text
    assert group.gather(seen) == {rank: [[1, 2], [1.0, 1.0], True] for rank in (0, 1)}
    assert next(one for one in group.executions() if one.id == first.id).undone_at is None
    if "script" in BY_NAME:
        script = group.client.ask("POST", "groups", group.id, "script", body={"notebook": "lesson.ipynb"})
        assert "new" in str(script)
    group.redo()
    assert group.gather(seen) == after
    group.undo(2)
    group.redo(2)
    assert group.gather(seen) == after
    group.undo()
    group.run("b = 1", "0")
    with pytest.raises(JupyterDistError, match="No undone cell can be done again"):
        group.redo()
    with pytest.raises(JupyterDistError, match="A cell ran after the undo that may have changed something"):
        group.redo(executions=[undone(group)])
    assert group.redoable() == []


def undone(group: Group) -> str:
    """Return the last cell that is undone."""
    return [one.id for one in group.executions() if one.undone_at is not None][-1]


def test_a_replaced_rank_and_a_cell_without_undo_are_refused(undoable: Group) -> None:
    group = undoable
    cell = group.submit("a = 1")
    cell.result()
    group.run("a = 2", keep_undo=False)
    with pytest.raises(JupyterDistError, match="A cell ran after it that did not keep undo"):
        cell.undo()
    assert group.undoable() == []
    with pytest.raises(JupyterDistError, match="No cell can be undone"):
        group.undo()
    cell = group.submit("a = 3")
    cell.result()
    group.kill(1)
    with pytest.raises(JupyterDistError, match="Rank 1"):
        cell.undo()
    group.replace()
    with pytest.raises(JupyterDistError, match="the rank was replaced or restarted"):
        cell.undo()
    assert group.pull("a", 0) == 3


def test_undo_waits_for_the_running_cell_and_is_refused_if_that_keeps_none(undoable: Group) -> None:
    group = undoable
    group.run("import threading; a = [1]; go = threading.Event()")
    cell = group.submit("a.append(2)")
    cell.result()
    running = group.submit("while not go.wait(0.01): pass", keep_undo=False)
    with pytest.raises(JupyterDistError, match="did not keep undo"):
        undo_while_running(group, cell, running)


def undo_while_running(group: Group, cell, running) -> None:
    """Undo a cell while another one runs, which ends meanwhile."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        undone = pool.submit(cell.undo)
        running.cancel()
        undone.result()


def test_by_magics(notebook) -> None:
    assert notebook.run("%dist_keep_undo on").text == "Cells keep undo: %dist_undo undoes the last one.\n"
    notebook.run("%%distributed\nnumbers = [1]")
    notebook.run("%%distributed\nnumbers.append(2)")
    listed = notebook.run("%dist_undo --list").text
    assert "numbers.append(2)" in listed
    assert "Undone: cell" in notebook.run("%dist_undo").text
    assert notebook.run("%%distributed\nnumbers").said == [("0-1", "[1]")]
    assert "Done again: cell" in notebook.run("%dist_redo").text
    assert notebook.run("%%distributed\nnumbers").said == [("0-1", "[1, 2]")]
    assert "No undone cell can be done again." in str(notebook.run("%dist_redo").error)
    notebook.run("%%distributed\nlarge = torch.empty((2 << 30) + 1, dtype=torch.uint8)")  # of which no page is touched
    assert "the limit is 2048 MiB" in notebook.run("%%distributed\ndel large").text
    assert notebook.run("%dist_keep_undo off").text == "Cells keep no undo.\n"


def test_a_cell_in_which_a_rank_died_is_taken_back_twice(undoable: Group) -> None:
    group = undoable
    group.restart()
    group.run(TRAINING.format(MODELS["ddp"]), check=True)
    group.run("train(2)", check=True)
    before = group.gather("repr(state())", "0")
    for _ in range(2):
        group.run("train(1)\nif rank == 1:\n    import os; os._exit(9)\ntrain(1)")
        with pytest.raises(JupyterDistError, match="Only rank 0 is left"):
            group.replace("undo")
        assert group.gather("len(losses) > 2", "0") == {0: True}  # nothing was undone
        group.replace("undo", others="copy")
        assert group.gather("repr(state())", "0") == before
        assert group.model["replaced"]["again"] == []
        assert group.gather("repr(state()[0])")[1] == group.gather("repr(state()[0])")[0]
        group.run("train(1)", check=True)
        group.undo()
        assert group.gather("repr(state())", "0") == before
    group.kill(1)  # between cells
    with pytest.raises(JupyterDistError, match="the rank died between cells"):
        group.replace("undo", others="copy")
    group.restart()


def test_a_rank_that_died_has_its_part_of_a_divided_model_again(undoable: Group) -> None:
    group = undoable
    group.restart()
    group.run(TRAINING.format(MODELS["fsdp"]), check=True)
    group.run("train(2)", check=True)
    before = group.gather("repr(state()[0])")
    expected = group.gather("repr(optimizer.state_dict()['state'][0]['exp_avg']._local_tensor)")
    for _ in range(2):
        group.run("train(1)\nif rank == 1:\n    import os; os._exit(9)\ntrain(1)")
        group.replace("undo", others="copy")
        assert group.model["replaced"]["error"] is None
        assert group.model["replaced"]["again"] == []
        assert group.gather("repr(state()[0])") == before
        assert group.gather("repr(optimizer.state_dict()['state'][0]['exp_avg']._local_tensor)") == expected
    group.run(
        "torch.manual_seed(rank)\ntrain(2)\nfull = [p.full_tensor().tolist() for p in model.parameters()]", check=True
    )
    trained = group.gather("repr(state()[0])")
    assert group.gather("full")[0] == group.gather("full")[1]
    group.undo()
    group.run("torch.manual_seed(rank)\ntrain(2)", check=True)
    assert group.gather("repr(state()[0])") == trained
    group.restart()  # a control that never died
    group.run(TRAINING.format(MODELS["fsdp"]), check=True)
    group.run("train(2)", check=True)
    group.run("torch.manual_seed(rank)\ntrain(2)", check=True)
    assert group.gather("repr(state()[0])") == trained
    group.restart()


def test_two_ranks_of_three_have_their_parts_of_a_divided_model_again_one_after_the_other(client) -> None:
    group = client.start("three", num_ranks=3, accelerator="cpu")
    group.keep_undo = True
    group.run(TRAINING.format(BLOCKS), check=True)
    group.run("train(2)", check=True)
    look = "repr((state()[0], optimizer.state_dict()['state'][0]['exp_avg']._local_tensor))"
    before = group.gather(look)
    for rank in (1, 2):
        group.run(f"train(1)\nif rank == {rank}:\n    import os; os._exit(9)\ntrain(1)")
        group.replace("undo", others="copy")
        assert (group.model["replaced"]["error"], group.model["replaced"]["again"]) == (None, [])
        assert group.gather(look) == before
    again = "torch.manual_seed(rank)\ntrain(2)\nfull = [p.full_tensor().tolist() for p in model.parameters()]"
    group.run(again, check=True)
    trained, full = group.gather(look), group.gather("full")
    assert full[0] == full[1] == full[2]
    group.undo()
    group.run(again, check=True)
    assert group.gather(look) == trained
    group.shutdown()


def test_ranks_have_their_parts_of_a_model_over_two_dimensions_again_one_after_the_other(client) -> None:
    group = client.start("four", num_ranks=4, accelerator="cpu")
    group.keep_undo = True
    group.run(TRAINING.format(HSDP), check=True)
    group.run("train(2)", check=True)
    look = "repr((state()[0], optimizer.state_dict()['state'][0]['exp_avg']._local_tensor))"
    place = (
        "repr((mesh.get_coordinate(), mesh.mesh.tolist(), mesh['shard'].get_local_rank(), mesh['shard'].mesh.tolist()))"
    )
    before, places = group.gather(look), group.gather(place)
    for rank in (1, 2):
        group.run(f"train(1)\nif rank == {rank}:\n    import os; os._exit(9)\ntrain(1)")
        group.replace("undo", others="copy")
        assert (group.model["replaced"]["error"], group.model["replaced"]["again"]) == (None, [])
        assert group.gather(look) == before
        assert group.gather(place) == places
    again = "torch.manual_seed(rank)\ntrain(2)\nfull = [p.full_tensor().tolist() for p in model.parameters()]"
    group.run(again, check=True)
    trained, full = group.gather(look), group.gather("full")
    assert full[0] == full[1] == full[2] == full[3]
    group.undo()
    group.run(again, check=True)
    assert group.gather(look) == trained
    group.shutdown()


def test_no_part_of_another_rank_is_copied_where_the_rest_differs(undoable: Group) -> None:
    group = undoable
    group.restart()
    group.run(TRAINING.format(MODELS["fsdp"]) + "class Trainer: pass\ntrainer = Trainer()\n", check=True)
    group.run("trainer.model, trainer.losses = model, losses", check=True)  # which each rank has of its own
    group.run("train(2)", check=True)
    before = group.gather("repr(state()[0])")
    group.run("train(1)\nif rank == 1:\n    import os; os._exit(9)")
    group.replace("undo", others="copy")
    assert group.model["replaced"]["again"] == []
    assert group.gather("repr(state()[0])") == before
    group.kill(1)
    group.replace("copy", others="copy")
    assert "model" in str(group.model["replaced"]["again"])
    assert "lacks the part of the rank that died" in str(group.model["replaced"]["again"])
    assert group.gather("'trainer' in globals()", "1") == {1: False}
    group.restart()


def test_what_is_divided_over_a_mesh_of_several_dimensions_is_named_where_nothing_is_taken_back(client) -> None:
    group = client.start("four", num_ranks=4, accelerator="cpu")
    group.run(TRAINING.format(HSDP), check=True)
    group.run("train(1)", check=True)
    before = group.gather("repr(state())", "0,2,3")
    group.kill(1)
    group.replace("copy", others="copy")
    assert group.gather("repr(state())", "0,2,3") == before
    again = str(group.model["replaced"]["again"])
    assert "model" in again
    assert "lacks the part of the rank that died" in again
    assert group.gather("'model' in globals()", "1") == {1: False}
    group.shutdown()


def test_what_is_divided_among_ranks_is_named_if_its_part_was_not_kept(undoable: Group) -> None:
    group = undoable
    group.restart()
    group.run(TRAINING.format(MODELS["fsdp"]), check=True)
    group.run("train(2)", check=True)
    group.run("if rank == 1:\n    import os as _os; _os._exit(9)\nlosses.append(1)")  # it does not name the model
    group.replace("undo", others="copy")
    assert "model" in str(group.model["replaced"]["again"])
    assert "lacks the part of the rank that died" in str(group.model["replaced"]["again"])
    group.restart()
