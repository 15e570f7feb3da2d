"""JupyterLab's debugger on ranks: Jupyter's debug requests through a real agent to debugpy in real ranks."""

from __future__ import annotations

import json
import sys

import pytest
from agent.harness import AgentProcess
from waits import PATIENCE

from .debugpage import CODE, Debugger

pytest.importorskip("debugpy")


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    with AgentProcess(tmp_path_factory.mktemp("debugged") / "g") as client:
        client.start(2)
        yield client


def test_two_ranks_stop_in_a_cell_step_together_and_alone_and_are_let_go(agent):
    page = Debugger(agent)
    page.attach((0, 1))
    (path,) = {page.done(rank, "dumpCell", code=CODE)["sourcePath"] for rank in (0, 1)}
    info = page.done(0, "debugInfo")
    assert (info["isStarted"], path.startswith(info["tmpFilePrefix"])) == (True, True)
    for rank in (0, 1):
        points = page.done(rank, "setBreakpoints", source={"path": path}, breakpoints=[{"line": 2}])["breakpoints"]
        assert [(point["line"], point["verified"]) for point in points] == [(2, True)]

    cell = agent.submit(CODE, (0, 1))
    for rank in (0, 1):
        page.wait_stopped(rank, 2)
        frames = page.stack(rank)
        assert [(frame["name"], frame["line"], frame["source"]["path"]) for frame in frames] == [
            ("f", 2, path),
            ("<module>", 4, path),
        ]
        (scope, *_) = page.done(rank, "scopes", frameId=frames[0]["id"])["scopes"]
        variables = page.done(rank, "variables", variablesReference=scope["variablesReference"])["variables"]
        assert [(each["name"], each["value"]) for each in variables] == [("x", str(rank * 10))]
        agent.wait(
            lambda rank=rank: agent.group["ranks"][rank].get("stopped_at") == {"line": 2, "file": None}, PATIENCE
        )
    where = {"frameId": page.stack(1)[0]["id"], "context": "repl"}
    assert page.done(1, "evaluate", expression="x + 5", **where)["result"] == "15"

    # It goes from the end of a statement to the next one; from Python 3.12 on, pydevd stops in the statement of the
    # caller first. Rank 0 stays where it is.
    for line in (3, 4, 5, 6) if sys.version_info >= (3, 12) else (3, 5, 6):
        page.done(1, "next", threadId=1)
        page.wait_stopped(1, line)
    assert page.stack(0)[0]["line"] == 2
    page.done(0, "continue", threadId=1)
    page.done(1, "continue", threadId=1)
    assert agent.ended(cell)["state"] == "ok"
    shown = {each["name"]: each["value"] for each in page.done(1, "inspectVariables")["variables"]}
    assert (shown["a"], shown["b"]) == ("11", "22")

    # An interrupt ends a cell that is stopped, and a page that leaves lets it go on.
    cell = agent.submit(CODE, [0])
    page.wait_stopped(0, 2)
    agent.request("interrupt", ranks=[0])
    assert agent.ended(cell)["state"] == "interrupted"
    cell = agent.submit(CODE, (0, 1))
    page.wait_stopped(0, 2)
    page.wait_stopped(1, 2)
    for rank in (0, 1):
        page.done(rank, "disconnect")
    assert agent.ended(cell)["state"] == "ok"
    again = agent.submit("import sys; print(sys.gettrace())", (0, 1))
    assert agent.ended(again)["state"] == "ok"
    assert [agent.text(rank, again) for rank in (0, 1)] == ["None\n", "None\n"]


def test_breakpoints_stop_in_functions_of_cells_that_ran_before_the_debugger_and_while_the_last_one_was_there(agent):
    define, call = "def g(x):\n    y = x + 1\n    return y\n", "g(rank)"
    defined = agent.run(define, (0, 1))["execution_count"]
    for _ in range(2):
        page = Debugger(agent)
        page.attach([1])
        for _ in range(2):
            path = page.done(1, "dumpCell", code=define)["sourcePath"]
            page.done(1, "setBreakpoints", source={"path": path}, breakpoints=[{"line": 2}])
            cell = agent.submit(call, (0, 1))
            page.wait_stopped(1, 2)
            (frame, *_) = page.stack(1)
            assert (frame["name"], frame["source"]["path"]) == ("g", path)
            agent.wait(
                lambda: agent.group["ranks"][1].get("stopped_at") == {"line": 2, "file": f"cell [{defined}]"}, PATIENCE
            )
            assert "stopped_at" not in agent.group["ranks"][0]
            page.done(1, "continue", threadId=1)
            assert agent.ended(cell)["state"] == "ok"
            assert "stopped_at" not in agent.group["ranks"][1]
            defined = agent.run(define, (0, 1))["execution_count"]
        page.done(1, "disconnect")


@pytest.mark.part("hangs")
def test_a_stopped_rank_is_named_where_others_wait_and_breakpoint_needs_no_prompt(agent):
    page = Debugger(agent)
    page.attach([0])
    busy = Debugger(agent)
    cell = agent.submit("if rank == 0: breakpoint()\ntorch.distributed.barrier()", (0, 1))
    agent.wait(lambda: "verdict" in agent.executions[cell], PATIENCE)
    verdict = agent.executions[cell]["verdict"]
    assert verdict["kind"] == "waits"
    assert "rank 0 is stopped in the debugger at" in verdict["message"]
    refused = busy.ask(1, "initialize", adapterID="jupyter-dist")
    assert (refused["success"], "A cell runs on rank 1" in refused["message"]) == (False, True)
    page.done(0, "disconnect")
    assert agent.ended(cell)["state"] == "ok"


def test_a_debugger_that_nobody_asks_any_more_is_detached(agent, monkeypatch):
    change = "import jupyter_dist.parts.debugging.rank.dap as dap; dap.LEFT_SECONDS = 0.5"
    page = Debugger(agent)
    page.attach([1])
    header, _ = agent.request("debug", json.dumps({"type": "request", "seq": 1}).encode(), rank=1)
    assert (header["reply"]["success"], header["reply"]["message"]) == (False, "The message has no 'command'.")
    assert agent.run(change, [1])["state"] == "ok"
    cell = agent.submit("breakpoint()\nx = 1", [1])
    assert agent.ended(cell)["state"] == "ok"
    assert not page.done(1, "debugInfo")["isStarted"]


def test_without_debugpy_a_sentence_says_what_to_install(agent):
    hide = (
        "import sys; kept = {n: sys.modules.pop(n) for n in list(sys.modules) if n.startswith(('debugpy', 'pydevd'))}"
    )
    agent.run(f"{hide}; sys.modules['debugpy'] = None", [0])
    reply = Debugger(agent).ask(0, "initialize", adapterID="jupyter-dist")
    agent.run("del sys.modules['debugpy']; sys.modules.update(kept)", [0])
    assert (reply["success"], "pip install debugpy" in reply["message"]) == (False, True)
