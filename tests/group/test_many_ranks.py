"""What the server does for groups of thousands of ranks grows with the ranks, not with their square."""

from jupyter_dist.server.analysis.differences import fold_variables
from jupyter_dist.server.script.missed import Processes, cells_of

NUM_RANKS = 64


class CountedVariable(dict):
    """A variable on one rank; counts comparisons."""

    num_compared = 0
    __hash__ = None

    def __eq__(self, other):
        CountedVariable.num_compared += 1
        return super().__eq__(other)


def test_values_that_differ_on_all_ranks_are_not_compared_with_each_other():
    listed = {rank: {"x": CountedVariable(type="int", text=str(rank // 2))} for rank in range(NUM_RANKS)}
    listed[NUM_RANKS] = {}
    (found,) = fold_variables(listed)
    assert (found["name"], found["missing"]) == ("x", str(NUM_RANKS))
    assert found["rows"][:2] == [
        {"type": "int", "text": "0", "ranks": "0-1"},
        {"type": "int", "text": "1", "ranks": "2-3"},
    ]
    assert len(found["rows"]) == NUM_RANKS // 2
    assert CountedVariable.num_compared <= NUM_RANKS


def test_whether_a_cell_ran_on_all_ranks_that_there_were_is_asked_once_for_each_run(monkeypatch):
    asked = []
    were_absent = Processes.were_absent
    monkeypatch.setattr(Processes, "were_absent", lambda *given: asked.append(given) or were_absent(*given))
    half = NUM_RANKS // 2
    runs = [
        {
            "id": f"e-{number}",
            "state": "ok",
            "statuses": [{"ranks": f"0-{half - 1}", "status": "ok", "seconds": 1.0}],
            "started_at": float(number),
            "execution_count": number,
            "notebook": "n.ipynb",
            "cell_id": "a",
            "code_checksum": "x",
        }
        for number in range(1, 11)
    ]
    # The upper half was replaced after all runs, and one of it lived all the time before.
    absences = {rank: [[0.0 if rank < NUM_RANKS - 1 else 50.0, 100.0]] for rank in range(half, NUM_RANKS)}
    (cell,) = cells_of(runs, Processes(NUM_RANKS, frozenset(range(NUM_RANKS)), absences))
    assert cell.model["missed"] == [{"ranks": f"{half}-{NUM_RANKS - 1}", "reason": "skipped", "state": "ok"}]
    assert len(asked) <= len(runs)
