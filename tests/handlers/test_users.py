"""Threats 1, 2, 7 and 19: old cookies, a server that lets strangers in elsewhere, a second user, and other machines."""

from __future__ import annotations

import json
import time

import pytest
from jupyter_server.auth.authorizer import Authorizer
from jupyter_server.auth.identity import IdentityProvider, User
from test_auth import METHODS, PATHS
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.web import create_signed_value
from tornado.websocket import websocket_connect
from waits import PATIENCE

DAY = 24 * 3600
LET_IN = {
    "ServerApp": {"jpserver_extensions": {"jupyter_dist": True}, "allow_unauthenticated_access": True},
    "DistApp": {"warm_environment": False, "on_server_stop": "end"},
}


async def statuses(client, base_url, headers):
    found = []
    for path in PATHS:
        for method in METHODS:
            url = f"{base_url}jupyter-dist/api/{path}"
            try:
                response = await client.fetch(url, method=method, headers=headers, allow_nonstandard_methods=True)
                found.append((response.code, method, path, response.body))
            except HTTPClientError as err:
                found.append((err.code, method, path, err.response.body if err.response else b""))
    return found


async def test_a_cookie_that_expired_or_is_forged_opens_nothing(
    jp_serverapp, http_server_client, jp_base_url, jp_http_port
):
    secret, name = jp_serverapp.web_app.settings["cookie_secret"], f"username-127-0-0-1-{jp_http_port}"
    user = json.dumps(dict.fromkeys(("username", "name", "display_name", "initials", "avatar_url", "color"), "ann"))
    good = create_signed_value(secret, name, user)
    old = create_signed_value(secret, name, user, clock=lambda: time.time() - 400 * DAY)
    forged = create_signed_value(b"another secret", name, user)
    url = f"{jp_base_url}jupyter-dist/api/groups"
    assert (await http_server_client.fetch(url, headers={"Cookie": f"{name}={good.decode()}"})).code == 200
    for value in (old, forged, b"junk"):
        headers = {"Cookie": f"{name}={value.decode()}"}
        for status, method, path, _ in await statuses(http_server_client, jp_base_url, headers):
            assert status in (401, 403, 405), (method, path, status)


@pytest.mark.parametrize("jp_server_config", [LET_IN], indirect=False)
async def test_where_strangers_are_let_in_elsewhere_they_are_not_here(
    jp_server_config, jp_serverapp, http_server_client, jp_base_url, jp_http_port
):
    assert jp_serverapp.web_app.settings["allow_unauthenticated_access"] is True
    for status, method, path, _ in await statuses(http_server_client, jp_base_url, {}):
        assert status in (401, 403, 405), (method, path, status)
    with pytest.raises(HTTPClientError) as raised:
        await websocket_connect(f"ws://127.0.0.1:{jp_http_port}{jp_base_url}jupyter-dist/api/channel")
    assert raised.value.code == 403


class TwoUsers(IdentityProvider):
    """Whoever says who he is."""

    def get_user(self, handler):
        name = handler.request.headers.get("X-User")
        return User(name) if name else None


class OnlyAnn(Authorizer):
    """As a shared server: Bob may use it, and has no scope for Ann's ranks."""

    def is_authorized(self, handler, user, action, resource):
        return resource != "jupyter_dist" or user.username == "ann"


async def test_a_user_without_the_right_sees_no_name_no_log_and_no_device(
    jp_serverapp, http_server_client, jp_base_url, jp_http_port
):
    settings = jp_serverapp.web_app.settings
    settings["identity_provider"] = TwoUsers(parent=jp_serverapp)
    settings["authorizer"] = OnlyAnn(parent=jp_serverapp)
    ann, bob = {"X-User": "ann", "Authorization": "x"}, {"X-User": "bob", "Authorization": "x"}
    manager = settings["jupyter_dist"].manager
    group = await http_server_client.fetch(
        f"{jp_base_url}jupyter-dist/api/groups",
        method="POST",
        headers={**ann, "X-XSRFToken": "x", "Cookie": "_xsrf=x"},
        body=json.dumps({"name": "anns-own", "num_ranks": 1}),
        request_timeout=PATIENCE,
    )
    try:
        assert json.loads(group.body)["name"] == "anns-own"
        seen = await http_server_client.fetch(f"{jp_base_url}jupyter-dist/api/groups", headers=ann)
        assert b"anns-own" in seen.body
        for status, method, path, body in await statuses(
            http_server_client, jp_base_url, {**bob, "X-XSRFToken": "x", "Cookie": "_xsrf=x"}
        ):
            assert status in (403, 404, 405), (method, path, status)
            assert b"anns-own" not in body
        for path in ("groups/anns-own", "groups/anns-own/ranks/0/log", "devices", "groups/anns-own/memory"):
            with pytest.raises(HTTPClientError) as raised:
                await http_server_client.fetch(f"{jp_base_url}jupyter-dist/api/{path}", headers=bob)
            assert raised.value.code == 403
        url = f"ws://127.0.0.1:{jp_http_port}{jp_base_url}jupyter-dist/api/channel"
        with pytest.raises(HTTPClientError) as raised:
            await websocket_connect(HTTPRequest(url, headers=bob))
        assert raised.value.code == 403
    finally:
        for living in manager.all():
            await manager.shutdown(living)


@pytest.mark.parametrize("field", ["num_nodes", "hosts", "master_addr", "rendezvous"])
async def test_ranks_on_other_machines_are_refused_by_name(jp_serverapp, refused, field):
    status, error = await refused("groups", method="POST", json={"num_ranks": 2, field: 2})
    assert status == 400
    assert field in error["message"]
