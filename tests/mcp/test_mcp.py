"""Agents use groups over the Model Context Protocol: the SDK's own client, a real server, real ranks."""

import asyncio
import contextlib
import itertools
import json
import os
import re
import socket
import sys
from importlib.util import find_spec

import pytest
from waits import PATIENCE, running

from jupyter_dist.protocol.operations import BY_NAME

MAIN = "from jupyter_dist.cli.main import main; main()"
TOKEN = "a token of this test"
OF_PARTS = [name for name in ("checks", "peek_values", "pace") if name in BY_NAME]
READING = {
    "list_groups",
    "verdict",
    "stacks",
    "get_result",
    "variables",
    "memory",
    "logs",
    *OF_PARTS,
    *({"export_script"} if "script" in BY_NAME else ()),
}
HAS_SAVES = find_spec("jupyter_dist.parts.saves") is not None
OF_SAVES = {"save_group", "restore_group"} if HAS_SAVES else set()
CHANGING = {"start_group", "run_code", "interrupt", "restart_group"} | OF_SAVES
CHANGING |= {"shut_down_group", *({"undo", "redo"} & BY_NAME.keys()), *(["park_group"] if "park" in BY_NAME else [])}

# What the SDK's dependencies warn of is not ours.
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(not find_spec("mcp"), reason="the extra jupyter-dist[mcp]"),
]


class Agent:
    """A connected client; `ask` returns the text of a successful call, `refused` that of a failed one."""

    def __init__(self, client):
        self.client = client

    async def call(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        (content,) = result.content
        return bool(result.is_error), content.text

    async def ask(self, tool, **arguments):
        is_error, text = await self.call(tool, **arguments)
        assert not is_error, text
        return text

    async def refused(self, tool, **arguments):
        is_error, text = await self.call(tool, **arguments)
        assert is_error, text
        return text

    async def names(self):
        return {tool.name for tool in (await self.client.list_tools()).tools}


@contextlib.asynccontextmanager
async def stdio(*options):
    """An agent whose server it starts itself, as desktop clients do."""
    from mcp import Client, StdioServerParameters

    command = StdioServerParameters(command=sys.executable, args=["-c", MAIN, "mcp", *options], env=dict(os.environ))
    async with Client(command, read_timeout_seconds=PATIENCE) as client:
        yield Agent(client)


@contextlib.contextmanager
def http_server(*options):
    """The URL of a server on a free port."""
    command = [sys.executable, "-c", MAIN, "mcp", "--http", "0", "--json", *options]
    env = {**os.environ, "JUPYTER_DIST_MCP_TOKEN": TOKEN}
    with running(command, env=env) as process:
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()
            process.wait(PATIENCE)


def test_an_agent_starts_runs_looks_interrupts_and_ends(client):
    """One group for all: over stdio what changes it, and over HTTP, at the same time, what a reader may do."""

    async def main(url):
        async with stdio("--max-chars", "2000") as agent:
            assert "Group 'agents' is ready: 2 ranks" in await agent.ask("start_group", name="agents", num_ranks=2)
            assert await agent.names() == READING | CHANGING
            await runs(agent)
            await gets_text(agent)
            await looks(agent)
            await reads_over_http(url)
            await is_told_of_mistakes(agent)
            await interrupts(agent)
            if "undo" in BY_NAME:  # of a part
                await undoes_and_redoes(agent)
            if HAS_SAVES:
                await saves_and_restores(agent)
            await ends(agent)

    with http_server("--read-only") as url:
        asyncio.run(main(url))


async def runs(agent):
    said = await agent.ask("run_code", code="x = torch.ones(3, rank + 1)\nprint('same')\nprint(rank)")
    assert re.search(r"ok\.\n\[ranks 0-1\]\nsame\n\[rank 0\]\n0\n\[rank 1\]\n1", said)
    failed = await agent.ask("run_code", code="1 / 0", ranks="1")
    assert "on rank 1: error." in failed
    assert "ZeroDivisionError: division by zero" in failed
    long = await agent.ask("run_code", code="print('\\n'.join(str(i) for i in range(3000)))", ranks="0")
    assert len(long) < 2400
    assert long.endswith("2999")
    execution, offset = re.search(r"get_result\(execution='(e-\w+)', offset=(\d+)\)", long).groups()
    part = await agent.ask("get_result", execution=execution, offset=int(offset))
    assert part.startswith(f"[Characters {offset} to {int(offset) + 2000} of ")
    assert f"offset={int(offset) + 2000}) continues there" in part


ACTING = "\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x1b\\\x1b[2J\u202e"


async def gets_text(agent):
    """Programs that show answers may be terminals."""
    said = await agent.ask("run_code", code=f"print({ACTING!r} + '\\x1b[31mred\\x1b[0m')", ranks="1")
    logged = await agent.ask("logs", rank=1)
    for answer in (said, logged, await agent.refused("run_code", code="1", ranks=ACTING)):
        assert not set(answer) & {"\x1b", "\x07", "\x9b", "\u202e"}, answer
    assert said.endswith("\nred")
    assert "stdout: red\n" in logged


async def looks(agent):
    await agent.ask("run_code", code=HOSTILE)
    found = await agent.ask("variables")
    assert "[rank 0]" in found
    assert "x: torch.Tensor, shape (3, 2), torch.float32, cpu" in found
    assert "count: int, 3" in found
    assert "words: str, 5 characters" in found
    assert "loud: Loud" in found  # whose class would have ended the rank
    await agent.ask("run_code", code="del loud, Loud, Meta")
    assert "count" not in await agent.ask("variables", prefix="wor")
    assert re.search("rank 0: idle.*\n.*rank 1: idle", await agent.ask("memory"))
    assert await agent.ask("stacks") == "ranks 0-1: idle"
    pages = [await agent.ask("logs", rank=1)]
    while older := re.search(r"before=(\d+)\) shows what is before", pages[0]):
        pages.insert(0, await agent.ask("logs", rank=1, before=int(older[1])))
    assert max(map(len, pages)) < 2400
    log = "".join(pages)
    assert log.index("stdout: same") < log.index("ends: error") < log.index("begins: \nimport os")
    if "script" in BY_NAME:
        assert "torchrun --nproc-per-node 2" in await agent.ask("export_script")


async def reads_over_http(url):
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    assert url.startswith("http://127.0.0.1:")
    allowed = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(timeout=PATIENCE) as http:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer \u00e9".encode()}):
            answer = await http.post(url, headers=headers, json={})
            assert answer.status_code == 401
            assert "Send the header" in answer.text
        here = url.removesuffix("/mcp")
        for name, foreign in itertools.product(
            ("Host", "Origin"), ("evil.example", f"{here}.evil.example", "null", "")
        ):
            value = foreign.removeprefix("http://") if name == "Host" else foreign
            stranger = await http.post(url, headers={**allowed, name: value}, json={})
            assert stranger.status_code == 403, (name, value)
        for origin in (here, here.replace("127.0.0.1", "localhost")):
            assert (await http.post(url, headers={**allowed, "Origin": origin}, json={})).status_code != 403
        http.headers.update(allowed)
        async with Client(streamable_http_client(url, http_client=http)) as connected:
            agent = Agent(connected)
            assert await agent.names() == READING
            assert "Group 'agents' is ready: 2 ranks (cpu, gloo)" in await agent.ask("list_groups")
            assert "count: int, 3" in await agent.ask("variables", ranks="1")
            refused = await agent.refused("run_code", code="1")
            assert refused.startswith("The tool 'run_code' changes something, and this server is read-only.")


async def is_told_of_mistakes(agent):
    for tool, arguments, sentence in (
        (
            "no_such_tool",
            {},
            f"The tool 'no_such_tool' does not exist. Tools: {', '.join(['list_groups', 'verdict', 'stacks', *OF_PARTS])}, ",
        ),
        ("run_code", {}, "run_code needs the argument 'code'. Arguments: code, ranks, group, wait_seconds"),
        ("run_code", {"code": "1", "cod": "2"}, "run_code has no argument 'cod'."),
        (
            "run_code",
            {"code": "1", "wait_seconds": -1},
            "The argument 'wait_seconds' of run_code cannot be -1. Seconds",
        ),
        ("run_code", {"code": "1", "ranks": "7"}, "There is no rank 7"),
        ("verdict", {"group": "nobody"}, "There is no group 'nobody'."),
        ("verdict", {"group": "../x"}, "There is no"),
        ("logs", {"rank": 9}, "Group 'agents' has no rank 9."),
        ("get_result", {"execution": "e-1"}, "There is no execution 'e-1'."),
        ("shut_down_group", {}, "shut_down_group needs the argument 'group'."),
    ):
        assert sentence in await agent.refused(tool, **arguments)


async def interrupts(agent):
    code = "if rank == 0: dist.barrier()\nelse:\n while True: pass"
    said = await agent.ask("run_code", code=code, wait_seconds=0)
    execution = re.search(r"Execution (e-\w+)", said)[1]
    assert "It keeps running: get_result waits for it" in said
    assert f"execution {execution}, `if rank == 0: dist.barrier()`" in await agent.ask("verdict")
    known = "so only names are known.\nrank 0: count\n" if "complete" in BY_NAME else "The ranks are busy."
    assert known in await agent.ask("variables", prefix="cou")
    assert "Interrupted: 0-1" in await agent.ask("interrupt")
    assert f"Execution {execution} on ranks 0-1: interrupted." in await agent.ask("get_result", execution=execution)
    assert await agent.ask("interrupt") == "No rank was running a cell."


async def undoes_and_redoes(agent):
    await agent.ask("run_code", code="steps = [1]")
    await agent.ask("run_code", code="steps.append(2)", keep_undo=True)
    assert "Undone: cell [" in await agent.ask("undo")
    assert "[1]" in await agent.ask("run_code", code="print(steps)", keep_undo=True)
    assert "Done again: cell [" in await agent.ask("redo")
    assert "[1, 2]" in await agent.ask("run_code", code="print(steps)")
    assert "No undone cell can be done again." in await agent.refused("redo")


async def saves_and_restores(agent):
    await agent.ask("run_code", code="count = 7")
    assert "Saved 'at-seven': " in await agent.ask("save_group", name="at-seven")
    await agent.ask("run_code", code="count = 8")
    assert "at-seven: group 'agents', 2 ranks" in await agent.ask("restore_group")
    assert "Restored 'at-seven'" in await agent.ask("restore_group", name="at-seven")
    assert "7" in await agent.ask("run_code", code="count")
    assert "There is no save 'x'" in await agent.refused("restore_group", name="x")


async def ends(agent):
    assert "All variables of its ranks are gone." in await agent.ask("restart_group", group="agents")
    assert "NameError" in await agent.ask("run_code", code="count")
    assert "Group 'agents' has ended." in await agent.ask("shut_down_group", group="agents")
    assert "No group is running." in await agent.refused("verdict")


HOSTILE = """
import os
count, words = 3, "hello"
class Meta(type):
    def __getattribute__(cls, name):
        os._exit(1)
class Loud(metaclass=Meta):
    def __repr__(self):
        os._exit(2)
    def __getattribute__(self, name):
        os._exit(3)
    __len__ = __repr__
loud = Loud()
"""


def test_what_cannot_be_served_is_said(dist):
    assert "cannot be limited to 3 characters. Choose 1000 to" in dist("mcp", "--max-chars", "3", status=1).stderr
    env = {**os.environ, "JUPYTER_DIST_MCP_TOKEN": "short"}
    assert "JUPYTER_DIST_MCP_TOKEN has 5 characters." in dist("mcp", "--http", "0", status=1, env=env).stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"Port {port} of 127.0.0.1 cannot be used" in dist("mcp", "--http", port, status=1).stderr
