"""Which executions a server keeps: never fewer than those that have not ended."""

import pytest

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.mirror.executions import MAX_KEPT, Executions


def status(number, state="ok", **fields):
    known = {"id": f"e-{number}", "state": state, "ranks": "0", "statuses": [], "execution_count": number}
    return {**known, "line": "1", "begin_seq": None, "end_seq": None, **fields}


def test_a_cell_that_runs_for_long_is_kept_while_thousands_of_others_end():
    executions = Executions("g")
    executions.update(status("long", "running", begin_seq=1))
    executions.set_code("e-long", "train()")
    for number in range(2 * MAX_KEPT):
        executions.update(status(number, "running"))
        executions.update(status(number))
    assert executions.in_state("running") == ["e-long"]
    assert (executions.get("e-long")["code"], executions.begin_seq("e-long")) == ("train()", 1)
    assert len(executions.all()) == MAX_KEPT + 1
    with pytest.raises(JupyterDistError, match=r"e-1'"):
        executions.get("e-1")

    # When it has ended, it is the newest of those that have, and pages have yet to read how.
    executions.update(status("long", begin_seq=1, end_seq=9000))
    for number in range(MAX_KEPT - 1):
        executions.update(status(f"later-{number}"))
    assert executions.get("e-long")["state"] == "ok"
    assert executions.span("e-long") == ("e-long", 1, 9000)
    executions.update(status("last"))
    with pytest.raises(JupyterDistError):
        executions.get("e-long")
    assert executions.span("e-long") is None


def test_cells_that_are_queued_at_once_are_kept_however_many():
    executions = Executions("g")
    number = 2 * MAX_KEPT
    for place in range(number):
        executions.update(status(place, "queued"))
    assert len(executions.in_state("queued")) == number
    for place in range(number):
        executions.update(status(place))
        assert executions.get(f"e-{place}")["state"] == "ok", "forgotten before anyone has read how it ended"
    assert [model["id"] for model in executions.all()] == [f"e-{place}" for place in range(number - MAX_KEPT, number)]


def test_cells_whose_agent_is_gone_have_ended_too():
    executions = Executions("g")
    for place in range(MAX_KEPT + 5):
        executions.update(status(place, "running"))
    executions.mark_lost(JupyterDistError("agent_unreachable", "It is gone."))
    executions.update(status("new"))
    assert len(executions.all()) == MAX_KEPT
    assert executions.get("e-new")["state"] == "ok"


def test_code_that_no_file_has_is_kept(monkeypatch):
    """Cells that wait are not in the journal yet, and cells that were cancelled never will be."""
    monkeypatch.setattr("jupyter_dist.server.mirror.executions.MAX_CODE_CHARS", 100)
    executions = Executions("g")
    executions.update(status("queued", "queued", begin_seq=None, code="x" * 60))
    for place in range(5):
        executions.update(status(place, begin_seq=place + 1))
        executions.set_code(f"e-{place}", "y" * 30)
    kept = [model["id"] for model in executions.all() if executions.has_code(model["id"])]
    assert kept == ["e-queued", "e-4"]
