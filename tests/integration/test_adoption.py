"""A server that comes back finds its groups: running cells, outputs, logs, and what died meanwhile."""

import asyncio
import os
import signal

import pytest
from apiclient import texts, without_seq
from waits import PATIENCE, until_async

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.operations import BY_NAME


def begin_again(jp_serverapp):
    """Give the extension new parts, as in a new server process."""
    app = jp_serverapp.extension_manager.extension_points["jupyter_dist"].app
    app.initialize_settings()
    jp_serverapp.web_app.settings.update(app.settings)
    return app


@pytest.fixture
def server_again(jp_serverapp):
    """Replace the extension's manager, as a new server process would begin: nothing is known but the disk."""
    app = jp_serverapp.extension_manager.extension_points["jupyter_dist"].app

    async def replace(orderly=True):
        if orderly:
            await app.manager.stop(end_groups=False)
        else:
            for group in app.manager.all():  # a killed server says nothing; the kernel frees its locks
                await group.mirror.link.close()
                group.mirror.is_ending = True
                group.mirror.directory.release()
            app.manager._spawner.detach()
        await begin_again(jp_serverapp).service.adopted()

    return replace


@pytest.fixture
def manager_of(jp_serverapp):
    """The manager that the extension has now."""
    return lambda: jp_serverapp.extension_manager.extension_points["jupyter_dist"].app.manager


@pytest.mark.part("parking")
async def test_a_parked_group_stays_parked_while_servers_come_and_go(api, server_again):
    await api.start(name="g")
    await api.run("g", "x = torch.ones(1000) * rank")
    await api.ask("POST", "groups/g/park", {"to": "file"})
    parked = await api.until("g", lambda group: group["state"] == "parked")
    for orderly in (True, False):
        await server_again(orderly)
        after = await api.until("g", lambda group: group["state"] == "parked")
        assert (after["id"], after["parked"]) == (parked["id"], parked["parked"])
    assert texts(await api.run("g", "int(x.sum().item())")) == [("0", "0"), ("1", "1000")]


@pytest.mark.parametrize("orderly", [True, False])
async def test_a_new_server_takes_over_a_running_cell(api, server_again, orderly, tmp_path):
    before = await api.start(name="g")
    done = await api.run("g", "x = 7\nprint('done', rank)\nx")
    flag = tmp_path / "flag"
    code = "import os, time\nfor step in range(8):\n    print('step', step)\n    time.sleep(0.05)\n"
    code += f"while not os.path.exists({str(flag)!r}): time.sleep(0.01)\nprint(rank + x)"
    running = await api.submit("g", code)
    queued = await api.submit("g", "print('queued')")
    await api.shown("g", running, "step 1")

    await server_again(orderly)

    after = await api.ask("GET", "groups/g")
    assert after["id"] == before["id"]
    assert after["state"] == "ready"
    assert after["running"] == [running]
    assert after["queued"] == [queued]
    listed = (await api.ask("GET", "groups/g/executions"))["executions"]
    assert [execution["line"] for execution in listed] == ["x = 7", "import os, time", "print('queued')"]
    again = await api.view("g", done["execution"]["id"])
    assert again["items"] == done["items"]
    assert again["seq"] == done["seq"]

    flag.touch()
    channel = await api.channel()
    assert (await channel.follow("g", running))["state"] == "ok"
    view = await api.view("g", running)
    assert without_seq(view["items"]) == without_seq(channel.items)
    assert texts(view)[0] == ("0-1", "".join(f"step {step}\n" for step in range(8)))
    assert texts(view)[1:] == [("0", "7\n"), ("1", "8\n")]
    assert view["execution"]["code"] == code
    history = (await api.ask("GET", "groups/g/history"))["cells"]
    assert [cell["code"] for cell in history[:2]] == ["x = 7\nprint('done', rank)\nx", code]
    assert texts(await api.view("g", queued)) == [("0-1", "queued\n")]
    channel.socket.close()


async def test_a_page_sees_what_a_stopped_group_has_printed_and_all_other_groups(api, server_again, manager_of):
    """This server has not followed the cell. It reads its output from files, so that the agent need not answer."""
    await api.start(1, name="other")
    group = await api.start(1, name="g")
    running = await api.submit("g", "import time\nprint('before')\ntime.sleep(1000)")
    await api.shown("g", running, "before")
    await server_again()
    agent = manager_of().get("g").status.fields["agent_pid"]
    os.kill(agent, signal.SIGSTOP)
    seen = []
    try:
        channel = await api.channel()
        channel.subscribe("groups")
        await channel.next_of("changes")
        channel.subscribe("execution", group="g", execution=running)
        while not any(is_told(message, group["id"], "unresponsive") for message in seen):
            seen.append(await channel.next())
        busy = await api.submit("other", "import time; time.sleep(1000)")
        while busy not in str(seen[-1]):
            seen.append(await channel.next())
        assert "before" in str([message for message in seen if message["type"] == "view"])
        channel.subscribe("groups")  # as a page that asks whether the server is still there: it gets all groups again
        while (await channel.next_of("changes"))["seq"] != 1:
            pass
    finally:
        os.kill(agent, signal.SIGCONT)
    executions = [message["execution"] for message in seen if message["type"] == "execution"]
    assert [execution["state"] for execution in executions] == ["running"]
    assert "error" not in [message["type"] for message in seen]
    await channel.close()


def is_told(message, group, state):
    if message["type"] != "changes":
        return False
    whole = [(one["id"], one["state"]) for one in message["groups"]]
    return (group, state) in [*whole, *((one["id"], one["fields"].get("state")) for one in message["changes"])]


async def test_a_group_that_died_is_lost_and_its_log_is_there(api, server_again, groups_path):
    group = await api.start(name="g")
    await api.run("g", "x = 1", cell_id="a", notebook="n.ipynb")
    await api.run("g", "1 / 0", cell_id="b", notebook="n.ipynb")
    await api.run("g", "hidden = 1", silent=True)
    view = await api.run("g", "print('last words')", cell_id="a", notebook="n.ipynb")
    has_scripts = "script" in BY_NAME
    before = await api.ask("POST", "groups/g/script", {}) if has_scripts else None
    history = await api.ask("GET", "groups/g/history")
    assert [cell["code"] for cell in history["cells"]] == ["x = 1", "1 / 0", "print('last words')"]
    assert (await api.ask("GET", "groups/g/history", number=1))["cells"] == history["cells"][-1:]
    if has_scripts:
        assert "print('last words')\n" in before["script"]
        assert "hidden" not in before["script"]
    agent_pid = (groups_path / group["id"] / "group.json").read_text()
    agent_pid = int(agent_pid.split('"agent_pid":')[1].split(",")[0])
    os.kill(agent_pid, signal.SIGKILL)
    lost = await api.ask("GET", "groups/g", wait=PATIENCE, not_state="ready")
    assert lost["state"] == "lost"
    assert "agent" in lost["error"]["message"]
    assert (await api.refused("POST", "groups/g/executions", {"code": "1"}))[1]["code"] == "group_not_ready"
    assert (await api.view("g", view["execution"]["id"]))["items"] == view["items"]

    await server_again()

    lost = await api.ask("GET", "groups/g")
    assert lost["state"] == "lost"
    log = await api.ask("GET", "groups/g/ranks/0/log")
    assert "last words\n" in [record.get("text") for record in log["records"]]
    if has_scripts:
        assert await api.ask("POST", "groups/g/script", {}) == before
    assert await api.ask("GET", "groups/g/history") == history
    await api.ask("DELETE", "groups/g")
    assert list(groups_path.iterdir()) == []
    await until_async(lambda: not any(_alive(rank["pid"]) for rank in group["ranks"]))


@pytest.mark.part("drift")
async def test_a_new_server_knows_what_a_replaced_rank_has_missed(api, server_again):
    await api.start(name="g")
    code = "kept = 40 + rank"
    await api.run("g", code, cell_id="a", notebook="n.ipynb")
    await api.run("g", "print('some')", ranks="0", cell_id="b", notebook="n.ipynb")
    await api.ask("POST", "groups/g/ranks/1/kill", {})
    await api.ask("GET", "groups/g", wait=PATIENCE, not_state="ready")
    await api.ask("POST", "groups/g/replace", {})
    await api.ask("GET", "groups/g", wait=PATIENCE, not_state="restarting")
    before = await api.ask("GET", "groups/g/drift")
    assert [(cell["offered"], cell["code"]) for cell in before["cells"]] == [("1", code), ("", "print('some')")]

    await server_again()

    assert await api.ask("GET", "groups/g/drift") == before
    await api.run("g", code, ranks="1")
    assert [cell["offered"] for cell in (await api.ask("GET", "groups/g/drift"))["cells"]] == ["", ""]
    status, error = await api.refused("GET", "groups/nowhere/drift")
    assert (status, error["code"]) == (404, "unknown_group")


async def test_a_group_that_another_server_has_is_left_alone(api, jp_serverapp):
    await api.start(name="g")
    mine = jp_serverapp.extension_manager.extension_points["jupyter_dist"].app.service
    app = begin_again(jp_serverapp)
    await app.manager.adopt()
    assert app.manager.all() == []
    app.service = app.settings["jupyter_dist_service"] = mine
    jp_serverapp.web_app.settings.update(app.settings)
    assert texts(await api.run("g", "print('mine')")) == [("0-1", "mine\n")]


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_connection_to_a_living_agent_that_breaks_is_made_again(api, jp_serverapp):
    await api.start(name="g")
    running = await api.submit("g", "import time\nfor n in range(10):\n    print(n, flush=True); time.sleep(0.1)")
    (group,) = jp_serverapp.extension_manager.extension_points["jupyter_dist"].app.manager.all()
    group.mirror.link._stream.abort()
    view = await api.view("g", running)
    assert view["execution"]["state"] == "ok"
    assert texts(view) == [("0-1", "".join(f"{n}\n" for n in range(10)))]
    assert (await api.ask("GET", "groups/g"))["state"] == "ready"


async def test_groups_of_a_server_that_is_ending_are_waited_for(api, jp_serverapp):
    app = jp_serverapp.extension_manager.extension_points["jupyter_dist"].app
    before = await api.start(name="g")
    ending = app.manager
    for group in ending.all():
        group.mirror.directory.announce_release()
    adoption = asyncio.ensure_future(begin_again(jp_serverapp).service.adopted())
    await asyncio.wait([adoption], timeout=0.3)
    assert not adoption.done()
    await ending.stop(end_groups=False)
    with pytest.raises(JupyterDistError, match="is stopping"):
        ending.get("g")
    await adoption
    assert (await api.ask("GET", "groups/g"))["id"] == before["id"]
