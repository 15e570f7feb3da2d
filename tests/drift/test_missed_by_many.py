"""What ranks have missed is found in a time that grows with the ranks, not with their square."""

from jupyter_dist.parts.drift.replaying.missed import Processes, cells_of

NUM_RANKS = 64


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
