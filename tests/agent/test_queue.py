import pytest

from jupyter_dist.agent.group.cells.execution import AgentExecution
from jupyter_dist.agent.group.cells.order import ExecutionQueue
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.specs import ExecutionSpec


def cell(name, ranks, notebook="a.ipynb"):
    return AgentExecution(ExecutionSpec(execution_id=name, ranks=list(ranks), notebook=notebook), b"")


def names(executions):
    return "".join(execution.id for execution in executions)


@pytest.fixture
def queue():
    return ExecutionQueue()


def add(queue, *cells):
    for execution in cells:
        queue.add(execution)


def test_disjoint_rank_sets_run_at_once(queue):
    add(queue, cell("a", [0, 1]), cell("b", [2, 3]))
    assert names(queue.startable()) == "ab"


def test_order_holds_on_every_shared_rank(queue):
    add(queue, cell("a", [0, 1]), cell("b", [1, 2]), cell("c", [2, 3]), cell("d", [4]))
    assert names(queue.startable()) == "ad"  # c must not overtake b on rank 2
    queue.get("a").start(1)
    assert names(queue.startable()) == "d"
    for rank in (0, 1):
        queue.get("a").ranks_ended([rank], "ok", [0.1])
    queue.get("a").finish()
    assert names(queue.startable()) == "bd"


def test_a_failure_aborts_what_waits_in_the_same_notebook_only(queue):
    add(queue, cell("a", [0]), cell("b", [0]), cell("c", [0], notebook="other.ipynb"), cell("d", [0]))
    after = ExecutionSpec(execution_id="e", ranks=[1], notebook="other.ipynb", after="b")
    add(queue, AgentExecution(after, b""))
    queue.get("a").start(1)
    queue.get("a").finish("lost")
    stopped = []
    for execution, before in queue.stopped_by(queue.get("a")):
        execution.finish("aborted")
        stopped.append(execution.id + before.id)
    assert stopped == ["ba", "da", "eb"]  # e is for another notebook's ranks, but names b
    assert names(queue.in_state("queued")) == "c"


def test_only_a_failed_cell_that_is_named_keeps_a_new_one_from_running(queue):
    add(queue, cell("a", [0]))
    named = AgentExecution(ExecutionSpec(execution_id="b", ranks=[0], notebook="a.ipynb", after="a"), b"")
    assert queue.forbids(named) is None
    queue.get("a").start(1)
    queue.get("a").finish("lost")
    assert queue.forbids(named) is queue.get("a")
    assert queue.forbids(cell("c", [0])) is None


def test_the_worst_rank_decides(queue):
    execution = cell("a", range(3))
    execution.start(7)
    assert not execution.ranks_ended([0], "ok", [0.5])
    assert not execution.ranks_ended([2], "error", [0.25])
    assert execution.ranks_ended([1], "ok", [1.5])
    execution.finish()
    model = execution.model()
    assert model["state"] == "error"
    assert model["execution_count"] == 7
    assert model["statuses"] == [
        {"ranks": "0-1", "status": "ok", "seconds": 1.5},
        {"ranks": "2", "status": "error", "seconds": 0.25},
    ]


def test_an_abort_keeps_what_ranks_had_ended(queue):
    execution = cell("a", [0, 1])
    execution.start(1)
    execution.ranks_ended([0], "ok", [0.5])
    execution.finish("lost", JupyterDistError("restarted", "The group was restarted."))
    assert [status["status"] for status in execution.model()["statuses"]] == ["ok", "lost"]
    assert execution.model()["error"]["code"] == "restarted"


def test_an_unknown_execution_is_named(queue):
    with pytest.raises(JupyterDistError, match="no execution 'x'"):
        queue.get("x")


def test_finished_executions_are_forgotten_beyond_the_limit_and_open_ones_never(queue, monkeypatch):
    monkeypatch.setattr(ExecutionQueue, "MAX_KEPT", 3)
    add(queue, cell("a", [0]))
    for name in "bcdef":
        add(queue, cell(name, [0]))
        queue.get(name).finish("aborted")
        assert name in names(queue)
    assert names(queue) == "acdef"  # the open one, the last 3 that had ended, and the one that ended then


def test_a_rank_that_ended_its_part_is_free_for_other_notebooks_only(queue):
    add(queue, cell("a", [0, 1]), cell("b", [0]), cell("c", [0], notebook="other.ipynb"))
    queue.get("a").start(5)
    queue.get("a").ranks_ended([0], "ok", [0.1])
    assert names(queue.startable()) == ""  # b is of the same notebook, and c is queued after it
    queue.get("b").finish("aborted")
    assert names(queue.startable()) == "c"
    add(queue, cell("d", [1], notebook="other.ipynb"), cell("e", [1], notebook="third.ipynb"))
    assert names(queue.startable()) == "c"


def test_what_must_come_after_a_cell_waits_for_all_of_it(queue):
    add(queue, cell("a", [0, 1]))
    spec = ExecutionSpec(execution_id="b", ranks=[0], notebook="other.ipynb", after="a")
    queue.get("a").start(5)
    queue.get("a").ranks_ended([0], "ok", [0.1])
    add(queue, AgentExecution(spec, b""))
    assert names(queue.startable()) == ""
    assert names(queue.name_waits()) == "b"
    assert queue.get("b").model()["waits_for"] == "Waits for rank 0: cell [5] of a.ipynb"


def test_a_cell_that_waits_within_its_notebook_says_for_what(queue):
    add(queue, cell("a", [0, 1]), cell("b", [0]), cell("c", [0], None))
    queue.get("a").start(5)
    queue.get("a").ranks_ended([0], "ok", [0.1])
    assert names(queue.name_waits()) == "bc"
    assert queue.get("b").waits_for == "Waits for rank 1: cell [5] of this notebook"
    assert queue.get("c").waits_for == "Waits for rank 0: a queued cell of a.ipynb"


def test_the_first_of_each_notebook_says_what_it_waits_for(queue):
    add(queue, cell("a", [0, 1, 2]))
    queue.get("a").start(5)
    add(queue, cell("b", [1, 2], "b.ipynb"), cell("c", [1], "b.ipynb"), cell("d", [0]))
    assert names(queue.name_waits()) == "bd"
    assert queue.get("b").waits_for == "Waits for ranks 1-2: cell [5] of a.ipynb"
    assert queue.get("d").waits_for == "Waits for ranks 0-2: cell [5] of this notebook"
    assert names(queue.name_waits()) == ""
    queue.get("a").ranks_ended([1], "ok", [0.1])
    assert names(queue.name_waits()) == "bd"
    assert queue.get("b").waits_for == "Waits for rank 2: cell [5] of a.ipynb"
    queue.get("a").ranks_ended([2], "ok", [0.1])
    assert names(queue.startable()) == "b"
    queue.get("b").start(6)
    assert queue.get("b").model()["waits_for"] is None
