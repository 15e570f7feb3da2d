"""Faults 39 to 44 and the promise to outlive everything above: real servers that are killed, stopped, flooded."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from leaks import children_of
from waits import PATIENCE, until

from .server import JupyterServer


@pytest.fixture
def serve(tmp_path):
    """Start a server over the same home; every group and every server is ended after the test."""
    servers = []

    def start(**options):
        servers.append(JupyterServer(tmp_path, **options))
        return servers[-1]

    yield start
    try:
        last = servers[-1] if servers[-1].process.poll() is None else start()
        for group in last.ask("GET", "groups")["groups"]:
            last.ask("DELETE", f"groups/{group['id']}")
    finally:
        for server in servers:
            server.end(signal.SIGKILL)


STEPS = """
import os, time
for step in range(120):
    print('step', step, flush=True); time.sleep(0.02)
while not os.path.exists({flag!r}): time.sleep(0.01)
"""


def test_a_killed_server_costs_no_line_and_no_variable(serve, tmp_path):
    server = serve()
    group = server.start(name="g")
    server.run("g", "kept = rank")
    execution = server.submit("g", STEPS.format(flag=str(tmp_path / "flag")))
    until(lambda: "step 9" in str(server.view("g", execution, wait=0)["items"]))
    server.end(signal.SIGKILL)
    again = serve()
    adopted = again.ask("GET", "groups/g")
    assert (adopted["id"], adopted["state"], adopted["running"]) == (group["id"], "ready", [execution])
    (tmp_path / "flag").touch()
    assert again.view("g", execution)["execution"]["state"] == "ok"
    assert again.run("g", "print(kept)")["items"][0]["output"]["text"] == "0\n"
    for rank in (0, 1):
        said = [line for line in again.download("g", rank).splitlines() if line.startswith("step")]
        assert said == [f"step {step}" for step in range(120)]


@pytest.mark.parametrize("policy", ["keep", "end"])
def test_a_server_that_stops_in_order_says_what_becomes_of_groups(serve, policy):
    server = serve(on_server_stop=policy)
    group = server.start(name="g")
    server.submit("g", "import time\nwhile True: time.sleep(0.01)")
    agent = server.agent_pid(group["id"])
    server.end(signal.SIGTERM)
    if policy == "keep":
        assert "group 'g' (2 ranks) keeps running without this server" in server.log()
        assert Path(f"/proc/{agent}").exists()
        assert serve().ask("GET", "groups/g")["id"] == group["id"]
    else:
        assert "group 'g' (2 ranks) ends with this server" in server.log()
        assert not children_of(agent)


def test_a_killed_agent_is_told_and_a_new_group_starts(group_server):
    server = group_server
    group = server.start(name="killed")
    server.run("killed", "print('before')")
    pids = [rank["pid"] for rank in group["ranks"]]
    running = server.submit("killed", "import os\nos.system('sleep 1000')")
    os.kill(server.agent_pid(group["id"]), signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids))
    lost = server.ask("GET", f"groups/killed?wait={PATIENCE}&not_state=ready")
    assert lost["state"] == "lost"
    assert "agent of group 'killed' has ended" in lost["error"]["message"]
    assert server.view("killed", running)["execution"]["state"] == "lost"
    assert "before\n" in server.download("killed", 0)
    assert server.start(name="killed")["id"] != group["id"]
    assert server.run("killed", "print('new')")["execution"]["state"] == "ok"


def test_two_starts_of_one_name_at_once_give_one_group(group_server):
    server = group_server
    outcomes = []

    def start():
        try:
            outcomes.append(server.ask("POST", "groups", {"name": "twice", "num_ranks": 2})["state"])
        except Exception as err:
            outcomes.append(err.code)

    threads = [threading.Thread(target=start, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
    assert sorted(map(str, outcomes))[:3] == ["409"] * 3
    assert {"starting", "ready"} & set(map(str, outcomes))  # its ranks may be ready before the answer
    assert sorted(group["name"] for group in server.ask("GET", "groups")["groups"]) == ["g", "twice"]
    server.ask("DELETE", "groups/twice")  # while it starts
    assert [group["name"] for group in server.ask("GET", "groups")["groups"]] == ["g"]


FLOOD = """
import time
for n in range({lines}):
    print(rank, 'line', n)
    if n % {pause} == 0: time.sleep(0.05)
"""


def test_a_slow_client_and_a_flood_hold_nobody_up(group_server, request):
    """A page that does not read at all, one that is cut again and again, and a program that asks meanwhile."""
    server = group_server
    server.run("g", "1")
    deaf = server.channel()
    before = _resident(server.process.pid)
    lines = request.config.getoption("--flood-lines")
    execution = server.submit("g", FLOOD.format(lines=lines, pause=lines // 40))
    deaf.send({"type": "subscribe", "topic": "execution", "group": "g", "execution": execution, "since": 0})
    deaf.send({"type": "subscribe", "topic": "log", "group": "g", "rank": 0, "since": 0})
    waits, cuts = [], 0
    while not waits or server.view("g", execution, wait=0)["execution"]["state"] == "running":
        channel = server.channel()
        channel.send({"type": "subscribe", "topic": "execution", "group": "g", "execution": execution, "since": 0})
        channel.next_of("view")
        channel.close()
        cuts += 1
        began = time.monotonic()
        server.ask("GET", "groups/g")
        waits.append(time.monotonic() - began)
    assert server.view("g", execution)["execution"]["state"] == "ok"
    grown = _resident(server.process.pid) - before
    print(f"slowest answer {max(waits):.3f} s of {len(waits)}, server grew {grown >> 20} MiB, {cuts} cuts")
    assert grown < 96 << 20
    for rank in (0, 1):
        said = "".join(line + "\n" for line in server.download("g", rank).splitlines() if line.startswith(f"{rank} "))
        whole = "".join(f"{rank} line {n}\n" for n in range(lines))
        assert hashlib.sha256(said.encode()).digest() == hashlib.sha256(whole.encode()).digest()
    deaf.close()


def test_two_pages_see_the_same_and_cells_queue_with_their_owner(group_server, tmp_path):
    server, flag = group_server, tmp_path / "flag"
    pages = [server.channel(), server.channel()]
    wait = f"import os, time\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.01)\nprint('one')"
    first = server.submit("g", wait, notebook="a.ipynb")
    second = server.submit("g", "print('two')", notebook="b.ipynb")
    listed = {e["id"]: e for e in server.ask("GET", "groups/g/executions")["executions"]}
    assert [listed[first]["notebook"], listed[second]["notebook"]] == ["a.ipynb", "b.ipynb"]
    assert listed[first]["owner"]
    assert listed[second]["state"] == "queued"
    flag.touch()
    seen = []
    for page in pages:
        page.send({"type": "subscribe", "topic": "execution", "group": "g", "execution": first, "since": 0})
        while True:
            message = page.next_of("execution")
            if message["execution"]["ended_at"] is not None:
                break
        page.close()
        seen.append(message["execution"]["statuses"])
    assert seen[0] == seen[1]
    views = [server.view("g", execution) for execution in (first, second)]
    assert [view["items"][0]["output"]["text"] for view in views] == ["one\n", "two\n"]
    assert views[0]["execution"]["ended_at"] <= views[1]["execution"]["started_at"]


def _counts(pid: int) -> tuple[int, int]:
    """Descriptors and children."""
    return len(os.listdir(f"/proc/{pid}/fd")), len(children_of(pid))


def _settled_counts(pid: int) -> tuple[int, int]:
    """The same for a second: the keeper ends after its agent, this client's own connection may still be closing."""
    same, counts, deadline = 0, _counts(pid), time.monotonic() + PATIENCE
    while same < 20 and time.monotonic() < deadline:
        time.sleep(0.05)
        before, counts = counts, _counts(pid)
        same = same + 1 if counts == before else 0
    return counts


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.timeout(900)
def test_starts_and_stops_leave_the_server_as_it_was(group_server, request):
    """Descriptors, threads, processes, sockets, group folders: the numbers of the first cycle, `--cycles` times."""
    server = group_server
    seen, resident = [], []
    for _ in range(request.config.getoption("--cycles")):
        group = server.start(name="cycle")
        server.run("cycle", "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)")
        assert len(server.ask("DELETE", "groups/cycle")["killed"]) == 2
        pid = server.process.pid
        seen.append(_settled_counts(pid))
        resident.append(_resident(pid))
        assert not any(Path("/proc", str(rank["pid"]), "exe").exists() for rank in group["ranks"])
    print(f"descriptors and children per cycle: {seen}; the server grew {(resident[-1] - resident[0]) >> 10} KiB")
    assert set(seen[1:]) == {seen[0]}, seen
    # asyncio's pool keeps its threads, and makes no more than this.
    assert len(os.listdir(f"/proc/{server.process.pid}/task")) <= 4 + min(32, (os.cpu_count() or 1) + 4)
    # The first half of a long run is for caches to fill.
    half = len(resident) // 2
    assert (resident[-1] - resident[half]) / max(1, len(resident) - half) < 1 << 20, resident
