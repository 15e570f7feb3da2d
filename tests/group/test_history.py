"""The past output of a group is read from the files of its journal, and no more of it than a view can show."""

import asyncio
import resource
import shutil

import pytest

from jupyter_dist.journal import reader, writer
from jupyter_dist.journal.ends import Span, first_and_last
from jupyter_dist.journal.reader import segments
from jupyter_dist.journal.writer import JournalWriter, segment_path
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.mirror import history
from jupyter_dist.server.mirror.mirror import GroupMirror
from jupyter_dist.server.spawner.directories import GroupDirectory
from jupyter_dist.transport.frames import FrameDecoder

SPEC = {"world_size": 1, "name": "g", "accelerator": "cpu", "backend": "gloo", "devices": [], "cwd": "/"}
MAX_BYTES = 100_000
RUNNING = {"id": "e", "state": "running", "ranks": "0", "line": "1", "begin_seq": 1, "end_seq": None, "statuses": []}
RUNNING |= {"started_at": 1.0, "silent": False, "execution_count": 1, "notebook": "n.ipynb", "cell_id": "c"}


def lost_group(folder, num_lines):
    """A group whose agent is gone while a cell ran that had printed much."""
    group = GroupMirror(GroupDirectory(folder), "s-1", lambda topic: None)
    group.status.take_remains({"spec": SPEC})
    group.executions.update(RUNNING)
    journal = JournalWriter(group.directory.journal_path)
    journal.append("begin", b"the code", execution_id="e", ranks="0", execution_count=1)
    for number in range(num_lines):
        journal.append("stream", f"line {number}\n".encode(), execution_id="e", rank=0, name="stdout")
    journal.close()
    group.mark_lost("")
    return group


def test_of_a_cell_that_wrote_much_the_first_and_last_records_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "MAX_VIEW_BYTES", MAX_BYTES)
    group = lost_group(tmp_path, 5000)
    data, num_first, skipped = first_and_last(group.directory.journal_path, Span("e", 1, None), MAX_BYTES)
    records = asyncio.run(group.history.execution_records("e"))
    assert records == list(FrameDecoder().feed(data))
    assert len(data) <= MAX_BYTES < skipped
    assert records[0][1] == b"the code"
    assert records[-1][1] == b"line 4999\n"
    printed = asyncio.run(group.history.printed("e", MAX_BYTES))
    assert (printed.first + printed.last, len(printed.first), printed.unread_bytes) == (records, num_first, skipped)
    items = asyncio.run(group.view("e")).snapshot().items
    assert items[0].text.startswith("line 0\nline 1\n")
    assert items[-1].text.endswith("line 4999\n")
    assert asyncio.run(group.execution("e"))["code"] == "the code"


def test_of_a_cell_that_wrote_little_all_is_read(tmp_path):
    group = lost_group(tmp_path, 300)
    (shown,) = asyncio.run(group.view("e")).snapshot().items
    assert shown.text == "".join(f"line {number}\n" for number in range(300))
    assert asyncio.run(group.history.printed("e", 1 << 20)).unread_bytes == 0


def test_views_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    """Each may take as much memory as MAX_VIEW_BYTES; a page asks for all that it shows at once."""
    group = lost_group(tmp_path, 3)
    reading, most = 0, 0
    read = group.history.printed

    async def counted(*asked):
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        try:
            return await read(*asked)
        finally:
            reading -= 1

    monkeypatch.setattr(group.history, "printed", counted)

    async def ask():
        return await asyncio.gather(*(group.history.execution_records("e") for _ in range(20)))

    assert all(len(records) == 4 for records in asyncio.run(ask()))
    assert most == history.MAX_READS_AT_ONCE < 20


def test_a_view_of_a_cell_that_never_began_is_empty(tmp_path):
    group = lost_group(tmp_path, 3)
    group.executions.update({**RUNNING, "id": "q", "state": "aborted", "begin_seq": None})
    assert asyncio.run(group.view("q")).snapshot().items == ()


def test_files_that_cannot_be_read_are_an_error_and_not_an_empty_past(tmp_path):
    group = lost_group(tmp_path, 3)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def ask():
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # no descriptors are left
        try:
            for read in (group.view("e"), group.history.log_page(0, None, 1000), group.history.runs()):
                with pytest.raises(JupyterDistError, match="cannot be read from its files: Too many open files") as err:
                    await read
                assert (err.value.code, str(group.directory.journal_path) in err.value.hint) == ("internal", True)
            return (await group.execution("e"))["code"]  # the rest is known all the same
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert asyncio.run(ask()) is None
    assert asyncio.run(group.execution("e"))["code"] == "the code"


def test_a_past_whose_folder_is_gone_is_empty(tmp_path):
    group = lost_group(tmp_path, 3)
    shutil.rmtree(tmp_path / "journal")
    assert asyncio.run(group.view("e")).snapshot().items == ()
    assert asyncio.run(group.history.log_page(0, None, 1000))["records"] == []
    assert asyncio.run(group.history.cells(10)) == []


def test_what_is_read_while_the_oldest_files_are_removed_is_whole(tmp_path, monkeypatch):
    """A full quota takes the oldest segments away, also from under a reader: what it returns has no other gaps."""
    monkeypatch.setattr(writer, "SEGMENT_BYTES", 20_000)
    group = lost_group(tmp_path, 2000)
    names = [first for first, _ in segments(group.directory.journal_path)][:-1]  # the newest is never removed

    def remove(fd, block, read=reader._read_block):
        if names:
            segment_path(group.directory.journal_path, names.pop(0)).unlink()
        return read(fd, block)

    monkeypatch.setattr(reader, "_read_block", remove)
    records = asyncio.run(group.history.execution_records("e"))
    found = [header["seq"] for header, _ in records]
    assert found == sorted(set(found))
    assert found[-1] == 2001
    assert b"".join(payload for _, payload in records).endswith(b"line 1998\nline 1999\n")
