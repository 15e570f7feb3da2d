"""A Jupyter server with our extension and no group."""

import json

import pytest
from answers import check_answer
from tornado.httpclient import HTTPClientError


@pytest.fixture
def jp_server_config():
    return {
        "ServerApp": {
            "jpserver_extensions": {"jupyter_dist": True, "jupyter_server_terminals": False},
            "allow_unauthenticated_access": False,
        },
        "DistApp": {"warm_environment": False, "on_server_stop": "end"},
    }


@pytest.fixture
def refused(jp_fetch):
    """Make a request that must fail; return (status, error object)."""

    async def ask(*parts, **options):
        options.setdefault("allow_nonstandard_methods", True)
        if "json" in options:
            options["body"] = json.dumps(options.pop("json"))
        with pytest.raises(HTTPClientError) as raised:
            await jp_fetch("jupyter-dist", "api", *parts, **options)
        response = raised.value.response
        assert response is not None, raised.value
        check_answer(options.get("method", "GET"), "/".join(parts), response.code, json.loads(response.body))
        error = json.loads(response.body)["error"]
        assert error["message"].endswith((".", "?")), error
        return response.code, error

    return ask


@pytest.fixture
def ask(jp_fetch):
    """Make a request; return what it answers."""

    async def ask(*parts, **options):
        if "json" in options:
            options["body"] = json.dumps(options.pop("json"))
        response = await jp_fetch("jupyter-dist", "api", *parts, **options)
        answer = json.loads(response.body) if response.body else None
        check_answer(options.get("method", "GET"), "/".join(parts), response.code, answer)
        return answer

    return ask
