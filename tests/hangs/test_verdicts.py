"""The verdict on cells that do not end: right for each kind of hang, and none for cells that end by themselves."""

from __future__ import annotations

import json

import pytest
from agent.harness import AgentProcess
from leaks import nothing_left
from waits import PATIENCE

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import parse_ranks

from .kinds import HANGS, INNOCENT

HANGING = "import torch.distributed as dist\n\ndef reduce(tensor):\n    dist.all_reduce(tensor)\n"


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    place = tmp_path_factory.mktemp("hangs")
    (place / "hanging.py").write_text(HANGING)
    (place / "slow_import.py").write_text("import time; time.sleep(3)\n")
    with nothing_left():
        process = AgentProcess(place / "g")
        client = process.client()
        client.start(4, cwd=str(place))
        yield client
        process.__exit__()


def ranks_of(text):
    return list(parse_ranks(text, 4)) if text else []


def ranks_in(parts):
    return sorted(rank for part in parts for rank in ranks_of(part["ranks"]))


def verdict_of(group, execution_id):
    return group.executions[execution_id].get("verdict")


def cannot_end(verdict, waiting):
    return verdict is not None and verdict["kind"] == "cannot_end" and ranks_in(verdict["waiting"]) == waiting


@pytest.mark.parametrize("kind", HANGS, ids=lambda kind: kind.name.replace(" ", "-"))
def test_a_hang_is_named(group, kind):
    if kind.first:
        group.run(kind.first, [0, 1, 2, 3])
    hung = group.submit(kind.code, ranks_of(kind.ranks))
    try:
        # On a busy machine the first ranks that wait are told before the last has come to its collective.
        group.wait(lambda: cannot_end(verdict_of(group, hung), ranks_of(kind.waiting)))
        verdict = verdict_of(group, hung)
        print(verdict["message"])
        assert verdict["reason"] == kind.reason
        assert ranks_in(verdict["needed"]) == ranks_of(kind.needed)
        assert kind.says in verdict["message"]
    finally:
        group.request("interrupt", ranks=[0, 1, 2, 3])
    assert "verdict" not in group.ended(hung)
    assert group.run("dist.barrier()", [0, 1, 2, 3])["state"] == "ok"


OF_A_PAIR = """
pair = dist.new_group([0, 1])
if rank < 2:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1), process_group=pair)
    loss = model(torch.ones(1, 2)).sum()
"""


def test_a_subgroup_that_hangs_again_names_the_same_rank(group):
    for _ in range(2):
        group.run(OF_A_PAIR, [0, 1, 2, 3])
        hung = group.submit("if rank == 0: loss.backward()", [0, 1, 2, 3])
        group.wait(lambda hung=hung: cannot_end(verdict_of(group, hung), [0]))
        verdict = verdict_of(group, hung)
        assert ranks_in(verdict["needed"]) == [1], verdict["message"]
        group.request("interrupt", ranks=[0])
        group.ended(hung)
        assert group.run("dist.barrier()", [0, 1, 2, 3])["state"] == "ok"


@pytest.mark.parametrize(
    ("asks", "text", "says"),
    [
        ("input('go on? ')", "yes", "where it asks for input"),
        ("breakpoint()", "c", "rank 0 is stopped in the debugger at line 1 of cell"),
    ],
)
def test_a_rank_that_asks_or_is_debugged_is_innocent(group, asks, text, says):
    cell = group.submit(f"if rank == 0: {asks}\ndist.barrier()", [0, 1, 2, 3], allow_stdin=True)
    group.wait(lambda: verdict_of(group, cell) is not None)
    verdict = verdict_of(group, cell)
    assert (verdict["kind"], ranks_in(verdict["needed"])) == ("waits", [0])
    assert says in verdict["message"]
    content = json.dumps({"text": text}).encode()
    group.request("to_rank", content, kind="input", execution_id=cell, ranks=None, seq=None)
    assert group.ended(cell)["state"] == "ok"


@pytest.mark.parametrize("kind", INNOCENT, ids=lambda kind: kind.name.replace(" ", "-"))
def test_an_innocent_cell_is_not(group, kind):
    if kind.first:
        group.run(kind.first, [0, 1, 2, 3])
    seen = []
    running = group.submit(kind.code, ranks_of(kind.ranks))

    def ended():
        seen.append(verdict_of(group, running))
        return group.executions[running]["state"] not in ("queued", "running")

    group.wait(ended, PATIENCE)
    errors = [payload[:400] for header, payload in group.records if header.get("execution_id") == running]
    assert group.executions[running]["state"] == "ok", errors
    assert [verdict for verdict in seen if verdict and verdict["kind"] == "cannot_end"] == []


ON_TWO = "print('begun')\nones = torch.ones(4)\ndist.all_reduce(ones)\nprint('sum', ones[0].item())"


def hang(group, code=ON_TWO, ranks=(0, 1)):
    """A cell that the other ranks did not get; what could end it is known."""
    hung = group.submit(code, ranks)
    group.wait(lambda: "could_join" in (verdict_of(group, hung) or {}))
    return hung


def stacks_of(group):
    header, _ = group.request("stacks")
    return header["stacks"]


def test_the_ranks_that_a_cell_waits_for_get_it_too(group):
    hung = hang(group)
    assert verdict_of(group, hung)["could_join"] == "2-3"
    waits, idle = stacks_of(group)
    assert (waits["ranks"], waits["state"], idle["ranks"], idle["state"]) == ("0-1", "waits", "2-3", "idle")
    assert "all_reduce" in waits["call"]
    assert [frame["code"] for frame in waits["frames"] if not frame["is_library"]] == ["dist.all_reduce(ones)"]
    assert any(frame["is_library"] for frame in waits["frames"])
    group.request("extend", execution_id=hung, ranks=[2, 3])
    group.request("extend", execution_id=hung, ranks=[2, 3])  # another page had the same idea
    ended = group.ended(hung)
    assert (ended["state"], ended["ranks"]) == ("ok", "0-3")
    assert "verdict" not in ended
    assert [group.text(rank, hung) for rank in range(4)] == ["begun\nsum 4.0\n"] * 4
    begun = [
        header["ranks"]
        for header, _ in group.records
        if (header["kind"], header.get("execution_id")) == ("begin", hung)
    ]
    assert begun == ["0-1", "2-3"]
    assert group.run("dist.barrier()", [0, 1, 2, 3])["state"] == "ok"


def test_ranks_that_could_not_help_are_not_offered(group):
    for code, ranks in (("if rank == 0: dist.barrier()", [0, 1, 2, 3]), ("if rank == 0: dist.barrier()", [0, 1])):
        hung = group.submit(code, ranks)
        group.wait(lambda hung=hung: (verdict_of(group, hung) or {}).get("kind") == "cannot_end")
        assert "could_join" not in verdict_of(group, hung)
        group.request("interrupt", ranks=[0])
        group.ended(hung)
        group.run("dist.barrier()", [0, 1, 2, 3])


def test_ranks_that_are_busy_or_dead_cannot_join(group):
    sleeping = group.submit("import time; time.sleep(1000)", [3])
    alone = group.submit("dist.all_reduce(torch.ones(1))", [0, 1])
    refused(group, "group_not_ready", alone, [2, 3])
    group.request("interrupt", ranks=[0, 1, 3])
    group.ended(sleeping)
    group.ended(alone)
    refused(group, "group_not_ready", alone, [2, 3])
    group.run("dist.barrier()", [0, 1, 2, 3])
    hung = hang(group)
    sleeping = group.submit("import time; time.sleep(1000)", [2])  # unlike the hung cell, the death does not end it
    group.wait(lambda: group.executions[sleeping]["state"] == "running")
    group.request("kill", rank=3)
    refused(group, "rank_dead", sleeping, [2, 3])
    group.ended(hung)  # gloo notices the death, or the next look
    group.request("interrupt", ranks=[2])
    group.ended(sleeping)
    group.request("replace", key=None)
    group.wait_group("ready")
    assert group.run("dist.barrier()", [0, 1, 2, 3])["state"] == "ok"


def refused(group, code, execution_id, ranks):
    with pytest.raises(JupyterDistError) as caught:
        group.request("extend", execution_id=execution_id, ranks=ranks)
    assert caught.value.code == code
