"""A client that is closed, or forked, leaves no wait without end."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from waits import PATIENCE, until, until_async

from jupyter_dist.client import AsyncClient, Client, JupyterDistError

LONG = "import time; time.sleep(1000)"


def is_running(group):
    return all(rank.state == "busy" for rank in group.status().ranks)


def follow(group):
    for _ in group.follow_logs(0):
        pass


WAITS = {
    "run": lambda group: group.run(LONG),
    "stream": lambda group: group.run(LONG, stream=lambda _: None),
    "logs": follow,
}


@pytest.mark.parametrize("name", WAITS)
def test_a_thread_that_waits_when_its_client_is_closed_gets_an_error(client, group, name):
    own = Client.connect(client.url)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(WAITS[name], own.attach(group.id))
        if name != "logs":
            until(lambda: is_running(group))
        until(lambda: own._client.channel._socket is not None)
        own.close()
        error = waiting.exception(PATIENCE)
    assert isinstance(error, JupyterDistError)
    assert error.code == "cancelled"
    group.interrupt()  # the cell kept running
    assert group.run("1", "0").ok


@pytest.mark.parametrize("is_followed", [True, False])
async def test_a_task_that_waits_when_its_client_is_closed_gets_an_error(client, group, is_followed):
    own = await AsyncClient.connect(client.url)
    execution = await (await own.attach(group.id)).submit(LONG)
    if not is_followed:
        execution._feed = None  # as of a cell that is too long for the WebSocket
    waiting = [asyncio.ensure_future(execution.result())]
    await until_async(lambda: own.api._asked or is_followed)
    await own.close()
    (outcome,) = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), PATIENCE)
    assert isinstance(outcome, JupyterDistError)
    assert outcome.code == "cancelled"
    with pytest.raises(JupyterDistError, match="The client was closed"):
        await own.groups()
    await own.close()
    await asyncio.to_thread(group.interrupt)


FORKS = """
import os, sys
from jupyter_dist.client import JupyterDistError, connect

with connect(sys.argv[1]) as client:
    group = client.attach(sys.argv[2])
    if os.fork() == 0:
        try:
            group.status()
        except JupyterDistError as err:
            print(err, flush=True)
        client.close()
        with connect(sys.argv[1]) as own:
            print(own.attach(sys.argv[2]).run("40 + 2", "0").values, flush=True)
        os._exit(0)
    os.wait()
    print(group.run("40 + 3", "0").values)
"""


def test_a_forked_worker_is_told_to_connect_itself(client, group):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, client.url, group.id],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    error, of_child, of_parent = done.stdout.splitlines()
    assert error.startswith("This client belongs to process ")
    assert (of_child, of_parent) == ("{0: '42'}", "{0: '43'}")
