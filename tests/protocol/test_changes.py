"""A status as its changes: the receiver has what the sender had, and nothing is sent twice."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.protocol.wire.changes import StatusReceiver, StatusSender, rank_changes, with_changes

VALUES = st.one_of(st.none(), st.integers(-3, 3), st.text(max_size=2), st.lists(st.integers(), max_size=2))
NUMBERS = st.lists(st.integers(0, 9), max_size=6, unique=True).map(sorted)


def rows(numbers):
    """Ranks with these numbers: of other fields, each has any."""
    row = st.dictionaries(st.sampled_from("abc"), VALUES)
    return st.tuples(*(row.map(lambda fields, rank=rank: {"rank": rank, **fields}) for rank in numbers)).map(list)


STATUS = st.fixed_dictionaries(
    {"state": st.sampled_from(["ready", "busy"]), "ranks": NUMBERS.flatmap(rows)}, optional={"note": VALUES}
)


@given(st.lists(STATUS, max_size=5))
def test_the_receiver_has_what_the_sender_had(statuses):
    sender, receiver, whole = StatusSender(), StatusReceiver(), {}
    for status in statuses:
        whole |= status  # no field of a status goes away
        assert receiver.status(json.loads(json.dumps(sender.message(status)))) == whole


@given(NUMBERS.flatmap(lambda numbers: st.tuples(rows(numbers), rows(numbers))))
def test_ranks_that_did_not_change_are_the_same_objects(pair):
    old, new = pair
    found = with_changes(old, *rank_changes(old, new))
    assert found == new
    assert [was is rank for was, rank in zip(old, found)] == [was == rank for was, rank in zip(old, new)]


def test_what_is_as_before_is_not_sent():
    sender = StatusSender()
    nodes = [{"node": 0, "state": "joined"}]
    idle = [{"rank": rank, "pid": 100 + rank, "state": "idle", "state_at": 1.0} for rank in range(100)]
    assert sender.message({"state": "ready", "nodes": nodes, "ranks": idle})["fields"]["nodes"] == nodes
    busy = [{**rank, "state": "busy", "state_at": 2.0 + rank["rank"]} for rank in idle]
    later = {"ranks": "0-99", "alike": {"state": "busy"}, "columns": {"state_at": [2.0 + rank for rank in range(100)]}}
    assert sender.message({"state": "ready", "nodes": nodes, "ranks": busy}) == {
        "number": 1,
        "fields": {},
        "ranks": [],
        "rank_changes": later,
    }
    dead = [*busy[:7], {**busy[7], "state": "dead"}, *busy[8:]]
    assert sender.message({"state": "ready", "nodes": nodes, "ranks": dead})["ranks"] == [dead[7]]


def test_a_field_that_was_changed_in_place_is_sent():
    sender = StatusSender()
    status = {"resized": {"seconds": None}, "ranks": []}
    sender.message(status)
    status["resized"]["seconds"] = 2.5
    assert sender.message(status)["fields"] == {"resized": {"seconds": 2.5}}


def test_a_missing_message_is_noticed():
    sender, receiver = StatusSender(), StatusReceiver()
    assert receiver.status(sender.message({"state": "starting"})) is not None
    sender.message({"state": "ready"})
    assert receiver.status(sender.message({"state": "ready", "note": "n"})) is None
