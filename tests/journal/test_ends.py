"""The first and the last records of an execution, however much lies between them."""

import pytest
from damage import FORGERIES, append_to_last_segment, spoil

from jupyter_dist.journal import reader
from jupyter_dist.journal.ends import Span, first_and_last
from jupyter_dist.journal.reader import execution_records, segments
from jupyter_dist.journal.records.record import PREFIX_BYTES
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.transport.frames import FrameDecoder, encode_frame


def write(journal, count, execution_id="e", rank=0, size=100):
    for _ in range(count):
        journal.append("stream", b"x" * size, rank=rank, execution_id=execution_id, name="stdout")


def begin(journal, execution_id="e", ranks="0"):
    return journal.append("begin", b"code", execution_id=execution_id, ranks=ranks)


def end(journal, execution_id="e", rank=0):
    journal.append("rank_end", execution_id=execution_id, rank=rank, status="ok", seconds=0.1)
    return journal.append("end", execution_id=execution_id, state="ok", ranks=str(rank))


class Found:
    """What was found, decoded."""

    def __init__(self, directory, span, max_bytes):
        data, num_first, self.skipped_bytes = first_and_last(directory, span, max_bytes)
        found = list(FrameDecoder().feed(data))
        self.all = [header["seq"] for header, _ in found]
        self.first, self.last = self.all[:num_first], self.all[num_first:]
        self.num_bytes = len(data)
        self.last_bytes = sum(len(encode_frame(*record)) for record in found[num_first:])


def seqs(records):
    return [record.header["seq"] for record in records]


def test_what_fits_is_returned_as_it_is(tmp_path):
    journal = JournalWriter(tmp_path)
    begin(journal)
    write(journal, 3)
    write(journal, 3, "other", rank=1)
    last = end(journal)
    for end_seq in (None, last):
        ends = Found(tmp_path, Span("e", 1, end_seq), 1 << 20)
        assert (ends.first, ends.last, ends.skipped_bytes) == ([1, 2, 3, 4, 8, 9], [], 0)
    half = Found(tmp_path, Span("e", 1, last), ends.num_bytes + 600)
    assert half.all == [1, 2, 3, 4, 8, 9]
    assert half.last
    assert half.skipped_bytes == 0  # what lies between is of another cell
    journal.close()


@pytest.mark.parametrize("is_ended", [False, True])
def test_of_a_huge_one_the_middle_is_left_out_and_not_read(tmp_path, small_segments, small_blocks, scanned, is_ended):
    journal = JournalWriter(tmp_path)
    begin(journal)
    write(journal, 3000)
    last = end(journal) if is_ended else None
    for number in range(1000 if is_ended else 0):
        begin(journal, f"later-{number}")
        end(journal, f"later-{number}")
    ends = Found(tmp_path, Span("e", 1, last), 10_000)
    assert (ends.first[0], ends.last[-1]) == (1, last or journal.last_seq)
    for part in (ends.first, ends.last):
        assert part == list(range(part[0], part[-1] + 1))
    assert 4000 < ends.last_bytes <= 5000
    assert 4000 < ends.num_bytes - ends.last_bytes <= 5000
    left_out = list(execution_records(tmp_path, "e", ends.first[-1] + 1, ends.last[0] - 1))
    assert len(left_out) > 2900
    assert ends.skipped_bytes == sum(PREFIX_BYTES + len(record.frame) for record in left_out)
    scanned.clear()
    first_and_last(tmp_path, Span("e", 1, last), 10_000)
    assert sum(scanned) < journal.num_bytes / 10
    journal.close()


def test_what_a_huge_one_prints_after_its_end_is_the_last_of_it(tmp_path, small_segments, small_blocks):
    journal = JournalWriter(tmp_path)
    begin(journal)
    write(journal, 1000)
    last = end(journal)
    write(journal, 2)
    span = Span("e", 1, last)
    assert Found(tmp_path, span, 10_000).last[-3:] == [last, last + 1, last + 2]
    write(journal, 1000)
    late = Found(tmp_path, span, 10_000)
    assert late.last[-1] == journal.last_seq
    assert late.last_bytes <= 5000
    assert late.skipped_bytes > 200_000
    journal.close()


def test_a_record_that_is_larger_than_all_that_may_be_returned_is_the_last(tmp_path):
    journal = JournalWriter(tmp_path)
    begin(journal)
    write(journal, 10)
    write(journal, 1, size=100_000)
    ends = Found(tmp_path, Span("e", 1, None), 1000)
    assert ends.last == [12]
    assert ends.skipped_bytes
    assert Found(tmp_path, Span("e", 1, None), 10).all == [12]
    journal.close()


def test_a_short_cell_before_one_that_runs_for_days_is_read_without_that(
    tmp_path, small_segments, small_blocks, scanned, monkeypatch
):
    monkeypatch.setattr(reader, "LATE_BYTES", 10_000)
    journal = JournalWriter(tmp_path)
    begin(journal, ranks="0-1")
    last = end(journal)
    begin(journal, "days", ranks="0")
    write(journal, 100, "days")
    write(journal, 1, rank=1)  # the other rank still belongs to it
    begin(journal, "too", ranks="1")
    write(journal, 1, rank=1)  # it was on its way
    write(journal, 5000, "days")
    scanned.clear()
    found = seqs(execution_records(tmp_path, "e", 1, None))
    assert found == [1, 2, last, last + 102, last + 104]
    assert sum(scanned) < journal.num_bytes / 10
    journal.close()


@pytest.mark.parametrize("state", ["none", "torn", "of another segment", "a folder", "with a gap"])
def test_what_is_found_does_not_depend_on_the_index(tmp_path, small_segments, small_blocks, state):
    journal = JournalWriter(tmp_path)
    begin(journal)
    for _ in range(40):
        write(journal, 5)
        write(journal, 5, "other", rank=1)
    last = end(journal)
    begin(journal, "next")
    end(journal, "next")
    journal.close()
    spans = [Span("e", 1, None), Span("e", 1, last), Span("e", 202, last)]
    limits = (1000, 9000, 1 << 20)
    whole = [found.all for found in all_ends(tmp_path, spans, limits)]
    indexes = sorted(tmp_path.glob("*.ix"))
    assert len(indexes) == len(segments(tmp_path)) > 3
    other = indexes[0].read_bytes()
    for path in indexes:
        spoil(state, path, other)
    assert [found.all for found in all_ends(tmp_path, spans, limits)] == whole
    assert len(whole[2]) == len(whole[5]) == 203


def all_ends(directory, spans, limits):
    return [Found(directory, span, max_bytes) for span in spans for max_bytes in limits]


@pytest.mark.parametrize("forgery", FORGERIES, ids=range(len(FORGERIES)))
def test_ends_are_whole_after_another_process_wrote_into_the_journal(tmp_path, small_blocks, forgery):
    journal = JournalWriter(tmp_path)
    begin(journal, "mine")
    write(journal, 100, "mine")
    append_to_last_segment(tmp_path, forgery[:200_000])
    write(journal, 100, "mine")
    ends = Found(tmp_path, Span("mine", 1, None), 6000)
    assert (ends.first[0], ends.last[-1]) == (1, 201)
    assert Found(tmp_path, Span("mine", 1, None), 1 << 20).first == list(range(1, 202))
    journal.close()
