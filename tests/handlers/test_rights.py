"""What each address can cause, and the right that it takes: only `execute` starts, stops or runs what a user chose."""

from __future__ import annotations

import dataclasses
import json
from urllib.parse import quote

import pytest
from jupyter_server.auth.authorizer import Authorizer
from tornado.httpclient import HTTPClientError

from jupyter_dist.protocol.operations import BY_NAME, OPERATIONS

EXECUTE = [operation for operation in OPERATIONS if operation.right == "execute"]
PLACES = {"group": "x", "rank": "0", "execution_id": "e-1", "name": "python3", "save": "x"}


def test_what_changes_something_needs_the_right_to_execute_or_a_reason_why_not():
    changing = [operation for operation in OPERATIONS if operation.verb != "get"]
    assert {operation.name for operation in changing if operation.right != "execute"} == {
        operation.name for operation in OPERATIONS if operation.why_not_execute
    }
    with pytest.raises(ValueError, match="or a reason why not"):
        dataclasses.replace(BY_NAME["interrupt"], right="read")
    dataclasses.replace(BY_NAME["interrupt"], right="write", why_not_execute="It is a test.")


async def test_the_authorizer_is_asked_for_the_right_of_each_operation(jp_serverapp, jp_fetch):
    asked = []

    class Asked(Authorizer):
        def is_authorized(self, handler, user, action, resource):
            asked.append((action, resource))
            return False

    jp_serverapp.web_app.settings["authorizer"] = Asked(parent=jp_serverapp)
    for operation in OPERATIONS:
        if operation.name != "channel":
            path = operation.path.format(**PLACES)
            with pytest.raises(HTTPClientError) as raised:
                await jp_fetch(
                    "jupyter-dist", f"api/{path}", method=operation.verb.upper(), allow_nonstandard_methods=True
                )
            assert (raised.value.code, asked.pop()) == (403, (operation.right, "jupyter_dist")), operation.name


async def test_who_may_not_execute_lists_the_saves_of_the_servers_folder_alone(
    jp_serverapp, jp_fetch, refused, tmp_path
):
    fields = {op.name: set(op.query.__annotations__) for op in OPERATIONS if op.right != "execute" and op.query}
    places = {name for name, known in fields.items() if known & {"folder", "path", "file"}}
    assert places == {name for name in fields if BY_NAME[name].execute_fields}
    jp_serverapp.web_app.settings["authorizer"] = NoExecute(parent=jp_serverapp)
    if "saves" not in BY_NAME:
        return
    assert json.loads((await jp_fetch("jupyter-dist", "api/saves")).body)["saves"] == []
    assert (await refused("saves", params={"folder": str(tmp_path)}))[0] == 403


class NoExecute(Authorizer):
    """A collaborator who may look and write, and run nothing."""

    def is_authorized(self, handler, user, action, resource):
        return action != "execute"


@pytest.fixture
def program(tmp_path):
    """A program that says that it was run."""
    path = tmp_path / "evil.sh"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    path.chmod(0o755)
    return path


async def test_who_may_not_execute_starts_no_program_of_his_choice(jp_serverapp, jp_fetch, refused, program):
    jp_serverapp.web_app.settings["authorizer"] = NoExecute(parent=jp_serverapp)
    spellings = [program, f"{program.parent}/./evil.sh", f"/{program}", f"..{program}"]
    for name in spellings:
        status, error = await refused(f"environments/{quote(str(name), safe='')}/warm", method="POST", body="{}")
        assert (status, error["code"]) == (400, "bad_environment")
    body = {"python": str(program)}
    assert (await refused("groups", method="POST", json=body))[0] == 403
    for operation in EXECUTE:
        asked = operation.path.format(**{**PLACES, "name": quote(str(program), safe="")})
        assert (await refused(asked, method=operation.verb.upper(), allow_nonstandard_methods=True))[0] == 403
    assert not (program.parent / "ran").exists()


async def test_who_may_execute_names_any_python(jp_serverapp, refused, program):
    status, error = await refused("groups", method="POST", json={"python": str(program)})
    assert (status, error["code"]) == (400, "bad_environment")
    assert (program.parent / "ran").exists()


async def test_who_may_not_execute_submits_no_cell_over_the_channel(jp_serverapp, jp_ws_fetch):
    jp_serverapp.web_app.settings["authorizer"] = NoExecute(parent=jp_serverapp)
    channel = await jp_ws_fetch("jupyter-dist", "api", "channel")
    await channel.write_message(json.dumps({"type": "submit", "group": "x", "key": "k", "cell": {"code": "1"}}))
    while (message := json.loads(await channel.read_message()))["type"] != "error":
        pass
    assert message["error"]["code"] == "forbidden"
    assert message["request"] == {"type": "submit", "group": "x", "key": "k"}
    channel.close()
