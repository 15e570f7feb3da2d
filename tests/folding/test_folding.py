"""What many ranks say, folded: examples that people would draw by hand."""

import pytest
from records import Recorder, shown

from jupyter_dist.server.folding.feeding import rankfeed


def lines(recorder: Recorder) -> list[tuple[str, str]]:
    return shown(recorder.view().snapshot())


def test_what_all_say_is_said_once() -> None:
    recorder = Recorder(4)
    for text in ("epoch 1\n", "epoch 2\n"):
        for rank in range(4):
            recorder.stream(rank, text)
    assert lines(recorder) == [("0-3", "epoch 1\nepoch 2\n")]


def test_ranks_far_apart_in_time_still_fold() -> None:
    recorder = Recorder(3)
    for rank in (2, 0, 1):
        recorder.stream(rank, "".join(f"step {step}\n" for step in range(200)))
    assert lines(recorder) == [("0-2", "".join(f"step {step}\n" for step in range(200)))]


def test_numbers_that_differ_stand_beside_each_other() -> None:
    recorder = Recorder(3)
    recorder.stream(2, "loss 0.25\nend\n")
    recorder.stream(0, "loss 0.5\nend\n")
    recorder.stream(1, "loss 0.5\nend\n")
    assert lines(recorder) == [("0-1", "loss 0.5\n"), ("2", "loss 0.25\n"), ("0-2", "end\n")]


def test_an_extra_line_of_one_rank_stands_at_its_place() -> None:
    recorder = Recorder(2)
    recorder.stream(0, "alpha\nsaving\nbeta\n")
    recorder.stream(1, "alpha\nbeta\n")
    assert lines(recorder) == [("0-1", "alpha\n"), ("0", "saving\n"), ("0-1", "beta\n")]


def test_an_extra_line_of_a_late_rank_does_not_break_the_fold() -> None:
    recorder = Recorder(2)
    recorder.stream(0, "alpha\nbeta\n")
    recorder.stream(1, "alpha\nhello\nbeta\ngamma\n")
    recorder.stream(0, "gamma\n")
    assert lines(recorder) == [("0-1", "alpha\n"), ("1", "hello\n"), ("0-1", "beta\ngamma\n")]


def test_unlike_lines_stand_in_the_order_of_ranks() -> None:
    recorder = Recorder(3)
    for rank, text in enumerate(("zero\n", "one\n", "two\n")):
        recorder.stream(rank, text)
    assert [ranks for ranks, _ in lines(recorder)] == ["0", "1", "2"]


def test_progress_bars_stay_one_line_each_and_fold_at_the_end() -> None:
    recorder = Recorder(2)
    for step in (0, 50, 100):
        for rank in (0, 1):
            recorder.stream(rank, f"\r{step:3}%|{'█' * (step // 10):10}|", "stderr")
    assert lines(recorder) == [("0-1", f"100%|{'█' * 10}|")]
    recorder.stream(0, "\n", "stderr")
    recorder.stream(1, "\n", "stderr")
    recorder.end()
    assert lines(recorder) == [("0-1", f"100%|{'█' * 10}|\n")]


def test_progress_bars_at_different_steps_share_a_row() -> None:
    recorder = Recorder(2)
    recorder.stream(0, "\r 40%|####      |", "stderr")
    recorder.stream(1, "\r 60%|######    |", "stderr")
    recorder.stream(0, "\r 50%|#####     |", "stderr")
    assert lines(recorder) == [("0", " 50%|#####     |"), ("1", " 60%|######    |")]


def test_the_unfinished_line_keeps_its_item() -> None:
    recorder = Recorder(1)
    view = recorder.view()
    ids = []
    for text in ("a", "b", "c\n"):
        recorder.stream(0, text)
        view.feed(*recorder.records[-1])
        ids.append(view.snapshot().items[0].id)
    assert len(set(ids)) == 1


def test_streams_are_apart_and_in_order() -> None:
    recorder = Recorder(1)
    recorder.stream(0, "out ")
    recorder.stream(0, "oops\n", "stderr")
    recorder.stream(0, "more\n")
    assert [item.kind for item in recorder.view().snapshot().items] == ["stdout", "stderr", "stdout"]
    assert lines(recorder) == [("0", "out "), ("0", "oops\n"), ("0", "more\n")]


def test_equal_figures_and_results_fold_and_differing_ones_stand_together() -> None:
    recorder = Recorder(3)
    for rank in (1, 0, 2):
        recorder.display(rank, "figure" if rank else "other figure")
    assert lines(recorder) == [("0", "other figure"), ("1-2", "figure")]


def test_the_same_traceback_is_shown_once() -> None:
    recorder = Recorder(2)
    for rank in (0, 1):
        recorder.rich(rank, "error", ename="ValueError", evalue="no", traceback=["line 1", "ValueError: no"])
    (item,) = recorder.view().snapshot().items
    assert item.ranks == "0-1"
    assert item.content()["output"]["traceback"] == ["line 1", "ValueError: no"]


def test_a_display_is_updated_in_its_place() -> None:
    recorder = Recorder(2)
    for rank in (0, 1):
        recorder.display(rank, "0 %", display_id="bar")
        recorder.stream(rank, "below\n")
    recorder.display(0, "50 %", display_id="bar", kind="update_display_data")
    assert lines(recorder) == [("0", "50 %"), ("1", "0 %"), ("0-1", "below\n")]
    recorder.display(1, "50 %", display_id="bar", kind="update_display_data")
    assert lines(recorder) == [("0-1", "50 %"), ("0-1", "below\n")]


def test_clear_output_takes_back_what_one_rank_said() -> None:
    recorder = Recorder(2)
    for rank in (0, 1):
        recorder.stream(rank, "old\n")
    recorder.clear(0)
    assert lines(recorder) == [("1", "old\n")]
    recorder.clear(1, wait=True)
    assert lines(recorder) == [("1", "old\n")]
    recorder.stream(1, "new\n")
    recorder.stream(0, "new\n")
    assert lines(recorder) == [("0-1", "new\n")]


def test_characters_that_are_cut_in_two_are_whole() -> None:
    recorder = Recorder(1)
    for byte in "é→\n".encode():
        recorder.stream(0, bytes([byte]))
    assert lines(recorder) == [("0", "é→\n")]


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    recorder = Recorder(1)
    recorder.stream(0, b"\xff\xfe\n\xc3")
    recorder.end()
    assert lines(recorder) == [("0", "��\n�")]


def test_a_flood_keeps_its_head_and_its_tail_and_counts_the_rest() -> None:
    recorder = Recorder(2)
    for rank in (0, 1):
        recorder.stream(rank, "".join(f"line {number}\n" for number in range(10_000)))
    head, gap, tail = recorder.view().snapshot().items
    assert head.text.count("\n") == rankfeed.HEAD_LINES
    assert tail.text.count("\n") == rankfeed.TAIL_LINES
    assert tail.text.endswith("line 9999\n")
    left_out = "".join(f"line {number}\n" for number in range(rankfeed.HEAD_LINES, 10_000 - rankfeed.TAIL_LINES))
    assert gap.content() == {"elided": {"bytes": len(left_out), "lines": left_out.count("\n")}}
    assert {head.ranks, gap.ranks, tail.ranks} == {"0-1"}


def test_a_record_that_crosses_the_end_of_the_head_is_shown_once() -> None:
    """A live view has shown it as a whole before it is split."""
    recorder = Recorder(1)
    recorder.stream(0, "".join(f"line {number}\n" for number in range(rankfeed.HEAD_LINES + 100)))
    live = recorder.view()
    assert [item.kind for item in live.snapshot().items] == ["stdout"]
    num_fed = len(recorder.records)
    recorder.stream(0, "".join(f"later {number}\n" for number in range(300)))
    for record, payload in recorder.records[num_fed:]:
        live.feed(record, payload)
    assert shown(live.snapshot()) == lines(recorder)
    assert live.snapshot().items[0].text.count("\n") == rankfeed.HEAD_LINES


def test_a_huge_output_is_named_instead_of_shown() -> None:
    recorder = Recorder(1)
    recorder.rich(0, "display_data", data={"image/png": "x" * (rankfeed.MAX_RICH_BYTES + 1)}, metadata={})
    ((_, text),) = lines(recorder)
    assert "4.2 MB (image/png)" in text


def test_many_ranks_that_all_differ_are_bounded() -> None:
    recorder = Recorder(64)
    for rank in range(64):
        recorder.stream(rank, "".join(f"{'abcdefgh'[rank % 8] * (rank + 2)} {number}\n" for number in range(1000)))
    items = recorder.view().snapshot().items
    assert len(items) < 20_000
    assert any(item.kind == "elided" for item in items)


@pytest.mark.parametrize("num_ranks", [8, 64])
def test_the_last_line_is_there_when_all_flood(num_ranks: int) -> None:
    recorder = Recorder(num_ranks)
    for rank in range(num_ranks):
        recorder.stream(rank, "".join(f"rank {rank} says {number}\n" for number in range(3000)))
    text = "".join(item.text for item in recorder.view().snapshot().items)
    assert all(f"rank {rank} says 2999\n" in text for rank in range(num_ranks))
