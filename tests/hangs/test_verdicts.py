"""The verdict on cells that do not end: right for each kind of hang, and none for cells that end by themselves."""

from __future__ import annotations

import json
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest
from agent.harness import AgentProcess
from leaks import nothing_left
from waits import PATIENCE

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import parse_ranks

from . import kinds, later, latest, reported

HANGS = [*kinds.HANGS, *reported.HANGS, *later.HANGS, *latest.HANGS]
INNOCENT = [*kinds.INNOCENT, *reported.INNOCENT, *latest.INNOCENT]

HANGING = """import time
import torch.distributed as dist
def reduce(tensor):
    dist.all_reduce(tensor)

def later(tensor):
    time.sleep(2.5)
    dist.all_reduce(tensor)
"""
NUM_GROUPS = 3  # most of the time their ranks wait


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("hangs")
    (place / "hanging.py").write_text(HANGING)
    (place / "slow_import.py").write_text("import time; time.sleep(2.5)\n")
    return place


@pytest.fixture(scope="module")
def group(place):
    with nothing_left():
        process = AgentProcess(place / "g")
        client = process.client()
        client.start(4, cwd=str(place))
        yield client
        process.__exit__()


@pytest.fixture(scope="module")
def outcomes(place, request):
    """The result of each kind that a test asks for, by its name: groups take one after the other.

    A kind takes seconds, in which ranks wait for each other or sleep. A group in which one fails is not used again.
    """
    asked = {
        id(item.callspec.params["kind"])
        for item in request.session.items
        if item.path == request.path and "outcomes" in item.fixturenames
    }
    kinds = deque(kind for kind in [*HANGS, *INNOCENT] if id(kind) in asked)
    found = {}

    def work(number):
        process = None
        while kinds:
            kind = kinds.popleft()
            try:
                if process is None:
                    process = AgentProcess(place / f"g{number}-{len(kinds)}")
                    client = process.client()
                    client.start(4, cwd=str(place))
                found[kind.name] = (hung if kind in HANGS else ran)(client, kind)
            except Exception as err:
                found[kind.name] = err
                process, broken = None, process
                if broken is not None:
                    broken.__exit__()
        if process is not None:
            process.__exit__()

    with nothing_left():
        with ThreadPoolExecutor(NUM_GROUPS) as pool:
            list(pool.map(work, range(NUM_GROUPS)))
        yield found


def outcome_of(outcomes, kind):
    if isinstance(outcomes[kind.name], Exception):
        raise outcomes[kind.name]
    return outcomes[kind.name]


def ranks_of(text):
    return list(parse_ranks(text, 4)) if text else []


def ranks_in(parts):
    return sorted(rank for part in parts for rank in ranks_of(part["ranks"]))


def verdict_of(group, execution_id):
    return group.executions[execution_id].get("verdict")


def cannot_end(verdict, waiting):
    return verdict is not None and verdict["kind"] == "cannot_end" and ranks_in(verdict["waiting"]) == waiting


def hung(group, kind):
    """Let a cell hang until it has the verdict that is expected, or another one for too long, and free its ranks."""
    if kind.first:
        assert group.run(kind.first, [0, 1, 2, 3])["state"] == "ok"
    cell = group.submit(kind.code, ranks_of(kind.ranks))
    waiting = ranks_of(kind.waiting)
    try:
        # On a busy machine the first ranks that wait are told before the last has come to its collective.
        group.wait(lambda: is_right(verdict_of(group, cell), kind, waiting), PATIENCE / 3)
    except AssertionError:
        pass  # the test says what the verdict is
    verdict = verdict_of(group, cell)
    group.request("interrupt", ranks=[0, 1, 2, 3])
    ended = group.ended(cell)
    return verdict, ended, group.run("dist.barrier()", [0, 1, 2, 3])["state"]


def is_right(verdict, kind, waiting):
    if verdict is None or ranks_in(verdict["waiting"]) != waiting:
        return False
    return (verdict["kind"], verdict["reason"]) == (kind.verdict, kind.reason) and kind.says in verdict["message"]


@pytest.mark.parametrize("kind", HANGS, ids=lambda kind: kind.name.replace(" ", "-"))
def test_a_hang_is_named(outcomes, kind):
    verdict, ended, state_of_next = outcome_of(outcomes, kind)
    assert verdict is not None
    print(verdict["message"])
    assert (verdict["kind"], verdict["reason"]) == (kind.verdict, kind.reason)
    assert ranks_in(verdict["waiting"]) == ranks_of(kind.waiting)
    assert ranks_in(verdict["needed"]) == ranks_of(kind.needed)
    assert kind.says in verdict["message"]
    assert "verdict" not in ended
    assert state_of_next == "ok"


OF_A_PAIR = """
pair = dist.new_group([0, 1])
if rank < 2:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1), process_group=pair)
    loss = model(torch.ones(1, 2)).sum()
"""


def test_a_subgroup_that_hangs_again_names_the_same_rank(group):
    for _ in range(2):
        group.run(OF_A_PAIR, [0, 1, 2, 3])
        hung = group.submit("if rank == 0: loss.backward()", [0, 1, 2, 3])
        group.wait(lambda hung=hung: cannot_end(verdict_of(group, hung), [0]))
        verdict = verdict_of(group, hung)
        assert ranks_in(verdict["needed"]) == [1], verdict["message"]
        group.request("interrupt", ranks=[0])
        group.ended(hung)
        assert group.run("dist.barrier()", [0, 1, 2, 3])["state"] == "ok"


@pytest.mark.parametrize(
    ("asks", "text", "says"),
    [
        ("input('go on? ')", "yes", "where it asks for input"),
        ("breakpoint()", "c", "rank 0 is stopped in the debugger at line 1 of cell"),
    ],
)
def test_a_rank_that_asks_or_is_debugged_is_innocent(group, asks, text, says):
    cell = group.submit(f"if rank == 0: {asks}\ndist.barrier()", [0, 1, 2, 3], allow_stdin=True)
    group.wait(lambda: verdict_of(group, cell) is not None)
    verdict = verdict_of(group, cell)
    assert (verdict["kind"], ranks_in(verdict["needed"])) == ("waits", [0])
    assert says in verdict["message"]
    content = json.dumps({"text": text}).encode()
    group.request("to_rank", content, kind="input", execution_id=cell, ranks=None, seq=None)
    assert group.ended(cell)["state"] == "ok"


def _records_of(group, execution):
    return [payload[:400] for header, payload in group.records if header.get("execution_id") == execution]


def ran(group, kind):
    """Run a cell to its end; return the verdicts that it had, how it ended, and what it said then."""
    if kind.first:
        assert group.run(kind.first, [0, 1, 2, 3])["state"] == "ok"
    seen = []
    running = group.submit(kind.code, ranks_of(kind.ranks))

    def ended():
        seen.append(verdict_of(group, running))
        return group.executions[running]["state"] not in ("queued", "running")

    try:
        group.wait(ended, PATIENCE)
    except AssertionError as err:  # the cell of a rank may have ended with an error, for which the others wait
        raise AssertionError(f"{_records_of(group, running)}; {err}") from err
    errors = _records_of(group, running)
    # What an idle rank does by itself has ended, too, when all can meet.
    return seen, group.executions[running]["state"], errors, group.run("dist.barrier()", [0, 1, 2, 3])["state"]


@pytest.mark.parametrize("kind", INNOCENT, ids=lambda kind: kind.name.replace(" ", "-"))
def test_an_innocent_cell_is_not(outcomes, kind):
    seen, state, errors, state_of_next = outcome_of(outcomes, kind)
    assert [verdict for verdict in seen if verdict and verdict["kind"] == "cannot_end"] == []
    assert (state, state_of_next) == ("ok", "ok"), errors


ON_TWO = "print('begun')\nones = torch.ones(4)\ndist.all_reduce(ones)\nprint('sum', ones[0].item())"


def hang(group, code=ON_TWO, ranks=(0, 1)):
    """A cell that the other ranks did not get; what could end it is known."""
    hung = group.submit(code, ranks)
    group.wait(lambda: "could_join" in (verdict_of(group, hung) or {}))
    return hung


def stacks_of(group):
    header, _ = group.request("stacks")
    return header["stacks"]


def test_the_ranks_that_a_cell_waits_for_get_it_too(group):
    hung = hang(group)
    assert verdict_of(group, hung)["could_join"] == "2-3"
    waits, idle = stacks_of(group)
    assert (waits["ranks"], waits["state"], idle["ranks"], idle["state"]) == ("0-1", "waits", "2-3", "idle")
    assert "all_reduce" in waits["call"]
    assert [frame["code"] for frame in waits["frames"] if not frame["is_library"]] == ["dist.all_reduce(ones)"]
    assert any(frame["is_library"] for frame in waits["frames"])
    group.request("extend", execution_id=hung, ranks=[2, 3])
    group.request("extend", execution_id=hung, ranks=[2, 3])  # another page had the same idea
    ended = group.ended(hung)
    assert (ended["state"], ended["ranks"]) == ("ok", "0-3")
    assert "verdict" not in ended
    assert [group.text(rank, hung) for rank in range(4)] == ["begun\nsum 4.0\n"] * 4
    begun = [
        header["ranks"]
        for header, _ in group.records
        if (header["kind"], header.get("execution_id")) == ("begin", hung)
    ]
    assert begun == ["0-1", "2-3"]
    assert group.run("dist.barrier()", [0, 1, 2, 3])["state"] == "ok"


def test_ranks_that_could_not_help_are_not_offered(group):
    for code, ranks in (("if rank == 0: dist.barrier()", [0, 1, 2, 3]), ("if rank == 0: dist.barrier()", [0, 1])):
        hung = group.submit(code, ranks)
        group.wait(lambda hung=hung: (verdict_of(group, hung) or {}).get("kind") == "cannot_end")
        assert "could_join" not in verdict_of(group, hung)
        group.request("interrupt", ranks=[0])
        group.ended(hung)
        group.run("dist.barrier()", [0, 1, 2, 3])


def test_ranks_that_are_busy_or_dead_cannot_join(group):
    sleeping = group.submit("import time; time.sleep(1000)", [3])
    alone = group.submit("dist.all_reduce(torch.ones(1))", [0, 1])
    refused(group, "group_not_ready", alone, [2, 3])
    group.request("interrupt", ranks=[0, 1, 3])
    group.ended(sleeping)
    group.ended(alone)
    refused(group, "group_not_ready", alone, [2, 3])
    group.run("dist.barrier()", [0, 1, 2, 3])
    hung = hang(group)
    sleeping = group.submit("import time; time.sleep(1000)", [2])  # unlike the hung cell, the death does not end it
    group.wait(lambda: group.executions[sleeping]["state"] == "running")
    group.request("kill", rank=3)
    refused(group, "rank_dead", sleeping, [2, 3])
    group.ended(hung)  # gloo notices the death, or the next look
    group.request("interrupt", ranks=[2])
    group.ended(sleeping)
    group.request("replace", key=None)
    group.wait_group("ready")
    assert group.run("dist.barrier()", [0, 1, 2, 3])["state"] == "ok"


def refused(group, code, execution_id, ranks):
    with pytest.raises(JupyterDistError) as caught:
        group.request("extend", execution_id=execution_id, ranks=ranks)
    assert caught.value.code == code
