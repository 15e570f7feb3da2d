"""A seeded killer on a busy group of a real server: every death is reported, every cell ends, and nothing is left.

Long: `pytest tests/chaos --chaos-kills 200 -s`. A failure names its seed; `--chaos-seed` repeats it.
"""

from __future__ import annotations

import collections
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest
from faults.server import JupyterServer
from leaks import nothing_left
from waits import PATIENCE

NUM_RANKS = 4
FINAL = {"ok", "error", "interrupted", "aborted", "lost"}

BUSY = """
import os, time
for step in range(100_000):
    print('step', step)
    torch.ones(50, 50) @ torch.ones(50, 50)
    if {collective} and step % 7 == 0: dist.all_reduce(torch.ones(4))
    if os.path.exists({flag!r} + str(rank)):
        os._exit(3)
    time.sleep(0.01)
"""


class Chaos:
    """One server after another, one group after another, and a count of what happened."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home = home
        self.random = random.Random(seed)
        self.server = JupyterServer(home)
        self.servers = [self.server]
        self.group: dict = {}
        self.stopped: int | None = None
        self.counts: collections.Counter[str] = collections.Counter()
        self.closed_after: dict[str, list[float]] = collections.defaultdict(list)
        self.actions = {
            "exit": (self.exit, 3),
            "segfault": (lambda: self.signal(signal.SIGSEGV, r"was killed \(SIGSEGV\)"), 3),
            "kill": (lambda: self.signal(signal.SIGKILL, r"was killed \(SIGKILL"), 4),
            "several": (self.several, 2),
            "stop": (self.stop, 2),
            "interrupt": (self.interrupt, 2),
            "agent": (self.agent, 1),
            "server": (self.kill_server, 1),
        }

    def run(self, kills: int) -> None:
        names = list(self.actions)
        weights = [self.actions[name][1] for name in names]
        # Each kind at least once where there are kills enough, then as chance has it.
        plan = (names + self.random.choices(names, weights, k=max(0, kills - len(names))))[:kills]
        self.random.shuffle(plan)
        for number, name in enumerate(plan):
            self.counts[name] += 1
            print(f"{number:4d} {name}", flush=True)
            self.settle()
            self.execution = self.submit()
            time.sleep(self.random.uniform(0.0, 0.6))
            self.actions[name][0]()

    def settle(self) -> None:
        """Repair the group in any way that is possible, and check that it works."""
        state = self.group.get("state")
        if state == "degraded" and self.random.random() < 0.7:
            self.server.ask("POST", "groups/g/replace")
        elif state in ("degraded", "dead"):
            self.server.ask("POST", "groups/g/restart")
        elif state != "ready":
            self.group = self.server.start(NUM_RANKS, name="g")
        self.wait_group("ready")
        self.check()

    def check(self) -> None:
        view = self.server.run("g", "t = torch.ones(1)\ndist.all_reduce(t)\nprint(int(t.item()))")
        assert view["execution"]["state"] == "ok", (view, self.look())
        assert [item["output"]["text"] for item in view["items"]] == [f"{NUM_RANKS}\n"]

    # -- what can happen ------------------------------------------------------------------------------

    def exit(self) -> None:
        rank = self.random.randrange(NUM_RANKS)
        flag = self.home / f"flag{rank}"
        flag.touch()
        try:
            self.expect_lost("exit", rank, "exited with code 3")
        finally:
            flag.unlink()

    def signal(self, number: signal.Signals, reason: str) -> None:
        rank = self.random.randrange(NUM_RANKS)
        os.kill(self.pids()[rank], number)
        self.expect_lost(number.name, rank, reason)

    def several(self) -> None:
        ranks = self.random.sample(range(NUM_RANKS), self.random.randint(2, NUM_RANKS))
        pids = self.pids()
        for rank in ranks:
            os.kill(pids[rank], signal.SIGKILL)
        began = time.monotonic()
        assert self.ended(began, "several")["state"] == "lost"
        self.wait_group("degraded", "dead")
        self.wait(lambda: sum(rank["state"] == "dead" for rank in self.look()["ranks"]) == len(ranks))
        self.look()

    def stop(self) -> None:
        rank = self.random.randrange(NUM_RANKS)
        pid = self.pids()[rank]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self.random.uniform(0.1, 3.0))
        os.kill(pid, signal.SIGCONT)
        assert self.state() == "running"
        self.interrupt()

    def interrupt(self) -> None:
        self.server.ask("POST", "groups/g/interrupt", {"ranks": "all"})
        assert self.ended(time.monotonic(), "interrupt")["state"] == "interrupted"
        self.wait_group("ready")

    def agent(self) -> None:
        pids = self.pids()
        os.kill(self.server.agent_pid(self.group["id"]), signal.SIGKILL)
        began = time.monotonic()
        assert self.ended(began, "agent")["state"] == "lost"
        self.wait_group("lost")
        self.wait(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids))

    def kill_server(self) -> None:
        group = self.group["id"]
        self.server.end(signal.SIGKILL)
        self.server = JupyterServer(self.home)
        self.servers.append(self.server)
        began = time.monotonic()
        assert self.look()["id"] == group
        self.closed_after["adopted"].append(time.monotonic() - began)
        assert self.state() == "running"
        self.interrupt()

    # -- looking --------------------------------------------------------------------------------------

    def submit(self) -> str:
        code = BUSY.format(flag=str(self.home / "flag"), collective=self.random.random() < 0.6)
        return self.server.submit("g", code)

    def expect_lost(self, kind: str, rank: int, reason: str) -> None:
        began = time.monotonic()
        ended = self.ended(began, kind)
        assert ended["state"] == "lost", ended
        assert re.search(f"Rank {rank} {reason}", ended["error"]["message"]), ended
        self.wait_group("degraded")
        assert re.search(reason, self.group["ranks"][rank]["exit"]["reason"]), self.group
        assert [r["rank"] for r in self.group["ranks"] if r["state"] == "dead"] == [rank]

    def ended(self, began: float, kind: str) -> dict:
        """The execution in its final state; the ranks that were left alone are interrupted, as a user would."""
        if not self.is_final(1.0) and self.look()["state"] != "lost":
            self.server.ask("POST", "groups/g/interrupt", {"ranks": "all"})
        if not self.is_final(PATIENCE):
            pytest.fail(self.explain())
        self.closed_after[kind].append(time.monotonic() - began)
        return self.server.view("g", self.execution, wait=0)["execution"]

    def explain(self) -> str:
        """What each rank is at: SIGUSR2 makes it say so."""
        ranks = self.look()["ranks"]
        for rank in ranks:
            if rank["state"] != "dead":
                os.kill(rank["pid"], signal.SIGUSR2)
        time.sleep(1.0)
        said = [f"rank {rank['rank']} {rank['state']} {rank['message']}\n{self.tail(rank['rank'])}" for rank in ranks]
        return "\n".join([f"the cell is {self.state()}", *said])

    def tail(self, rank: int) -> str:
        return "\n".join(line for line in self.server.download("g", rank).splitlines()[-60:] if "step" not in line)

    def is_final(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.state() not in FINAL:
            if time.monotonic() > deadline:
                return False
            self.server.view("g", self.execution, wait=1)
        return True

    def state(self) -> str:
        listed = self.server.ask("GET", "groups/g/executions")["executions"]
        return next(e["state"] for e in listed if e["id"] == self.execution)

    def look(self) -> dict:
        self.group = self.server.ask("GET", "groups/g")
        return self.group

    def pids(self) -> list[int]:
        return [rank["pid"] for rank in self.look()["ranks"]]

    def wait_group(self, *states: str) -> None:
        self.wait(lambda: self.look()["state"] in states)

    def wait(self, is_so, seconds: float = PATIENCE) -> None:
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                pytest.fail(f"{self.group}\n{self.explain()}\n{self.server.log()[-2000:]}")
            time.sleep(0.05)

    def end(self) -> None:
        try:
            self.server.ask("DELETE", "groups/g")
        finally:
            for server in self.servers:
                server.end()


@pytest.mark.timeout(3000)
def test_chaos(tmp_path, request):
    kills = request.config.getoption("--chaos-kills")
    seed = request.config.getoption("--chaos-seed")
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    with nothing_left():
        chaos = Chaos(tmp_path, seed)
        try:
            chaos.run(kills)
        except BaseException:
            print(f"seed {seed}")
            raise
        finally:
            chaos.end()
            for kind, seconds in sorted(chaos.closed_after.items()):
                middle = sorted(seconds)[len(seconds) // 2]
                print(
                    f"{kind:10} {len(seconds):4} times; cell closed after {middle:.2f} s, at most {max(seconds):.2f} s"
                )
