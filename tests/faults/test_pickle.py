"""Threat 8: a pickle that runs a program when it is loaded, sent to every endpoint: it is never loaded."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from waits import PATIENCE

from jupyter_dist.protocol.operations import OPERATIONS
from jupyter_dist.transport.frames import LENGTHS, encode_frame

from .server import TOKEN


class Bomb:
    """Leaves a folder where it is loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.trace),)


@pytest.fixture
def server(group_server):
    return group_server


@pytest.fixture
def bomb(server, tmp_path):
    """The pickle; after the test it was not loaded, and the ranks have kept their variables."""
    trace = tmp_path / "loaded"
    data = pickle.dumps(Bomb(trace))
    pickle.loads(data)  # it does work
    trace.rmdir()
    pids = [rank["pid"] for rank in server.ask("GET", "groups/g")["ranks"]]
    yield data
    view = server.run("g", "print('fine')")
    assert view["items"][0]["output"]["text"] == "fine\n"
    assert [rank["pid"] for rank in server.ask("GET", "groups/g")["ranks"]] == pids
    assert not trace.exists()


def test_every_route_refuses_it(server, bomb):
    places = {"group": "g", "rank": "0", "execution_id": "e-1", "name": "python3", "save": "x"}
    tried = 0
    for operation in OPERATIONS:
        if operation.body is None:
            continue
        url = f"{server.info['url']}jupyter-dist/api/{operation.path.format(**places)}"
        for kind in ("application/json", "application/octet-stream", "application/x-pickle"):
            headers = {"Authorization": f"token {TOKEN}", "Content-Type": kind}
            request = urllib.request.Request(url, bomb, headers, method=operation.verb.upper())
            with pytest.raises(urllib.error.HTTPError) as raised:
                urllib.request.urlopen(request, timeout=PATIENCE)
            with raised.value as err:
                assert err.code == 400, operation.name
                assert b'"bad_request"' in err.read()
            tried += 1
    assert tried >= 3 * 8


def test_the_websocket_refuses_it(server, bomb):
    as_bytes, as_text = server.channel(), server.channel()
    with contextlib.closing(as_bytes), contextlib.closing(as_text):
        as_bytes.send(bomb, opcode=2)
        assert as_bytes.next_of("error")["error"]["code"] == "bad_request"
        as_text.send(bomb, opcode=1)
        with pytest.raises(EOFError):  # it is no text: the connection is closed
            as_text.next_of("error")


def test_agent_and_ranks_refuse_it(server, bomb):
    folder = server.group_folder(server.group["id"])
    frames = [bomb, LENGTHS.pack(len(bomb), 0) + bomb, LENGTHS.pack(len(bomb), len(bomb)) + bomb + bomb]
    frames += [encode_frame({"t": kind, "id": 1}, bomb) for kind in ("hello", "start", "execute", "complete", "follow")]
    for frame in frames:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(folder / "agent.sock"))
            connection.sendall(frame)
            connection.settimeout(0.3)
            try:
                while connection.recv(1 << 16):
                    pass
            except OSError:  # it says nothing, or has closed the connection
                pass
