"""What many ranks send within a moment is recorded together, and the first of it at once."""

import pytest

from jupyter_dist.agent.agent import push_seconds
from jupyter_dist.journal.records.gathering import Gathering


class Loop:
    """An event loop whose clock is set by the test."""

    def __init__(self):
        self.now = 100.0
        self.calls = []

    def time(self):
        return self.now

    def call_later(self, seconds, function, *arguments):
        self.calls.append((self.now + seconds, function, arguments))

    def call_soon(self, function, *arguments):
        self.call_later(0.0, function, *arguments)

    def turn(self, seconds=0.0):
        self.now += seconds
        due = [call for call in self.calls if call[0] <= self.now]
        self.calls = [call for call in self.calls if call[0] > self.now]
        for _, function, arguments in due:
            function(*arguments)


class Recorder:
    """Counts the answers in each record, as the journal's writer joins them."""

    def __init__(self):
        self.loop = Loop()
        self.soon = Gathering(self.loop, 1.0)
        self.waiting = 0
        self.records = []

    def answer(self):
        self.waiting += 1
        if self.waiting == 1:
            self.soon(self.flush)

    def flush(self):
        self.records.append(self.waiting)
        self.waiting = 0


def test_the_first_answer_is_recorded_in_the_next_turn_and_later_ones_together():
    recorder = Recorder()
    recorder.answer()
    recorder.loop.turn()
    assert recorder.records == [1]
    for _ in range(10):
        recorder.answer()
        recorder.loop.turn(0.0625)
    assert recorder.records == [1]
    recorder.loop.turn(0.5)
    assert recorder.records == [1, 10]


def test_after_a_pause_an_answer_is_recorded_at_once_again():
    recorder = Recorder()
    for count in range(1, 4):
        recorder.answer()
        recorder.loop.turn()
        assert recorder.records == [1] * count
        recorder.loop.turn(2.0)


@pytest.mark.parametrize(("num_ranks", "seconds"), [(0, 0.02), (64, 0.02), (65, 0.2), (1024, 0.512), (8192, 1.0)])
def test_a_state_of_many_ranks_is_sent_more_seldom(num_ranks, seconds):
    assert push_seconds(num_ranks) == pytest.approx(seconds)
