"""Ranks that ask for input: what the agent knows, and who may answer. A real agent with real ranks."""

from __future__ import annotations

import pytest

from jupyter_dist.agent.group.cells.asking import Asking
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire import road


@pytest.fixture
def agent(process):
    """The shared agent, with a new server for each test."""
    client = process.client()
    client.request("follow", since=client.hello()["seq"])
    yield client
    client.close()


def asking(agent, execution_id):
    return agent.executions[execution_id].get("asking", [])


def wait_asked(agent, execution_id, ranks, prompt):
    def is_asked():
        return any((asked["ranks"], asked["prompt"]) == (ranks, prompt) for asked in asking(agent, execution_id))

    agent.wait(is_asked)
    return next(asked for asked in asking(agent, execution_id) if asked["prompt"] == prompt)


def answer(agent, execution_id, text, ranks=None, seq=None):
    payload = road.TO_RANK["input"].encode({"text": text})
    return agent.request("to_rank", payload, kind="input", execution_id=execution_id, ranks=ranks, seq=seq)[0]["ranks"]


def refused(agent, *arguments, **fields):
    with pytest.raises(JupyterDistError) as raised:
        answer(agent, *arguments, **fields)
    return raised.value


def test_ranks_that_ask_the_same_are_answered_one_by_one_or_at_once(agent):
    cell = agent.submit("print(input('name? '), input('age? '))", (0, 1), allow_stdin=True)
    asked = wait_asked(agent, cell, "0-1", "name? ")
    assert not asked["password"]
    asks = lambda: [rank.get("asks", False) for rank in agent.group["ranks"]]  # noqa: E731
    agent.wait(lambda: asks() == [True, True])
    assert answer(agent, cell, "Ada", [1]) == [1]
    wait_asked(agent, cell, "1", "age? ")
    assert [(a["ranks"], a["prompt"]) for a in asking(agent, cell)] == [("0", "name? "), ("1", "age? ")]

    # An answer to a question that is over is not taken for one that came later; nor is one for ranks that differ.
    late = refused(agent, cell, "Eve", [1], asked["seq"])
    assert (late.code, late.message) == ("not_asking", "Rank 1 does not ask for input.")
    assert "different things" in refused(agent, cell, "Eve").message

    assert answer(agent, cell, "Bob", [0, 1], asked["seq"]) == [0]
    wait_asked(agent, cell, "0-1", "age? ")
    assert answer(agent, cell, "36") == [0, 1]
    assert agent.ended(cell)["state"] == "ok"
    agent.wait(lambda: asks() == [False, False])
    assert [agent.text(rank, cell).splitlines()[-1] for rank in (0, 1)] == ["Bob 36", "Ada 36"]
    assert "asking" not in agent.executions[cell]
    assert "The cell is 'ok'" in str(refused(agent, cell, "late"))


def test_a_password_is_in_no_record(agent):
    cell = agent.submit("import getpass; p = getpass.getpass('token: ')", [0], allow_stdin=True)
    assert wait_asked(agent, cell, "0", "token: ")["password"]
    answer(agent, cell, "hunter2")
    assert agent.ended(cell)["state"] == "ok"
    assert not any(b"hunter2" in payload or "hunter2" in str(header) for header, payload in agent.records)
    journal = agent.agent.directory / "journal"
    assert not any(b"hunter2" in path.read_bytes() for path in journal.iterdir())
    assert agent.run("assert p == 'hun' + 'ter2'", [0])["state"] == "ok"


def test_an_interrupt_ends_the_questions_of_its_ranks_only(agent):
    cell = agent.submit("input('name? ')", (0, 1), allow_stdin=True)
    wait_asked(agent, cell, "0-1", "name? ")
    agent.request("interrupt", ranks=[1])
    wait_asked(agent, cell, "0", "name? ")
    agent.wait(lambda: len(agent.executions[cell]["statuses"]) == 2)
    assert agent.run("print('free')", [1])["state"] == "ok"  # a rank that asks blocks no other
    agent.request("interrupt", ranks=[0])
    assert agent.ended(cell)["state"] == "interrupted"


def test_the_next_server_knows_what_is_asked(process, agent):
    cell = agent.submit("input('name? ')", (0, 1), allow_stdin=True)
    wait_asked(agent, cell, "0-1", "name? ")
    again = process.client()
    again.request("follow", since=again.hello()["seq"])
    assert [(a["ranks"], a["prompt"]) for a in asking(again, cell)] == [("0-1", "name? ")]
    assert answer(again, cell, "Ada") == [0, 1]
    assert again.ended(cell)["state"] == "ok"
    again.close()


def test_questions_are_grouped_in_the_order_in_which_they_came():
    questions = Asking()
    for rank, prompt in ((2, "b"), (0, "a"), (1, "b")):
        questions.add(rank, 1, {"prompt": prompt, "password": False})
    assert [(entry["ranks"], entry["prompt"]) for entry in questions.model()] == [("1-2", "b"), ("0", "a")]
    assert 2 in questions
    assert questions.drop(2)
    assert not questions.drop(2)


def test_bad_answers_and_a_rank_that_dies_at_its_prompt(agent):
    cell = agent.submit("input('name? ')", (0, 1), allow_stdin=True)
    wait_asked(agent, cell, "0-1", "name? ")
    for payload in (b"", b"[]", b'{"text": 1}', b'{"text": "a", "more": 1}', b'{"text": "%s"}' % (b"x" * 10_001)):
        with pytest.raises(JupyterDistError):
            agent.request("to_rank", payload, kind="input", execution_id=cell, ranks=[0], seq=None)
    with pytest.raises(JupyterDistError) as raised:
        agent.request("to_rank", b"{}", kind="comm", execution_id=cell, ranks=[0], seq=None)
    assert raised.value.code == "incompatible"

    agent.kill_rank(1)
    wait_asked(agent, cell, "0", "name? ")
    assert "Rank 1" in agent.executions[cell]["error"]["message"]
    assert refused(agent, cell, "Ada", [1]).code == "rank_dead"
    assert answer(agent, cell, "Ada") == [0]
    assert agent.ended(cell)["state"] == "lost"
