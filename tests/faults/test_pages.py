"""Faults 17, 41 to 45: pages that are cut, slow or gone, kernels that die, and notebooks that are renamed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import socket
import sys
import time
import urllib.request
import uuid
from pathlib import Path

import pytest
from leaks import children_of
from waits import PATIENCE, running, until

from .server import TOKEN, Channel, JupyterServer


@pytest.fixture
def server(group_server):
    return group_server


class LogPage:
    """A page that shows rank logs, and comes back after each cut with the number it has."""

    def __init__(self, server: JupyterServer) -> None:
        self.server = server
        self.texts: dict[int, dict[int, str]] = {0: {}, 1: {}}
        self.doubled = 0
        self.flood = uuid.uuid4().hex  # a shared group's log has those of other tests, and of this one's first try
        self.ended: set[int] = set()
        self.connect()

    def connect(self) -> None:
        self.channel = self.server.channel()
        for rank, texts in self.texts.items():
            self.channel.send(
                {"type": "subscribe", "topic": "log", "group": "g", "rank": rank, "since": max(texts, default=0)}
            )

    def cut(self) -> None:
        """Cut the connection like a network, in the middle of a transfer."""
        self.channel.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.channel.close()
        self.connect()

    def close(self) -> None:
        self.channel.close()

    def read(self) -> None:
        message = self.channel.next_of("log")
        texts = self.texts[message["rank"]]
        have = max(texts, default=0)
        if message["skipped"]:
            self._fetch(message["rank"], message["records"][0]["seq"], have)
        self._take(message["rank"], message["records"])

    def _fetch(self, rank: int, before: int, have: int) -> None:
        """What the channel left out is a page away."""
        while before > have + 1:
            page = self.server.ask("GET", f"groups/g/ranks/{rank}/log?tail_bytes=4000000&before={before}")
            records = [record for record in page["records"] if record["seq"] > have]
            self._take(rank, records)
            if not page["records"] or page["first"] <= have + 1 or not page["more"]:
                return
            before = page["first"]

    def _take(self, rank: int, records: list[dict]) -> None:
        for record in records:
            self.doubled += record["seq"] in self.texts[rank]
            text = record["text"] if record["kind"] == "stream" else ""
            self.texts[rank][record["seq"]] = text
            if text.endswith(f"the end of {self.flood}\n"):
                self.ended.add(rank)

    def text(self, rank: int) -> str:
        return "".join(text for _, text in sorted(self.texts[rank].items()))


FLOOD = """
import itertools, os, time
print(rank, 'begins {flood}')
for n in itertools.count():
    print(rank, 'line', n)
    if n % 400 == 0:
        time.sleep(0.02)
        if os.path.exists({flag!r}): break
print('the end of {flood}', flush=True)
"""


@pytest.mark.timeout(600)
def test_a_page_that_is_cut_in_a_flood_has_every_line_once(server, request, tmp_path):
    cuts, flag = request.config.getoption("--cuts"), tmp_path / "flag"
    with contextlib.closing(LogPage(server)) as page:
        server.submit("g", FLOOD.format(flag=str(flag), flood=page.flood))
        for _ in range(cuts):
            for _ in range(3):
                page.read()
            page.cut()
        flag.touch()
        # Putting together all that was said, at each message, would take longer than the flood.
        while page.ended != {0, 1}:
            page.read()
    assert page.doubled == 0
    for rank in (0, 1):
        said = page.text(rank)
        said = said.partition(f"{rank} begins {page.flood}\n")[2]  # a log begins with what earlier cells said
        lines, end = said.count("\n") - 1, f"the end of {page.flood}\n"
        assert [line for line in said.splitlines() if not line.startswith(f"{rank} line ")] == [end.strip()]
        assert lines % 400 == 1  # the cell ended where it looks for the flag
        whole = "".join(f"{rank} line {n}\n" for n in range(lines)) + end
        assert hashlib.sha256(said.encode()).digest() == hashlib.sha256(whole.encode()).digest(), (
            len(said),
            len(whole),
        )
        print(f"{cuts} cuts in {lines} lines of rank {rank}, 0 lost, 0 doubled")


class SlowPage(Channel):
    """Reads as little as it likes."""

    def __init__(self, port: int) -> None:
        self.taken = bytearray()
        super().__init__(port)

    def trickle(self, num_bytes: int) -> None:
        self.sock.settimeout(0.01)
        try:
            self.taken += self.sock.recv(num_bytes)
        except TimeoutError:
            pass
        self.sock.settimeout(PATIENCE)

    def _exactly(self, size: int) -> bytes:
        part, self.taken = bytes(self.taken[:size]), self.taken[size:]
        return part + super()._exactly(size - len(part)) if len(part) < size else part


def test_a_page_of_a_kilobyte_a_second_costs_nobody_anything_and_catches_up(server):
    slow = SlowPage(server.info["port"])
    before = _resident(server.process.pid)
    pause = "    if n % 3000 == 0: time.sleep(0.1)"
    execution = server.submit("g", f"import time\nfor n in range(60_000):\n    print(rank, 'line', n)\n{pause}")
    slow.send({"type": "subscribe", "topic": "execution", "group": "g", "execution": execution, "since": 0})
    waits = []
    while server.view("g", execution, wait=0)["execution"]["state"] == "running":
        slow.trickle(100)
        began = time.monotonic()
        server.ask("GET", "groups/g")
        waits.append(time.monotonic() - began)
        time.sleep(0.1)
    assert _resident(server.process.pid) - before < 64 << 20
    # From here on it reads, and soon knows the end: what lay in between was never queued for it.
    while slow.next_of("execution")["execution"]["ended_at"] is None:
        pass
    assert "1 line 59999" in str(server.view("g", execution)["items"][-1])
    slow.close()


def test_a_line_of_a_hundred_megabytes_is_shown_short_and_kept_whole(server):
    execution = server.submit("g", "print('x' * 100_000_000)\nprint('the next line')", "1")
    page = server.channel()
    page.send({"type": "subscribe", "topic": "execution", "group": "g", "execution": execution, "since": 0})
    received, ended = 0, False
    while not ended:
        message = page.next()
        assert len(json.dumps(message)) < 1 << 20
        received += len(json.dumps(message))
        ended = message["type"] == "execution" and message["execution"]["ended_at"] is not None
    page.close()
    assert received < 10 << 20  # how many updates there are depends on how long the line takes
    items = server.view("g", execution)["items"]
    assert len(json.dumps(items)) < 1 << 20
    assert items[-1]["output"]["text"].endswith("the next line\n")
    (elided,) = [item["elided"] for item in items if "elided" in item]
    assert elided["bytes"] > 99_000_000
    log = server.download("g", 1)
    assert log.count("x" * 100_000_000) == 1


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def jupyter(server: JupyterServer, method: str, path: str, body: object = None) -> object:
    """What a page asks of Jupyter itself."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"token {TOKEN}"}
    request = urllib.request.Request(f"{server.info['url']}api/{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        content = response.read()
    return json.loads(content) if content else None


def test_what_happens_to_kernels_and_notebooks_does_not_touch_a_group(server):
    """Fault 45: the notebook's kernel is restarted, killed, shut down; the notebook is renamed and deleted."""
    group = server.ask("GET", "groups/g")
    server.run("g", "kept = rank + 40")
    (server.home / "a.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    session = jupyter(
        server, "POST", "sessions", {"path": "a.ipynb", "name": "a", "type": "notebook", "kernel": {"name": "python3"}}
    )
    kernel = session["kernel"]["id"]
    flag = server.home / "flag"
    code = f"import os, time\nn = 0\nwhile not os.path.exists({str(flag)!r}): print(n, flush=True); n += 1; time.sleep(0.05)"
    running = server.submit("g", code, notebook="a.ipynb")
    jupyter(server, "POST", f"kernels/{kernel}/restart", {})
    jupyter(server, "POST", f"kernels/{kernel}/interrupt", {})
    pids = until(lambda: [pid for pid, cmd in children_of(server.process.pid).items() if "ipykernel" in cmd])
    os.kill(pids[0], signal.SIGKILL)
    jupyter(server, "PATCH", f"sessions/{session['id']}", {"path": "b.ipynb"})
    jupyter(server, "PATCH", "contents/a.ipynb", {"path": "b.ipynb"})
    assert server.view("g", running, wait=0)["execution"]["state"] == "running"
    jupyter(server, "DELETE", f"sessions/{session['id']}")
    jupyter(server, "DELETE", "contents/b.ipynb")
    assert server.view("g", running, wait=0)["execution"]["state"] == "running"
    flag.touch()
    assert server.view("g", running)["execution"]["state"] == "ok"
    for rank in (0, 1):
        said = [line for line in server.download("g", rank).split("import os, time")[-1].splitlines() if line.isdigit()]
        assert said == [str(n) for n in range(len(said))]
        assert said
    assert server.run("g", "print(kept - rank)")["items"][0]["output"]["text"] == "40\n"
    assert server.ask("GET", "groups/g")["ranks"][0]["pid"] == group["ranks"][0]["pid"]


def test_jupyter_server_stop_keeps_groups_and_says_so(tmp_path):
    """Fault 44, by the command that people use."""
    server = JupyterServer(tmp_path)
    group = server.start(2, name="g")
    execution = server.submit("g", "import time\nfor n in range(40): print(n, flush=True); time.sleep(0.05)")
    stop = [sys.executable, "-m", "jupyter_server", "stop", str(server.info["port"])]
    environment = {**os.environ, "JUPYTER_RUNTIME_DIR": str(server.runtime), "HOME": str(tmp_path)}
    with running(stop, env=environment) as stopping:
        # Who waits collects it: else the command takes it for alive. After 5 s, as on a busy machine, that sends SIGTERM.
        assert server.process.wait(PATIENCE) in (0, -signal.SIGTERM), server.log()
        assert stopping.wait(PATIENCE) == 0
    assert "group 'g' (2 ranks) keeps running without this server" in server.log()
    again = JupyterServer(tmp_path)
    try:
        assert again.ask("GET", "groups/g")["id"] == group["id"]
        view = again.view("g", execution)
        assert view["items"][0]["output"]["text"] == "".join(f"{n}\n" for n in range(40))
    finally:
        again.ask("DELETE", "groups/g")
        again.end()
        server.end()
