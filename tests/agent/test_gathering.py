"""What many ranks send within a moment is recorded together, and the first of it at once."""

import asyncio
from types import SimpleNamespace

import pytest

from jupyter_dist.agent.agent import MANY_PUSH_SECONDS, Agent, push_seconds
from jupyter_dist.agent.nodes import outgoing
from jupyter_dist.agent.nodes.link import rests
from jupyter_dist.journal.records.gathering import Gathering, gather_seconds


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


@pytest.mark.parametrize(("num_ranks", "seconds"), [(0, 0.02), (64, 0.02), (65, 0.2), (500, 0.5), (8192, 1.0)])
def test_a_state_of_many_ranks_is_sent_more_seldom(num_ranks, seconds):
    assert push_seconds(num_ranks) == pytest.approx(seconds)


async def test_what_a_cell_does_to_many_ranks_waits_and_what_else_happens_does_not(tmp_path):
    agent, loop = Agent(tmp_path, lambda _: {}), asyncio.get_running_loop()
    agent.group = SimpleNamespace(spec=SimpleNamespace(world_size=1024))
    agent._ranks_changed()
    first = agent._group_push
    assert first.when() > loop.time() + MANY_PUSH_SECONDS
    agent._group_changed()
    assert first.cancelled()
    soon = agent._group_push
    assert soon.when() <= loop.time() + MANY_PUSH_SECONDS
    agent._ranks_changed()
    assert agent._group_push is soon  # and it is not postponed
    soon.cancel()


@pytest.mark.parametrize(("num_ranks", "seconds"), [(64, 0.0), (500, 0.01), (8192, 0.02)])
def test_the_head_of_many_ranks_reads_what_comes_within_a_moment_together(num_ranks, seconds):
    assert rests.rest_seconds(num_ranks) == pytest.approx(seconds)


def test_the_head_rests_longer_while_nodes_answer_one_by_one():
    own = rests.Rests(1024, 128)

    def read(num_messages: int) -> float:
        for _ in range(num_messages):
            own.arrived()
        own.read()
        return own.seconds

    short, long = pytest.approx(0.02), pytest.approx(0.06)
    assert read(1) == short  # the first message, for which nothing is known of the others
    assert read(127) == short  # all others have come within one rest
    assert [read(5), read(15), read(15)] == [long, long, long]  # 5 in 20 ms, 15 in 60 ms
    assert read(60) == short
    assert read(5) == long
    assert read(0) == short  # nothing comes any more
    assert read(1) == short


def test_the_head_of_few_ranks_never_rests():
    own = rests.Rests(64, 8)
    for num_messages in (1, 1, 0):
        for _ in range(num_messages):
            own.arrived()
        own.read()
        assert own.seconds == 0


@pytest.mark.parametrize(("num_ranks", "seconds"), [(65, 0.01), (256, 0.0256), (1024, 0.1), (8192, 0.1)])
def test_records_of_many_ranks_are_gathered_longer(num_ranks, seconds):
    assert gather_seconds(num_ranks) == pytest.approx(seconds)


@pytest.mark.parametrize(("num_nodes", "seconds"), [(1, 0.02), (40, 0.02), (128, 0.064), (4096, 0.1)])
def test_one_of_many_nodes_waits_longer_for_its_other_ranks(num_nodes, seconds):
    assert outgoing.gather_seconds(num_nodes) == pytest.approx(seconds)
