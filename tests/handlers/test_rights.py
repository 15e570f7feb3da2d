"""What each address can cause, and the right that it takes: only `execute` starts, stops or runs what a user chose."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from jupyter_server.auth.authorizer import Authorizer
from tornado.httpclient import HTTPClientError

from jupyter_dist.server.http.openapi import operations_of
from jupyter_dist.server.http.routes import ROUTES

# New URLs are added here by hand, after thinking about what they can cause.
RIGHTS = {
    ("get", ""): "read",
    ("get", "openapi.json"): "read",
    ("get", "environments"): "read",
    ("get", "launchers"): "read",  # runs sinfo
    ("post", "environments/{name}/warm"): "write",  # the same ones, never a path
    ("get", "devices"): "read",
    ("get", "prepared"): "read",
    ("get", "groups"): "read",
    ("post", "groups"): "execute",
    ("get", "groups/{group}"): "read",
    ("delete", "groups/{group}"): "execute",
    ("post", "groups/{group}/owners"): "execute",
    ("post", "groups/{group}/interrupt"): "execute",
    ("post", "groups/{group}/restart"): "execute",
    ("post", "groups/{group}/replace"): "execute",
    ("post", "groups/{group}/reform"): "execute",
    ("post", "groups/{group}/ranks/{rank}/kill"): "execute",
    ("post", "groups/{group}/ranks/{rank}/complete"): "execute",  # asking for attributes runs code
    ("post", "groups/{group}/ranks/{rank}/comms"): "execute",  # a callback of a widget runs
    ("post", "groups/{group}/debug"): "execute",
    ("post", "groups/{group}/ranks/{rank}/inspect"): "execute",  # so does asking for their documentation
    ("post", "groups/{group}/empty-cache"): "execute",
    ("get", "groups/{group}/memory"): "read",
    ("get", "groups/{group}/samples"): "read",
    ("get", "groups/{group}/history"): "read",
    ("get", "groups/{group}/variables"): "read",  # by types alone, runs no code of cells
    ("post", "groups/{group}/compare"): "execute",  # takes the time of ranks
    ("get", "groups/{group}/drift"): "read",  # from what the server knows; asks no rank
    ("get", "groups/{group}/stacks"): "read",  # asks the side threads, runs no code of cells
    ("post", "groups/{group}/executions"): "execute",
    ("get", "groups/{group}/executions"): "read",
    ("get", "groups/{group}/executions/{execution}"): "read",
    ("delete", "groups/{group}/executions/{execution}"): "execute",
    ("post", "groups/{group}/executions/{execution}/input"): "execute",
    ("post", "groups/{group}/executions/{execution}/extend"): "execute",
    ("get", "groups/{group}/executions/{execution}/curves"): "read",
    ("get", "groups/{group}/executions/{execution}/curves/download"): "read",
    ("get", "groups/{group}/executions/{execution}/trace"): "read",
    ("post", "groups/{group}/script"): "read",  # writes no file, and runs nothing
    ("get", "groups/{group}/ranks/{rank}/log"): "read",
    ("get", "groups/{group}/ranks/{rank}/log/download"): "read",
    ("get", "channel"): "read",
}


def test_every_address_takes_the_right_for_what_it_can_cause():
    declared = {
        (verb, route.path): operation.action
        for route in ROUTES
        for verb, operation in operations_of(route.handler).items()
    }
    assert declared == RIGHTS
    assert {route.handler.auth_resource for route in ROUTES} == {"jupyter_dist"}


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
    codes = []
    for verb, path in RIGHTS:
        asked = path.format(name=quote(str(program), safe=""), group="x", rank="0", execution="e-1")
        if path != "channel":
            try:
                await jp_fetch("jupyter-dist", "api", asked, method=verb.upper(), allow_nonstandard_methods=True)
            except HTTPClientError as err:
                codes.append(err.code)
    assert codes
    assert max(codes) < 500
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
