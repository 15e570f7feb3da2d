"""Every kind of parallelism continues after each kind of fault, three times in one group, with the same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent.harness import AgentProcess

KINDS = (Path(__file__).parent / "kinds.py").read_text()
RANKS = range(4)
ROUNDS = 3


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """An agent with four ranks, on which the kinds are defined and have been trained without a fault."""
    directory = tmp_path_factory.mktemp("recovery")
    with AgentProcess(directory / "g") as client:
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
        interrupt(ranks, hang(ranks, f"half_steps({number})\nif rank == 0: dist.barrier()"))
    steps_are_right(ranks, ROUNDS)
    assert "re-created; all variables are kept. So were its " in ranks.group["note"]


def test_all_kinds_continue_after_an_error_on_one_rank(ranks):
    """The others wait for it in the middle of a step."""
    run(ranks, "begin()")
    for number, kind in enumerate(("fsdp2", "ddp", "fsdp1")):
        steps_are_right(ranks, number)
        interrupt(ranks, hang(ranks, f"if rank == 1: raise RuntimeError('a bug')\nstep({kind!r}, 100)"))
    steps_are_right(ranks, ROUNDS)
