"""The verdict on cells that do not end: right for each kind of hang, and none for cells that end by themselves."""

from __future__ import annotations

import pytest
from agent.harness import AgentProcess
from leaks import nothing_left
from waits import PATIENCE

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


@pytest.mark.parametrize("kind", HANGS, ids=lambda kind: kind.name.replace(" ", "-"))
def test_a_hang_is_named(group, kind):
    if kind.first:
        group.run(kind.first, [0, 1, 2, 3])
    hung = group.submit(kind.code, ranks_of(kind.ranks))
    try:
        group.wait(lambda: (verdict_of(group, hung) or {}).get("kind") == "cannot_end")
        verdict = verdict_of(group, hung)
        print(verdict["message"])
        assert verdict["reason"] == kind.reason
        assert ranks_in(verdict["waiting"]) == ranks_of(kind.waiting)
        assert ranks_in(verdict["needed"]) == ranks_of(kind.needed)
        assert kind.says in verdict["message"]
    finally:
        group.request("interrupt", ranks=[0, 1, 2, 3])
    assert "verdict" not in group.ended(hung)
    assert group.run("dist.barrier()", [0, 1, 2, 3])["state"] == "ok"


def test_a_rank_that_asks_for_input_is_innocent(group):
    cell = group.submit("if rank == 0: input('go on? ')\ndist.barrier()", [0, 1, 2, 3], allow_stdin=True)
    group.wait(lambda: verdict_of(group, cell) is not None)
    verdict = verdict_of(group, cell)
    assert (verdict["kind"], ranks_in(verdict["needed"])) == ("waits", [0])
    assert "where it asks for input" in verdict["message"]
    content = b'{"text": "yes"}'
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
