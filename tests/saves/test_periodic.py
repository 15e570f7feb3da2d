"""Saves that a group makes by itself."""

import stat
from pathlib import Path

import pytest
from waits import until

from jupyter_dist.parts.saves.agent.periodic import SaveClock


def test_a_save_is_due_when_the_time_is_over_and_a_cell_has_run():
    clock = SaveClock(10.0, now=0.0)
    assert not clock.is_due(11.0)
    clock.ran()
    assert not clock.is_due(9.0)
    assert clock.is_due(11.0)
    clock.began(11.0)
    clock.ended(None)
    assert not clock.is_due(30.0), "nothing ran since"
    clock.ran()
    clock.began(30.0)
    clock.ran()  # a cell that ended while it was saved
    clock.ended(None)
    assert clock.is_due(41.0)
    clock.began(41.0)
    clock.ended("the disk is full")
    assert not clock.is_due(99.0), "it would fail again and again"
    clock.ended(None)  # a save on request
    assert clock.is_due(99.0)
    never = SaveClock(0.0, now=0.0)
    never.ran()
    assert not never.is_due(1e9)


@pytest.fixture(scope="module")
def saving(client):
    return client.start("by-itself", num_ranks=2, accelerator="cpu", save_every_seconds=1, saves_kept=2)


def own_saves(group):
    return [save for save in group.client.all_saves() if save.group == group.name]


def test_a_group_saves_by_itself_keeps_the_newest_and_no_other_is_deleted(saving):
    saving.run("x = 0")
    saving.save("mine")
    for number in range(1, 4):
        before = {save.id for save in own_saves(saving)}
        saving.run(f"x = {number}")
        until(lambda before=before: {save.id for save in own_saves(saving)} - before, lambda: saving.status().note)
    until(lambda: len(own_saves(saving)) == 3)
    newest, former, mine = own_saves(saving)
    assert (newest.automatic, former.automatic, mine.automatic, mine.name) == (True, True, False, "mine")
    assert saving.status().model["self_saving"] == {"every_seconds": 1, "kept": 2, "problem": None}
    saving.run("x = 'changed'")
    saving.restore(newest.name)
    assert saving.gather("x") == {0: 3, 1: 3}


def test_a_save_that_failed_is_named_once_and_not_tried_again_until_one_succeeds(saving):
    chunks = Path(own_saves(saving)[0].folder)
    mode = stat.S_IMODE(chunks.stat().st_mode)
    chunks.chmod(0o777)  # others could write there
    try:
        saving.run("y = 1")
        until(lambda: saving.status().model["self_saving"]["problem"])
        assert "The group did not save by itself: " in saving.status().note
        assert "can be written by others" in saving.status().model["self_saving"]["problem"]
    finally:
        chunks.chmod(mode)
    assert saving.save("again").num_names
    until(lambda: saving.status().model["self_saving"]["problem"] is None)
    until(lambda: saving.status().note is None)
    newest = own_saves(saving)[0].id
    saving.run("y = 2")
    until(lambda: own_saves(saving)[0].id != newest)
