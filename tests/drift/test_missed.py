"""Which ranks have missed which cells: by tables, and by properties over any history of runs and replacements."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jupyter_dist.parts.drift.replaying.missed import Processes, cells_of, with_code
from jupyter_dist.parts.drift.replaying.replay import in_order
from jupyter_dist.protocol.ranks import RankSet, parse_ranks

WORLD = 4


def run(number, cell, code, ranks="all", *, at=None, notebook="n.ipynb", **statuses):
    """An execution of the API; `error="1"` says how it ended on some of its ranks."""
    chosen = set(parse_ranks(ranks, WORLD))
    special = {rank: status for status, some in statuses.items() for rank in RankSet.from_text(some)}
    by_status = {}
    for rank in sorted(chosen):
        by_status.setdefault(special.get(rank, "ok"), []).append(rank)
    worst = next((s for s in ("lost", "error", "interrupted", "running") if s in by_status), "ok")
    return {
        "id": f"e-{number}",
        "ranks": str(RankSet(chosen)),
        "state": worst,
        "statuses": [{"ranks": str(RankSet(r)), "status": s, "seconds": 1.0} for s, r in by_status.items()],
        "started_at": float(number if at is None else at),
        "execution_count": number,
        "notebook": notebook if cell else None,
        "cell_id": cell,
        "line": code,
        "code_checksum": code,
    }


def found(*runs, absences=None, dead=(), covered=None):
    """By cell: what was missed, as `{reason: ranks}`, and `offered`."""
    processes = Processes(WORLD, frozenset(range(WORLD)) - set(dead), absences or {}, covered or {})
    cells = cells_of(runs, processes)
    codes = {run["id"]: run["line"] for run in runs}
    models = in_order(runs, processes, cells, codes)
    return {
        model["cell_id"] or model["line"]: (
            {part["reason"]: part["ranks"] for part in model["missed"]},
            model["offered"],
        )
        for model in models
    }


REPLACED = {1: [[10, 20]]}  # rank 1 had no process from 10 to 20

CASES = {
    "a cell that ran everywhere": ([run(1, "a", "x")], {}, {"a": ({}, "")}),
    "a cell for one rank is told, and not offered": ([run(1, "a", "x", "0")], {}, {"a": ({"skipped": "1-3"}, "")}),
    "what ran on the process before is offered": ([run(1, "a", "x")], REPLACED, {"a": ({"replaced": "1"}, "1")}),
    "what ran on all that were there is offered": (
        [run(1, "a", "x", "!1", at=15)],
        REPLACED,
        {"a": ({"replaced": "1"}, "1")},
    ),
    "what ran on some of those that were there is not": (
        [run(1, "a", "x", "0,2", at=15)],
        REPLACED,
        {"a": ({"skipped": "1,3"}, "")},
    ),
    "what ran on others before is not": ([run(1, "a", "x", "0")], REPLACED, {"a": ({"skipped": "1-3"}, "")}),
    "what ran afterwards counts": ([run(1, "a", "x", at=21)], REPLACED, {"a": ({}, "")}),
    "a run after it was replaced catches up": (
        [run(1, "a", "x"), run(2, "a", "x", "1", at=21)],
        REPLACED,
        {"a": ({}, "")},
    ),
    "so does the same code without a cell, which is no cell of its own": (
        [run(1, "a", "x"), run(2, None, "x", "1", at=21)],
        REPLACED,
        {"a": ({}, "")},
    ),
    "other code without a cell does not": (
        [run(1, "a", "x"), run(2, None, "y", "1", at=21)],
        REPLACED,
        {"a": ({"replaced": "1"}, "1"), "y": ({"skipped": "0,2-3"}, "")},
    ),
    "a later version on some ranks": (
        [run(1, "a", "x"), run(2, "a", "y", "0")],
        {},
        {"a": ({"changed": "1-3"}, "")},
    ),
    "back to the first version on some ranks": (
        [run(1, "a", "x"), run(2, "a", "y"), run(3, "a", "x", "0")],
        {},
        {"a": ({"changed": "1-3"}, "")},
    ),
    "the same version again on some ranks": ([run(1, "a", "x"), run(2, "a", "x", "0")], {}, {"a": ({}, "")}),
    "a version that failed everywhere does not count": (
        [run(1, "a", "x"), run(2, "a", "y", error="0-3")],
        REPLACED,
        {"a": ({"replaced": "1"}, "1")},
    ),
    "a cell that failed on one rank ran there": ([run(1, "a", "x", error="3")], {}, {"a": ({}, "")}),
    "a cell that only failed is not offered": (
        [run(1, "a", "x", error="0-3")],
        REPLACED,
        {"a": ({"replaced": "1"}, "")},
    ),
    "nor one that was only interrupted": (
        [run(1, "a", "x", interrupted="0-3")],
        REPLACED,
        {"a": ({"replaced": "1"}, "")},
    ),
    "the rank died in it, others finished": ([run(9, "a", "x", lost="1")], REPLACED, {"a": ({"replaced": "1"}, "")}),
    "the rank died in it when it caught up": (
        [run(1, "a", "x"), run(9, None, "x", "1", lost="1")],
        REPLACED,
        {"a": ({"replaced": "1"}, "")},
    ),
    "the rank died in it, then ran it well, and died elsewhere": (
        [run(1, "a", "x", lost="1"), run(5, "a", "x", "1")],
        {1: [[2, 3], [10, 20]]},
        {"a": ({"replaced": "1"}, "1")},
    ),
    "the rank died in another version of it": (
        [run(8, "a", "x", lost="1"), run(15, "a", "y", "!1")],
        REPLACED,
        {"a": ({"replaced": "1"}, "1")},
    ),
    "another rank failed in it": ([run(1, "a", "x", error="2")], REPLACED, {"a": ({"replaced": "1"}, "")}),
    "another rank failed in it, and a later cell needs it": (
        [run(1, "a", "x = 1", error="2"), run(2, "b", "y = x")],
        REPLACED,
        {"a": ({"replaced": "1"}, "1"), "b": ({"replaced": "1"}, "1")},
    ),
    "what uses a cell in which the rank died": (
        [
            run(1, "a", "import os\nx = 1", lost="1"),
            run(2, "b", "y = x", "!1", at=15),
            run(3, "c", "os.z", "!1", at=16),
        ],
        REPLACED,
        {"a": ({"replaced": "1"}, ""), "b": ({"replaced": "1"}, ""), "c": ({"replaced": "1"}, "1")},
    ),
    "only the replaced rank had run it": (
        [run(1, "a", "x", "1")],
        REPLACED,
        {"a": ({"replaced": "1", "skipped": "0,2-3"}, "1")},
    ),
    "a cell that runs now": ([run(21, "a", "x", running="0-3")], REPLACED, {"a": ({}, "")}),
    "the call of a client cannot be sent again": (
        [run(1, None, "# push x")],
        REPLACED,
        {"# push x": ({"replaced": "1"}, "")},
    ),
    "equal ids in two notebooks are two cells": (
        [run(1, "a", "x"), run(2, "a", "y", at=21, notebook="copy.ipynb")],
        REPLACED,
        {"a": ({}, "")},  # the later one; the earlier one is in the test below
    ),
    "replaced twice, and caught up in between": (
        [run(1, "a", "x"), run(2, None, "x", "1", at=21)],
        {1: [[10, 20], [30, 40]]},
        {"a": ({"replaced": "1"}, "1")},
    ),
    "missed before the first of two replacements": (
        [run(1, "a", "x", "!1", at=15)],
        {1: [[10, 20], [30, 40]]},
        {"a": ({"replaced": "1"}, "1")},
    ),
    "all were replaced": (
        [run(1, "a", "x")],
        {rank: [[10, 20]] for rank in range(WORLD)},
        {"a": ({"replaced": "0-3"}, "0-3")},
    ),
}


def test_a_rank_with_a_save_or_copies_has_not_missed_what_these_cover():
    runs = [run(1, "a", "x"), run(2, "b", "y", at=7), run(3, "c", "z", "!1", at=15)]
    b, c = ({"replaced": "1"}, "1"), ({"replaced": "1"}, "1")
    assert found(*runs, absences=REPLACED, covered={1: [[0, 5]]}) == {"a": ({}, ""), "b": b, "c": c}  # a save
    assert found(*runs, absences=REPLACED, covered={1: [[0, 21]]}) == {"a": ({}, ""), "b": ({}, ""), "c": ({}, "")}
    twice = {1: [[10, 20], [30, 40]]}  # the save is of the second process, which had not caught up
    assert found(*runs, absences=twice, covered={1: [[20, 25]]})["a"] == ({"replaced": "1"}, "1")


@pytest.mark.parametrize("case", CASES)
def test_what_was_missed(case):
    runs, absences, expected = CASES[case]
    assert found(*runs, absences=absences) == expected


def test_a_missed_cell_names_how_it_ended_and_where():
    runs = [run(1, "a", "x", error="3"), run(2, "b", "y", lost="1"), run(3, "c", "z", interrupted="0")]
    cells = cells_of(runs, Processes(WORLD, frozenset(range(WORLD)), {1: [[10, 20]], 2: [[10, 20]]}))
    parts = [[(part["ranks"], part["state"], part.get("ended_on")) for part in cell.model["missed"]] for cell in cells]
    assert parts == [
        [("1-2", "error", "3")],
        [("1", "lost", "1"), ("2", "lost", "1")],
        [("1-2", "interrupted", "0")],
    ]


def test_a_dead_rank_misses_nothing_until_it_is_replaced():
    assert found(run(1, "a", "x"), dead=[1]) == {"a": ({}, "")}


def test_equal_ids_in_two_notebooks_are_two_cells():
    runs = [run(1, "a", "x"), run(2, "a", "y", at=21, notebook="copy.ipynb")]
    cells = cells_of(runs, Processes(WORLD, frozenset(range(WORLD)), REPLACED))
    assert [(cell.model["notebook"], cell.is_missed) for cell in cells] == [("n.ipynb", True), ("copy.ipynb", False)]


def test_versions_and_runs_are_told():
    runs = [run(1, "a", "x"), run(2, "a", "y", "0-1"), run(3, "b", "z", "2", error="2")]
    first, second = (cell.model for cell in cells_of(runs, Processes(WORLD, frozenset(range(WORLD)), {})))
    told = [(one["ranks"], one["version"], one["execution_id"], one["execution_count"]) for one in first["runs"]]
    assert told == [("0-1", 2, "e-2", 2), ("2-3", 1, "e-1", 1)]
    assert (first["versions"], first["version"], first["execution_id"], first["seconds"]) == (2, 2, "e-2", 1.0)
    assert (second["state"], second["runs"][0]["ranks"]) == ("error", "2")


def test_a_cell_that_ran_again_is_sent_before_those_that_use_its_names():
    assert list(found(run(1, "a", "x = 1"), run(2, "b", "print(x)"), run(3, "a", "x = 2"), absences=REPLACED)) == [
        "a",
        "b",
    ]


def test_a_cell_that_uses_a_later_ones_names_is_sent_after_it():
    runs = [run(1, "a", "1"), run(2, "b", "y = 5"), run(3, "a", "z = y")]
    assert list(found(*runs, absences=REPLACED)) == ["b", "a"]


def sent(*runs, absences=REPLACED):
    """The codes that are sent to rank 1, in order."""
    processes = Processes(WORLD, frozenset(range(WORLD)), absences)
    models = in_order(runs, processes, cells_of(runs, processes), {run["id"]: run["line"] for run in runs})
    assert all(model["offered"] in ("", "1") for model in models)
    return [model["code"] for model in models if model["offered"]]


def values_of(codes):
    """What these cells leave."""
    namespace = {}
    for code in codes:
        exec(code, namespace)
    return {name: value for name, value in namespace.items() if isinstance(value, int | float | list)}


HISTORIES = {
    "an edited cell that another had used before": ["a lr = .1", "b y = lr * 3", "a lr = .5"],
    "a cell that counts on": ["a n = 0", "b n += 1", "b n += 1", "c m = n", "b n += 1"],
    "through a function": ["f def f(): return lr", "a lr = .1", "b y = f()", "a lr = .5"],
    "a list that grows": ["a seen = []", "b seen.append(len(seen))", "b seen.append(len(seen))", "c seen[0] += 5"],
    "through a function that changes its argument": ["f def g(x): x.append(1)", "a s = []", "b g(s)", "b g(s)"],
    "run again from above": ["a x = 1", "b y = x + 1", "a x = 1", "b y = x + 1"],
    "a branch that did not happen": ["a x = 1", "b if False: x = 5", "c y = x", "a x = 2"],
}


@pytest.mark.parametrize("history", HISTORIES)
def test_a_replaced_rank_ends_with_the_values_of_the_others(history):
    cells = [text.split(" ", 1) for text in HISTORIES[history]]
    codes = sent(*(run(number, cell, code) for number, (cell, code) in enumerate(cells, start=1)))
    assert values_of(codes) == values_of(code for _, code in cells)


def test_runs_that_leave_nothing_are_not_sent_again():
    assert sent(run(1, "a", "x = 1"), run(2, "a", "x = 1"), run(3, "b", "y = x"), run(4, "b", "y = x")) == [
        "x = 1",
        "y = x",
    ]


def test_what_ran_since_on_all_ranks_is_not_undone():
    runs = [run(1, "a", "x = 1"), run(2, "b", "y = x"), run(21, "c", "x = 9")]
    assert sent(*runs) == ["x = 1", "y = x", "x = 9"]
    assert sent(*runs, run(22, None, "x = 1", "1"), run(23, None, "y = x", "1")) == []


def test_it_says_what_a_cell_has_its_values_from():
    runs = [run(1, "a", "x = 1"), run(2, "b", "y = 2"), run(3, "c", "z = y")]
    processes = Processes(WORLD, frozenset(range(WORLD)), REPLACED)
    models = in_order(runs, processes, cells_of(runs, processes), {one["id"]: one["line"] for one in runs})
    assert [model["uses"] for model in models] == [[], [], ["e-2"]]


histories = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["x", "y", "z"]),
        st.sets(st.integers(0, WORLD - 1), min_size=1),
        st.sampled_from(["ok", "error", "interrupted", "lost"]),
    ),
    max_size=8,
)
replacements = st.dictionaries(st.integers(0, WORLD - 1), st.tuples(st.integers(0, 9), st.integers(0, 3)))


@given(histories, replacements)
@example([("a", "x", {0, 1}, "ok"), ("a", "x", {0}, "error"), ("b", "x", {0}, "ok")], {0: (0, 3), 1: (0, 1)})
def test_what_is_offered_was_missed_and_sending_it_leaves_nothing_to_offer(history, replaced):
    absences = {rank: [[start + 0.4, start + length + 0.5]] for rank, (start, length) in replaced.items()}
    runs = [
        run(number, cell, code, str(RankSet(ranks)), **{} if status == "ok" else {status: str(RankSet(ranks))})
        for number, (cell, code, ranks, status) in enumerate(history, start=1)
    ]
    processes = Processes(WORLD, frozenset(range(WORLD)), absences)
    codes = {(cell or code, code) for cell, code, _, _ in history}
    # Sent for one of two cells with equal code, it may succeed where it had failed in the other one: that is offered then.
    has_equal_cells = len({code for _, code in codes}) < len(codes)
    sent_before = set()
    for turn in range(3):
        cells = [with_code(cell, cell.model["line"]) for cell in cells_of(runs, processes)]
        if turn and not has_equal_cells:
            assert [cell["offered"] for cell in cells] == [""] * len(cells)
        for cell in cells:
            missed = {rank for part in cell["missed"] for rank in RankSet.from_text(part["ranks"])}
            offered = set(RankSet.from_text(cell["offered"]))
            assert offered <= missed & set(absences)
            ran = {rank for one in cell["runs"] for rank in RankSet.from_text(one["ranks"])}
            not_run = (part["ranks"] for part in cell["missed"] if part["reason"] != "changed")
            assert ran.isdisjoint(rank for ranks in not_run for rank in RankSet.from_text(ranks))
            sending = {(cell["cell_id"], cell["line"], rank) for rank in offered}
            assert not sending & sent_before, "nothing is offered again that was sent"
            sent_before |= sending
            if offered:
                runs.append(run(100 + len(runs), None, cell["line"], cell["offered"]))
    assert all(not with_code(cell, cell.model["line"])["offered"] for cell in cells_of(runs, processes))


def test_a_cell_that_failed_is_offered_once_its_code_has_succeeded_where_it_failed():
    runs = [run(1, "a", "x", "0-1"), run(2, "a", "x", "0", error="0"), run(3, "b", "x", "0")]
    absences = {0: [[0.4, 3.5]], 1: [[0.4, 1.5]]}

    def offered():
        return {cell: ranks for cell, (_, ranks) in found(*runs, absences=absences).items()}

    assert offered() == {"a": "", "b": "0"}
    runs.append(run(101, None, "x", "0"))  # sent for the other cell
    assert offered() == {"a": "1", "b": ""}
