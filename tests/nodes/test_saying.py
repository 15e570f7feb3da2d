"""What ranks of a node say alike is told once, and each rank has said what it said, in its order."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.agent.nodes.saying import MAX_ALIKE_BYTES, Sayings, each_said
from jupyter_dist.agent.processes.alike import Said, hear_together
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.journal.reader import JournalCursor
from jupyter_dist.journal.wide import MAX_PART_BYTES, each_rank
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.specs import RankSpec
from jupyter_dist.transport.frames import FrameDecoder, encode_frame, unpack

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
        self.sayings = Sayings(lambda header, payload: self.sent.append((header, payload)))

    def heard(self):
        """Who said what, in the order in which it arrives: messages, and bytes of pipes."""
        decoders, found = {}, {}
        for sent in self.sent:
            for numbers, said in each_said(*unpack(*sent)):
                for index, number in enumerate(numbers):
                    events = found.setdefault(number, [])
                    if isinstance(said, Said):
                        events += _frames_of(said.only([index]))
                    elif said[0] == "channel":
                        events += decoders.setdefault(number, FrameDecoder()).feed(said[1])
                    else:
                        events.append(said)
        return found


def _frames_of(said):
    own = {"seconds": said.seconds[0]} if said.seconds else {}
    if said.memory and said.memory[0] is not None:
        own["memory"] = said.memory[0]
    return [({**said.header, **own}, said.payloads[0])]


def _plain(frame):
    """Without what says nothing: a memory of None is no memory."""
    header, payload = frame
    return (
        ({k: v for k, v in header.items() if (k, v) != ("memory", None)}, payload)
        if isinstance(header, dict)
        else frame
    )


@given(
    turns=st.lists(
        st.lists(
            st.tuples(st.integers(0, 3), st.sampled_from(["channel", "channel", "stdout"]), messages), max_size=12
        ),
        max_size=4,
    ),
    cut=st.integers(1, 400),
)
def test_each_rank_has_said_what_it_said_in_its_order(turns, cut):
    link, wanted, rest, decoders = Link(), {}, {}, {}
    for turn in turns:
        for number, name, data in turn:
            if name != "channel":
                link.sayings.add(number, name, data)
                wanted.setdefault(number, []).append((name, data))
                continue
            # As a socket has it: with the end of what came before, and often without its own.
            so_far = rest.pop(number, b"") + data
            end = len(so_far) - len(so_far) % cut
            now, rest[number] = so_far[:end], so_far[end:]
            link.sayings.add(number, "channel", now)
            wanted.setdefault(number, []).extend(decoders.setdefault(number, FrameDecoder()).feed(now))
        link.sayings.flush()
    found = link.heard()
    assert {number: list(map(_plain, events)) for number, events in found.items() if events} == {
        number: list(map(_plain, events)) for number, events in wanted.items() if events
    }


def test_what_ranks_say_alike_is_one_part_and_what_all_print_is_sent_once():
    link = Link()
    for rank in range(8):
        text = encode_frame({"t": "stream", **CELL, "name": "stdout"}, b"epoch 1\n" * 100)
        own = encode_frame({"t": "stream", **CELL, "name": "stderr"}, b"%d\n" % rank)
        reply = encode_frame({**REPLY, "seconds": rank / 8, "memory": MEMORY if rank == 3 else None})
        link.sayings.add(rank, "channel", text + own + reply)
    link.sayings.flush()
    ((header, payload),) = link.sent
    header, payload = unpack(header, payload)
    same, different, end = header["parts"]
    assert (same["sizes"], different["sizes"], len(payload)) == ([800], [2] * 8, 800 + 16)
    assert (end["seconds"][7], end["memory"][3], end["ps"]) == (7 / 8, MEMORY, list(range(8)))


def test_a_flood_is_passed_on_unread():
    link = Link()
    data = encode_frame({"t": "stream", **CELL, "name": "stdout"}, b"x" * 100) * (MAX_ALIKE_BYTES // 100)
    link.sayings.add(0, "channel", data)
    link.sayings.flush()
    ((header, payload),) = link.sent
    assert unpack(header, payload) == (
        {"t": "out", "parts": [{"name": "channel", "ps": [0], "sizes": [len(data)]}]},
        data,
    )


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


def test_what_ranks_say_alike_is_kept_for_each(tmp_path):
    ranks = Ranks(tmp_path)
    stream = {"t": "stream", **CELL, "name": "stderr"}
    hear_together(ranks.all[:3], Said(stream, [b"0\n", b"1\n", b"2\n"]))
    hear_together(ranks.all, Said(REPLY, [b""] * 4, [0.0, 0.1, 0.2, 0.3], [None, MEMORY, None, None]))
    assert ranks.listener.replied == [([0, 1, 2, 3], "ok", [0.0, 0.1, 0.2, 0.3])]
    assert [rank.state for rank in ranks.all] == ["idle"] * 4
    assert [rank.cell_memory for rank in ranks.all] == [None, MEMORY, None, None]
    assert ranks.all[2].last_words.lines() == "2"
    ends = [(rank, "rank_end", rank / 10, b"") for rank in range(4)]
    assert ranks.records() == [(rank, "stream", None, b"%d\n" % rank) for rank in range(3)] + ends


def test_a_reply_counts_only_for_ranks_that_run_its_cell(tmp_path):
    ranks = Ranks(tmp_path)
    hear_together(ranks.all[1:2], Said(REPLY, [b""], [0.5]))
    hear_together(ranks.all, Said(REPLY, [b""] * 4, [0.0, 0.1, 0.2, 0.3]))
    assert ranks.listener.replied == [([1], "ok", [0.5]), ([0, 2, 3], "ok", [0.0, 0.2, 0.3])]


def test_what_is_not_sound_costs_those_who_said_it_their_channel_and_no_others(tmp_path):
    async def check():
        ranks = Ranks(tmp_path)
        hear_together(ranks.all[1:3], Said({**REPLY, "status": "splendid"}, [b""] * 2, [0.0, 0.1]))
        hear_together(ranks.all, Said(REPLY, [b""] * 4, [0.0, 0.1, 0.2, 0.3]))
        assert [rank.is_mute for rank in ranks.all] == [False, True, True, False]
        assert ranks.listener.replied == [([0, 3], "ok", [0.0, 0.3])]
        for rank in ranks.all:
            rank.release()

    asyncio.run(check())
