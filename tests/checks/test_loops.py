"""Loops with a planted error, and innocent ones, on real ranks: what the cell has in `checks`."""

from __future__ import annotations

import random

import pytest
from agent.harness import AgentProcess
from leaks import nothing_left
from libraries import FSDP, preloading

from . import kinds, unseen

# One for each way in which a rank observes; benchmarks/figures/checks.py has all.
WRONG = (
    "a loader without a sampler",
    "set_epoch is forgotten",
    "a method of the module inside of DDP",
    "a model that is unwrapped before it is trained",
    "the optimizer of an earlier model",
    "a layer that was added after the wrap",
    "a checkpoint on rank 0 alone",
    "by hand, without the last layer",
    "zero_grad is forgotten",
    "zero_grad in each pass of an accumulation",
    "zero_grad before the step",
    "a layer in no group of the optimizer",
    "a list of files that each rank has in another order",
    "a rank that never steps",
    "an evaluation in training mode",
    "a batch with NaN on rank 1",
    "padding that an evaluation counts",
    "a GradScaler that skips every step",
    "a body that is detached from its head",
    "noise that is alike on all ranks",
    "a seed of NumPy in each worker",
    "labels that are numbered in the order of a set",
    "a checkpoint that all ranks write",
    "a loss that is averaged in place of gradients",
    "FSDP2 that never averages",
    "a buffer that one rank loads",
    "tientrandinh/Revisiting-Reverse-Distillation#12: two optimizers set their gradients to zero in each pass",
    "NVIDIA/Megatron-LM#1685: an example without the call that averages gradients",
    "yangxiaofeng/LODS#2: learnable text embeddings are not among the parameters of the optimizer",
    "jwohlwend/boltz#204: a part of a frozen module that learns, and is not given to the optimizer",
    "pytorch/torchtitan#3575: a trainer that sets gradients to zero in each call of forward_backward()",
    "Hsintien-Ng/idinvert_pytorch-reproduced#1: the gradients of the discriminator are never set to zero",
)
RIGHT = (
    "a model that is unwrapped after it was trained, and tuned on each rank by itself",
    "FSDP2, whose gradients are set to zero in place",
    "an evaluation whose padding is cut off",
    "a head for each of two tasks, in turns",
    "workers with a seed by rank",
    "local SGD with no_sync of DDP",
    "a GAN",
    "tensor parallelism, whose gradients are set to zero in place",
    "an accumulation with FSDP2, which averages before the step",
    "statistics and a queue of samples that each rank has by itself",
    "federated averaging of plain models from one seed, each on its part by a DistributedSampler, after each epoch",
    "pytorch/torchtitan: an accumulation with FSDP2, whose gradients are set to zero at the begin of a step",
)


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    with nothing_left():
        process = AgentProcess(tmp_path_factory.mktemp("checks") / "g", env=preloading(FSDP))
        client = process.client()
        client.start(2)
        yield client
        process.__exit__()


def run(group, kind):
    for ranks, code in (("all", kinds.FIRST), *kind.before):
        before = group.run(code, (0, 1) if ranks == "all" else (int(ranks),))
        assert before["state"] == "ok", group.text(0, before["id"], "stderr")
    ended = group.run(kind.code)
    assert ended["state"] == "ok", [group.text(rank, ended["id"], "stderr") for rank in (0, 1)]
    assert not [text for _, text in group.records if b"checks ended" in text]  # in the log of a rank
    return ended.get("checks", [])


@pytest.mark.parametrize("name", WRONG)
def test_an_error_is_named_with_its_ranks_and_its_line(group, name):
    (kind,) = (one for one in (*kinds.WRONG, *unseen.WRONG) if one.name == name)
    checks = run(group, kind)
    assert [(check["kind"], check["ranks"]) for check in checks] == [(kind.kinds[0], kind.ranks)]
    assert not kind.line or any(part in checks[0]["line"]["code"] for part in kind.line)
    assert checks[0]["evidence"]


def test_a_difference_names_the_cell_that_a_rank_has_not_run(group):
    (kind,) = (one for one in kinds.WRONG if one.name == "a checkpoint on rank 0 alone")
    (check,) = run(group, kind)
    assert [line for line in check["evidence"] if line.startswith("rank 1 has not run cell [")]
    assert "Catch up" in check["advice"]


@pytest.mark.parametrize("name", RIGHT)
def test_an_innocent_loop_is_not_accused(group, name):
    (kind,) = (one for one in (*kinds.RIGHT, *unseen.RIGHT) if one.name == name)
    assert run(group, kind) == []


# A way to train on several ranks each; the frameworks use these.
WAYS = (
    "DDP",
    "an accumulation with no_sync",
    "local SGD with torch's hook",
    "uneven inputs with join",
    "a GradScaler that begins too high",
    "compiled",
    "ZeRO",
    "FSDP2",
    "tensor parallelism",
    "pipeline parallelism of torch",
    "pipeline parallelism by hand",
    "gradients averaged by hand",
)
WAYS_OF_FOUR = ("HSDP", "FSDP2 over tensor parallelism")
# Before a loop: all of its losses are kept, and there is time for a look at some of its steps, not for hooks at all.
KEEPS = """random.seed(rank)
torch.manual_seed(0)
losses, plain_loss = [], loss_of
def loss_of(out, y=1.0):
    loss = plain_loss(out, y)
    losses.append(loss.detach())
    return loss
def pause():
    time.sleep(0.006)
"""
# Every bit of the losses (pipeline stages give the first one no numbers), of what the optimizer holds, and of random states.
BITS = """def bits(tensor):
    tensor = getattr(tensor.detach(), '_local_tensor', tensor.detach())
    return tensor.reshape(-1).contiguous().view(torch.uint8).numpy().tobytes().hex()
held = [p for group in opt.param_groups for p in group['params']]
states = [one for p in held for one in opt.state.get(p, {}).values() if isinstance(one, torch.Tensor) and one.numel()]
print(len(losses), [bits(one) for one in (*losses[1:], *held, *states)], random.random(), bits(torch.rand(1)), bits(torch.rand(1, generator=mine)))
"""


def bits_of(group, name):
    (kind,) = (one for one in kinds.RIGHT if one.name == name)
    ranks, texts = range(kind.num_ranks), []
    for is_on in (False, True, False):  # what runs first imports and compiles, and draws from `random` for that
        group.request("set_checks", on=is_on)
        for code in (kinds.FIRST + KEEPS, kind.code, BITS):
            ended = group.run(code, tuple(ranks))
            assert ended["state"] == "ok", group.text(0, ended["id"], "stderr")
            assert ended.get("checks", []) == []
        texts.append([group.text(rank, ended["id"]) for rank in ranks])
    group.request("set_checks", on=True)
    return texts[1:]


@pytest.mark.parametrize("name", WAYS)
def test_checks_change_no_bit(group, name):
    checked, unchecked = bits_of(group, name)
    assert checked == unchecked
    assert all(len(text) > 100 for text in checked)


def test_checks_change_no_bit_on_a_mesh_of_two_dimensions(tmp_path):
    with AgentProcess(tmp_path / "g", env=preloading(FSDP)) as client:
        client.start(4)
        for name in WAYS_OF_FOUR:
            checked, unchecked = bits_of(client, name)
            assert checked == unchecked, name
            assert all(len(text) > 100 for text in checked)


def test_a_long_cell_leaves_random_numbers_as_they_are(group):
    """Watching the pace samples at random times, by numbers of its own."""
    ended = group.run("import random, time\nrandom.seed(3)\ntime.sleep(2.5)\nprint(random.random())")
    assert group.text(0, ended["id"]) == f"{random.Random(3).random()}\n"


def test_checks_that_are_off_find_nothing(group):
    (kind,) = (one for one in kinds.WRONG if one.name == WRONG[0])
    group.request("set_checks", on=False)
    assert run(group, kind) == []
    group.request("set_checks", on=True)
    assert run(group, kind) != []


def test_a_group_that_was_started_without_checks_has_none(tmp_path):
    with AgentProcess(tmp_path / "g", env=preloading(FSDP)) as client:
        client.start(2, options={"checks": False})
        assert client.group["parts"]["checks"] == {"on": False}
        (kind,) = (one for one in kinds.WRONG if one.name == WRONG[0])
        assert run(client, kind) == []
        client.request("set_checks", on=True)
        assert run(client, kind) != []
