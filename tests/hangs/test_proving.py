"""A verdict is compared with what happened afterwards: what ends by itself was no hang, unless somebody acted."""

from __future__ import annotations

import pytest
from agent.harness import AgentProcess
from leaks import nothing_left

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.cells.proving import Proving
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import ExecutionSpec


def running(name="e", ranks=(0, 1)):
    execution = AgentExecution(ExecutionSpec(execution_id=name, ranks=RankSet(ranks)), b"1")
    execution.start(1)
    return execution


def outcome(proofs):
    model = proofs.model()
    return model["verdicts"][-1]["outcome"], model["shown"], model["refuted"]


def test_a_cell_that_cannot_end_and_ends_is_a_refuted_verdict():
    proofs, execution = Proving(), running()
    proofs.hang_shown(execution, "Rank 0 waits.", ["rank 0: waits", "rank 1: idle"])
    assert outcome(proofs) == ("open", 1, 0)
    assert proofs.model()["verdicts"][0]["witnesses"] == ["rank 0: waits", "rank 1: idle"]
    execution.ranks_ended([0, 1], "ok", [1.0, 1.0])
    execution.finish()
    proofs.hang_gone(execution)
    proofs.hang_gone(execution)
    assert outcome(proofs) == ("refuted", 1, 1)


def test_a_cell_that_goes_on_is_a_refuted_verdict():
    proofs, execution = Proving(), running()
    proofs.hang_shown(execution, "Rank 0 waits.", [])
    proofs.hang_gone(execution)
    assert outcome(proofs) == ("refuted", 1, 1)


@pytest.mark.parametrize("end", ["interrupt", "another cell", "more ranks", "a death", "another verdict"])
def test_what_ends_after_an_act_refutes_nothing(end):
    proofs, execution = Proving(), running()
    proofs.hang_shown(execution, "Rank 0 waits.", [])
    if end == "interrupt":
        execution.ranks_ended([0, 1], "interrupted", [1.0, 1.0])
        execution.finish()
    elif end == "another cell":
        proofs.acted(besides=running("other"))
    elif end == "more ranks":
        execution.extend([2])
    elif end == "a death":
        execution.ranks_ended([1], "rank_died", [None])
    else:
        proofs.hang_shown(execution, "Rank 0 waits for rank 1, which is dead.", [])
    proofs.acted(besides=execution)
    proofs.hang_gone(execution)
    assert proofs.model()["verdicts"][0]["outcome"] == "not_refuted"


INPUT = {"kind": "input", "ranks": "0-1", "message": "Input.", "evidence": ["60 %"]}


@pytest.mark.part("slow")
@pytest.mark.parametrize("num_looks", [3, 300])
def test_a_cause_of_slowness_that_the_next_looks_do_not_find_is_refuted(num_looks):
    """However far apart looks are: they are seldom later in a cell, and on a busy machine."""
    from jupyter_dist.parts.slow.agent.judge import LOOKS_TO_HIDE

    proofs, execution = Proving(), running()
    proofs.causes_shown(execution, [INPUT], num_looks, ["rank 0: loads 60%"])
    assert proofs.model()["verdicts"][0]["witnesses"] == ["60 %", "rank 0: loads 60%"]
    proofs.causes_shown(execution, [{**INPUT, "message": "Input, more."}], num_looks + 1)
    assert outcome(proofs) == ("open", 1, 0)
    proofs.causes_shown(execution, [], num_looks + LOOKS_TO_HIDE)
    assert outcome(proofs) == ("refuted", 1, 1)
    proofs.causes_shown(execution, [INPUT], num_looks + 10)
    proofs.causes_shown(execution, [], num_looks + 20)
    assert outcome(proofs) == ("not_refuted", 2, 1)


def test_a_cause_of_slowness_that_is_gone_with_its_cell_is_not_refuted():
    proofs, execution = Proving(), running()
    proofs.causes_shown(execution, [INPUT], 3)
    execution.ranks_ended([0, 1], "ok", [1.0, 1.0])
    execution.finish()
    proofs.causes_shown(execution, [], 3)
    assert outcome(proofs) == ("not_refuted", 1, 0)


def test_a_verdict_that_names_another_rank_soon_after_refutes_the_first():
    proofs, execution = Proving(), running()
    cause = {"kind": "straggler", "ranks": "0", "message": "Rank 0 is last.", "evidence": []}
    proofs.causes_shown(execution, [cause], 3)
    proofs.causes_shown(execution, [{**cause, "ranks": "1", "message": "Rank 1 is last."}], 5)
    assert [one["outcome"] for one in proofs.model()["verdicts"]] == ["refuted", "open"]


def test_verdicts_of_real_ranks_keep_their_witnesses(tmp_path):
    with nothing_left(), AgentProcess(tmp_path / "g") as client:
        client.start(2)
        hung = client.submit("if rank == 0: dist.barrier()", (0, 1))
        client.wait(lambda: client.executions.get(hung, {}).get("verdict", {}).get("kind") == "cannot_end")
        helped = client.run("if rank == 1: dist.barrier()", (1,))
        client.ended(hung)
        again = client.submit("if rank == 0: dist.barrier()", (0, 1))
        client.wait(lambda: client.executions.get(again, {}).get("verdict", {}).get("kind") == "cannot_end")
        client.request("interrupt", ranks=[0, 1])
        client.ended(again)
        found = client.request("verdicts")[0]
    assert helped["state"] == "ok"
    assert (found["shown"], found["refuted"]) == (2, 0)
    assert [one["outcome"] for one in found["verdicts"]] == ["not_refuted", "not_refuted"]
    first = found["verdicts"][0]["witnesses"]
    assert first[0].startswith("rank 0: waits; barrier")
    assert first[1].startswith("rank 1: idle")
    assert "collectives begun" in first[0]
