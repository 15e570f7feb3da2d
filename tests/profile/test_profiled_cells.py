"""%%profile on real ranks: the table in the cell, and the merged trace."""

import json

import pytest
from waits import until

from jupyter_dist.parts.profile.models import PROFILE_MIME
from jupyter_dist.protocol.ranks import RankSet

SLOW = """%%profile
import time
x = torch.randn(64, 64)
for _ in range(20):
    y = x @ x
dist.barrier()
if rank == 1:
    time.sleep(1.5)
dist.all_reduce(y)
print("done", rank)"""


def profile_in(view):
    """The profile that a view shows, and the ranks that have it."""
    for item in view["items"]:
        data = item.get("output", {}).get("data", {})
        if PROFILE_MIME in data:
            return data[PROFILE_MIME], item["ranks"], data
    raise AssertionError(view["items"])


def trace_of(server, execution):
    return server.ask("GET", f"groups/g/executions/{execution}/trace")


def text_of(view):
    return "".join(
        "".join(item["output"]["text"])
        for item in view["items"]
        if item.get("output", {}).get("output_type") == "stream"
    )


def test_a_straggler_is_named_and_the_trace_has_a_lane_for_each_rank(group_server):
    execution = group_server.submit("g", SLOW)
    view = group_server.view("g", execution)
    assert view["execution"]["state"] == "ok", view
    profile, ranks, data = profile_in(view)
    assert sorted(text_of(view).splitlines()) == ["done 0", "done 1"]  # and nothing of the profiler's own
    assert ranks == "0-1"
    assert 1 in RankSet.from_text(profile["stragglers"])
    fast, slow = profile["ranks"]
    assert fast["waits_for"][0]["rank"] == 1
    assert fast["waiting"] > 1
    assert slow["other"] > 1  # asleep
    assert slow["waiting"] < fast["waiting"]
    assert all(0 < row["computing"] < row["seconds"] for row in profile["ranks"])
    assert "Rank 1 was the last" in data["text/plain"]
    assert "all_reduce" in data["text/plain"]
    events = trace_of(group_server, execution)["traceEvents"]
    lanes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert lanes == {0: "rank 0", 1: "rank 1"}
    for rank in (0, 1):
        assert any(event["name"] == "aten::mm" and event["pid"] == rank for event in events)
    # On one axis: both end the collective together, though one began it later.
    (first,), (second,) = (
        [event for event in events if event["name"] == "gloo:all_reduce" and event["pid"] == rank] for rank in (0, 1)
    )
    assert second["ts"] - first["ts"] > 1e6
    assert abs(first["ts"] + first["dur"] - second["ts"] - second["dur"]) < 1e6


def test_ranks_of_other_process_groups_are_not_waited_for(group_server):
    pair = "apart = [dist.new_group([0]), dist.new_group([1])]"
    assert group_server.run("g", pair)["execution"]["state"] == "ok"
    code = (
        "%%profile\nimport time\ntime.sleep(rank)\nfor _ in range(3): dist.all_reduce(torch.ones(2), group=apart[rank])"
    )
    profile, _, _ = profile_in(group_server.run("g", code))
    assert (profile["collectives"], profile["stragglers"], profile["sentences"]) == (0, "", [])


def test_an_error_and_a_subset_are_profiled_too(group_server):
    view = group_server.run("g", "%%profile\ny = torch.ones(4) * 2\n1 / 0", "1")
    profile, ranks, _ = profile_in(view)
    assert (view["execution"]["state"], ranks, [row["rank"] for row in profile["ranks"]]) == ("error", "1", [1])
    assert any(item.get("output", {}).get("ename") == "ZeroDivisionError" for item in view["items"])
    assert {e["pid"] for e in trace_of(group_server, view["execution"]["id"])["traceEvents"] if e["ph"] == "X"} == {1}


def test_an_interrupted_cell_says_whom_it_waited_for(group_server):
    code = "%%profile\nimport time\nprint('begun', flush=True)\nif rank == 1: time.sleep(1000)\ndist.barrier()"
    execution = group_server.submit("g", code)
    until(lambda: RankSet.from_text(ranks_that_said(group_server.view("g", execution, wait=0), "begun")) == (0, 1))
    group_server.ask("POST", "groups/g/interrupt", {"ranks": "all"})
    view = group_server.view("g", execution)
    assert view["execution"]["state"] == "interrupted"
    profile, ranks, _ = profile_in(view)
    assert (ranks, len(profile["ranks"])) == ("0-1", 2)
    assert group_server.run("g", "dist.barrier()")["execution"]["state"] == "ok"


def ranks_that_said(view, text):
    found = [item["ranks"] for item in view["items"] if text in "".join(item.get("output", {}).get("text", ""))]
    return ",".join(found) or "0"


def test_a_dead_rank_takes_nothing_from_the_others(group_server):
    view = group_server.run("g", "%%profile\nimport os\nif rank == 1: os._exit(3)\ntorch.ones(2) + 1")
    profile, _, data = profile_in(view)
    assert [row["rank"] for row in profile["ranks"]] == [0]
    assert "There is no profile of rank 1." in data["text/plain"]
    group_server.ask("POST", "groups/g/replace")


OWN = """
from torch import profiler
with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as own:
    torch.ones(3).sum()
print("own", len(own.events()) > 0)
"""
IN_THREAD = """
import threading
def work():
    try:
        profiler.profile().start()
    except RuntimeError as err:
        print("own", "%%profile records this cell" in str(err))
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
SCHEDULED = """
with profiler.profile(schedule=profiler.schedule(wait=0, warmup=1, active=1, repeat=2)) as own:
    for _ in range(6):
        torch.ones(3).sum()
        own.step()
print("own", len(own.events()) > 0)
"""
LEFT_ON = "own = profiler.profile(activities=[profiler.ProfilerActivity.CPU])\nown.start()\nprint('own', True)"
ENDED = "own.stop()\nprint('own', len(own.events()) > 0)"


def test_a_cell_that_uses_the_profiler_itself_runs_and_its_ranks_live(group_server):
    """torch has one profiler in a process, and a second session beside it is a segmentation fault."""
    pids = [rank["pid"] for rank in group_server.ask("GET", "groups/g")["ranks"]]
    for cell, says in (
        (f"torch.ones(2) + 1\n{OWN}", "has recorded what came before"),
        (f"%%profile\ntorch.ones(2) + 1\n{OWN}", "%%profile is there twice"),
        (IN_THREAD, ""),
        (SCHEDULED, "has recorded what came before"),
        (LEFT_ON, "has recorded what came before"),
        (f"torch.ones(2) + 1\n{ENDED}", "A profiler of torch is on already"),
        (f"torch.ones(2) + 1\n{OWN}", "has recorded what came before"),
    ):
        view = group_server.run("g", f"%%profile\n{cell}")
        assert view["execution"]["state"] == "ok", view
        assert "own True" in text_of(view)
        assert says in text_of(view)
        if says != "A profiler of torch is on already":
            profile_in(view)
    assert pids == [rank["pid"] for rank in group_server.ask("GET", "groups/g")["ranks"]]
    assert "".join(text_of(group_server.run("g", f"%%profile\n{OWN}".split("\n", 1)[1]))) == "own True\n"


def test_a_cell_that_was_not_profiled_has_no_trace(group_server):
    execution = group_server.run("g", "1")["execution"]["id"]
    status, error = group_server.refused("GET", f"groups/g/executions/{execution}/trace")
    assert (status, error["code"]) == (404, "not_found")
    assert group_server.refused("GET", "groups/g/executions/e-none/trace")[1]["code"] == "unknown_execution"


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("%%profile --speed\n1", "--shapes, --memory and --stacks"),
        ("%%profile\nimport asyncio\nawait asyncio.sleep(0)", "cannot run a cell that awaits"),
    ],
)
def test_what_cannot_be_profiled_says_so(group_server, cell, says):
    view = group_server.run("g", cell)
    assert view["execution"]["state"] == "error"
    assert says in json.dumps(view["items"])


def test_a_file_that_a_rank_puts_there_is_not_followed(group_server):
    view = group_server.run("g", "%%profile\ntorch.ones(2) + 1")
    execution = view["execution"]["id"]
    folder = group_server.group_folder(group_server.group["id"]) / "traces" / execution
    (folder / "1").unlink()
    (folder / "1").symlink_to("/etc/passwd")
    (folder / "0").write_bytes(b"not packed")
    assert [event["ph"] for event in trace_of(group_server, execution)["traceEvents"]] == ["M"]
