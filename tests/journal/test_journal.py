import contextlib
import os
import resource

import pytest
from damage import FORGERIES, append_to_last_segment, spoil
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupyter_dist.journal import blocks
from jupyter_dist.journal.overflow import MAX_WAITING_BYTES, Overflow
from jupyter_dist.journal.reader import JournalCursor, execution_records, rank_page, segments
from jupyter_dist.journal.records.record import scan
from jupyter_dist.journal.records.sound import is_sound
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.server.mirror.pastruns import journal_runs
from jupyter_dist.transport.frames import FrameDecoder


def write(journal, count, size=100, **fields):
    for number in range(count):
        defaults = {"rank": number % 2, "execution_id": "e", "name": "stdout"}
        journal.append("stream", b"x" * size, **{**defaults, **fields})


def read_all(cursor):
    found = []
    while records := cursor.read():
        found.extend(record.header["seq"] for record in records)
    return found


def test_a_cursor_reads_on_from_any_record_over_segments(tmp_path, small_segments):
    journal = JournalWriter(tmp_path)
    write(journal, 100)
    assert len(segments(tmp_path)) > 3
    for since in (0, 1, 37, 99, 100):
        with contextlib.closing(JournalCursor(tmp_path, since)) as cursor:
            assert read_all(cursor) == list(range(since + 1, 101))
    journal.close()


def test_a_cursor_sees_what_is_written_after_it_came_to_the_end(tmp_path, small_segments):
    journal = JournalWriter(tmp_path)
    with contextlib.closing(JournalCursor(tmp_path)) as cursor:
        for _ in range(30):
            write(journal, 3)
            read_all(cursor)
        assert cursor.since == 90
        assert cursor.read(last_seq=90) == []
    journal.close()


def test_a_record_larger_than_a_read_is_whole(tmp_path):
    journal = JournalWriter(tmp_path)
    journal.append("stream", b"y" * 5_000_000, rank=0, execution_id="e", name="stdout")
    journal.append("end", execution_id="e", state="ok")
    with contextlib.closing(JournalCursor(tmp_path)) as cursor:
        first, last = cursor.read() + cursor.read()
    assert first.payload == b"y" * 5_000_000
    assert last.header["kind"] == "end"
    journal.close()


def test_pages_of_one_rank_go_backward_without_gap_or_overlap(tmp_path, small_segments):
    journal = JournalWriter(tmp_path)
    write(journal, 100)
    found, before, more = [], None, True
    while more:
        page, more = rank_page(tmp_path, 1, before, 2000)
        found = [record.header["seq"] for record in page] + found
        before = found[0]
    assert found == list(range(2, 101, 2))
    journal.close()


def test_the_records_of_one_execution(tmp_path):
    journal = JournalWriter(tmp_path)
    write(journal, 4, execution_id="a")
    write(journal, 4, execution_id="b")
    write(journal, 2, execution_id="a")
    assert [r.header["seq"] for r in execution_records(tmp_path, "a", 1, None)] == [1, 2, 3, 4, 9, 10]
    assert [r.header["seq"] for r in execution_records(tmp_path, "b", 5, 6)] == [5, 6]
    journal.close()


def test_the_records_of_an_execution_end_where_the_journal_did_when_they_were_asked_for(tmp_path):
    journal = JournalWriter(tmp_path)
    write(journal, 4, size=1 << 20)
    for number, _ in enumerate(execution_records(tmp_path, "e", 1, None)):
        assert number < 100
        write(journal, 2, size=1 << 20)  # faster than they are read
    journal.close()


def test_records_of_a_cell_that_more_ranks_got_are_read_until_all_of_them_ended_another(tmp_path):
    journal = JournalWriter(tmp_path)
    journal.append("begin", execution_id="a", ranks="0")
    journal.append("begin", execution_id="a", ranks="1", extends=True)
    journal.append("rank_end", execution_id="b", rank=1, status="ok")
    write(journal, 4, size=1 << 20, execution_id="b", rank=1)  # more than is read at once
    write(journal, 1, execution_id="a", rank=0)
    assert [r.header["seq"] for r in execution_records(tmp_path, "a", 1, None)] == [1, 2, 8]
    (run,) = journal_runs_of(journal, tmp_path)
    assert (run.ranks, run.count) == ("0-1", 3)
    journal.close()


def journal_runs_of(journal, path):
    journal.append("begin", b"c", execution_id="c", ranks="0", execution_count=3)
    journal.append("begin", b"c", execution_id="c", ranks="1", execution_count=3, extends=True)
    return journal_runs(path, is_sound)[0]


def test_the_oldest_segments_go_beyond_the_limit(tmp_path, small_segments):
    journal = JournalWriter(tmp_path, max_bytes=20_000)
    write(journal, 500)
    assert sum(path.stat().st_size for _, path in segments(tmp_path)) <= 24_000
    with contextlib.closing(JournalCursor(tmp_path)) as cursor:
        seqs = read_all(cursor)
    assert seqs[-1] == journal.last_seq == 502  # two notes say that the quota comes near, and that it is reached
    assert seqs == list(range(seqs[0], 503))
    journal.close()


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.integers(0, 3000), st.binary(min_size=1, max_size=60))
def test_damage_costs_only_the_records_it_touches(tmp_path, where, junk):
    directory = tmp_path / os.urandom(6).hex()
    journal = JournalWriter(directory)
    write(journal, 20)
    journal.close()
    (_, path) = segments(directory)[0]
    data = path.read_bytes()
    ends = [record.next_offset for record in scan(data)]
    where = where % len(data)
    path.write_bytes(data[:where] + junk + data[where + len(junk) :])
    touched = {i for i, end in enumerate(ends) if end > where and (ends[i - 1] if i else 0) < where + len(junk)}
    with contextlib.closing(JournalCursor(directory)) as cursor:
        assert set(read_all(cursor)) >= set(range(1, 21)) - {index + 1 for index in touched}


def test_a_truncated_journal_gives_its_whole_records(tmp_path):
    journal = JournalWriter(tmp_path)
    write(journal, 5)
    journal.close()
    (_, path) = segments(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-7])
    with contextlib.closing(JournalCursor(tmp_path)) as cursor:
        assert read_all(cursor) == [1, 2, 3, 4]


def test_a_full_disk_loses_no_count(tmp_path):
    """The kernel's own ENOSPC, from a real full file: /dev/full takes no byte."""
    journal = JournalWriter(tmp_path)
    journal.overflow.follow(True)
    write(journal, 1)
    real = journal._fd
    journal._fd = os.open("/dev/full", os.O_WRONLY)
    assert journal.append("stream", b"z" * 1234, rank=0, execution_id="e", name="stdout") == 0
    assert journal.append("stream", b"z" * 766, rank=0, execution_id="e", name="stdout") == 0
    assert "2000 bytes" in journal.disk
    os.close(journal._fd)
    journal._fd = real
    write(journal, 1)
    with contextlib.closing(JournalCursor(tmp_path)) as cursor:
        records = cursor.read()
    assert [(record.header["seq"], record.header["kind"]) for record in records] == [
        (1, "stream"),
        (4, "note"),
        (5, "stream"),
    ]
    assert b"2000 bytes" in records[1].payload
    # Whoever follows gets all five, in order, and can tell which were not kept.
    headers = [header for header, _ in FrameDecoder().feed(b"".join(journal.overflow.merge(records)))]
    assert [header["seq"] for header in headers] == [1, 2, 3, 4, 5]
    assert [header["seq"] for header in headers if not header.get("kept", True)] == [2, 3]
    journal._fd = os.open("/dev/full", os.O_WRONLY)
    journal.append("stream", b"z" * 500, rank=0, execution_id="e", name="stdout")
    assert "2500 bytes" in journal.disk  # in all
    os.close(journal._fd)
    journal._fd = real
    write(journal, 1)
    assert "2500 bytes of output were not kept." in journal.disk
    journal.close()


def test_a_journal_that_cannot_be_opened_says_why_and_goes_on_later(tmp_path, small_segments):
    """No descriptors, for real: neither a record nor a look at the disk raises."""
    journal = JournalWriter(tmp_path / "g-1" / "journal", max_bytes=1 << 20)
    write(journal, 1)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    for _ in range(2):
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
        try:
            written = [journal.append("stream", b"z" * 3000, rank=0, execution_id="e", name="stdout") for _ in range(9)]
            disk = journal.disk
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert written[-1] == 0
        assert disk.startswith("The journal cannot be written (Too many open files): ")
        write(journal, 1)
        assert journal.disk.startswith("The journal could not be written (Too many open files): ")
    kept = sum(path.stat().st_size for _, path in segments(journal.directory))
    assert journal.num_bytes == kept
    with contextlib.closing(JournalCursor(journal.directory)) as cursor:
        assert read_all(cursor)[-1] == journal.last_seq
    journal.close()


def test_what_a_slow_server_does_not_take_of_a_full_disk_is_bounded_and_counted():
    overflow = Overflow()
    overflow.add(1, b"nobody follows", 14)
    overflow.follow(True)
    for seq in range(2, 102):
        overflow.add(seq, bytes(100_000), 100_000)
    shown = overflow.merge([])
    assert sum(map(len, shown)) <= MAX_WAITING_BYTES
    assert overflow.num_bytes == 14 + 100 * 100_000
    assert overflow.dropped_bytes == overflow.num_bytes - sum(map(len, shown))
    assert f"{overflow.dropped_bytes} of them not shown either" in str(overflow)


@pytest.mark.parametrize("forgery", FORGERIES, ids=range(len(FORGERIES)))
def test_who_follows_the_journal_misses_nothing_after_what_somebody_else_wrote_into_it(tmp_path, forgery):
    journal = JournalWriter(tmp_path)
    write(journal, 3)
    with contextlib.closing(JournalCursor(tmp_path)) as live:
        assert [record.header["seq"] for record in live.read(3)] == [1, 2, 3]
        append_to_last_segment(tmp_path, forgery)
        (tmp_path / f"{10**19:020d}.jd").write_bytes(forgery)
        found = [record.header["seq"] for record in live.read(4)]
        assert not {seq for seq in found if seq > 4}
        write(journal, 3)
        while live.since < 6:
            found += [record.header["seq"] for record in live.read(6)]
    assert found[-3:] == [4, 5, 6][-len(found) :]
    pages = [rank_page(tmp_path, rank, 7, 10**6)[0] for rank in (0, 1)]
    assert {4, 5, 6} <= {record.header["seq"] for page in pages for record in page}
    journal.close()


def write_cells(journal, count, lines=10):
    """Write cells of ranks 0 to 2; 0 and 1 print, 2 prints nothing."""
    for number in range(count):
        journal.append("begin", b"x", execution_id=f"e{number}", ranks="0-2")
        write(journal, lines, execution_id=f"e{number}")
        for rank in range(3):
            journal.append("rank_end", execution_id=f"e{number}", rank=rank, status="ok", seconds=0.1)
        journal.append("end", execution_id=f"e{number}", state="ok")


def all_pages(directory, rank):
    found, before, more = [], None, True
    while more:
        page, more = rank_page(directory, rank, before, 700)
        found = [record.header["seq"] for record in page] + found
        before = found[0]
    return found


def test_a_page_of_a_rank_reads_only_where_that_rank_has_records(tmp_path, small_blocks, scanned):
    journal = JournalWriter(tmp_path)
    write_cells(journal, 2)
    write(journal, 2000)
    (_, segment) = segments(tmp_path)[0]
    page, more = rank_page(tmp_path, 2, None, 10**6)
    assert [record.header["kind"] for record in page] == ["begin", "rank_end"] * 2
    assert not more
    assert sum(scanned) < segment.stat().st_size / 20
    scanned.clear()
    rank_page(tmp_path, 0, 1000, 500)
    assert sum(scanned) < 5 * blocks.BLOCK_BYTES
    journal.close()


def test_a_cursor_and_the_records_of_a_cell_start_where_they_are(tmp_path, small_blocks, scanned):
    journal = JournalWriter(tmp_path)
    write_cells(journal, 300)
    found = [record.header["seq"] for record in execution_records(tmp_path, "e250", 250 * 15 + 1, None)]
    assert found == list(range(250 * 15 + 1, 251 * 15 + 1))
    with contextlib.closing(JournalCursor(tmp_path, journal.last_seq - 3)) as cursor:
        assert read_all(cursor) == list(range(journal.last_seq - 2, journal.last_seq + 1))
    assert sum(scanned) < journal.num_bytes / 3
    journal.close()


def test_what_a_thread_prints_after_its_cell_belongs_to_it_until_each_rank_has_ended_another(tmp_path):
    journal = JournalWriter(tmp_path)
    write_cells(journal, 1)
    write(journal, 1, execution_id="e0")
    journal.append("begin", b"x", execution_id="e1", ranks="0,1")
    write(journal, 1, execution_id="e0")
    for rank in range(2):
        journal.append("rank_end", execution_id="e1", rank=rank, status="ok", seconds=0.1)
    write(journal, 1, execution_id="e0", rank=2)
    found = [record.header["seq"] for record in execution_records(tmp_path, "e0", 1, None)]
    assert found == [*range(1, 17), 18, 21]
    journal.close()


@pytest.mark.parametrize("state", ["none", "torn", "of another segment", "a folder", "with a gap"])
def test_what_is_read_does_not_depend_on_the_index(tmp_path, small_segments, small_blocks, state):
    journal = JournalWriter(tmp_path)
    write_cells(journal, 30)
    journal.close()
    whole = {rank: all_pages(tmp_path, rank) for rank in range(3)}
    assert [len(seqs) for seqs in whole.values()] == [30 * 7, 30 * 7, 30 * 2]
    indexes = sorted(tmp_path.glob("*.ix"))
    assert len(indexes) == len(segments(tmp_path)) > 3
    other = indexes[0].read_bytes()
    for path in indexes:
        spoil(state, path, other)
    assert {rank: all_pages(tmp_path, rank) for rank in range(3)} == whole
    for since in (0, 100, 333):
        with contextlib.closing(JournalCursor(tmp_path, since)) as cursor:
            assert read_all(cursor) == list(range(since + 1, journal.last_seq + 1))


@pytest.mark.parametrize("forgery", FORGERIES, ids=range(len(FORGERIES)))
def test_pages_are_whole_after_somebody_else_wrote_into_the_journal(tmp_path, small_blocks, forgery):
    journal = JournalWriter(tmp_path)
    write_cells(journal, 10)
    append_to_last_segment(tmp_path, forgery[:200_000])  # 200 of the small blocks
    write_cells(journal, 10)
    mine = {seq for seq in all_pages(tmp_path, 2) if seq <= journal.last_seq}
    assert mine == {place for cell in range(20) for place in (cell * 15 + 1, cell * 15 + 14)}
    journal.close()


def test_the_index_of_a_segment_goes_with_it(tmp_path, small_segments):
    journal = JournalWriter(tmp_path, max_bytes=20_000)
    write(journal, 500)
    assert {path.stem for path in tmp_path.glob("*.ix")} == {path.stem for _, path in segments(tmp_path)}
    journal.close()
