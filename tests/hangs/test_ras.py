"""NCCL's RAS as evidence of a hang: its report was recorded on an H100 with NCCL 2.28.9 (`facts:ras`, 26 Nov 2026)."""

import asyncio
import json
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_dist.agent.group.cells.proving import Proving
from jupyter_dist.agent.part import AgentCore
from jupyter_dist.agent.watch.look import Looks
from jupyter_dist.parts.hangs.agent import HangWatch, askras, rasreport
from jupyter_dist.protocol.accelerators import BACKENDS
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.secrets import Secrets

HANGS = (Path(__file__).parent / "recorded" / "ras_hangs.txt").read_bytes()
OURS = {9390: 0, 9392: 1}  # the rank of each process in it
BEHIND = "NCCL has begun this many AllReduce in the communicator of ranks 0-1: 2 on rank 0, 1 on rank 1."


def reported(report=HANGS, ranks=OURS, waiting=RankSet([0])):
    return rasreport.sentences(rasreport.of_group(rasreport.read(report), ranks), ranks, waiting)


def changed(change):
    """Return the recorded report after a change to its first communicator."""
    begin = HANGS.index(b"{")
    found = json.loads(HANGS[begin:])
    change(found["communicators"][0])
    return HANGS[:begin] + json.dumps(found, indent=2).encode()


def test_the_rank_that_is_behind_is_named_and_a_communicator_without_a_difference_is_not():
    assert len(rasreport.read(HANGS)) == 2
    assert reported() == [BEHIND]
    assert reported(ranks={9390: 4, 9392: 7}, waiting=RankSet([4])) == [
        BEHIND.replace("0-1", "4,7").replace("rank 0", "rank 4").replace("rank 1", "rank 7")
    ]


def test_processes_of_other_groups_and_users_are_left_out():
    assert reported(ranks={1: 0, 2: 1}) == []
    assert reported(ranks={9390: 0}) == []  # the other one of that host is not ours: a process id of another container
    assert reported(waiting=RankSet([3])) == []


def test_members_on_other_machines_are_named_by_process_and_host():
    def elsewhere(communicator):
        communicator["ranks"][1]["host"] = "10.0.0.7"

    assert reported(changed(elsewhere), ranks={9390: 0}) == [
        "NCCL has begun this many AllReduce in the communicator of rank 0, process 9392 of 10.0.0.7:"
        " 2 on rank 0, 1 on process 9392 of 10.0.0.7."
    ]


def test_ranks_that_do_not_respond_and_errors_are_named():
    def silent(communicator):
        gone = communicator["ranks"].pop()
        status = {"unresponsive": True, "considered_dead": False}
        communicator["missing_ranks"] = [{**{name: gone[name] for name in ("rank", "host", "pid", "cuda_dev", "nvml_dev")}, "status": status}]  # fmt: skip
        communicator["ranks"][0]["status"]["async_error"] = 6

    report = changed(silent)
    right = [
        "NCCL gets no answer from rank 1.",
        "NCCL reports an error on rank 0: a peer is gone, or the network failed.",
    ]
    assert reported(report) == right
    # NCCL 2.28.9 itself writes no comma before the state of such a rank (others recorded that).
    assert b'"nvml_dev": 0,\n          "status": {\n            "unresp' in report
    broken = report.replace(b'"nvml_dev": 0,\n          "status": {\n            "unresp', b'"nvml_dev": 0\n          "status": {\n            "unresp')  # fmt: skip
    assert reported(broken) == right
    assert reported(broken.replace(b'dead": false', b'dead": true'))[0] == "NCCL counts rank 1 as dead."


@pytest.mark.parametrize(
    "report",
    [b"", b"ERROR\n", b"OK\n{}", b"[" * 100_000, b'{"communicators": [{}]}', b'{"communicators": 5}', b'{"communicators": [{"ranks": [{"host": 1}]}]}',
     b"{" * 100_000, HANGS[:900], b"\xff\xfe{\x00"],
)  # fmt: skip
def test_anything_else_that_listens_there_is_no_evidence(report):
    assert reported(report) == []


@pytest.fixture
def ras():
    """A port that answers as RAS does: with the report of another group's process first, as the kernel may choose it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        reports = [HANGS.replace(b"9390", b"1").replace(b"9392", b"2"), HANGS]

        def answer():
            for number in range(2 * len(reports)):
                try:
                    sock, _ = server.accept()
                except OSError:  # it is closed
                    return
                with sock, sock.makefile("rb") as lines:
                    for reply in (b"SERVER PROTOCOL 2\n", b"OK\n", b"OK\n"):
                        assert lines.readline()
                        sock.sendall(reply)
                    assert lines.readline() == b"VERBOSE STATUS\n"
                    sock.sendall(reports[number % len(reports)].partition(b"OK\nOK\n")[2])

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def group_with(backend, **env):
    ranks = [SimpleNamespace(rank=rank, local_pid=pid) for pid, rank in OURS.items()]
    return SimpleNamespace(
        spec=SimpleNamespace(accelerator="cuda", backend=backend, env=Secrets(env)), living=lambda: ranks
    )


def test_a_verdict_that_names_no_rank_gets_what_nccl_reports(ras):
    group = group_with("nccl", NCCL_RAS_ADDR=ras)
    watch = HangWatch(
        AgentCore(
            group=group,
            starts=None,
            proving=Proving(),
            looks=Looks(group),
            begun_rank=lambda rank: group.ranks[rank],
            used=lambda: None,
            execution_changed=lambda _: None,
            status_changed=lambda: None,
            group_answer=lambda: None,
            interrupt=lambda _: None,
            send=lambda *_: None,
            failed=lambda _: None,
        )
    )
    part = {"ranks": "0", "state": "waits", "place": None, "call": "all_reduce"}
    verdict = {"kind": "waits", "reason": "still", "message": "Nothing has moved.", "since": 0.0, "waiting": [part], "needed": []}  # fmt: skip
    named = {**verdict, "kind": "cannot_end", "reason": "missing"}
    busy = {**verdict, "reason": "busy"}
    verdicts = {"a": verdict, "b": named, "c": busy}
    asyncio.run(watch._ask_ras(verdicts))
    assert [one["message"] for one in verdicts.values()] == [f"Nothing has moved. {BEHIND}", "Nothing has moved.", "Nothing has moved."]  # fmt: skip
    assert watch._ras == {"a": [BEHIND], "b": [BEHIND]}  # what both are kept with


@pytest.mark.parametrize(
    "env", [{"NCCL_RAS_ENABLE": "0"}, {"NCCL_RAS_ADDR": "nonsense"}, {"NCCL_RAS_ADDR": "127.0.0.1:1"}]
)
def test_without_ras_a_verdict_is_made_as_before(env):
    assert asyncio.run(askras.ask(group_with("nccl", **env))) == ([], OURS)
    assert asyncio.run(askras.ask(group_with("gloo"))) == ([], OURS)


def test_ras_is_asked_where_nccl_listens():
    port = BACKENDS["nccl"].ras
    assert askras.address_of(port, {}) == ("localhost", 28028)
    assert askras.address_of(port, {"NCCL_RAS_ADDR": "[::1]:9"}) == ("::1", 9)
