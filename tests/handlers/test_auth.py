"""Every address refuses a stranger: found from the router, so that a new one is tested by itself."""

import json
import warnings

import pytest
from jupyter_server.auth.authorizer import Authorizer
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import JupyterServerAuthWarning
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from jupyter_dist.protocol.operations import OPERATIONS
from jupyter_dist.server.http.jupyter import JUPYTER
from jupyter_dist.server.http.routes import tornado_routes

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
PLACES = {"name": "x", "group": "x", "rank": 0, "execution_id": "x", "save": "x"}
PATHS = [*dict.fromkeys(operation.path.format(**PLACES) for operation in OPERATIONS), "nothing/here"]


@pytest.mark.parametrize("token", [None, "wrong"])
async def test_all_routes_refuse_strangers(jp_serverapp, jp_fetch, http_server_client, jp_base_url, token):
    for path in PATHS:
        for method in METHODS:
            headers = {"Authorization": f"token {token}"} if token else {}
            url = f"{jp_base_url}jupyter-dist/api/{path}"
            with pytest.raises(HTTPClientError) as raised:
                await http_server_client.fetch(url, method=method, headers=headers, allow_nonstandard_methods=True)
            assert raised.value.code in (401, 403, 405), (method, path)


async def test_the_routes_are_those_of_the_router(jp_serverapp):
    (rules,) = (
        rule.target.rules
        for rule in jp_serverapp.web_app.default_router.rules
        if any("jupyter-dist" in str(getattr(r.matcher, "regex", r)) for r in getattr(rule.target, "rules", []))
    )
    ours = {rule.target for rule in rules if "jupyter-dist/api" in rule.matcher.regex.pattern}
    assert ours == {handler for _, handler, *_ in tornado_routes(JUPYTER)}


@pytest.fixture
def cookies(jp_serverapp, jp_fetch, jp_auth_header):
    """Log in as a browser does; return the headers that it would send."""

    async def log_in():
        response = await jp_fetch("api", "me")
        pairs = [header.split(";")[0] for header in response.headers.get_list("Set-Cookie")]
        return {"Cookie": "; ".join(pairs)}

    return log_in


async def test_cookies_need_the_xsrf_token(cookies, http_server_client, jp_base_url):
    headers = await cookies()
    await http_server_client.fetch(f"{jp_base_url}jupyter-dist/api/groups", headers=headers)
    for path in PATHS:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            url = f"{jp_base_url}jupyter-dist/api/{path}"
            with pytest.raises(HTTPClientError) as raised:
                await http_server_client.fetch(url, method=method, headers=headers, allow_nonstandard_methods=True)
            assert raised.value.code == 403, (method, path)


@pytest.fixture
def open_channel(http_server, jp_http_port, jp_base_url):
    async def connect(headers):
        url = f"ws://127.0.0.1:{jp_http_port}{jp_base_url}jupyter-dist/api/channel"
        return await websocket_connect(HTTPRequest(url, headers=headers))

    return connect


@pytest.mark.parametrize("headers", [{}, {"Authorization": "token wrong"}])
async def test_the_channel_refuses_strangers(jp_serverapp, open_channel, headers):
    with pytest.raises(HTTPClientError) as raised:
        await open_channel(headers)
    assert raised.value.code == 403


async def test_the_channel_refuses_other_sites(jp_serverapp, open_channel, cookies, jp_http_port):
    headers = await cookies()
    with pytest.raises(HTTPClientError) as raised:
        await open_channel({**headers, "Origin": "http://evil.example"})
    assert raised.value.code == 403
    channel = await open_channel({**headers, "Origin": f"http://127.0.0.1:{jp_http_port}"})
    assert json.loads(await channel.read_message())["type"] == "hello"
    channel.close()


async def test_a_foreign_host_is_refused(jp_serverapp, http_server_client, jp_base_url, jp_auth_header):
    headers = {**jp_auth_header, "Host": "evil.example"}
    with pytest.raises(HTTPClientError) as raised:
        await http_server_client.fetch(f"{jp_base_url}jupyter-dist/api/groups", headers=headers)
    assert raised.value.code == 403


class ReadOnly(Authorizer):
    """A collaborator who may look."""

    def is_authorized(self, handler, user, action, resource):
        return action == "read" if resource == "jupyter_dist" else True


async def test_readers_can_only_read(jp_serverapp, jp_fetch, jp_ws_fetch):
    jp_serverapp.web_app.settings["authorizer"] = ReadOnly(parent=jp_serverapp)
    for operation in OPERATIONS:
        if operation.name == "channel":
            continue
        path, method = operation.path.format(**PLACES), operation.verb.upper()
        try:
            await jp_fetch("jupyter-dist", "api", path, method=method, allow_nonstandard_methods=True)
            status = 200
        except HTTPClientError as err:
            status = err.code
        assert (status == 403) == (operation.right != "read"), (operation.name, status)
    channel = await jp_ws_fetch("jupyter-dist", "api", "channel")
    assert json.loads(await channel.read_message())["type"] == "hello"
    channel.close()


async def test_who_may_not_read_has_no_channel(jp_serverapp, jp_ws_fetch):
    class Nothing(Authorizer):
        def is_authorized(self, handler, user, action, resource):
            return False

    jp_serverapp.web_app.settings["authorizer"] = Nothing(parent=jp_serverapp)
    with pytest.raises(HTTPClientError) as raised:
        await jp_ws_fetch("jupyter-dist", "api", "channel")
    assert raised.value.code == 403


def test_handlers_are_jupyters():
    assert all(issubclass(handler, JupyterHandler) for _, handler, *_ in tornado_routes(JUPYTER))


def test_jupyter_server_finds_all_endpoints_authenticated(jp_environ):
    ServerApp.clear_instance()
    app = ServerApp(
        allow_unauthenticated_access=False,
        jpserver_extensions={"jupyter_dist": True},
        reraise_server_extension_failures=True,
        allow_root=True,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        app.initialize(argv=[], find_extensions=False, new_httpserver=False)
    assert [str(w.message) for w in caught if issubclass(w.category, JupyterServerAuthWarning)] == []
    ServerApp.clear_instance()
