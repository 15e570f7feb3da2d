"""What is kept when the disk or the quota is nearly full: the newest output, with a warning before the oldest is removed."""

import subprocess

import pytest

from jupyter_dist.journal import quota as quota_module
from jupyter_dist.journal.quota import GIB, MIB, Quota
from jupyter_dist.journal.reader import JournalCursor, segments
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.system.files import disk


@pytest.fixture
def mounted(tmp_path):
    """Mount a tmpfs of some size."""
    places = []

    def mount(size: str, options: str = ""):
        place = tmp_path / f"mount{len(places)}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700{options}", "none", str(place)]
        if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode:
            pytest.skip("needs the right to mount a tmpfs")
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(journal, num_bytes, piece=100_000):
    for _ in range(num_bytes // piece):
        journal.append("stream", b"x" * piece, rank=0, execution_id="e", name="stdout")


def notes(directory):
    with_all, cursor = [], JournalCursor(directory)
    while records := cursor.read():
        with_all += [record.payload.decode() for record in records if record.header["kind"] == "note"]
    cursor.close()
    return with_all


def size_of(directory):
    return sum(path.stat().st_size for _, path in segments(directory))


def test_people_are_told_before_the_oldest_output_goes(tmp_path):
    told = []
    journal = JournalWriter(tmp_path / "g-1" / "journal", on_disk=lambda: told.append(journal.disk), max_bytes=4 * MIB)
    fill(journal, 2 * MIB)
    assert journal.disk == ""
    fill(journal, 3 * MIB // 2)
    assert "of its quota of 4.0 MiB: then the oldest output is removed" in journal.disk
    assert journal.disk in told
    assert segments(journal.directory)[0][0] == 1  # all of it is there
    fill(journal, MIB)
    assert "has reached its quota of 4.0 MiB: the oldest output is removed" in journal.disk
    assert size_of(journal.directory) <= 4 * MIB
    assert segments(journal.directory)[0][0] > 1
    journal.close()
    # The log has the news once, however often the figures change; what was said first may be gone by now.
    assert len([text for text in notes(journal.directory) if "reached" in text]) == 1


def test_what_other_groups_of_the_user_have_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(quota_module, "LEAST_BYTES", MIB)
    other = JournalWriter(tmp_path / "g-1" / "journal", max_bytes=100 * MIB, user_bytes=6 * MIB)
    fill(other, 4 * MIB)
    mine = Quota(_made(tmp_path / "g-2" / "journal"), 100 * MIB, 6 * MIB)
    assert 1.9 * MIB < mine.allowed() < 2.1 * MIB
    fill(other, 2 * MIB)
    assert mine.allowed() == MIB  # never nothing
    other.close()


def test_a_group_in_memory_keeps_less(mounted):
    place = mounted("40g")
    assert disk.is_memory(place)
    found = Quota(_made(place / "g-1" / "journal"))
    assert (found.group_bytes, found.user_bytes) == (GIB, 2 * GIB)
    small = Quota(_made(mounted("1g") / "g-1" / "journal"))
    assert small.group_bytes == GIB // 10
    assert not disk.is_memory("/proc")


def test_people_are_told_before_the_disk_is_full(mounted):
    place = mounted("40m")
    journal = JournalWriter(place / "journal", max_bytes=100 * MIB)
    fill(journal, 30 * MIB)
    assert journal.disk == ""
    fill(journal, 9 * MIB)
    assert "The journal's memory (a tmpfs) has " in journal.disk
    assert "free space, or output will not be kept" in journal.disk
    fill(journal, 10 * MIB)
    assert "disk is full" in journal.disk
    journal.close()
    assert any("free space" in text for text in notes(journal.directory))


def test_people_are_told_before_there_is_no_room_for_files(mounted):
    place = mounted("40m", ",nr_inodes=150")
    journal = JournalWriter(place / "journal", max_bytes=100 * MIB)
    fill(journal, 5 * MIB)
    assert "room for 1" in journal.disk
    journal.close()


def _made(path):
    path.mkdir(parents=True)
    return path
