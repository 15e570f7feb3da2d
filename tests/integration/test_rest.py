"""The REST API with two real ranks: everything a user does with a group, and what can go wrong."""

import pytest
from apiclient import texts
from waits import HOLDS_THE_INTERPRETER, PATIENCE, until_async

from jupyter_dist.protocol.operations import BY_NAME
from jupyter_dist.server.groups import warm
from jupyter_dist.system.processes import below, read_process

STUCK = f"print('stuck', flush=True)\n{HOLDS_THE_INTERPRETER}"


async def test_a_group_from_start_to_end(api, groups_path, nothing_left, tmp_path):
    group = await api.start(name="train", cwd=str(tmp_path))
    assert [rank["state"] for rank in group["ranks"]] == ["idle", "idle"]
    assert (group["accelerator"], group["backend"], group["world_size"]) == ("cpu", "gloo", 2)
    assert group["environment"]["torch_version"]
    assert [g["name"] for g in (await api.ask("GET", "groups"))["groups"]] == ["train"]

    view = await api.run("train", "import os\nprint(os.getcwd())\nprint('I am', rank)\nrank * 10", cell_id="c1")
    assert view["execution"]["state"] == "ok"
    assert view["execution"]["statuses"][0]["ranks"] == "0-1"
    assert texts(view) == [("0-1", f"{tmp_path}\n"), ("0", "I am 0\n"), ("1", "I am 1\n"), ("0", "0"), ("1", "10")]

    view = await api.run("train", "t = torch.ones(2) * (rank + 1)\ndist.all_reduce(t)\nprint(t)")
    assert texts(view) == [("0-1", "tensor([3., 3.])\n")]

    # An error stays in the cell, and variables stay in the rank.
    view = await api.run("train", "x = 5\n1 / rank")
    assert view["execution"]["state"] == "error"
    assert {s["ranks"]: s["status"] for s in view["execution"]["statuses"]} == {"0": "error", "1": "ok"}
    assert ("0", "ZeroDivisionError") in texts(view)
    assert texts(await api.run("train", "x + rank", ranks="1")) == [("1", "6")]

    listed = (await api.ask("GET", "groups/train/executions"))["executions"]
    assert [execution["execution_count"] for execution in listed] == [1, 2, 3, 4]
    assert all("code" not in execution for execution in listed)

    for _ in range(10):  # the agent's next message about the group comes later than the one about the cell
        await api.run("train", "x")
        assert (await api.ask("GET", "groups/train"))["running"] == []

    status, error = await api.refused("POST", "groups", {"name": "train"})
    assert (status, error["code"]) == (409, "name_taken")
    assert await api.ask("DELETE", "groups/train") == {"killed": []}
    assert await api.ask("GET", "groups") == {"groups": []}
    await nothing_left()


async def test_bad_requests_to_a_group_start_nothing(shared_api):
    before = await shared_api.ask("GET", "groups/g/executions")
    for body, code, word in [
        ({}, "bad_request", "code"),
        ({"code": 1}, "bad_request", "code"),
        ({"code": "1", "rank": "0"}, "bad_request", "rank"),
        ({"code": "1", "ranks": "2"}, "bad_ranks", "rank 2"),
        ({"code": "1", "ranks": "__import__('os')"}, "bad_ranks", "rank expression"),
        ({"code": "1", "stop_on_error": "no"}, "bad_request", "stop_on_error"),
    ]:
        status, error = await shared_api.refused("POST", "groups/g/executions", body)
        assert (status, error["code"]) == (400, code), body
        assert word in error["message"]
    assert (await shared_api.refused("GET", "groups/g/executions/e-0"))[1]["code"] == "unknown_execution"
    assert (await shared_api.refused("DELETE", "groups/g/executions/e-0"))[1]["code"] == "unknown_execution"
    assert (await shared_api.refused("GET", "groups/g/ranks/2/log"))[1]["code"] == "unknown_rank"
    assert (await shared_api.refused("POST", "groups/g/interrupt", {"ranks": "9"}))[1]["code"] == "bad_ranks"
    assert await shared_api.ask("GET", "groups/g/executions") == before


async def test_interrupt_cancel_and_what_is_queued_behind(shared_api):
    running = await shared_api.submit("g", "import time\ntime.sleep(1000)", notebook="n.ipynb")
    behind = await shared_api.submit("g", "print('never')", notebook="n.ipynb")
    other = await shared_api.submit("g", "print('still')", notebook="other.ipynb")
    cancelled = await shared_api.submit("g", "print('cancelled')")
    assert (await shared_api.ask("DELETE", f"groups/g/executions/{cancelled}"))["id"] == cancelled
    await shared_api.until("g", lambda group: group["running"] == [running])
    assert await shared_api.ask("POST", "groups/g/interrupt", {"ranks": "all"}) == {"interrupted": "0-1", "idle": ""}
    view = await shared_api.view("g", running)
    assert view["execution"]["state"] == "interrupted"
    assert (await shared_api.view("g", behind))["execution"]["state"] == "aborted"
    assert (await shared_api.view("g", cancelled))["execution"]["state"] == "aborted"
    assert texts(await shared_api.view("g", other)) == [("0-1", "still\n")]


async def test_disjoint_ranks_run_at_once_and_others_in_order(shared_api, tmp_path):
    slow = await shared_api.submit("g", "import time\ntime.sleep(0.6)\nprint('slow')", ranks="0")
    both = await shared_api.submit("g", "print('both')")
    quick = await shared_api.submit("g", "print('quick')", ranks="1")
    views = [await shared_api.view("g", execution) for execution in (slow, both, quick)]
    assert [texts(view) for view in views] == [[("0", "slow\n")], [("0-1", "both\n")], [("1", "quick\n")]]
    started = [view["execution"]["started_at"] for view in views]
    ended = [view["execution"]["ended_at"] for view in views]
    assert ended[0] <= started[1]
    assert started[1] <= started[2]  # on rank 1 alone: rank 0 may still end its part
    flag = tmp_path / "flag"
    code = f"import os, time\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.01)"
    first = await shared_api.submit("g", code, ranks="0")
    second = await shared_api.submit("g", "print('meanwhile')", ranks="1")
    assert (await shared_api.view("g", second))["execution"]["state"] == "ok"
    assert (await shared_api.view("g", first, wait=0))["execution"]["state"] == "running"
    flag.touch()
    assert (await shared_api.view("g", first))["execution"]["state"] == "ok"


async def test_a_cell_sent_while_the_group_starts_runs_when_it_can(api):
    group = await api.ask("POST", "groups", {"num_ranks": 2, "name": "g"})
    assert group["state"] in ("starting", "ready")
    assert texts(await api.run("g", "print('early')")) == [("0-1", "early\n")]


async def test_restart_forgets_variables_and_keeps_the_log(api):
    group = await api.start(name="g")
    await api.run("g", "x = 1\nprint('before')")
    restarted = await api.ask("POST", "groups/g/restart")
    assert restarted["state"] in ("restarting", "ready")
    again = await api.settled("g", "restarting")
    assert again["generation"] == 1
    assert {r["pid"] for r in again["ranks"]}.isdisjoint(r["pid"] for r in group["ranks"])
    assert ("0-1", "NameError") in texts(await api.run("g", "x"))
    log = await api.ask("GET", "groups/g/ranks/1/log")
    kinds = [record["kind"] for record in log["records"]]
    assert kinds[:3] == ["begin", "stream", "end"]
    assert "note" in kinds
    assert log["records"][-1]["seq"] == log["seq"]
    earlier = await api.ask("GET", "groups/g/ranks/1/log", before=log["records"][1]["seq"], tail_bytes=10)
    assert [record["kind"] for record in earlier["records"]] == ["begin"]
    assert not earlier["more"]


async def test_a_dead_rank_is_named_and_the_others_go_on(shared_api):
    view = await shared_api.run(
        "g", "import os, signal\nif rank == 1: os.kill(os.getpid(), signal.SIGKILL)\nprint('here')"
    )
    assert view["execution"]["state"] == "lost"
    assert "Rank 1" in view["execution"]["error"]["message"]
    # Changes of ranks are gathered for 20 ms.
    group = await shared_api.ask("GET", "groups/g", wait=PATIENCE, not_state="ready")
    assert group["state"] == "degraded"
    assert group["ranks"][1]["exit"]["signal"] is not None
    status, error = await shared_api.refused("POST", "groups/g/executions", {"code": "1", "ranks": "all"})
    assert (status, error["code"]) == (409, "rank_dead")
    assert texts(await shared_api.run("g", "kept = 7\nprint('alive')", ranks="0")) == [("0", "alive\n")]
    await shared_api.ask("POST", "groups/g/replace")
    group = await shared_api.settled("g", "restarting")
    assert [rank["state"] for rank in group["ranks"]] == ["idle", "idle"]
    view = await shared_api.run("g", "t = torch.ones(1)\ndist.all_reduce(t)\nprint(t.item(), globals().get('kept'))")
    assert texts(view) == [("0", "2.0 7\n"), ("1", "2.0 None\n")]
    assert (await shared_api.refused("POST", "groups/g/replace"))[0] == 409


async def test_a_process_group_that_user_code_destroyed_is_formed_anew(shared_api):
    await shared_api.run("g", "kept = rank\ndist.destroy_process_group()")
    await shared_api.until("g", lambda group: _process_groups(group) == {"none"})
    busy = await shared_api.submit("g", "import time\ntime.sleep(1000)", ranks="1")
    assert (await shared_api.refused("POST", "groups/g/reform"))[0] == 409
    await shared_api.ask("POST", "groups/g/interrupt", {"ranks": "all"})
    await shared_api.view("g", busy)
    await shared_api.ask("POST", "groups/g/reform")
    group = await shared_api.until("g", lambda group: "re-created" in (group["note"] or ""))
    assert "destroyed" not in group["note"]
    view = await shared_api.run("g", "t = torch.ones(1)\ndist.all_reduce(t)\nprint(t.item(), kept == rank)")
    assert texts(view) == [("0-1", "2.0 True\n")]
    assert _process_groups(group) == {"ok"}


def _process_groups(group):
    return {rank["process_group"] for rank in group["ranks"]}


async def test_one_rank_is_killed_and_the_others_go_on(shared_api):
    stuck = await shared_api.submit("g", STUCK, ranks="1")
    await shared_api.shown("g", stuck, "stuck")
    asked = await shared_api.ask("POST", "groups/g/interrupt", {"ranks": "all"})
    assert asked == {"interrupted": "1", "idle": "0", "unresponsive": "1"}
    assert (await shared_api.refused("POST", "groups/g/ranks/2/kill"))[1]["code"] == "unknown_rank"
    group = await shared_api.ask("POST", "groups/g/ranks/1/kill")
    assert group["ranks"][1]["exit"]["reason"] == "was killed (on request)"
    assert (await shared_api.view("g", stuck))["execution"]["state"] == "lost"
    assert texts(await shared_api.run("g", "print('fine')", ranks="0")) == [("0", "fine\n")]


@pytest.mark.part("parking")
async def test_a_group_is_parked_and_a_cell_resumes_it(shared_api):
    await shared_api.run("g", "x = torch.ones(100_000) * rank")
    status, error = await shared_api.refused("POST", "groups/g/park", {})
    assert (status, error["code"]) == (409, "group_not_ready")
    assert "holds no devices" in error["message"]
    status, error = await shared_api.refused("POST", "groups", {"name": "other", "park": ["g"]})
    assert (status, error["code"]) == (409, "group_not_ready")
    assert (await shared_api.refused("POST", "groups", {"park": ["nowhere"]}))[1]["code"] == "unknown_group"

    for _ in range(2):
        assert (await shared_api.ask("POST", "groups/g/park", {"to": "file"}))["state"] in ("parking", "parked")
        group = await shared_api.until("g", lambda group: group["state"] == "parked")
        assert group["parked"]["place"] == "file"
        assert group["parked"]["held_bytes"] >= 800_000
        assert group["note"].startswith("Parked in ")
        if "variables" in BY_NAME:
            assert (await shared_api.refused("GET", "groups/g/variables"))[1]["code"] == "group_not_ready"
        view = await shared_api.run("g", "int(x.sum().item())")
        assert texts(view) == [("0", "0"), ("1", "100000")]
        group = await shared_api.until("g", lambda group: group["state"] == "ready")
        assert group["parked"] is None
    assert (await shared_api.ask("POST", "groups/g/resume"))["state"] == "ready"


async def test_the_log_as_a_file(shared_api):
    await shared_api.run("g", "print('<script>alert(1)</script>')\n1 / 0")
    response = await shared_api.ask("GET", "groups/g/ranks/0/log/download")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response.headers["Content-Security-Policy"]
    assert response.headers["Content-Disposition"].startswith("attachment;")
    text = response.body.decode()
    assert "<script>alert(1)</script>\n" in text
    assert "ZeroDivisionError" in text


async def test_a_start_that_fails_says_why_and_leaves_nothing(api, nothing_left, groups_path):
    group = await api.ask("POST", "groups", {"num_ranks": 2, "name": "g", "env": {"GLOO_DEVICE_TRANSPORT": "nope"}})
    failed = await api.ask("GET", f"groups/{group['id']}", wait=PATIENCE, not_state="starting")
    if failed["state"] == "ending":
        failed = await api.ask("GET", f"groups/{group['id']}", wait=PATIENCE, not_state="ending")
    assert failed["state"] == "dead"
    # The reason stays when the agent has ended, and with it its folder.
    await api.until(group["id"], lambda _: not (groups_path / group["id"]).exists())
    failed = await api.ask("GET", f"groups/{group['id']}")
    assert failed["state"] == "dead"
    assert "Rank" in failed["error"]["message"]
    assert failed["error"]["hint"]
    status, error = await api.refused("POST", "groups/g/executions", {"code": "1"})
    assert (status, error["code"]) == (409, "group_not_ready")
    await api.ask("DELETE", "groups/g")
    await nothing_left()


async def test_credentials_do_not_reach_ranks(api, monkeypatch):
    for name in ("JUPYTER_TOKEN", "JPY_API_TOKEN", "JUPYTERHUB_API_TOKEN"):
        monkeypatch.setenv(name, "secret-value")
    await api.start(name="g", env={"MINE": "yes"})
    view = await api.run(
        "g", "import os\nprint([v for v in os.environ.values() if 'secret-value' in v], os.environ['MINE'])"
    )
    assert texts(view) == [("0-1", "[] yes\n")]


async def test_memory_and_the_emptied_cache(shared_api):
    freed = await shared_api.ask("POST", "groups/g/empty-cache", {"ranks": "0"})
    assert list(freed["freed_bytes"]) == ["0"]
    assert isinstance((await shared_api.ask("GET", "groups/g/memory"))["samples"], list)


async def waiting_agents(api):
    return [each for each in (await api.ask("GET", "prepared"))["processes"] if each["what"] == "agent"]


async def warmed(api):
    """An agent that waits for a group."""
    name = (await api.ask("GET", "environments"))["default"]
    await api.ask("POST", f"environments/{name}/warm")
    (agent,) = await until_async(lambda: waiting_agents(api))
    return agent


async def test_a_start_takes_the_agent_that_waits(api):
    agent = await warmed(api)
    group = await api.start(name="g")
    assert {rank["pid"] for rank in group["ranks"]} <= {process.pid for process in below(agent["pid"])}
    assert agent not in await waiting_agents(api)


async def test_what_waits_for_a_group_is_shown_and_ends_when_memory_is_short(api, monkeypatch):
    monkeypatch.setattr(warm, "LOOK_SECONDS", 0.1)
    agent = await warmed(api)
    assert agent["memory_bytes"] > 1 << 20
    monkeypatch.setattr(warm, "is_short", lambda: True)
    await until_async(lambda: read_process(agent["pid"]) is None)
    assert await waiting_agents(api) == []


async def test_ranks_ask_and_are_answered(shared_api):
    cell = await shared_api.submit("g", "name = input(f'name? ')\nprint(rank, name)", allow_stdin=True)
    path = f"groups/g/executions/{cell}"

    async def asked(ranks):
        asking = []

        async def first():
            asking[:] = (await shared_api.view("g", cell, wait=0))["execution"].get("asking", [])
            return asking[0] if [entry["ranks"] for entry in asking] == [ranks] else None

        return await until_async(first, lambda: f"ranks {ranks} should ask, and there are {asking}")

    question = await asked("0-1")
    assert (question["prompt"], question["password"]) == ("name? ", False)

    async def all_ask():
        return all(rank.get("asks") for rank in (await shared_api.ask("GET", "groups/g"))["ranks"])

    await until_async(all_ask)  # the state of ranks comes by a way of its own
    for body, word in [
        ({}, "text"),
        ({"text": 1}, "text"),
        ({"text": "x" * 10_001}, "limit"),
        ({"text": "", "rank": 0}, "rank"),
    ]:
        status, error = await shared_api.refused("POST", f"{path}/input", body)
        assert (status, error["code"]) == (400, "bad_request")
        assert word in error["message"]

    answer = {"text": "Ada", "ranks": "0", "seq": question["seq"]}
    assert await shared_api.ask("POST", f"{path}/input", answer) == {"answered": "0", "not_asking": ""}
    status, error = await shared_api.refused("POST", f"{path}/input", answer)
    assert (status, error["code"], error["message"]) == (409, "not_asking", "Rank 0 does not ask for input.")
    await asked("1")
    answer = {"text": "Bob", "ranks": "all"}
    assert await shared_api.ask("POST", f"{path}/input", answer) == {"answered": "1", "not_asking": "0"}
    view = await shared_api.view("g", cell)
    assert view["execution"]["state"] == "ok"
    assert sorted(texts(view)) == [("0", "name? Ada\n0 Ada\n"), ("1", "name? Bob\n1 Bob\n")]
    assert "asking" not in view["execution"]

    # A program that cannot answer gets an error that says so, and no rank waits.
    view = await shared_api.run("g", "input('name? ')")
    (item,) = view["items"]
    assert (item["ranks"], item["output"]["ename"]) == ("0-1", "StdinNotImplementedError")
    assert "allow_stdin" in item["output"]["evalue"]
