"""A save or restore whose agent fails in the middle: it ends at once, names what failed, and the ranks are free."""

import shutil
import uuid

import pytest
from extending.packages import agent_with_faults
from libraries import FSDP as LIBRARIES  # noqa: F401 (of the groups)

from jupyter_dist.parts.saves.folder.layout import SavesFolder
from jupyter_dist.parts.saves.folder.record import names, read_record
from jupyter_dist.parts.saves.transfer import TransferSpec
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.specs import ExecutionSpec

LONG = 3600.0  # the limit of each transfer: a test that waits for it fails
OF_AGENT = "jupyter_dist.parts.saves.agent"

TRAIN = """
import gc, glob, os, shutil, time, torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP
torch.manual_seed(7)
model, sharded = DDP(nn.Linear(4, 2)), nn.Linear(6, 6)
fully_shard(sharded, mesh=init_device_mesh("cpu", (world_size,)))
optimizer = torch.optim.AdamW([*model.parameters(), *sharded.parameters()], lr=0.1)
def step():
    loss = model(torch.ones(3, 4) + rank).square().mean() + sharded(torch.ones(2, 6) * rank).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
losses = [step() for _ in range(2)]
"""
SHOW = "import json; print(json.dumps([losses, sharded.weight.to_local().tolist(), model.module.weight.tolist()]))"


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """A trained group, and a part of another package that can put faults into its agent."""
    with agent_with_faults(tmp_path_factory.mktemp("failing")) as client:
        assert client.run(TRAIN)["state"] == "ok"
        yield client


def begun(agent, action, folder):
    """Queue a save or restore of all ranks; return its execution."""
    wanted = TransferSpec(action, str(folder), "x", timeout_seconds=LONG).to_dict()
    execution_id = f"e-{uuid.uuid4().hex[:8]}"
    spec = ExecutionSpec(execution_id, [0, 1], silent=True).to_dict()
    header, _ = agent.request("transfer", b"# transfer", execution={**spec, "transfer": wanted})
    agent.executions.setdefault(execution_id, header["execution"])
    return execution_id


def transfer(agent, action, folder):
    return agent.ended(begun(agent, action, folder))


def shown(agent):
    """What the ranks have: losses and weights, of DDP and of FSDP2."""
    ended = agent.run(SHOW)
    assert ended["state"] == "ok"
    return [agent.text(rank, ended["id"]) for rank in (0, 1)]


@pytest.fixture
def saved(agent, tmp_path):
    """A folder with a save of now, after which the ranks have trained on."""
    folder = SavesFolder(tmp_path / "saves")
    assert transfer(agent, "save", folder.path)["state"] == "ok"
    agent.now = shown(agent)
    assert agent.run("losses.append(step())")["state"] == "ok"
    return folder


FAULTS = {
    "a message of a rank": {"what": f"{OF_AGENT}.transaction:Transaction.take"},
    "the second message": {"what": f"{OF_AGENT}.transaction:Transaction.take", "after": 1},
    "what is shown": {"what": f"{OF_AGENT}.transfers:Transfers._show"},
    "what is shown later": {"what": f"{OF_AGENT}.transfers:Transfers._show", "after": 2},
    "the begin": {"what": f"{OF_AGENT}.transfers:Transfers._begun"},
    "an end of a rank": {"what": f"{OF_AGENT}.transfers:Transfers._why_ended"},
    "the decision": {"what": f"{OF_AGENT}.transfers:_keep"},
    "an iterator in the decision": {"what": f"{OF_AGENT}.jobs:SaveJob.keep", "raises": "stop"},
    "the check of a restore": {"what": f"{OF_AGENT}.jobs:RestoreJob.keep", "raises": "stop"},
    "the limit of the folder": {"what": f"{OF_AGENT}.jobs:SaveJob.exceeds"},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_error_in_a_transfer_ends_that_one_and_no_other_again_and_again(agent, saved, fault):
    good, before = read_record(saved, "x"), shown(agent)
    agent.request("break", **FAULTS[fault])
    failed = 0
    for action in ("save", "restore", "save"):
        ended = transfer(agent, action, saved.path)
        if ended["state"] != "ok":
            failed += 1
            error = ended["error"]
            assert error["code"] == ("not_saved" if action == "save" else "not_restored")
            assert "as the test wants" in error["message"], error
        elif action == "save":
            good = read_record(saved, "x")
        else:
            before = shown(agent)
        assert shown(agent) == before
        assert read_record(saved, "x") == good
    agent.request("mend")
    if fault != "an end of a rank":  # which comes when one has failed
        assert failed
    assert "is off" not in (agent.group["note"] or "")
    assert transfer(agent, "save", saved.path)["state"] == "ok"
    assert agent.run("losses.append(step())")["state"] == "ok"
    assert transfer(agent, "restore", saved.path)["state"] == "ok"
    assert shown(agent) == before


def test_what_fails_after_the_decision_does_not_undo_it(agent, saved):
    """Ranks have the decision first: a restore counts, and what could not be noted is named."""
    agent.request("break", what="jupyter_dist.agent.group.cells.dispatch:Dispatcher.count_on")
    for _ in range(2):
        assert agent.run("losses.append(step())")["state"] == "ok"
        assert transfer(agent, "restore", saved.path)["state"] == "ok"
        assert shown(agent) == agent.now
        assert (
            "The restore of 'x' counts, but the agent failed: RuntimeError('as the test wants')" in agent.group["note"]
        )
    agent.request("mend")


HOOKS = {
    "SavesAgent.received": "a message of a rank",
    "SavesAgent.changed": "the state of an execution",
    "PeriodicSaves.look": "the time",
    "Transfers.interrupt": "an interrupt",
}
MODULES = {"SavesAgent": "part", "Transfers": "transfers", "PeriodicSaves": "periodic"}


@pytest.mark.parametrize("hook", HOOKS)
def test_a_part_that_fails_ends_its_transfers_refuses_others_and_begins_anew_with_the_group(agent, saved, hook):
    good, before = read_record(saved, "x"), shown(agent)
    for action in ("save", "restore"):
        agent.run(
            "go = False\nclass Slow:\n    def __reduce__(self):\n        while not go: time.sleep(0.01)\n        return int, ()"
        )
        slow = hook in ("Transfers.interrupt", "PeriodicSaves.look")
        if slow and action == "save":
            agent.run("slow = Slow() if rank else None")
            running = begun(agent, action, saved.path)
            agent.wait(lambda: agent.executions[running]["state"] == "running")
        agent.request("break", what=f"{OF_AGENT}.{MODULES[hook.split('.')[0]]}:{hook}")
        if not (slow and action == "save"):
            running = begun(agent, action, saved.path)
        if hook == "Transfers.interrupt":
            agent.request("interrupt", ranks=[0, 1])
        ended = agent.ended(running)
        agent.wait(lambda: "The part 'saves' is off in this group" in (agent.group["note"] or ""))
        if ended["state"] == "error":
            assert "The part 'saves' is off in this group, because it failed: RuntimeError" in ended["error"]["message"]
        agent.request("mend")
        with pytest.raises(JupyterDistError, match=r"is off in this group.*Restart the group"):
            begun(agent, action, saved.path)
        agent.run("if rank: del slow") if slow and action == "save" else None
        if ended["state"] != "ok":
            assert read_record(saved, "x") == good
            assert shown(agent) == before
        assert agent.run("losses.append(step())")["state"] == "ok"
        agent.request("restart")
        agent.wait_group("ready")
        assert agent.run(TRAIN)["state"] == "ok"
        assert transfer(agent, "restore", saved.path)["state"] == "ok"
        before = shown(agent)
        assert transfer(agent, "save", saved.path)["state"] == "ok"
        good = read_record(saved, "x")


MEDDLE = """
class Meddles:
    def __reduce__(self):
        if rank == 1:
            while len(glob.glob({folder!r} + "/saves/x/*/index-0.json")) < 2: time.sleep(0.01)  # rank 0 is prepared
            {code}
        return int, ()
meddles = Meddles()
"""
# What happens to the folder while rank 1 saves, and what the user reads then.
IN_THE_MIDDLE = {
    "no folder": ("shutil.rmtree({folder!r})", "cannot write in"),
    "no files of rank 0": (
        "[os.remove(os.path.join(at, one)) for at, _, found in os.walk({folder!r}) for one in found if one == 'index-0.json']",
        "",
    ),
    "a folder where the save is named": (
        "os.remove({folder!r} + '/saves/x/save.json'); os.mkdir({folder!r} + '/saves/x/save.json')",
        "could not be completed in",
    ),
    "a message that nobody can read": (
        "next(o for o in gc.get_objects() if type(o).__name__ == 'Outbox').send({{'t': 'part', 'part': 'saves'}}, b'{{\"state\": []}}')",
        "The messages of rank 1 cannot be read.",
    ),
    "a report without a checksum": (
        "next(o for o in gc.get_objects() if type(o).__name__ == 'Outbox').send({{'t': 'part', 'part': 'saves'}}, b'{{\"state\": \"prepared\", \"total\": 1, \"done\": 1, \"written\": 1}}')",
        "digest",
    ),
}


@pytest.mark.parametrize("what", IN_THE_MIDDLE)
def test_a_folder_or_a_rank_that_goes_wrong_in_the_middle_again_and_again(agent, tmp_path, what):
    code, words = IN_THE_MIDDLE[what]
    folder = SavesFolder(tmp_path / "saves")
    for _ in range(3):
        shutil.rmtree(folder.path, ignore_errors=True)
        assert transfer(agent, "save", folder.path)["state"] == "ok"
        assert (
            agent.run(MEDDLE.format(folder=str(folder.path), code=code.format(folder=str(folder.path))))["state"]
            == "ok"
        )
        before = shown(agent)
        ended = transfer(agent, "save", folder.path)
        assert ended["state"] == "error", (ended, read_record(folder, "x").model["skipped"])
        assert (ended["state"], ended["error"]["code"]) == ("error", "not_saved"), ended
        assert words in ended["error"]["message"], ended["error"]
        assert shown(agent) == before
        assert agent.run("del meddles; losses.append(step())")["state"] == "ok"
        other = SavesFolder(tmp_path / "other")
        assert transfer(agent, "save", other.path)["state"] == "ok"
        assert names(other) == ["x"]
        assert "is off" not in (agent.group["note"] or "")
