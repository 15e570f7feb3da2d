"""A group and a server that the tests of a session share: a start imports torch for seconds, a restart forks at once."""

from __future__ import annotations

import os
from pathlib import Path

from agent.harness import AgentClient, AgentProcess
from faults.server import JupyterServer
from leaks import OUTLIVING, children_of
from waits import until

from jupyter_dist.system.processes import read_process


class SharedAgent:
    """An agent with two ranks. Each test gets new, unused ranks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._start()

    def lend(self) -> AgentClient:
        """A connection that follows what comes from now on."""
        client = self._process.client()
        client.request("follow", since=client.hello()["seq"])
        return client

    def take_back(self, client: AgentClient) -> None:
        """New ranks for the next test; an agent that does not make them is replaced, and the test has failed."""
        client.close()
        try:
            client = self.lend()
            client.wait(lambda: client.group["state"] not in ("starting", "restarting"))
            generation = client.group["generation"] + 1
            client.request("restart")
            client.wait(lambda: (client.group["generation"], client.group["state"]) == (generation, "ready"))
            agent = self._process.process.pid
            until(
                lambda: len(children_of(agent)) == 5, lambda: children_of(agent)
            )  # zygote; two ranks, each with its shim
        except BaseException:
            self._process.process.kill()
            self._start()
            raise
        finally:
            client.close()
            self._process.clients.clear()

    def end(self) -> None:
        self._process.__exit__()

    def _start(self) -> None:
        self._number += 1
        self._process = AgentProcess(self._folder / f"g{self._number}")
        OUTLIVING.add(self._process.process.pid)
        client = self._process.client()
        # Tests that do without it may run for minutes.
        client.start(2, lease_seconds=3600.0)
        client.close()


class SharedServer:
    """A server with a group `g` of two ranks. Each test gets new, unused ranks."""

    def __init__(self, home: Path) -> None:
        self._server = JupyterServer(home)
        OUTLIVING.add(self._server.process.pid)
        agent = self._server.agent_pid(self._server.start(2, name="g")["id"])
        OUTLIVING.add(read_process(agent).parent)  # the keeper is not below the server, if a forkserver made it

    def lend(self) -> JupyterServer:
        """The server; what is known of its group is in `group`."""
        self._server.group = self._server.ask("GET", "groups/g")
        return self._server

    def take_back(self) -> None:
        """End the groups that the test started besides, and make new ranks."""
        server = self._server
        for group in server.ask("GET", "groups")["groups"]:
            if group["name"] != "g":
                server.ask("DELETE", f"groups/{group['id']}")
        group = self._settled()
        server.ask("POST", "groups/g/restart")
        again = self._settled()
        assert again["generation"] == group["generation"] + 1, again
        agent = server.agent_pid(again["id"])
        until(lambda: len(children_of(agent)) == 5, lambda: children_of(agent))
        assert not os.path.exists(f"/proc/{group['ranks'][0]['pid']}/exe")

    def end(self) -> None:
        self._server.ask("DELETE", "groups/g")
        self._server.end()

    def _settled(self) -> dict:
        for state in ("starting", "restarting"):
            group = self._server.ask("GET", f"groups/g?wait=90&not_state={state}")
        return group
