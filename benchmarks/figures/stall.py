"""How long the server's event loop makes others wait while ranks flood, measured inside the server itself."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import urllib.request
from typing import Any

from benchmarks.driver import REPOSITORY
from benchmarks.figures.flood import FLOOD, LINES, RANKS
from benchmarks.options import Options
from benchmarks.ours import Client, Server
from benchmarks.tables import Table

IDLE = "idle, pages connected"
FLOODED = "flood; one page reads, one follows the logs, one is deaf"
EMPTY = "the same flood; a loop that does nothing, in another process"
LINE = "a line of 100 MB"
CELLS = {IDLE: "import time; time.sleep(2)", FLOODED: FLOOD, LINE: "print('x' * 100_000_000)"}
MAX_STALL_MS = 100


class EmptyLoop:
    """A loop that does nothing, in a process of its own: how long the machine itself makes it wait."""

    def __enter__(self) -> EmptyLoop:
        command = [sys.executable, "-m", "benchmarks.lagmeter"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=REPOSITORY)
        self.lag()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def lag(self) -> dict[str, Any]:
        """What it has seen since the last call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


class MeteredServer(Server):
    """Ours, with the meter as a second extension."""

    def _command(self) -> list[str]:
        extensions = "--ServerApp.jpserver_extensions={'jupyter_dist': True, 'benchmarks.lagmeter': True}"
        return [*(part for part in super()._command() if "jpserver_extensions" not in part), extensions]

    def lag(self) -> dict[str, Any]:
        """What the meter has seen since the last call."""
        url = f"http://127.0.0.1:{self.port}/benchmarks/lag"
        request = urllib.request.Request(url, headers={"Authorization": f"token {self.token}"})
        with urllib.request.urlopen(request, timeout=30) as response:
            answer: dict[str, Any] = json.loads(response.read())
        return answer


def measure(options: Options) -> list[Table]:
    """One table, in milliseconds: the longest wait of each round."""
    lines = f"{LINES:,}".replace(",", " ")
    table = Table(f"Longest wait for the server's event loop, {RANKS} ranks print {lines} lines each", "ms", "")
    with EmptyLoop() as empty, MeteredServer() as server:
        client, deaf, follower = Client(server), Client(server), Client(server)
        for page in (client, deaf, follower):
            page.open_channel()
        group = client.start_group(RANKS)["id"]
        client.wait_ready(group)
        server.wait_for_warm_agent()
        client.cell(group, "for number in range(1000): print(number)")
        for rank in range(RANKS):
            deaf.subscribe("log", group=group, rank=rank, since=0)
            follower.subscribe("log", group=group, rank=rank, since=0)
        most_cpu = 0.0
        threading.Thread(target=_read, args=(follower,), daemon=True).start()
        for _ in range(options.rounds):
            for what, code in CELLS.items():
                server.lag(), empty.lag()
                client.cell(group, code, 120)
                lag = server.lag()
                table.row(what).values.append(lag["longest_ms"])
                most_cpu = max(most_cpu, lag["longest_cpu_ms"])
                if what == FLOODED:
                    table.row(EMPTY).values.append(empty.lag()["longest_ms"])
                late = f"{lag['ticks_over_50_ms']} of {lag['ticks']}"
                table.row(what).note = f"{late} calls over 50 ms late in the last round"
        for page in (client, deaf, follower):
            page.close()
    most = max(value for row in table.rows for value in row.values if row.system != EMPTY)
    table.aim(f"nobody waits more than {MAX_STALL_MS} ms: {most:.0f} ms", most <= MAX_STALL_MS)
    table.aim(
        f"the server computes for at most {MAX_STALL_MS} ms in one go: {most_cpu:.0f} ms", most_cpu <= MAX_STALL_MS
    )
    return [table]


def _read(page: Client) -> None:
    """Take all it is sent, until it is closed."""
    with contextlib.suppress(Exception):
        page.receive(lambda _: False, 1e9)
