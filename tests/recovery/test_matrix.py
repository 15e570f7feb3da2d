"""Every kind of parallelism continues after each kind of fault, three times in one group, with the same numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from agent.harness import AgentProcess
from libraries import PARALLEL, preloading

KINDS = (Path(__file__).parent / "kinds.py").read_text()
RANKS = range(4)
ROUNDS = 3


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """An agent with four ranks, on which the kinds are defined and have been trained without a fault."""
    directory = tmp_path_factory.mktemp("recovery")
    # Its zygote imports what seven ranks would import, one after the other.
    with AgentProcess(directory / "g", env=preloading(PARALLEL)) as client:
        client.start(4)
        run(client, define(directory))
        run(client, "import json\nbegin()\nundisturbed = [steps(number) for number in range(4)]")
        yield client


def define(directory: Path) -> str:
    return f"{KINDS}\nplace = {str(directory)!r}\n"


def run(client, code, ranks=RANKS):
    execution = client.run(code, ranks)
    errors = [payload.decode() for header, payload in client.records if header.get("kind") == "error"]
    assert execution["state"] == "ok", (errors[-1:], [rank["exit"] for rank in client.group["ranks"]])
    return [client.text(rank, execution["id"]) for rank in ranks]


def steps_are_right(client, number):
    assert run(client, f"print(differences({number}))") == ["{}\n"] * 4


def hang(client, code):
    """Run code that hangs on rank 0, and perhaps on others."""
    hung = client.submit(code, RANKS)
    client.wait(lambda: (client.group["ranks"][0]["message"] or "").startswith("Waits in "))
    return hung


def interrupt(client, execution):
    client.request("interrupt", ranks=list(RANKS))
    client.ended(execution)


def test_all_kinds_continue_after_a_hang_was_freed(ranks):
    """Every model was left in the middle of backward()."""
    run(ranks, "begin()")
    for number in range(ROUNDS):
        steps_are_right(ranks, number)
        hung = hang(ranks, f"half_steps({number})\nif rank == 0: dist.barrier()")
        # A slow rank waits in collectives of the half steps, too: an interrupt must not come before their end.
        ranks.wait(lambda: re.match("Waits in barrier.*; idle: 1-3", ranks.group["ranks"][0]["message"] or ""))
        interrupt(ranks, hung)
    steps_are_right(ranks, ROUNDS)
    notes = [payload.decode() for header, payload in ranks.records if header["kind"] == "note"]
    assert "re-created; all variables are kept as the cell left them. So were its " in notes[-1]
    assert ranks.group["note"] is None  # it is no news any more: cells have run since


def test_all_kinds_continue_after_an_error_on_one_rank(ranks):
    """The others wait for it in the middle of a step."""
    run(ranks, "begin()")
    for number, kind in enumerate(("fsdp2", "ddp", "fsdp1")):
        steps_are_right(ranks, number)
        interrupt(ranks, hang(ranks, f"if rank == 1: raise RuntimeError('a bug')\nstep({kind!r}, 100)"))
    steps_are_right(ranks, ROUNDS)


@pytest.mark.part("parking")
def test_all_kinds_continue_after_the_group_was_parked(ranks):
    """Their tensors were in files meanwhile, and their process groups had no connections."""
    run(ranks, "begin()")
    for number in range(ROUNDS):
        steps_are_right(ranks, number)
        ranks.request("park", to="file")
        ranks.wait_group("parked")
    steps_are_right(ranks, ROUNDS)
    assert ranks.group["parked"] is None
    assert ranks.group["note"] is None  # a resume is over when the cell that caused it has ended


def test_all_kinds_are_made_again_after_a_rank_was_replaced(ranks, tmp_path):
    """What only living ranks use continues; what the killed one had a part of is made again, in the same group."""
    run(ranks, "begin()\nof_all = [None] * 4\ndist.all_gather_object(of_all, undisturbed)")
    for killed in (3, 2, 3):
        steps_are_right(ranks, 0)
        execution = hang(ranks, f"if rank != {killed}: dist.barrier()")
        ranks.kill_rank(killed)
        ranks.ended(execution)
        ranks.wait_group("degraded")
        ranks.request("replace")
        ranks.wait_group("ready")
        assert "What was sharded over all ranks lacks its part" in ranks.group["note"]
        of_the_living = "print(step('ddp of a subgroup', 1) == undisturbed[1]['ddp of a subgroup'])"
        assert run(ranks, of_the_living, [0, 1]) == ["True\n"] * 2
        given = "given = [globals().get('of_all')]\ndist.broadcast_object_list(given, 0)\nof_all = given[0]"
        run(ranks, f"{define(tmp_path)}\n{given}\nundisturbed = of_all[rank]\nbegin()")
    steps_are_right(ranks, 0)
