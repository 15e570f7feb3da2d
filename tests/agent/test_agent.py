"""A real agent with real ranks on gloo: starting, cells, queue, interrupt, restart, death, ending."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from waits import PATIENCE, until

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.processes import read_process

from .harness import AgentProcess, sessions


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    with AgentProcess(tmp_path_factory.mktemp("agent") / "g") as client:
        client.start(2)
        yield client


@pytest.fixture
def own_agent(tmp_path):
    process = AgentProcess(tmp_path / "g")
    with process as client:
        yield client


def test_a_group_forms_and_computes(agent):
    execution = agent.run("t = torch.ones(2) * (rank + 1); dist.all_reduce(t); print(t.tolist(), device)")
    assert execution["state"] == "ok"
    for rank in (0, 1):
        assert agent.text(rank, execution["id"]) == "[3.0, 3.0] cpu\n"


def test_records_are_numbered_without_gap_and_an_end_comes_after_its_outputs(agent):
    execution = agent.run("print('x')")
    kinds = [h["kind"] for h, _ in agent.records if h.get("execution_id") == execution["id"]]
    assert kinds[0] == "begin"
    assert sorted(kinds[1:-1]) == ["rank_end", "rank_end", "stream", "stream"]
    assert kinds[-1] == "end"
    numbers = [h["seq"] for h, _ in agent.records]  # ranks may share one
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, max(numbers) + 1))


def test_disjoint_sets_run_at_once_and_shared_ranks_in_order(agent):
    flag = agent.agent.directory.parent / "flag"
    wait = f"import os, time\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.01)"
    first = agent.submit(wait, [0])
    behind = agent.submit("print('behind')", [0, 1])
    agent.wait(lambda: agent.executions[first]["state"] == "running")
    assert agent.executions[behind]["state"] == "queued"
    flag.touch()
    agent.ended(behind)
    assert agent.ended(first)["ended_at"] <= agent.executions[behind]["started_at"]
    flag.unlink()
    first = agent.submit(wait, [0])
    other = agent.run("print('other')", [1])
    assert other["state"] == "ok"
    assert agent.executions[first]["state"] == "running"
    flag.touch()
    agent.ended(first)


def test_an_error_on_one_rank_fails_the_cell_and_aborts_what_waits_behind_it(agent):
    slow = agent.submit("import time; time.sleep(0.2)\nif rank == 1: 1/0", [0, 1], notebook="n")
    behind = agent.submit("print('never')", [0], notebook="n")
    other = agent.submit("print('other notebook')", [0], notebook="m")
    assert agent.ended(slow)["state"] == "error"
    assert [s["status"] for s in agent.executions[slow]["statuses"]] == ["ok", "error"]
    assert agent.ended(behind)["state"] == "aborted"
    assert agent.executions[behind]["error"]["message"].startswith("Not run")
    assert agent.ended(other)["state"] == "ok"


def test_a_cell_that_comes_after_one_that_failed_is_aborted(agent):
    failed = agent.run("1/0", notebook="n")
    assert agent.run("1", after=failed["id"])["state"] == "aborted"
    fine = agent.run("1/0", notebook="n", stop_on_error=False)
    assert agent.run("1", after=fine["id"])["state"] == "ok"


def test_interrupt_keeps_variables(agent):
    agent.run("kept = rank + 40")
    running = agent.submit("import time\nwhile True: time.sleep(0.01)", [0, 1])
    agent.wait(lambda: agent.executions[running]["state"] == "running")
    header, _ = agent.request("interrupt", ranks=[0, 1])
    assert header["interrupted"] == [0, 1]
    assert agent.ended(running)["state"] == "interrupted"
    execution = agent.run("print(kept)")
    assert [agent.text(rank, execution["id"]) for rank in (0, 1)] == ["40\n", "41\n"]


def test_interrupting_idle_ranks_does_nothing(agent):
    header, _ = agent.request("interrupt", ranks=[0, 1])
    assert (header["interrupted"], header["idle"]) == ([], [0, 1])
    assert agent.run("print('fine')")["state"] == "ok"


def test_output_of_c_code_and_children_is_in_place(agent):
    code = (
        "import os, subprocess\nprint('a')\nos.system('echo b')\nprint('c')\nsubprocess.run(['echo', 'd'])\nprint('e')"
    )
    execution = agent.run(code)
    for rank in (0, 1):
        assert agent.text(rank, execution["id"]) == "a\nb\nc\nd\ne\n"


def test_a_server_that_comes_later_is_given_the_code_of_cells_that_wait(agent):
    """That of cells that have begun is in the journal."""
    first = agent.submit("import time; time.sleep(1000)", [0, 1])
    second = agent.submit("print('it waits')", [0, 1])
    agent.wait(lambda: agent.executions[first]["state"] == "running")
    codes = {one["id"]: one.get("code") for one in agent.request("executions", after=None)[0]["executions"]}
    assert (codes[first], codes[second]) == (None, "print('it waits')")
    agent.request("interrupt", ranks=None)
    agent.ended(second)


def test_memory_samples_come_while_watched(agent):
    agent.request("watch", seconds=0.2)
    agent.samples.clear()
    agent.wait(lambda: len(agent.samples) >= 2)
    agent.request("watch", seconds=0)
    assert [row["rank"] for row in agent.samples[0]["ranks"]] == [0, 1]
    assert all(row["resident_bytes"] > 10_000_000 for row in agent.samples[0]["ranks"])


def test_samples_end_with_the_connection_of_the_server_that_asked_for_them(pair):
    pair.request("watch", seconds=0.2)
    pair.wait(lambda: pair.samples)
    pair.close()
    after = pair.agent.client()
    after.hello()
    after.request("follow", since=0)
    after.run("import time; time.sleep(1)")  # five samples of busy ranks
    assert after.samples == []
    after.close()
    pair.agent.clients.remove(after)


def test_a_new_server_takes_over_where_the_old_one_was(agent):
    marker = agent.submit("import time\nfor i in range(20):\n    print(i, flush=True); time.sleep(0.01)", [0, 1])
    agent.wait(lambda: any(header.get("rank") == 0 for header, _ in agent.records))  # state goes ahead of output
    seen = agent.records[-1][0]["seq"]
    second = agent.agent.client()
    second.hello()
    second.request("follow", since=seen)
    second.ended(marker)
    first_part = [
        p
        for h, p in agent.records
        if h["seq"] <= seen and h.get("execution_id") == marker and h.get("rank") == 0 and h["kind"] == "stream"
    ]
    assert b"".join(first_part).decode() + second.text(0, marker) == "".join(f"{i}\n" for i in range(20))
    # The first connection was replaced: hand the module's client the new one.
    agent.close()
    agent.sock, agent.decoder = second.sock, second.decoder
    agent.executions.update(second.executions)


def test_a_cell_sent_while_the_group_starts_waits_and_runs(tmp_path):
    with AgentProcess(tmp_path / "g", forked=False) as client:  # its zygote still imports
        client.start(2, wait=False)
        execution = client.run("print('hello')")
        assert execution["state"] == "ok"


def test_restart_forks_anew_without_importing_again(pair):
    pids = [rank["pid"] for rank in pair.group["ranks"]]
    pair.run("x = 1")
    generation = pair.group["generation"] + 1
    pair.request("restart")
    pair.wait(lambda: pair.group["generation"] == generation and pair.group["state"] == "ready")
    assert not set(pids) & {rank["pid"] for rank in pair.group["ranks"]}
    assert pair.run("x")["state"] == "error"
    assert pair.run("t = torch.ones(1); dist.all_reduce(t)")["state"] == "ok"


def test_many_ranks_are_forked_with_what_the_first_error_of_a_collective_needs(tmp_path):
    """Else each of n ranks parses torch's source when another one dies."""
    parsed = "any(file.endswith('distributed_c10d.py') for file in __import__('linecache').cache)"
    with AgentProcess(tmp_path / "g") as client:
        client.start(16)
        assert client.run(f"assert {parsed}", [0])["state"] == "ok"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", r"was killed \(SIGKILL"),
        ("import os; os._exit(3)", "exited with code 3"),
        ("import ctypes; ctypes.string_at(0)", r"was killed \(SIGSEGV\)"),
    ],
)
def test_a_death_is_named_and_the_other_rank_goes_on(pair, code, reason):
    execution = pair.run(f"print('last words', flush=True)\nif rank == 1:\n    {code}")
    assert execution["state"] == "lost"
    assert re.search(reason, execution["error"]["message"])
    pair.wait_group("degraded")
    assert re.match(reason, pair.group["ranks"][1]["exit"]["reason"])
    assert pair.text(1, execution["id"]) == "last words\n"
    with pytest.raises(JupyterDistError, match=r"Rank 1 .*Run on the other ranks"):
        pair.submit("1", [0, 1])
    assert pair.run("print(rank)", [0])["state"] == "ok"
    if "string_at" in code:
        assert "Segmentation fault" in pair.text(1, name="stderr")


def test_a_start_that_fails_names_the_rank_and_leaves_nothing(tmp_path):
    process = AgentProcess(tmp_path / "g")
    with process as client:
        client.start(2, wait=False, env={"GLOO_SOCKET_IFNAME": "no-such-interface"})
        client.wait_group("dead")
        assert client.group["error"]["code"] == "start_failed"
        assert re.search("Rank [01] exited with code", client.group["error"]["message"])
        assert process.process.wait(PATIENCE) == 0
        assert not process.directory.exists()


def test_shutdown_ends_a_busy_group_with_grandchildren(tmp_path):
    process = AgentProcess(tmp_path / "g")
    with process as client:
        client.start(2)
        duration = str(100_000 + os.getpid())  # not to be taken for another run's
        client.run(f"import subprocess; p = subprocess.Popen(['sleep', '{duration}'], start_new_session=True)")
        client.submit("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass", [0, 1])
        before = set(sessions())
        pids = [rank["pid"] for rank in client.group["ranks"]]
        assert set(pids) <= before
        client.kill_rank(1, signal.SIGSTOP)
        header, _ = client.request("shutdown")
        assert header["killed"][0] == "Rank 1 did not exit in time and was killed."
        assert [re.sub(r"\d+", "N", told) for told in header["killed"][1:]] == [
            "Process N (sleep), which a rank had started, was killed."
        ] * 2
        assert process.process.wait(PATIENCE) == 0
    sleeping = [pid for pid in sessions() if f"sleep\0{duration}".encode() in _command(pid)]
    assert not sleeping


def _command(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_an_agent_that_is_killed_takes_its_ranks_along(tmp_path):
    process = AgentProcess(tmp_path / "g", forked=False)
    client = process.client()
    client.start(2)
    client.submit("while True: pass", [0, 1])
    client.wait(lambda: client.group["ranks"][0]["state"] == "busy")
    pids = [rank["pid"] for rank in client.group["ranks"]]
    os.kill(process.process.pid, signal.SIGKILL)
    process.process.wait(PATIENCE)
    until(lambda: not set(pids) & set(sessions()))
    client.close()


def test_a_lease_that_ran_out_ends_everything(tmp_path):
    process = AgentProcess(tmp_path / "g")
    with process as client:
        client.start(2, lease_seconds=1.0)
        client.close()
        assert process.process.wait(PATIENCE) == 0
        assert not process.directory.exists()


@pytest.fixture
def owners():
    """Two processes that live as long as the test wants."""
    started = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(2)]
    yield [(process, {"pid": process.pid, "started": read_process(process.pid).started}) for process in started]
    for process in started:
        process.kill()
        process.communicate()


def test_a_group_ends_with_its_owners_and_not_before(tmp_path, owners):
    (first, owner), (second, other) = owners
    process = AgentProcess(tmp_path / "g")
    with process as client:
        client.start(1, owner={**owner, "grace_seconds": 30})
        client.request("own", owner={**other, "grace_seconds": 1.5})
        first.kill()  # not waited for: a zombie has ended
        client.wait(lambda: client.group["ends_with"]["owners"] == [second.pid])
        assert client.group["ends_with"]["at"] is None
        second.kill()
        client.wait(lambda: client.group["ends_with"]["at"])
        assert client.group["ends_with"]["at"] - time.time() < 30
        client.wait(lambda: client.group["state"] == "dead")
        assert client.group["error"]["message"] == f"It has ended with the process that it belonged to ({second.pid})."
        assert process.process.wait(PATIENCE) == 0
        assert not process.directory.exists()


def test_a_group_that_outlives_all_processes_gets_no_owner(pair, owners):
    pair.request("own", owner={**owners[0][1], "grace_seconds": 0})
    assert pair.hello()["group"]["ends_with"] is None


def test_a_warm_agent_is_claimed_by_a_start(own_agent):
    assert own_agent.hello()["group"]["state"] == "warm"
    own_agent.start(1)
    assert own_agent.run("print(world_size)", [0])["state"] == "ok"


def test_unknown_requests_and_other_protocols_are_refused(own_agent):
    with pytest.raises(JupyterDistError, match="Unknown request 'nonsense'"):
        own_agent.request("nonsense")
    with pytest.raises(JupyterDistError, match="speaks protocol"):
        own_agent.request("hello", protocol=99)
    with pytest.raises(JupyterDistError, match="no group yet"):
        own_agent.request("restart")


def test_a_hung_collective_is_freed_and_the_process_group_formed_anew(pair):
    pair.run("kept = rank + 40")
    hung = pair.submit("if rank == 0: dist.all_reduce(torch.ones(1))", [0, 1])
    pair.wait(lambda: pair.group["ranks"][0]["message"] is not None)  # in it, which what it prints before does not say
    pair.request("interrupt", ranks=[0])
    assert pair.ended(hung)["state"] == "interrupted"
    pair.wait(lambda: "re-created" in (pair.group["note"] or ""))
    execution = pair.run("t = torch.ones(1) * kept; dist.all_reduce(t); print(t.item())")
    assert execution["state"] == "ok"
    assert pair.text(1, execution["id"]) == "81.0\n"
    pair.wait(lambda: pair.group["note"] is None)  # a cell has run since


def test_a_dead_rank_is_replaced_and_the_others_keep_their_variables(own_agent):
    own_agent.start(3)
    own_agent.run("kept = rank + 40", range(3))
    own_agent.kill_rank(1)
    own_agent.wait_group("degraded")
    own_agent.request("replace")
    own_agent.wait_group("ready")
    assert own_agent.run("kept", [1])["state"] == "error"
    execution = own_agent.run(
        "t = torch.ones(1) * globals().get('kept', 0); dist.all_reduce(t); print(t.item())", range(3)
    )
    assert execution["state"] == "ok"
    assert own_agent.text(1, execution["id"]) == "82.0\n"
    with pytest.raises(JupyterDistError, match="has no rank to replace"):
        own_agent.request("replace")


def test_a_cell_sent_right_behind_a_restart_is_for_the_new_ranks(pair):
    pair.run("x = 1")
    pair.request("restart")
    behind = [pair.submit("print('x' in globals())", [0, 1]) for _ in range(20)]
    assert pair.ended(behind[-1])["state"] == "ok"
    assert pair.text(0, behind[0]) == "False\n"


def test_a_rank_that_ended_its_part_takes_the_next_cell_of_another_notebook(pair):
    code = "import time\nwhile rank == 1 and 'stop' not in globals(): time.sleep(0.01)"
    long = pair.submit(code, [0, 1], notebook="a.ipynb")
    pair.wait(lambda: {"ranks": "0", "status": "ok"}.items() <= pair.executions[long]["statuses"][0].items())
    waiting = pair.submit("print('both')", [0, 1], notebook="b.ipynb")
    pair.wait(lambda: pair.executions[waiting]["waits_for"] is not None)
    assert re.fullmatch(r"Waits for rank 1: cell \[\d+\] of a.ipynb", pair.executions[waiting]["waits_for"])
    pair.request("cancel", execution_id=waiting)
    other = pair.run("print('other')", [0], notebook="b.ipynb")
    assert (other["state"], pair.text(0, other["id"])) == ("ok", "other\n")
    assert pair.executions[long]["state"] == "running"
    same = pair.submit("print('same')", [0], notebook="a.ipynb")
    pair.request("interrupt", ranks=[1])
    assert pair.ended(long)["state"] == "interrupted"
    assert pair.ended(same)["state"] == "aborted"  # it waited for the outcome
    assert pair.run("dist.barrier()")["state"] == "ok"


@pytest.mark.parametrize("code", [
    "print('go', flush=True); dist.all_reduce(torch.ones(1))",
    # Interrupted beside the collective: nothing is broken, but this rank has begun one more than the other.
    "work = dist.all_reduce(torch.ones(1), async_op=True); print('go', flush=True); time.sleep(600)",
])  # fmt: skip
def test_a_cell_of_another_notebook_waits_until_a_broken_process_group_is_back(pair, code):
    hung = pair.submit(f"import time\n{code}", [0], notebook="a.ipynb")
    pair.wait(lambda: pair.text(0, hung) == "go\n")
    after = pair.submit("dist.barrier()\nprint('met')", [0, 1], notebook="b.ipynb")
    pair.request("interrupt", ranks=[0])
    assert pair.ended(hung)["state"] == "interrupted"
    assert pair.ended(after)["state"] == "ok"
