"""A terminal shows every line of a long output once, or says how many are in the log alone."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import LEFT_OUT, Recorder, counted

from jupyter_dist.client import Result
from jupyter_dist.client.displays.live import RankDisplay, TextDisplay
from jupyter_dist.server.folding.feeding import rankfeed
from jupyter_dist.server.folding.views import View

NUM_LINES = 6000  # more than twice what a view has


class Cell:
    """A cell whose view is as a server makes it, and what displays print of it."""

    def __init__(self, num_ranks, hidden=None):
        self.recorder = Recorder(num_ranks)
        self.view = View("e-1", tuple(range(num_ranks)))
        self.ranks = f"0-{num_ranks - 1}" if num_ranks > 1 else "0"
        options = {} if hidden is None else {"hidden": hidden}
        self.text, self.by_rank = io.StringIO(), io.StringIO()
        self.displays = [TextDisplay(self.text, **options), RankDisplay(self.by_rank, **options)]

    def show(self, state="running"):
        for record, payload in self.recorder.records[self.view.seq :]:
            self.view.feed(record, payload)
        statuses = [{"ranks": self.ranks, "status": state, "seconds": None}]
        execution = {"id": "e-1", "ranks": self.ranks, "state": state, "error": None, "statuses": statuses}
        for display in self.displays:
            display(Result({"world_size": self.recorder.num_ranks}, execution, self.view.snapshot().to_list()))

    def end(self):
        self.recorder.end()
        self.show("ok")

    def of(self, rank):
        """What was printed of a rank."""
        width = len(self.ranks.partition("-")[2])
        return [
            line.partition("| ")[2]
            for line in self.by_rank.getvalue().splitlines()
            if line.startswith(f"{rank:{width}}|")
        ]


def print_numbered(cell, num_lines, lines_each):
    for number in range(num_lines):
        for rank in range(cell.recorder.num_ranks):
            cell.recorder.stream(rank, f"line {number}\n")
        if number % lines_each == lines_each - 1:
            cell.show()
    cell.end()


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_a_long_output_is_shown_to_its_end(num_ranks):
    cell = Cell(num_ranks)
    print_numbered(cell, NUM_LINES, 25)
    whole = [f"line {number}" for number in range(NUM_LINES)]
    assert cell.text.getvalue().splitlines() == [f"[rank{'s' if num_ranks > 1 else ''} {cell.ranks}]", *whole]
    for rank in range(num_ranks):
        assert cell.of(rank) == whole


def test_lines_that_came_too_fast_to_be_shown_are_named():
    cell = Cell(2)
    print_numbered(cell, NUM_LINES, 700)
    for lines in (cell.text.getvalue().splitlines()[1:], cell.of(0), cell.of(1)):
        assert counted(lines, "line") == NUM_LINES
        assert lines[-1] == f"line {NUM_LINES - 1}"
        assert len(lines) < NUM_LINES
        assert any(map(LEFT_OUT.fullmatch, lines))


def test_ranks_that_differ_fill_the_view_sooner_and_are_shown_to_their_end_too():
    cell = Cell(8)
    for number in range(1200):
        for rank in range(8):
            cell.recorder.stream(rank, f"{rank} has {number}\n")
        if number % 100 == 99:
            cell.show()
    cell.end()
    for rank in range(8):
        assert cell.of(rank) == [f"{rank} has {number}" for number in range(1200)]


@pytest.mark.parametrize("wait", [False, True])
def test_what_follows_a_cleared_output_is_shown(wait):
    cell = Cell(2)
    for epoch in range(5):
        for rank in (0, 1):
            cell.recorder.clear(rank, wait=wait)
            cell.recorder.stream(rank, f"epoch {epoch}\n")
        cell.show()
    cell.end()
    assert cell.text.getvalue().splitlines() == ["[ranks 0-1]", *(f"epoch {epoch}" for epoch in range(5))]
    assert cell.of(1) == [f"epoch {epoch}" for epoch in range(5)]


def test_what_follows_a_cleared_long_output_is_shown():
    cell = Cell(1)
    for epoch in range(2):
        for number in range(NUM_LINES):
            cell.recorder.stream(0, f"{epoch} has {number}\n")
            if number % 100 == 99:
                cell.show()
        cell.recorder.clear(0)
    cell.end()
    assert cell.of(0) == [f"{epoch} has {number}" for epoch in range(2) for number in range(NUM_LINES)]


def test_a_display_that_is_changed_is_printed_again_and_nothing_else():
    cell = Cell(1)
    cell.recorder.stream(0, "before\n")
    cell.recorder.display(0, "10 %", display_id="d")
    cell.recorder.stream(0, "after\n")
    cell.show()
    cell.recorder.rich(
        0, "update_display_data", data={"text/plain": "100 %"}, metadata={}, transient={"display_id": "d"}
    )
    cell.show()
    cell.end()
    assert cell.of(0) == ["before", "10 %", "after", "100 %"]


def test_displays_beyond_the_first_lines_are_shown_once():
    cell = Cell(1)
    for number in range(3000):
        cell.recorder.display(0, f"display {number}")
        if number % 50 == 49:
            cell.show()
    cell.end()
    assert cell.of(0) == [f"display {number}" for number in range(3000)]


def test_streams_that_are_not_shown_are_counted():
    cell = Cell(2, hidden=lambda rank: frozenset({"stderr"}) if rank == 0 else frozenset({"stdout", "stderr"}))
    for number in range(NUM_LINES // 2):
        for rank in (0, 1):
            cell.recorder.stream(rank, f"line {number}\n")
            cell.recorder.stream(rank, f"warning {number}\n", "stderr")
        if number % 25 == 24:
            cell.show()
    cell.end()
    assert cell.of(0) == [f"line {number}" for number in range(NUM_LINES // 2)]
    assert cell.of(1) == []


KINDS = st.sampled_from(["stdout", "stdout", "stderr", "display"])
STEPS = st.lists(st.tuples(KINDS, st.integers(1, 30), st.booleans()), max_size=25)


@given(STEPS)
def test_no_line_is_shown_twice_or_lost_without_a_word(steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rankfeed, "HEAD_LINES", 15)
        patch.setattr(rankfeed, "TAIL_LINES", 20)
        cell = Cell(1)
        num_lines = num_displays = 0
        for kind, count, is_shown in steps:
            for _ in range(count):
                if kind == "display":
                    cell.recorder.display(0, "<display>")
                    num_displays += 1
                else:
                    cell.recorder.stream(0, f"line {num_lines}\n", kind)
                    num_lines += 1
            if is_shown:
                cell.show()
        cell.end()
        lines = [line for line in cell.of(0) if line != "<display>"]
        assert counted(lines, "line") == num_lines
        assert len(cell.of(0)) - len(lines) <= num_displays
