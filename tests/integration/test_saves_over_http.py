"""Saves over HTTP: what a client sees of them, and an administrator's limits."""

import os
import signal
import time

import pytest

from jupyter_dist.client import AsyncClient, JupyterDistError
from jupyter_dist.client.servers import server_of

pytestmark = pytest.mark.part("saves")


@pytest.fixture
def jp_server_config(jp_server_config, tmp_path):
    limits = {"saves_folder": str(tmp_path / "kept"), "saves_bytes": 3_000_000, "saves_days": 30}
    return {**jp_server_config, "DistApp": {**jp_server_config["DistApp"], **limits}}


async def ended(api, execution, name="g"):
    view = await api.ask("GET", f"groups/{name}/executions/{execution['id']}", wait=60)
    return view["execution"]


async def test_saves_over_http_keep_to_the_limits_of_the_administrator(api, tmp_path, nothing_left):
    await api.start(2, name="g")
    await api.run("g", "x = torch.rand(1 << 18)")
    done = await ended(api, await api.ask("POST", "groups/g/saves", {"name": "one"}))
    assert done["state"] == "ok", done
    assert done["transfer"]["action"] == "save"
    assert 0 < done["transfer"]["done_bytes"] == done["transfer"]["total_bytes"]
    listed = await api.ask("GET", "saves")
    assert (listed["folder"], [save["name"] for save in listed["saves"]]) == (str(tmp_path / "kept"), ["one"])

    assert (await api.until("g", lambda group: group["last_save"]))["last_save"]["name"] == "one"

    await api.run("g", "x = torch.rand(1 << 18)")
    late = await ended(api, await api.ask("POST", "groups/g/saves", {"name": "two"}))
    assert (late["state"], late["error"]["code"]) == ("error", "not_saved")
    assert "The folder may have 0.0 GB (DistApp.saves_bytes)" in late["error"]["message"]
    assert [save["name"] for save in (await api.ask("GET", "saves"))["saves"]] == ["one"]

    path = tmp_path / "kept" / "saves" / "one" / "save.json"
    path.write_text(path.read_text().replace('"saved_at": ', f'"saved_at": {time.time() - 31 * 86400}, "was": '))
    assert (await ended(api, await api.ask("POST", "groups/g/saves", {"name": "two"})))["state"] == "ok"
    assert [save["name"] for save in (await api.ask("GET", "groups/g/saves"))["saves"]] == ["two"]

    status, error = await api.refused("POST", "groups/g/restore", {"name": "../two"})
    assert (status, error["code"]) == (400, "bad_request")
    status, error = await api.refused("POST", "groups/g/saves", {"name": "x", "folder": "\0"})
    assert (status, error["code"]) == (400, "bad_directory")
    await api.ask("DELETE", "groups/g")
    await nothing_left()


async def test_a_save_of_another_server_begins_a_group_with_its_ranks(shared_api, api, jp_serverapp, tmp_path):
    await shared_api.run("g", "mine = torch.full((3,), float(rank))")
    place = {"name": "start", "folder": str(tmp_path / "kept")}
    done = await shared_api.ask("POST", "groups/g/saves", place)
    assert (await ended(shared_api, done))["state"] == "ok"
    client = AsyncClient(server_of(jp_serverapp.connection_url, jp_serverapp.identity_provider.token))
    with pytest.raises(JupyterDistError, match=r"There is no save 'other'.*Saves: start"):
        await client.start("again", accelerator="cpu", restore="other")
    with pytest.raises(JupyterDistError, match=r"There is no save 'start' in .*/empty"):
        await client.start("again", accelerator="cpu", restore=f"{tmp_path}/empty/start")
    again = await client.start("again", accelerator="cpu", restore=f"{tmp_path}/kept/start")
    assert again.world_size == 2
    assert (await again.run("mine.sum().item()")).values == {0: "0.0", 1: "3.0"}
    with pytest.raises(JupyterDistError, match="has 2 ranks, and this group has 1"):
        await client.start("third", accelerator="cpu", num_ranks=1, restore="start")
    assert [group.name for group in await client.groups()] == ["again"]
    await client.close()


async def test_the_newest_save_is_known_after_the_end_of_its_group_and_begins_the_next_one(api, jp_serverapp, tmp_path):
    group = await api.start(2, name="g")
    await api.run("g", "x = 1")
    elsewhere = {"name": "late", "folder": str(tmp_path / "elsewhere")}
    for place in ({"name": "early"}, elsewhere):
        assert (await ended(api, await api.ask("POST", "groups/g/saves", place)))["state"] == "ok"
    found = await api.until("g", lambda group: group["last_save"] and group["last_save"]["name"] == "late")
    assert found["last_save"] == (await api.ask("GET", "last-saves", group="g"))["saves"][0]
    assert (found["last_save"]["folder"], found["last_save"]["world_size"]) == (elsewhere["folder"], 2)
    assert (await api.ask("GET", "last-saves", group="other"))["saves"] == []

    os.kill(found["ranks"][0]["pid"], signal.SIGKILL)
    os.kill(found["ranks"][1]["pid"], signal.SIGKILL)
    dead = await api.until("g", lambda group: group["state"] == "dead")
    assert dead["last_save"] == found["last_save"]
    await api.ask("DELETE", f"groups/{group['id']}")
    client = AsyncClient(server_of(jp_serverapp.connection_url, jp_serverapp.identity_provider.token))
    again = await client.start("g", accelerator="cpu", restore="late")  # from the folder that is not the server's
    assert again.model["last_save"] == found["last_save"]
    assert (await again.run("x")).values == {0: "1", 1: "1"}
    await again.shutdown()
    await client.close()
    assert (await api.start(1, name="g"))["last_save"] is None  # it has two ranks

    await api.ask("DELETE", "saves/late", folder=elsewhere["folder"])
    assert [save["name"] for save in (await api.ask("GET", "last-saves"))["saves"]] == ["early"]
