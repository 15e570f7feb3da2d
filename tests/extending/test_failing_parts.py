"""A part that fails anywhere: it ends alone, it is named, and nothing waits for it for ever."""

import itertools
import shutil
from pathlib import Path

import pytest
from agent.harness import AgentProcess
from extending.packages import installed
from leaks import nothing_left
from waits import until

from jupyter_dist.protocol.errors import JupyterDistError

HERE = Path(__file__).parent
OFF = "The part 'failing' is off in this group, because it failed: "
OFF_ON_RANK = "The part 'failing' is off on this rank, because it failed: "
RAISES = ("error", "exit", "rude")
# What each hook of the agent returns that nobody can use.
HOOKS_OF_AGENT = {
    "changed": (),
    "asked": ("objects",),
    "interrupted": ("number",),
    "ranks_changed": (),
    "used": (),
    "received": (),
    "tick": (),
    "status": ("objects",),
    "group_fields": ("objects", "number"),
    "ends": (),
    "children": ("number",),
}
HOOKS_OF_RANK = {
    "before": (),
    "after": ("objects",),
    "interrupted": (),
    "received": (),
    "take_place": (),
    "timeout": ("word",),
    "tick": (),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("failing")
    for name in ("counting", "failing"):
        shutil.copytree(HERE / name, folder / name)
    return folder, installed(folder, {"counting": "counting", "failing": "failing"})


@pytest.fixture(scope="module")
def agent(home):
    folder, env = home
    with nothing_left(), AgentProcess(folder / "g", env=env) as client:
        client.start(2)
        yield client


def provoke(agent, hook):
    """Do what calls the hook."""
    if hook == "received":
        agent.request("fail_on_rank", hook="after", how="content")
        agent.run("1")
    elif hook == "ends":
        agent.request("ends", at=5e9)
    elif hook == "interrupted":
        cell = agent.submit("import time; time.sleep(1000)", [0, 1])
        agent.wait(lambda: agent.executions[cell]["state"] == "running")
        agent.request("interrupt", ranks=[0, 1])
        assert agent.ended(cell)["state"] == "interrupted"
    elif hook == "take_place":
        for size in (3, 2):
            agent.request("resize", num_ranks=size)
            agent.wait(lambda size=size: agent.group["spec"]["world_size"] == size and agent.group["state"] == "ready")
    else:
        assert agent.run("1")["state"] == "ok"


def is_named(agent):
    return OFF in (agent.group["note"] or "")


@pytest.mark.parametrize("hook", HOOKS_OF_AGENT)
def test_in_the_agent_a_part_that_fails_is_off_until_the_group_is_restarted(agent, hook):
    for how in (*RAISES, *HOOKS_OF_AGENT[hook]):
        agent.request("fail_in", hook=hook, how=how)
        provoke(agent, hook)
        agent.wait(lambda: is_named(agent))
        with pytest.raises(JupyterDistError, match=r"is off in this group, because it failed.*Restart the group"):
            agent.request("fail_now", how="error")
        assert agent.run("2")["counted"], "another part"
        provoke(agent, "interrupted")
        agent.request("restart")
        agent.wait_group("ready")
        assert agent.request("ask_rank", request="rank_is_there")[0]["reply"]["here"]


def test_a_part_that_fails_in_a_restart_begins_anew_in_it(agent):
    for how in RAISES:
        agent.request("fail_in", hook="restarts", how=how)
        agent.request("restart")
        agent.wait_group("ready")
        assert agent.run("1")["counted"]
        assert agent.request("ask_rank", request="rank_is_there")[0]["reply"]["here"]
    assert agent.agent.log.read_text().count("The part 'failing' failed") >= 3


def test_a_call_that_waits_for_the_part_ends_with_it_and_no_other_begins(agent):
    for turn in range(3):
        agent.request("wait_on_ranks", name=f"wait-{turn}")
        agent.request("wait_on_ranks", name=f"behind-{turn}")
        agent.wait(lambda turn=turn: agent.executions.get(f"wait-{turn}", {}).get("state") == "running")
        agent.request("fail_in", hook="tick", how="error")
        agent.wait(lambda: is_named(agent))
        assert agent.ended(f"wait-{turn}")["state"] == "interrupted"
        assert agent.ended(f"behind-{turn}")["state"] in ("error", "aborted")
        assert agent.run("1")["state"] == "ok"
        agent.request("restart")
        agent.wait_group("ready")


@pytest.mark.parametrize("how", [*RAISES, "number"])
def test_a_request_that_fails_is_answered_and_the_part_goes_on(agent, how):
    for _ in range(2):
        for request in ("rank_fails", "rank_fails_idle", "rank_fails_later"):
            with pytest.raises(JupyterDistError):
                agent.request("ask_rank", request=request, how=how)
        with pytest.raises(JupyterDistError, match="The agent failed"):
            agent.request("fail_now", how=how)
        assert agent.request("ask_rank", request="rank_is_there")[0]["reply"]["here"]
        assert agent.run("1")["state"] == "ok"


@pytest.mark.parametrize("hook", HOOKS_OF_RANK)
def test_on_a_rank_a_part_that_fails_ends_alone_and_is_named_in_the_log(agent, hook):
    for how in (*RAISES, *HOOKS_OF_RANK[hook]):
        before = agent.text(1, name="stderr").count(OFF_ON_RANK)
        agent.request("fail_on_rank", hook=hook, how=how)
        if hook == "received":
            agent.request("fail_on_rank", hook="", how="")
        provoke(agent, hook if hook in ("interrupted", "take_place") else "before")
        agent.wait(lambda before=before: agent.text(1, name="stderr").count(OFF_ON_RANK) > before)
        ended = agent.run("2")
        assert (ended["state"], bool(ended["counted"])) == ("ok", True)
        provoke(agent, "interrupted")
        execution = agent.request("wait_on_ranks", name=f"wait-{hook}-{how}")[0]["execution"]["id"]
        agent.wait(
            lambda execution=execution: any(
                one["ranks"] == "1" for one in agent.executions.get(execution, {"statuses": []})["statuses"]
            )
        )
        agent.request("interrupt", ranks=[0, 1])
        statuses = {one["ranks"]: one["status"] for one in agent.ended(execution)["statuses"]}
        assert statuses == {"0": "interrupted", "1": "error"}
        assert OFF_ON_RANK in "".join(p.decode() for h, p in agent.records if h.get("execution_id") == execution)
        assert not is_named(agent)
        agent.request("restart")
        agent.wait_group("ready")


@pytest.mark.parametrize("what", ["requests", "ways_to_replace", "calls"])
def test_a_part_that_cannot_begin_leaves_nothing_behind(home, what):
    folder, env = home
    numbers = itertools.count()
    with nothing_left(), AgentProcess(folder / f"g-{what}", env={**env, "FAILS_AT_BEGIN": what}) as client:
        client.start(2)
        for _ in range(2):
            assert client.run("1")["counted"]
            if what == "calls":
                until(lambda: OFF_ON_RANK in client.text(1, name="stderr") or client.run("1") is None)
                with pytest.raises(JupyterDistError):
                    client.request("ask_rank", request="rank_is_there")
            else:
                with pytest.raises(JupyterDistError, match="Unknown request"):
                    client.request("wait_on_ranks", name=f"wait-{next(numbers)}")
            client.request("restart")
            client.wait_group("ready")
