"""A system call of the agent that fails costs what it was for, and nothing waits for it: no descriptors, for real."""

import contextlib
import resource

import pytest

from jupyter_dist.protocol.errors import JupyterDistError

LOOKS = "\n#" + "x" * 100_000  # so much in the journal that it looks at its disk


@contextlib.contextmanager
def no_descriptors(pid):
    """A process that can open nothing."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_cells_run_and_deaths_are_told_while_the_agent_has_no_descriptors(own):
    own.start(2, journal_bytes=1 << 20)
    for _ in range(2):
        with no_descriptors(own.group["agent_pid"]):
            ran = [own.submit(f"print({number}){LOOKS}", [0, 1]) for number in range(3)]
            for execution in ran:
                own.wait_final(execution)
            assert [own.executions[execution]["state"] for execution in ran] == ["ok"] * 3
            own.kill_rank(1)
            own.wait_group("degraded")
            assert own.run("print('alone')", [0])["state"] == "ok"
        own.wait(lambda: "alone" in own.text(0))  # what it could not read then follows
        own.request("replace")
        own.wait_group("ready")
        assert own.run("x = 1")["state"] == "ok"


def test_a_cell_that_cannot_be_sent_ends_with_the_reason_and_others_run(pair):
    behind = []
    for _ in range(2):
        failing = pair.submit("print('never')", [0, 1], notebook="x" * (1 << 21))  # too long for the journal
        behind.append(pair.submit("print('next')", [0, 1], notebook="b.ipynb"))
        assert pair.ended(failing)["state"] == "lost"
        assert "could not be sent to its ranks: FrameError" in pair.executions[failing]["error"]["message"]
    assert [pair.ended(execution)["state"] for execution in behind] == ["ok", "ok"]
    assert pair.group["running"] == pair.group["queued"] == []


def test_cells_that_waited_for_a_dead_rank_end_and_one_for_a_living_rank_runs(pair):
    for _ in range(2):
        ended = pair.submit("import time; time.sleep(1000)", [1], notebook="a.ipynb")
        behind = [pair.submit("ran = True", [0, 1], notebook="b.ipynb") for _ in range(3)]
        other = pair.submit("print('c')", [0], notebook="c.ipynb")
        pair.wait(lambda execution=ended: pair.executions[execution]["state"] == "running")
        pair.kill_rank(1)
        assert pair.ended(other)["state"] == "ok"
        assert [pair.ended(execution)["state"] for execution in (ended, *behind)] == ["lost", *["aborted"] * 3]
        assert pair.executions[behind[0]]["error"]["code"] == "rank_dead"
        pair.wait_group("degraded")
        with pytest.raises(JupyterDistError, match="Rank 1"):
            pair.submit("1", [1])
        pair.request("replace")
        pair.wait_group("ready")
        said = pair.run("print('ran' in globals())")
        assert (pair.text(0, said["id"]), pair.text(1, said["id"])) == ("False\n", "False\n")
