"""Bad days: how long until a page knows of a rank's death or a stopped agent, and until a hung collective is free."""

from __future__ import annotations

import os
import signal
import time

from benchmarks import rivals
from benchmarks.driver import Driver
from benchmarks.options import Options
from benchmarks.ours import FINAL, Client, Json, Server
from benchmarks.tables import Table, note_failure

IDLE, BUSY = "jupyter_dist, an idle rank", "jupyter_dist, in a cell"
FLOODED, STOPPED = "jupyter_dist, beside an endless `yes` of a rank", "jupyter_dist"
FLOOD = "import subprocess; flood = subprocess.Popen(['yes'])"
IPP = "ipyparallel, in a cell"
ENDED, USABLE = "until its cell has ended", "until the next all_reduce has its result on all ranks"
SLEEP = "import time; time.sleep(60)"
HANG = "dist.all_reduce(torch.ones(1))"
RANKS = 4


def measure(options: Options) -> list[Table]:
    """All three tables, at the WebSocket of a page."""
    death = Table(f"`kill -9` of one of {RANKS} ranks, until it is named", "s", "")
    hang = Table("An interrupt of an all_reduce that 1 of 4 ranks is in, gloo", "s", "")
    stop = Table("`kill -STOP` of a group's agent, until the group is shown as not responding", "s", "")
    if options.ours:
        with Server() as server:
            page = _Page(server)
            for _ in range(options.rounds):
                death.row(IDLE).values.append(page.death())
                death.row(BUSY).values.append(page.death(SLEEP))
                stop.row(STOPPED).values.append(page.stop(server))
                for name, seconds in page.hang().items():
                    hang.row(name).values.append(seconds)
            page.begin_flood()
            for _ in range(options.rounds):
                death.row(FLOODED).values.append(page.death())
            page.close()
        _aim(death, hang, stop)
    if options.rivals:
        _ask_rival(options, death)
    return [death, hang, stop]


def _aim(death: Table, hang: Table, stop: Table) -> None:
    longest = max(death.row(IDLE).values + death.row(BUSY).values + death.row(FLOODED).values)
    death.aim(f"named within 1 s: at most {longest:.2f} s", longest <= 1)
    longest = max(hang.row(ENDED).values)
    hang.aim(f"free within 3 s: at most {longest:.2f} s", longest <= 3)
    longest = max(stop.row(STOPPED).values)
    stop.aim(f"shown within 5 s: at most {longest:.2f} s", longest <= 5)


def _ask_rival(options: Options, death: Table) -> None:
    try:
        with Driver("ipp", rivals.ensure()) as driver:
            for _ in range(options.rival_rounds):
                driver.ask("start", ranks=RANKS, code="import os", join=False)
                death.row(IPP).values.append(driver.ask("death", code=SLEEP)["seconds"])
                driver.ask("stop")
    except Exception as err:  # a rival's own failure, whatever it is
        note_failure([death], IPP, err)


class _Page(Client):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.open_channel()
        self._group = self.start_group(RANKS)["id"]
        self.wait_ready(self._group)

    def death(self, code: str | None = None) -> float:
        """Kill rank 1, in a cell if there is one; seconds until the page knows. It is replaced."""
        execution = self._submit(code, "all") if code else None
        victim = self._ranks()[1]
        began = time.perf_counter()
        os.kill(victim["pid"], signal.SIGKILL)
        self.receive(lambda message: message["type"] == "changes" and self._is_dead(message, victim["rank"]))
        seconds = time.perf_counter() - began
        if execution:
            self.must("POST", f"/groups/{self._group}/interrupt", {"ranks": "all"})
            self._wait_end(execution)
        self.must("POST", f"/groups/{self._group}/replace", {})
        self.wait_ready(self._group)
        return seconds

    def begin_flood(self) -> None:
        """Have rank 0 start a process that prints without an end."""
        self._wait_end(self._submit(FLOOD, "0"))

    def stop(self, server: Server) -> float:
        """Stop the agent; seconds until the page knows. It continues."""
        agent = server.agent_of(self._group)
        began = time.perf_counter()
        os.kill(agent, signal.SIGSTOP)
        try:
            self.receive(lambda message: message["type"] == "changes" and self._state_in(message) == "unresponsive")
            return time.perf_counter() - began
        finally:
            os.kill(agent, signal.SIGCONT)
            self.must("GET", f"/groups/{self._group}?wait=30&not_state=unresponsive")

    def hang(self) -> dict[str, float]:
        """Let rank 0 wait in a collective, and interrupt it."""
        execution = self._submit(HANG, "0")
        time.sleep(0.5)
        began = time.perf_counter()
        self.must("POST", f"/groups/{self._group}/interrupt", {"ranks": "0"})
        self._wait_end(execution)
        ended = time.perf_counter() - began
        self.cell(self._group, HANG)
        return {ENDED: ended, USABLE: time.perf_counter() - began}

    def _submit(self, code: str, ranks: str) -> str:
        body = {"code": code, "ranks": ranks}
        execution: Json = self.must("POST", f"/groups/{self._group}/executions", body)
        self.subscribe("execution", group=self._group, execution=execution["id"], since=0)
        self.receive(lambda message: self._state(message, execution["id"]) == "running")
        return str(execution["id"])

    def _wait_end(self, execution: str) -> None:
        self.receive(lambda message: self._state(message, execution) in FINAL)
        self.unsubscribe("execution", group=self._group, execution=execution)

    def _state(self, message: Json, execution: str) -> str:
        if message["type"] != "execution" or message["execution"]["id"] != execution:
            return ""
        return str(message["execution"]["state"])

    def _ranks(self) -> list[Json]:
        ranks: list[Json] = self.must("GET", f"/groups/{self._group}")["ranks"]
        return ranks

    def _state_in(self, message: Json) -> str:
        changes = [change["fields"] for change in message["changes"] if change["id"] == self._group]
        return next((str(fields["state"]) for fields in changes if "state" in fields), "")

    def _is_dead(self, message: Json, rank: int) -> bool:
        changed = [one for change in message["changes"] if change["id"] == self._group for one in change["ranks"]]
        return any(one["rank"] == rank and one["state"] == "dead" and one["exit"] for one in changed)
