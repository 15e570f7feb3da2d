"""Parts of other packages, in a real group: what they are told, and what they may do. One that fails ends alone."""

import json
import shutil
from pathlib import Path

import pytest
from agent.harness import AgentProcess
from extending.packages import installed
from leaks import nothing_left
from waits import until

from jupyter_dist.protocol.errors import JupyterDistError

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """A group of two ranks with the part *counting*, and two that cannot be loaded."""
    folder = tmp_path_factory.mktemp("seams")
    shutil.copytree(HERE / "counting", folder / "counting")
    for name, code in {"raises": "import no_such_module\n", "empty": "\n"}.items():
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
        (folder / name / "agent.py").write_text(code)
    env = installed(folder, {"counting": "counting", "raises": "raises", "empty": "empty"})
    with nothing_left(), AgentProcess(folder / "g", env=env) as client:
        client.start(options={"counting_from": 100, "of_no_part": 1})
        yield client


def test_a_part_is_told_of_cells_and_adds_to_what_users_see(agent):
    ended = agent.run("kept = 41; print('send')")
    assert ended["counted"] == 101  # its option is where it begins
    agent.wait(lambda: agent.group["parts"].get("counting", {}).get("ticks", 0) > 1)
    assert agent.group["parts"]["counting"]["ended"] == 101
    assert agent.group["parts"]["counting"]["rank_changes"]


def test_a_part_of_a_rank_answers_and_sends(agent):
    code = "kept = 41; print('send')"
    if not agent.executions:
        agent.run(code)
    (answer, _) = agent.request("count", ask="counted_idle", more=1)
    assert answer["ranks"] == [42, 42]
    assert answer["received"] == {str(rank): [{"sent": rank}, {"code": code + "\n"}] for rank in (0, 1)}
    running = agent.submit("import time; go = False\nwhile not go: time.sleep(0.01)", [0, 1])
    agent.wait(lambda: agent.executions[running]["state"] == "running")
    until(lambda: agent.request("count", ask="counted", more=0)[0]["ranks"] == [2, 2])  # while the cell runs
    (answer, _) = agent.request("count", ask="counted_idle", more=1)
    assert answer["ranks"] == [-1, -1]  # the other handler
    agent.request("interrupt", ranks=[0, 1])
    agent.ended(running)


def test_a_cell_of_a_magic_of_a_part_sends_an_output_of_its_kind(agent):
    ended = agent.run("%%counting all\n1\n2\n", ranks=(1,))  # records of several ranks may be one
    assert ended["state"] == "ok"
    mine = [(h["rank"], json.loads(payload)) for h, payload in agent.records if h["kind"] == "lines"]
    assert mine == [(1, {"line": "all", "lines": 2})]


def test_a_fix_of_a_part_is_made_when_a_cell_imports_the_module(agent):
    assert agent.run("import colorsys; assert colorsys.counted == 'mended'")["state"] == "ok"


def test_a_part_hears_of_the_end_of_the_allocation_and_adds_to_the_group(agent):
    assert agent.request("ends", at=5e9)[0]["group"]["known_ends"] == [5e9]
    assert agent.request("ends", at=None)[0]["group"]["known_ends"] == [5e9, None]


def test_a_part_sends_with_cells_and_calls_its_ranks_by_an_execution(agent):
    agent.run("kept = 41 # asks")
    (answer, _) = agent.request("count", ask="counted", more=0)
    assert answer["received"]["1"][-1] == {
        "code": "kept = 41 # asks\n",
        "asked": {"counting": {"line": "kept = 41 # asks"}},
    }
    agent.run("kept = 41 # asks", counting_as="it")  # an option of a run
    (answer, _) = agent.request("count", ask="counted", more=0)
    assert answer["received"]["1"][-1]["asked"]["counting"] == {"line": "kept = 41 # asks", "counting_as": "it"}
    with pytest.raises(JupyterDistError, match="of_no_part"):
        agent.run("1", of_no_part=True)
    before = answer["ranks"]
    agent.request("call", number=10)
    agent.wait(lambda: {"first", "second"} <= agent.executions.keys())
    assert (agent.ended("first")["state"], agent.ended("second")["state"]) == ("error", "aborted")
    refusal = agent.ended("second")["error"]
    assert (refusal["code"], refusal["message"]) == ("bad_count", "it is too much")
    (answer, _) = agent.request("count", ask="counted", more=0)
    assert answer["ranks"] == [number + 1 for number in before]  # the refused call alone


def test_a_part_sends_to_its_ranks_and_takes_the_place_of_an_interrupt(agent):
    agent.request("wait")
    agent.wait(lambda: agent.executions.get("wait", {}).get("state") == "running")
    behind = agent.submit("1", [0])
    agent.wait(lambda: agent.executions[behind].get("waits_for"))
    assert agent.executions[behind]["waits_for"] == "Waits for rank 0: the count until it is told"
    agent.request("interrupt", ranks=[0, 1])
    statuses = agent.ended("wait")["statuses"]
    assert sorted((one["ranks"], one["status"]) for one in statuses) == [("0", "interrupted"), ("1", "ok")]
    (answer, _) = agent.request("count", ask="counted", more=0)
    told = [content for content in answer["received"]["1"] if "told" in content]
    assert told == [{"told": "on", "in": "MainThread"}]
    agent.ended(behind)


def test_a_part_that_cannot_be_loaded_is_named(agent):
    assert "The part 'raises' is left out: ModuleNotFoundError: No module named 'no_such_module'" in agent.group["note"]
    assert "The part 'empty' is left out: TypeError: empty.agent has 0 subclasses" in agent.group["note"]


def test_a_part_hears_of_uses_and_of_a_restart_and_its_requests_with_a_key_are_carried_out_once(agent):
    before = agent.request("ends", at=None)[0]["group"]["uses"]
    agent.run("1")
    agent.request("typed")
    for what in ("first", "again"):
        agent.request("use", as_what=what, key="k")
    (answer, _) = agent.request("use", as_what="other", key="l")
    assert answer["group"]["uses"] == [*before, True, False, "first", "other"]
    agent.request("restart")
    agent.wait_group("ready")
    assert agent.group["restarted"] == 1
    agent.run("kept = 41")


def test_a_part_that_fails_ends_alone(agent):
    assert agent.run("1 # fail_on_rank")["state"] == "ok"
    agent.wait(lambda: "The part 'counting' is off on this rank, because it failed" in agent.text(1, name="stderr"))
    assert agent.run("2")["counted"]
    assert "counted" not in agent.run("3 # fail_in_agent")
    assert "The part 'counting' is off in this group, because it failed: RuntimeError" in agent.group["note"]
    assert agent.run("print(kept)")["state"] == "ok"
