"""Junk on every channel: refused with an error, without other effects. `--fuzz-examples 10000` for a long run."""

from __future__ import annotations

import json
import socket
import struct
import urllib.error
import urllib.request

import pytest
from agent.harness import AgentProcess
from faults.server import TOKEN, JupyterServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from leaks import nothing_left
from waits import PATIENCE

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.schemas import fields_of
from jupyter_dist.protocol.wire.requests import RunRequest, StartRequest
from jupyter_dist.server.http.guard import parse_body
from jupyter_dist.transport.frames import encode_frame

few = settings(
    settings.get_profile("channels"),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

texts = st.text(st.characters(), max_size=20)  # with surrogates, which JSON can name and UTF-8 cannot hold
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)
names = st.sampled_from([*fields_of(StartRequest), *fields_of(RunRequest), "type", "topic", "t", "id"]) | texts
bodies = st.dictionaries(names, json_values, max_size=5) | json_values
DEEP = b'{"ranks": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with nothing_left():
        server = JupyterServer(tmp_path_factory.mktemp("fuzz"))
        server.start(2, name="g")
        yield server
        assert server.run("g", "print('fine')")["execution"]["state"] == "ok"
        server.ask("DELETE", "groups/g")
        server.end()
        assert "Traceback" not in server.log(), server.log()[-3000:]


@few
@given(st.sampled_from([StartRequest, RunRequest]), bodies)
def test_any_body_is_taken_or_refused_in_one_sentence(model, body):
    try:
        assert parse_body(model, body) == body
        return
    except JupyterDistError as err:
        refusal = err
    assert refusal.code == "bad_request"
    assert len(refusal.message) < 300


ROUTES = [
    "groups/g/executions",
    "groups/g/interrupt",
    "groups/g/empty-cache",
    "groups/g/ranks/0/comms",
    "groups/g/replace",
    "groups/none/restart",
]


@few
@given(
    st.sampled_from(ROUTES),
    bodies.map(lambda body: json.dumps(body).encode())
    | st.binary(max_size=60)
    | st.sampled_from(["deep", b"\xff\xfe{"]),
)
def test_any_request_is_answered_in_our_form(server, path, data):
    request = urllib.request.Request(
        f"{server.info['url']}jupyter-dist/api/{path}",
        DEEP if data == "deep" else data,
        {"Authorization": f"token {TOKEN}"},
        method="POST",
    )
    try:
        response = urllib.request.urlopen(request, timeout=PATIENCE)
    except urllib.error.HTTPError as err:
        response = err
    with response:
        answer = json.loads(response.read())
    assert response.status < 500, (path, data)
    if response.status >= 400:
        assert set(answer["error"]) - {"message_words", "hint_words"} == {"code", "message", "hint"}


@few
@given(
    st.lists(
        st.tuples(
            bodies.map(lambda body: json.dumps(body).encode())
            | st.fixed_dictionaries(
                {
                    "type": st.sampled_from(["subscribe", "unsubscribe"]),
                    "topic": texts | st.just("execution"),
                },
                optional={"group": json_values, "execution": json_values, "since": json_values, "rank": json_values},
            ).map(lambda body: json.dumps(body).encode())
            | st.binary(max_size=40)
            | st.sampled_from(["deep", "long"]),
            st.sampled_from([1, 1, 1, 2, 9]),
        ),
        max_size=6,
    )
)
def test_any_message_on_the_websocket_costs_at_most_that_connection(server, messages):
    channel = server.channel()
    try:
        for sample, opcode in messages:
            data = {"deep": DEEP[:60_000], "long": b"x" * 70_000}.get(sample, sample)
            channel.send(data[:100] if opcode == 9 else data, opcode)
        channel.send({"type": "subscribe", "topic": "nonsense"})
        while (message := channel.next()) is not None and message["type"] != "error":
            pass
    except (OSError, EOFError):
        pass  # it was closed
    finally:
        channel.close()
    assert server.ask("GET", "groups/g")["state"] == "ready"


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    with nothing_left(), AgentProcess(tmp_path_factory.mktemp("fuzz") / "g") as client:
        client.start(2)
        yield client
        assert client.run("dist.barrier(); print('fine')")["state"] == "ok"


requests = st.sampled_from(
    [
        "hello",
        "follow",
        "start",
        "execute",
        "cancel",
        "interrupt",
        "empty_cache",
        "stacks",
        "watch",
        "executions",
        "lease",
        "ends",
        "x",
    ]
)
frames = st.builds(
    lambda kind, fields, payload: encode_frame({**fields, "t": kind}, payload),
    requests,
    st.dictionaries(
        st.sampled_from(["id", "since", "ranks", "rank", "execution", "execution_id", "spec", "before", "max_bytes"]),
        st.none() | texts | st.booleans() | st.lists(st.text(max_size=3), max_size=3),
        max_size=4,
    ),
    st.binary(max_size=30),
)


@few
@given(st.lists(frames | st.binary(max_size=60) | st.just(struct.pack("!II", 2**32 - 1, 2**32 - 1)), max_size=8))
def test_junk_on_the_agents_socket_leaves_the_server_and_the_ranks_alone(agent, parts):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(agent.agent.directory / "agent.sock"))
        try:
            for part in parts:
                sock.sendall(part)
        except OSError:
            pass  # it had enough
    agent.request("ping")
    assert agent.group["state"] == "ready"
