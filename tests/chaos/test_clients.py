"""Clients without a Jupyter server, killed in a seeded order, and their server as well; nobody else loses a line.

Long: `pytest tests/chaos/test_clients.py --clients-seconds 120`, with a group for each of six clients.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from leaks import nothing_left
from ownserver import environment
from waits import PATIENCE, until

from jupyter_dist.client import connect

NUM_CLIENTS = 6
NUM_RANKS = 2
LINES = 40

CLIENT = """
import sys, threading
from jupyter_dist.client import JupyterDistError, connect
from jupyter_dist.client.displays.live import RankDisplay

name, lines = sys.argv[1], int(sys.argv[2])
client = connect()
try:
    group, found = client.attach(name), "found"
except JupyterDistError as err:
    assert err.code == "unknown_group", err
    try:
        group, found = client.start(name, num_ranks=2, accelerator="cpu", grace_seconds=60), "started"
    except JupyterDistError as err:
        assert err.code == "name_taken", err
        group, found = client.attach(name), "found"
group.own(60)
print("group", found, group.id, client._client.server.pid, flush=True)
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
while True:
    print("cell", flush=True)
    code = f"import time\\nfor line in range({lines}):\\n    print('line', line)\\n    time.sleep(0.02)"
    result = group.run(code, stream=RankDisplay(sys.stdout))
    print("end", result.state, flush=True)
    if over.is_set() or not result.ok:
        sys.exit(not result.ok)
"""


class Counting:
    """A program whose cells count aloud, and what it has shown."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, "-c", CLIENT, name, str(LINES)]
        self.name = name
        self.shown: list[str] = []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        self.shown += iter(self.process.stdout.readline, "")

    @property
    def group(self) -> list[str] | None:
        """Whether it found or started its group, its id, and the server's process."""
        return next((line.split()[1:] for line in list(self.shown) if line.startswith("group ")), None)

    def wait_for(self, count: int) -> None:
        """Wait until it has shown so many lines of ranks."""
        self.until(lambda: sum("| line" in line for line in list(self.shown)) >= count)

    def until(self, is_so):
        return until(lambda: is_so() or (self.process.poll() is not None and self._fail()), lambda: self.shown[-5:])

    def _fail(self) -> None:
        self._reader.join(PATIENCE)
        pytest.fail(f"{self.name} has ended: {self.shown[-5:]}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._check(is_whole=False)

    def end(self) -> None:
        """Let it end after its cell: every line was shown once, by each rank."""
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0, self.shown[-5:]
        self._check(is_whole=True)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self.process.stdin.close()
        self.process.stdout.close()

    def _check(self, *, is_whole: bool) -> None:
        self._reader.join(PATIENCE)
        cells = "".join(self.shown).split("cell\n")[1:]
        for number, cell in enumerate(cells):
            is_complete = is_whole or number < len(cells) - 1
            for rank in range(NUM_RANKS):
                said = [int(line) for line in re.findall(rf"^{rank}\| line (\d+)\n", cell, re.M)]
                assert said == list(range(LINES if is_complete else len(said))), (self.name, number, rank, cell)


@pytest.fixture
def runtime(tmp_path):
    with nothing_left(), environment(tmp_path):
        yield tmp_path


@pytest.fixture
def counting(runtime):
    started = []

    def start(name):
        started.append(Counting(name))
        return started[-1]

    yield start
    for program in started:
        program.close()
    with connect() as client:
        for group in client.groups():
            group.shutdown()


@pytest.fixture
def chance(pytestconfig):
    seed = pytestconfig.getoption("--chaos-seed")
    seed = random.randrange(1 << 32) if seed is None else seed
    print(f"--chaos-seed {seed}")
    return random.Random(seed)


def test_clients_that_are_killed_cost_the_others_no_line_and_every_group_is_found(counting, chance):
    """One group for all, so that torch is imported once."""
    clients = [counting("shared") for _ in range(NUM_CLIENTS)]
    for client in clients:
        client.until(lambda client=client: client.group)
    assert len({client.group[1] for client in clients}) == 1
    assert sorted(client.group[0] for client in clients) == ["found"] * (NUM_CLIENTS - 1) + ["started"]
    (server,) = {int(client.group[2]) for client in clients}
    killed = chance.sample(clients, 3)
    for number, victim in enumerate(killed):
        victim.wait_for(chance.randrange(1, LINES))
        victim.kill()
        if number == 1:
            os.kill(server, signal.SIGKILL)
    left = [client for client in clients if client not in killed]
    for client in left:
        client.wait_for(1)
    for client in left:
        client.end()
    with connect() as client:
        assert client._client.server.pid != server
        assert client.attach("shared").id == clients[0].group[1]


def test_for_minutes(counting, chance, pytestconfig):
    """A group each; who is killed is replaced, and its group found; the server is killed now and then."""
    seconds = pytestconfig.getoption("--clients-seconds")
    if not seconds:
        pytest.skip("needs --clients-seconds 120")
    clients = [counting(f"group-{number}") for number in range(NUM_CLIENTS)]
    for client in clients:
        client.until(lambda client=client: client.group)
    ids = [client.group[1] for client in clients]
    kills = servers = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        number = chance.randrange(NUM_CLIENTS)
        clients[number].wait_for(chance.randrange(1, 2 * LINES))
        clients[number].kill()
        kills += 1
        if chance.random() < 0.2:
            with connect() as client:
                os.kill(client._client.server.pid, signal.SIGKILL)
            servers += 1
        clients[number] = counting(f"group-{number}")
        clients[number].until(lambda client=clients[number]: client.group)
        assert clients[number].group[:2] == ["found", ids[number]]
    for client in clients:
        client.end()
    with connect() as client:
        assert sorted(group.id for group in client.groups()) == sorted(ids)
    print(f"{kills} clients and {servers} servers killed in {seconds:g} s")
