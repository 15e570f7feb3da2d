"""The rules of checks: what proves an error, what does not, and the words with their two values."""

from __future__ import annotations

import pytest

from jupyter_dist.parts.checks.judging.judge import judge
from jupyter_dist.parts.checks.judging.seen import Seen
from jupyter_dist.parts.checks.reports import EndedSteps, Pass, StepLook, Value
from jupyter_dist.transport.rows import read, read_several

from .reports import RANKS, calls, ddp, judged, look


def test_sound_training_is_silent():
    assert judged(look, range(1, 20)) == []


def test_the_same_batch_is_named_with_its_ranks_steps_line_and_two_values():
    (found,) = judged(lambda rank, step: look(rank, step, f"step {step}" if rank in (1, 3) else None))
    assert (found.kind, str(found.ranks), found.step) == ("same_batch", "1,3", 1)
    assert found.message.startswith(
        "Ranks 1,3 got the same batch in steps 1-3 (line 12 of cell [7]): each sample counts twice"
    )
    assert [line.partition(": digest")[0] for line in found.evidence] == ["step 3, rank 1", "step 3, rank 3"]
    assert all("digest step 3, first value 0.5" in line for line in found.evidence)


@pytest.mark.parametrize(
    ("why", "make"),
    [
        ("one batch is fitted on purpose", lambda rank, step: look(rank, step, "always")),
        ("it was the same once", lambda rank, step: look(rank, step, "same" if step == 2 else None)),
        (
            "these ranks average with others: tensor parallelism below DDP",
            lambda rank, step: look(
                rank,
                step,
                f"step {step} of pair {rank // 2}",
                about=look(rank, step).about._replace(models=(ddp((rank % 2, rank % 2 + 2)),)),
            ),
        ),
        (
            "no replicas are known",
            lambda rank, step: look(rank, step, f"{step}", about=look(rank, step).about._replace(models=(ddp(()),))),
        ),
    ],
)
def test_equal_batches_prove_nothing_if(why, make):
    assert judged(make) == [], why


def test_a_check_is_gone_when_it_no_longer_holds():
    seen = Seen(ranks=RANKS)
    for step in range(1, 6):
        for rank in RANKS:
            seen.add(rank, look(rank, step, f"step {step}" if step < 4 else None))
        kinds = [found.kind for found in judge(seen)]
        assert kinds == (["same_batch"] if step in (2, 3) else []), step


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("inner_module", {"outer": 0, "num_synced": 0}),
        ("no_sync", {"outer": 2, "num_synced": 1, "is_synced": False}),
        ("not_averaged", {}),
    ],
)
def test_gradients_that_differ_are_named_by_what_the_calls_show(kind, fields):
    (found,) = judged(
        lambda rank, step: look(
            rank, step, gradient=f"rank {rank}", weight=f"{rank}", calls=(calls(f"{rank} {step}", **fields),)
        )
    )
    assert (found.kind, str(found.ranks)) == (kind, "0-3")
    assert found.evidence[1] == "step 3, rank 1, gradient of 0.weight: first value 0.25, digest rank 1 3"


def test_some_gradients_that_differ_are_those_that_ddp_does_not_know():
    def make(rank, step):
        return look(rank, step, gradients=(Value(f"{rank} {step}", 0.1 * rank), Value(f"{step}", 0.5)))

    (found,) = judged(make)
    assert found.kind == "changed_after_wrap"
    assert "`0.weight`" in found.message
    assert "`0.bias`" not in found.message


def test_a_comm_hook_may_average_otherwise():
    def make(rank, step):
        about = look(rank, step).about._replace(models=(ddp(has_comm_hook=True),))
        return look(rank, step, gradient=f"{rank}", weight=f"{rank}", about=about)

    assert judged(make) == []


def test_replicas_that_differ_are_named_in_sets_and_with_what_they_have_missed():
    (found,) = judged(lambda rank, step: look(rank, step, weight="w" if rank < 3 else "other"), missed={3: "cell [5]"})
    assert found.kind == "replicas_differ"
    assert "between ranks 0-2 and 3 from the begin" in found.message
    assert found.evidence[0] == "step 3, rank 0, 0.weight: first value 1, digest w 3"
    assert found.evidence[-1] == "rank 3 has not run cell [5]"


@pytest.mark.parametrize(("of_rank_1", "kinds"), [(0.1, []), (0.2, ["settings_differ"]), (None, [])])
def test_settings_at_the_end_of_a_cell_prove_nothing_where_a_rank_has_dropped_its_optimizer(of_rank_1, kinds):
    def ended(rank):
        rate = of_rank_1 if rank == 1 else 0.1
        return EndedSteps(look(rank, 3).optimizer, 3, 3, False, ({"lr": rate},) if rate else ())

    of_cell = {rank: [ended(rank)] for rank in RANKS}
    found = judged(look, has_ended=True, ended=of_cell)
    assert [one.kind for one in found] == kinds


def test_settings_that_differ_are_named_and_not_what_follows_from_them():
    (found,) = judged(lambda rank, step: look(rank, step, weight=f"{rank}", settings=({"lr": 0.1 * (1 + rank)},)))
    assert found.kind == "settings_differ"
    assert found.evidence[:2] == ["step 3, rank 0: lr 0.1", "step 3, rank 1: lr 0.2"]


@pytest.mark.parametrize("row", [None, 3, {}, {"optimizer": "0"}, {"optimizer": 0, "step": True}])
def test_what_a_cell_has_changed_in_a_report_is_no_report(row):
    assert read(StepLook, row) is None
    assert read_several(EndedSteps, row) == read_several(Pass, [row]) == []
