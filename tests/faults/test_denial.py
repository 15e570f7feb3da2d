"""Threats 10, 14, 16: what the server says of a failure, what it can be made to read, and what can keep it from answering."""

from __future__ import annotations

import http.client
import os
import socket
import struct
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from waits import PATIENCE, until

from jupyter_dist.journal.records.record import record_prefix
from jupyter_dist.transport.frames import encode_frame

from .server import TOKEN, JupyterServer

SECRET = "what-stands-in-a-file-of-somebody-else"

# A handler of ours that fails in a way nobody foresaw.
BREAKS = """
from jupyter_dist.server.http.routes import HANDLERS
from tornado import web

def _jupyter_server_extension_points():
    return [{"module": "breaks_ours"}]

def _load_jupyter_server_extension(app):
    @web.authenticated
    async def get(self):
        raise RuntimeError("nobody foresaw this")
    HANDLERS["groups"].put = get
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("denial")
    (home / "breaks_ours.py").write_text(BREAKS)
    server = JupyterServer(home, extensions=("breaks_ours",))
    server.group = server.start(2, name="g")
    yield server
    server.ask("DELETE", "groups/g")
    server.end()


def group_folder(server: JupyterServer) -> Path:
    return server.group_folder(server.group["id"])


def test_a_failure_of_ours_tells_no_secret(server):
    url = f"{server.info['url']}jupyter-dist/api/groups?token={TOKEN}"
    for method, status in {"PATCH": 405, "PUT": 500}.items():
        request = urllib.request.Request(url, b"{}", {"Referer": f"http://x/?token={TOKEN}"}, method=method)
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(request, timeout=PATIENCE)
        with raised.value as err:
            answer = err.read().decode()
        assert raised.value.code == status
    assert '"internal"' in answer
    assert "nobody foresaw" not in answer
    assert "nobody foresaw this" in server.log()  # but whoever runs the server can find out
    everything = [answer, server.log(), (group_folder(server) / "agent.log").read_text()]
    everything += [server.download("g", rank) for rank in (0, 1)]
    everything += [Path(f"/proc/{pid}/cmdline").read_text() for pid in server.tree()]
    leaks = [line for text in everything for line in text.splitlines() if TOKEN in line]
    assert not leaks, leaks


@pytest.mark.parametrize(
    "path",
    [
        "groups/g/ranks/../log",
        "groups/g/ranks/%2e%2e/log/download",
        "groups/..%2f..%2fsecret/ranks/0/log",
        "groups/%2fetc%2fpasswd/ranks/0/log/download",
        "groups/g%00/ranks/0/log",
        "groups/g/ranks/0%00/log",
        "groups/g-secret/ranks/0/log/download",
        "groups/./ranks/0/log",
        "groups/../ranks/0/log",
        "groups/g/executions/..%2f..%2fgroup.json",
        "groups/g/ranks/-1/log",
        "groups/g/ranks/99/log/download",
    ],
)
def test_no_path_leads_out_of_a_group(server, path):
    sibling = group_folder(server).parent / (group_folder(server).name + "-secret")
    sibling.mkdir(exist_ok=True)
    (sibling / "journal").mkdir(exist_ok=True)
    (sibling / "journal" / f"{1:020d}.jd").write_text(SECRET)
    connection = http.client.HTTPConnection("127.0.0.1", server.info["port"], timeout=PATIENCE)
    connection.putrequest("GET", f"/jupyter-dist/api/{path}")  # as it stands, with nothing made tidy
    connection.putheader("Authorization", f"token {TOKEN}")
    connection.endheaders()
    response = connection.getresponse()
    content = response.read()
    connection.close()
    assert response.status in (400, 404), (response.status, content)
    assert SECRET.encode() not in content
    assert b"root:" not in content


def test_what_a_rank_plants_in_its_groups_folder_is_neither_followed_nor_waited_for(server, tmp_path):
    (tmp_path / "secret").write_text(SECRET)
    code = f"""
import os
folder = {str(group_folder(server))!r}
for number, target in enumerate(['/etc/passwd', '/dev/zero', {str(tmp_path / "secret")!r}]):
    os.symlink(target, f'{{folder}}/journal/{{10**12 + number:020d}}.jd')
os.mkfifo(f'{{folder}}/journal/{{10**12 + 7:020d}}.jd')
os.mkdir(f'{{folder}}/journal/{{10**12 + 8:020d}}.jd')
for name in ('\\u00b2.jd', 'x.jd', '-1.jd'): open(f'{{folder}}/journal/{{name}}', 'w').write('junk')
os.symlink('/etc', folder + '/etc')
print('planted')
"""
    assert server.run("g", code, "0")["execution"]["state"] == "ok"
    said = [server.download("g", 0), str(server.ask("GET", "groups/g/ranks/0/log?tail_bytes=1000000"))]
    view = server.run("g", "print('fine')", "0")
    assert view["items"][0]["output"]["text"] == "fine\n"
    assert all("planted" in text for text in said)
    assert not any("root:" in text for text in said)
    assert not any(SECRET in text for text in said)


def forged(payload: bytes = b"", **header: object) -> bytes:
    frame = encode_frame({"t": "record", "at": time.time(), **header}, payload)
    return record_prefix(frame) + frame


def test_records_that_a_rank_forges_cost_the_server_nothing(server, tmp_path):
    forgeries = [
        forged(seq=10**9, kind="begin", execution_id="e-forged", ranks="0-6000000"),
        forged(seq=10**15, kind="note"),
        forged(seq=True, kind=7),
        forged(seq=5, kind="stream", rank=10**9, name="x" * 9999, execution_id="e-forged"),
        forged(b"x" * (2 << 20), kind="none of these"),
        b"\xf0JDR" + b"\xff" * 12,
    ]
    (tmp_path / "forgeries").write_bytes(b"".join(forgeries))
    code = f"""
import pathlib
folder = pathlib.Path({str(group_folder(server) / "journal")!r})
with max(path for path in folder.glob('0000000000000000*.jd') if path.is_file()).open('ab') as file:
    file.write(pathlib.Path({str(tmp_path / "forgeries")!r}).read_bytes())
print('planted records')
"""
    before = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    assert server.run("g", code, "0")["execution"]["state"] == "ok"
    assert server.run("g", "print('fine')")["items"][0]["output"]["text"] == "fine\n"
    page = server.ask("GET", "groups/g/ranks/1/log?tail_bytes=1000000")
    assert page["records"][-1]["kind"] == "end"
    assert "fine" in server.download("g", 1)
    grown = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) - before
    assert grown * os.sysconf("SC_PAGE_SIZE") < 64 << 20


def open_sockets(port: int, number: int, first: bytes) -> list[socket.socket]:
    found = []
    for _ in range(number):
        found.append(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
        found[-1].sendall(first)
    return found


def test_ranks_write_files_as_open_as_their_user_writes_them(server):
    mine = os.umask(0o077)
    os.umask(mine)
    view = server.run("g", "import os; old = os.umask(0); os.umask(old); print(oct(old))")
    assert view["items"][0]["output"]["text"] == f"{oct(mine)}\n"


def slow_download(server: JupyterServer) -> socket.socket:
    """Asks for a log and does not read it; returns when the answer has begun."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", server.info["port"]))
    connection.sendall(
        b"GET /jupyter-dist/api/groups/g/ranks/0/log/download HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: token "
        + TOKEN.encode()
        + b"\r\n\r\n"
    )
    assert connection.recv(15)[9:12] in (b"200", b"429")
    return connection


def test_one_user_downloads_so_many_logs_at_once(server):
    assert server.run("g", "for n in range(300): print('x' * 100_000)", "0")["execution"]["state"] == "ok"
    slow = [slow_download(server) for _ in range(8)]
    try:
        with pytest.raises(urllib.error.HTTPError) as raised:
            server.download("g", 0)
        with raised.value as refused:
            assert refused.code == 429
            assert b'"too_many"' in refused.read()
        assert server.ask("GET", "groups/g")["state"] == "ready"
    finally:
        for connection in slow:
            connection.close()
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            assert len(server.download("g", 0)) > 30_000_000
            break
        except urllib.error.HTTPError as err:
            err.close()
            assert time.monotonic() < deadline
            time.sleep(0.1)


def quickest_answer(server: JupyterServer) -> float:
    def seconds() -> float:
        began = time.monotonic()
        server.ask("GET", "groups/g")
        return time.monotonic() - began

    return min(seconds() for _ in range(5))


def test_a_thousand_connections_that_never_end_a_request_keep_nobody_waiting(server):
    port = server.info["port"]
    slow = b"POST /jupyter-dist/api/groups/g/executions HTTP/1.1\r\nHost: x\r\nContent-Le"
    upgrade = b"GET /jupyter-dist/api/channel HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
    sockets = open_sockets(port, 700, slow) + open_sockets(port, 300, upgrade)
    pages = [server.channel() for _ in range(20)]
    for page in pages:  # and pages that begin a message and never end it
        page.sock.sendall(bytes([0x81]) + struct.pack("!BH", 0x80 | 126, 1000) + b"\0\0\0\0" + b"{")
    for connection in sockets[::3]:
        connection.sendall(b"n")
    assert quickest_answer(server) < 0.5
    assert server.run("g", "print('fine')")["execution"]["state"] == "ok"
    for connection in sockets:
        connection.close()
    for page in pages:
        page.close()
    until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) <= 200)


def test_a_body_of_a_gigabyte_is_refused_before_it_is_read(server):
    before = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    with socket.create_connection(("127.0.0.1", server.info["port"]), timeout=PATIENCE) as connection:
        connection.sendall(
            b"POST /jupyter-dist/api/groups/g/executions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Authorization: token " + TOKEN.encode() + b"\r\nContent-Length: 400000000\r\n\r\n{"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", server.info["port"]), timeout=PATIENCE) as connection:
        connection.sendall(
            b"POST /jupyter-dist/api/groups/g/executions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Authorization: token " + TOKEN.encode() + b"\r\nContent-Length: 1000000000\r\n\r\n{"
        )
        assert connection.recv(100)[:12] in (b"HTTP/1.1 413", b"HTTP/1.1 400", b"")
    grown = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) - before
    assert grown * os.sysconf("SC_PAGE_SIZE") < 32 << 20
    assert server.ask("GET", "groups/g")["state"] == "ready"
