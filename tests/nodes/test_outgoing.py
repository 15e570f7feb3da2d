"""Ranks of a node send their output as records, joined where they are alike; nothing is lost, and each rank's order stays."""

import asyncio
import math
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.agent.nodes.files import FileDoor
from jupyter_dist.agent.nodes.outgoing import MAX_BYTES, OutgoingRecords
from jupyter_dist.agent.nodes.remote import NodeDoors, RemoteNode, RemoteProcess
from jupyter_dist.agent.nodes.stores import LinkStores
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.records import (
    ArrivedRecords,
    RankRecord,
    from_message,
    from_node,
    handle_or_lose,
    receive,
)
from jupyter_dist.journal.reader import JournalCursor
from jupyter_dist.journal.records.wide import MAX_PART_BYTES, each_rank
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.transport.frames import LENGTHS, FrameDecoder, encode_frame, unpack

CELL = {"execution_id": "e"}
REPLY = {"t": "reply", **CELL, "status": "ok", "process_group": "ok", "collective_seq": 0, "kinds": {"ddp": "model"}}
MEMORY = {"kind": "resident", "added_bytes": 1, "peak_bytes": None}

streams = st.tuples(
    st.fixed_dictionaries(
        {"t": st.just("stream"), **{k: st.just(v) for k, v in CELL.items()}, "name": st.just("stdout")}
    ),
    st.sampled_from([b"same\n", b"0\n", b"1\n", b"x" * (MAX_PART_BYTES + 1)]),
)
replies = st.tuples(
    st.fixed_dictionaries(
        {**{k: st.just(v) for k, v in REPLY.items()}, "seconds": st.sampled_from([0.5, 2, None, "a minute", 1e300])},
        optional={"memory": st.sampled_from([None, MEMORY, 7])},
    ),
    st.just(b""),
)
others = st.tuples(st.sampled_from([{"t": "sync", "id": 1}, {"t": "phase", "phase": "joining"}]), st.just(b""))
messages = st.lists(streams | replies | others, min_size=1, max_size=3).map(
    lambda frames: b"".join(encode_frame(*frame) for frame in frames)
)


class Link:
    """A node's side of its link, and what the head takes from it."""

    def __init__(self):
        self.sent = []
        self.outgoing = OutgoingRecords(lambda header, payload: self.sent.append((header, payload)))

    def arrived(self):
        """What each rank has sent, in the order in which it arrives: messages, and output on file descriptors."""
        decoders, found = {}, {}
        for header, payload in (unpack(*sent) for sent in self.sent):
            if header["t"] == "channel":
                rank = header["p"] - 100
                found.setdefault(rank, []).extend(decoders.setdefault(rank, FrameDecoder()).feed(payload))
                continue
            ends = list(accumulate(each["bytes"] for each in header["records"]))
            for each, end in zip(header["records"], ends, strict=True):
                ranks, record = from_node(each, payload[end - each["bytes"] : end])
                for index, rank in enumerate(ranks):
                    found.setdefault(rank, []).append(message_of(record.of([index])))
        return found


def message_of(record):
    """The message of a rank that this is the record of, or name and data of its output on a file descriptor."""
    (payload,) = record.payloads
    if "execution_id" not in record.fields:
        return record.fields["name"], payload
    if record.kind == "stream":
        return {"t": "stream", **record.fields}, payload
    own = {name: values[0] for name, values in record.own.items() if values[0] is not None or name == "seconds"}
    return {"t": "reply", **record.fields, **record.reply, **own}, payload


def plain(frame):
    """Without a memory of None, which is no memory."""
    header, payload = frame
    if isinstance(header, dict):
        header = {name: value for name, value in header.items() if (name, value) != ("memory", None)}
    return header, payload


@given(
    turns=st.lists(
        st.lists(
            st.tuples(st.integers(0, 3), st.sampled_from(["channel", "channel", "stdout"]), messages), max_size=12
        ),
        max_size=4,
    ),
    cut=st.integers(1, 400),
)
def test_all_that_ranks_have_sent_arrives_in_the_order_of_each(turns, cut):
    link, wanted, rest, decoders = Link(), {}, {}, {}
    for turn in turns:
        for rank, name, data in turn:
            if name != "channel":
                link.outgoing.add_text(rank, name, data)
                wanted.setdefault(rank, []).append((name, data))
                continue
            # As a socket has it: with the end of what came before, and often without its own.
            so_far = rest.pop(rank, b"") + data
            end = len(so_far) - len(so_far) % cut
            now, rest[rank] = so_far[:end], so_far[end:]
            if now:
                link.outgoing.add_bytes(100 + rank, rank, now)
            wanted.setdefault(rank, []).extend(decoders.setdefault(rank, FrameDecoder()).feed(now))
        link.outgoing.flush()
    found = link.arrived()
    # Compared rank by rank: the messages of one may come between those of another.
    assert {rank: list(map(plain, events)) for rank, events in found.items() if events} == {
        rank: list(map(plain, events)) for rank, events in wanted.items() if events
    }


def test_equal_records_of_ranks_are_one_and_a_payload_that_all_have_is_sent_once():
    link = Link()
    for rank in range(8):
        text = encode_frame({"t": "stream", **CELL, "name": "stdout"}, b"epoch 1\n" * 100)
        own = encode_frame({"t": "stream", **CELL, "name": "stderr"}, b"%d\n" % rank)
        reply = encode_frame({**REPLY, "seconds": rank / 8, "memory": MEMORY if rank == 3 else None})
        link.outgoing.add_bytes(100 + rank, rank, text + own + reply)
    link.outgoing.flush()
    ((header, payload),) = link.sent
    header, payload = unpack(header, payload)
    same, different, end = header["records"]
    assert (same["ranks"], different["sizes"], len(payload)) == ("0-7", [2] * 8, 800 + 16)
    assert (end["seconds"][7], end["memory"][3], end["ranks"]) == (7 / 8, MEMORY, "0-7")


def test_records_wait_only_for_ranks_that_run_a_cell_and_have_sent_nothing():
    outgoing = Link().outgoing
    outgoing.add_text(3, "stdout", b"a thread of an earlier cell")
    assert outgoing.is_complete  # no rank runs a cell
    outgoing.begin([0, 1, 2])
    outgoing.add_text(0, "stdout", b"epoch 1")
    outgoing.add_bytes(101, 1, encode_frame({**REPLY, "seconds": 0.5}))
    assert not outgoing.is_complete
    outgoing.add_text(2, "stdout", b"epoch 1")
    assert outgoing.is_complete
    outgoing.flush()
    outgoing.renumber({0: 10})
    outgoing.add_text(10, "stdout", b"epoch 2")
    assert not outgoing.is_complete  # rank 1 has replied, rank 2 has not
    outgoing.forget(102, 2)
    assert outgoing.is_complete
    outgoing.begin([1])
    assert not outgoing.is_complete
    outgoing.add_bytes(101, 1, b"")  # it has closed its channel
    assert outgoing.is_complete


def test_a_long_message_is_sent_in_parts_as_it_comes_and_no_longer_kept():
    link = Link()
    frame = encode_frame({"t": "stream", **CELL, "name": "stdout"}, bytes(4 * MAX_BYTES))
    link.outgoing.add_text(0, "stdout", b"before")
    for start in range(0, len(frame), MAX_BYTES):
        link.outgoing.add_bytes(100, 0, frame[start : start + MAX_BYTES])
    assert [header["t"] for header, _ in link.sent] == ["records", *["channel"] * 5]
    assert [event[0] for event in link.arrived()[0]] == ["stdout", {"t": "stream", **CELL, "name": "stdout"}]


def test_messages_that_are_invalid_are_left_to_the_head():
    link = Link()
    bad = [{**REPLY, "seconds": "a minute"}, {"t": "reply", **CELL}, {"t": "stream", **CELL, "name": "elsewhere"}]
    bad += [{"t": "output", **CELL, "msg_type": ["error"]}, {"t": ["stream"]}, {"t": "stream", "execution_id": 7}]
    for header in bad:
        link.outgoing.add_bytes(100, 0, encode_frame(header))
    link.outgoing.add_bytes(101, 1, LENGTHS.pack(2, 0) + b"[]")
    link.outgoing.flush()
    assert [header["t"] for header, _ in link.sent] == ["channel"] * (len(bad) + 1)
    assert b"".join(payload for _, payload in link.sent[:-1]) == b"".join(map(encode_frame, bad))


class Listener:
    def __init__(self):
        self.replied = []

    def ranks_changed(self):
        pass

    def ranks_replied(self, ranks, reply, seconds):
        self.replied.append(([rank.rank for rank in ranks], reply["status"], list(seconds)))


class Ranks:
    """Four ranks that run cell `e`, as the head has them."""

    def __init__(self, folder):
        self.journal, self.listener = JournalWriter(folder), Listener()
        self.all = [RankProcess(_spec(rank), self.journal, self.listener) for rank in range(4)]
        for rank in self.all:
            rank.set_state("idle")
            rank.begin("e", b"")

    def records(self):
        self.journal.close()
        found = JournalCursor(self.journal.directory, 0).read(self.journal.last_seq)
        narrow = (part for record in found for part in each_rank(record.header, record.payload))
        return [(header["rank"], header["kind"], header.get("seconds"), payload) for header, payload in narrow]


def _spec(rank):
    words = dict.fromkeys(("group_id", "group_name", "accelerator", "backend", "device", "cwd", "store_path"), "")
    return RankSpec(**words, rank=rank, local_rank=rank, world_size=4, local_world_size=4, generation=0)


def stream(payloads, name="stderr"):
    return RankRecord("stream", {**CELL, "name": name}, payloads)


def reply(seconds, memory=None, **fields):
    record = from_message({**REPLY, **fields, "seconds": 0.0}, b"")
    own = {"seconds": seconds, "memory": memory or [None] * len(seconds)}
    return replace(record, payloads=[b""] * len(seconds), own=own)


def test_a_record_of_ranks_is_kept_for_each(tmp_path):
    ranks = Ranks(tmp_path)
    handle_or_lose(ranks.all[:3], stream([b"0\n", b"1\n", b"2\n"]))
    handle_or_lose(ranks.all, reply([0.0, 0.1, 0.2, 0.3], [None, MEMORY, None, None]))
    assert ranks.listener.replied == [([0, 1, 2, 3], "ok", [0.0, 0.1, 0.2, 0.3])]
    assert [rank.state for rank in ranks.all] == ["idle"] * 4
    assert [rank.cell_memory for rank in ranks.all] == [None, MEMORY, None, None]
    assert ranks.all[2].last_words.lines() == "2"
    ends = [(rank, "rank_end", rank / 10, b"") for rank in range(4)]
    assert ranks.records() == [(rank, "stream", None, b"%d\n" % rank) for rank in range(3)] + ends


def test_output_on_file_descriptors_is_that_of_the_last_cell_of_each_rank(tmp_path):
    ranks = Ranks(tmp_path)
    receive(ranks.all[1], {**REPLY, "seconds": 0.0}, b"")
    ranks.all[1].begin("later", b"")
    handle_or_lose(ranks.all, RankRecord("stream", {"name": "stdout"}, [b"0", b"1", b"2", b"3"]))
    ranks.journal.close()
    found = JournalCursor(ranks.journal.directory).read()
    assert [(one.header["execution_id"], one.payload) for one in found[1:]] == [("e", b"023"), ("later", b"1")]


def test_a_reply_counts_only_for_ranks_that_run_its_cell(tmp_path):
    ranks = Ranks(tmp_path)
    handle_or_lose(ranks.all[1:2], reply([0.5]))
    handle_or_lose(ranks.all, reply([0.0, 0.1, 0.2, 0.3]))
    assert ranks.listener.replied == [([1], "ok", [0.5]), ([0, 2, 3], "ok", [0.0, 0.2, 0.3])]


def test_an_invalid_record_costs_its_ranks_their_channels_and_no_others(tmp_path):
    async def check():
        ranks = Ranks(tmp_path)
        handle_or_lose(ranks.all[1:3], reply([0.0, 0.1], status="splendid"))
        handle_or_lose(ranks.all, reply([0.0, 0.1, 0.2, 0.3]))
        assert [rank.is_mute for rank in ranks.all] == [False, True, True, False]
        assert ranks.listener.replied == [([0, 3], "ok", [0.0, 0.3])]
        for rank in ranks.all:
            rank.release()

    asyncio.run(check())


def test_records_of_nodes_that_are_alike_are_one_and_those_of_each_node_stay_in_order(tmp_path):
    ranks, arrived = Ranks(tmp_path), ArrivedRecords()
    for node, rank in enumerate(ranks.all[:3]):
        arrived.add(node, [rank], stream([b"%d\n" % node]))
        if node == 1:
            arrived.add(node, [rank], stream([b"more\n"]))
        arrived.add(node, [rank], reply([node / 10]))
    arrived.add(3, [ranks.all[3]], reply([0.3], status="error"))
    arrived.handle()
    arrived.handle()  # nothing is left
    assert ranks.listener.replied == [([0], "ok", [0.0]), ([1, 2], "ok", [0.1, 0.2]), ([3], "error", [0.3])]
    of_each = {rank: [one[1:] for one in ranks.records() if one[0] == rank] for rank in range(4)}
    ends = [[("rank_end", rank / 10, b"")] for rank in range(4)]
    lines = [[("stream", None, b"%d\n" % rank)] for rank in range(3)]
    assert of_each == {
        0: lines[0] + ends[0],
        1: [*lines[1], ("stream", None, b"more\n"), *ends[1]],
        2: lines[2] + ends[2],
        3: ends[3],
    }


def test_an_invalid_record_costs_no_ranks_of_other_nodes_with_which_it_was_joined(tmp_path):
    async def check():
        ranks, arrived = Ranks(tmp_path), ArrivedRecords()
        ranks.all[0].lost_channel()
        for node, rank in enumerate(ranks.all):
            arrived.add(node, [rank], reply([math.nan if node == 2 else node / 10]))
        arrived.handle()
        assert [rank.is_mute for rank in ranks.all] == [True, False, True, False]
        assert ranks.listener.replied == [([1], "ok", [0.1]), ([3], "ok", [0.3])]
        assert ranks.records() == [(rank, "rank_end", rank / 10, b"") for rank in (1, 3)]
        for rank in ranks.all:
            rank.release()

    asyncio.run(check())


FORGED = [
    {"kind": "begin", "ranks": "0-1"},
    {"kind": "note", "rank": 0},
    {"kind": ["stream"], "rank": 0},
    {"kind": "stream"},
    {"kind": "stream", "ranks": "0-9999999"},
    {"kind": "stream", "ranks": "0,0"},
    {"kind": "stream", "ranks": "0-1", "sizes": [1, 1, 1]},
    {"kind": "stream", "ranks": "0-1", "sizes": [-2, 5]},
    {"kind": "stream", "ranks": "0-1", "sizes": "11"},
    {"kind": "rank_end", "ranks": "0-1", "seconds": [1.0]},
    {"kind": "rank_end", "ranks": "0-1", "seconds": 1.0},
]


def test_an_invalid_record_of_a_node_costs_that_record_and_none_after_it(tmp_path, caplog):
    async def check():
        doors = NodeDoors(LinkStores(), FileDoor(lambda: ()), ArrivedRecords(), list)
        ranks, node = Ranks(tmp_path), RemoteNode(0, range(2), lambda *_: None, doors)
        for rank in (0, 1):
            node._by_rank[rank] = RemoteProcess(100 + rank, node)
            node._by_rank[rank].listen(ranks.all[rank])
        sound = {"kind": "stream", **CELL, "name": "stdout", "bytes": 3}
        foreign = {**sound, "ranks": "1-2"}  # rank 2 is on another node
        headers = [{**header, "bytes": 3} for header in FORGED] + [foreign, {**sound, "ranks": "0-1"}]
        node._take({"t": "records", "records": headers}, b"bad" * (len(headers) - 1) + b"ok\n")
        doors.arrived.handle()
        assert ranks.records() == [(rank, "stream", None, b"ok\n") for rank in (0, 1)]
        assert caplog.text.count("Node 0 sent an invalid record") == len(headers) - 1

    asyncio.run(check())


@pytest.mark.parametrize("header", FORGED)
def test_a_record_that_no_node_agent_makes_is_refused(header):
    with pytest.raises((KeyError, ValueError, TypeError)):
        from_node({**CELL, "name": "stdout", **header}, b"xyz")


def test_a_node_chooses_no_other_fields_of_a_record():
    more = {"seq": 1 << 50, "at": 0.0, "kept": False, "extends": True, "owner": "me"}
    ranks, record = from_node({"kind": "stream", **CELL, "name": "stdout", "ranks": "0-1", **more}, b"x")
    assert (ranks, record.fields, record.payloads) == ((0, 1), {**CELL, "name": "stdout"}, [b"x", b"x"])
