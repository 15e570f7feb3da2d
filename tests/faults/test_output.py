"""Faults 16, 17, 26: no byte is lost, memory does not grow with output, and a full disk stops no rank."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import tempfile
from itertools import chain
from pathlib import Path

import pytest
from waits import until

from jupyter_dist.journal.reader import JournalCursor
from jupyter_dist.journal.records.wide import each_rank
from jupyter_dist.protocol.errors import JupyterDistError

from .server import JupyterServer

AGENT_GROWTH_BYTES = 64 << 20
RANK_GROWTH_BYTES = 64 << 20


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def journal_digests(directory: Path, world_size: int, execution_id: str) -> tuple[list[str], list[int]]:
    """SHA-256 and length of what each rank said, from the files."""
    digests, sizes = [hashlib.sha256() for _ in range(world_size)], [0] * world_size
    with contextlib.closing(JournalCursor(directory)) as cursor:
        while records := cursor.read():
            for header, payload in chain.from_iterable(each_rank(r.header, r.payload) for r in records):
                if header["kind"] == "stream" and header["execution_id"] == execution_id:
                    digests[header["rank"]].update(payload)
                    sizes[header["rank"]] += len(payload)
    return [digest.hexdigest() for digest in digests], sizes


def flood_digest(rank: int, lines: int) -> str:
    return hashlib.sha256(b"".join(b"%d line %d\n" % (rank, n) for n in range(lines))).hexdigest()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("world_size", [2, 8])
def test_a_flood_is_byte_exact_and_costs_no_memory(make_agent, request, world_size):
    """`--flood-lines 1000000` for the figure of docs/reliability/figures.md; no page follows, so no rank waits."""
    lines = request.config.getoption("--flood-lines")
    if world_size > 2 and lines <= 100_000:
        lines //= 4  # short in CI
    process = make_agent()
    client = process.client()
    client.start(world_size)
    client.close()
    client = process.client()  # a server that does not follow: the journal is what counts
    client.hello()
    before = [resident_bytes(pid) for pid in (process.process.pid, client.group["ranks"][0]["pid"])]
    everyone = range(world_size)
    execution = client.run(f"for n in range({lines}): print(rank, 'line', n)", everyone, timeout=500)
    assert execution["state"] == "ok"
    after = [resident_bytes(pid) for pid in (process.process.pid, client.group["ranks"][0]["pid"])]
    assert after[0] - before[0] < AGENT_GROWTH_BYTES
    assert after[1] - before[1] < RANK_GROWTH_BYTES
    seconds = execution["ended_at"] - execution["started_at"]
    grown = [(late - early) >> 20 for late, early in zip(after, before, strict=True)]
    print(f"{world_size} x {lines} lines in {seconds:.1f} s; MiB grown: agent {grown[0]}, rank {grown[1]}")
    digests, _ = journal_digests(process.directory / "journal", world_size, execution["id"])
    assert digests == [flood_digest(rank, lines) for rank in everyone]


def test_a_line_of_a_hundred_megabytes(make_agent):
    process = make_agent()
    client = process.client()
    client.start(2)
    client.close()
    client = process.client()
    client.hello()
    before = resident_bytes(process.process.pid)
    execution = client.run("print('x' * 100_000_000)\nprint('next')", [1], timeout=100)
    assert execution["state"] == "ok"
    grown = resident_bytes(process.process.pid) - before
    print(f"100 MB in {execution['ended_at'] - execution['started_at']:.1f} s; agent grew {grown >> 20} MiB")
    assert grown < AGENT_GROWTH_BYTES
    digests, sizes = journal_digests(process.directory / "journal", 2, execution["id"])
    assert sizes == [0, 100_000_000 + len("\nnext\n")]
    assert digests[1] == hashlib.sha256(b"x" * 100_000_000 + b"\nnext\n").hexdigest()


def test_megabytes_on_descriptor_2_block_nobody(pair):
    """As NCCL and C libraries write: no pipe fills up unread, whether a cell runs or not."""
    code = "import os\nfor _ in range(80): os.write(2, b'NCCL INFO ' * 5000)\nos.system('yes spam 2>/dev/null | head -c 1000000 >&2')"
    execution = pair.run(code)
    assert execution["state"] == "ok"
    pair.wait(
        lambda: all(len(pair.text(rank, execution["id"], "stderr")) == 80 * 50_000 + 1_000_000 for rank in (0, 1))
    )


@pytest.fixture
def small_disk():
    """A disk of 24 MiB, of which a server's copy of the code takes some ten, with a path short enough for a socket."""
    path = Path(tempfile.mkdtemp(prefix="jd-disk-"))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "none", path], check=False)
    if mounted.returncode:
        path.rmdir()
        pytest.skip("needs the right to mount a tmpfs")
    yield path
    subprocess.run(["umount", "-l", path], check=True)
    path.rmdir()


def test_a_page_goes_on_while_the_disk_is_full(small_disk, tmp_path):
    server = JupyterServer(tmp_path, runtime=small_disk)
    try:
        server.start(2, name="g")
        fill(small_disk / "ballast")
        page = server.channel()
        lines = [f"seen {n}\n" for n in range(300)] + ["x" * 8000 + "\n"] * 5
        execution = server.submit("g", f"for line in {lines}: print(line, end='')", "0")
        page.send({"type": "subscribe", "topic": "execution", "group": "g", "execution": execution, "since": 0})
        seen = ""
        while "seen 299" not in seen:
            seen += str(page.next_of("view")["items"])
        page.close()
        view = server.view("g", execution)
        assert view["execution"]["state"] == "ok"
        assert view["items"][0]["output"]["text"] == "".join(lines)
        # States are batched before they are sent.
        note = until(lambda: server.ask("GET", "groups/g")["note"])
        # A short record may have fit after the last long one: then the disk was full.
        assert re.search(r"disk (is|was) full: \d+ bytes of output were not kept", note), note
        (small_disk / "ballast").unlink()
        assert server.run("g", "print('here again')", "0")["items"][0]["output"]["text"] == "here again\n"
        log = server.download("g", 0)
        unkept = sum(map(int, re.findall(r"full: (\d+) bytes of output were not kept", log)))
        kept = sum(len(line) for line in log.splitlines(True) if line in lines)
        assert kept + unkept == sum(map(len, lines))
        assert unkept > 0
        server.ask("DELETE", "groups/g")
    finally:
        server.end()


def fill(path: Path, leave: int = 0) -> None:
    """Write a file until the disk has this many bytes left."""
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        while (size := os.statvfs(path).f_bavail * os.statvfs(path).f_frsize - leave) > 0:
            file.write(b"x" * size)
        while not leave:  # what is left of the last page
            file.write(b"x" * 100)


def test_a_start_on_a_full_disk_is_refused_with_the_reason_and_can_be_tried_again(small_disk, make_agent):
    client = make_agent(small_disk).client()
    fill(small_disk / "ballast")
    with pytest.raises(JupyterDistError, match=r"g0: No space left on device") as raised:
        client.start(1)
    assert raised.value.code == "bad_directory"
    (small_disk / "ballast").unlink()
    client.start(1)
    assert client.run("1", [0])["state"] == "ok"


def test_a_full_disk_stops_no_rank_and_is_counted_exactly(small_disk, make_agent):
    process = make_agent(small_disk)
    client = process.client()
    client.start(2)
    fill(small_disk / "ballast", leave=2 << 20)
    execution = client.run("for n in range(100_000): print('%050d' % n)", [0])
    assert execution["state"] == "ok"
    client.wait(lambda: "not kept" in (client.group["note"] or ""))
    fill(small_disk / "brim")  # what was too large may have left room for something small
    # Cells run as usual, and followers see them, marked as not kept.
    unseen = client.run("print('seen')", [0])
    assert client.text(0, unseen["id"]) == "seen\n"

    # Output that a follower was too slow for is reported: while it lasts, and in the journal afterwards.
    def dropped() -> int:
        texts = [payload.decode() for header, payload in client.records if header["kind"] == "note"]
        texts += [client.group["note"]] if "so far" in client.group["note"] else []
        return sum(int(number) for text in texts for number in re.findall(r"(\d+) of them not shown", text))

    client.wait(lambda: len(client.text(0, execution["id"])) + dropped() == 100_000 * 51)
    streams = [(header, len(payload)) for header, payload in client.records if header.get("name") == "stdout"]
    kept = sum(size for header, size in streams if header.get("kept", True))
    assert 0 < kept < 100_000 * 51
    (small_disk / "ballast").unlink()
    again = client.run("print('here again')", [0])
    assert client.text(0, again["id"]) == "here again\n"
    notes = [payload.decode() for header, payload in client.records if header["kind"] == "note"]
    unkept = sum(int(re.search(r"(\d+) bytes of output", note)[1]) for note in notes if "bytes of output" in note)
    assert kept + unkept == 100_000 * 51 + len("seen\n")
    client.wait(lambda: "were not kept." in client.group["note"])
    seqs = [header["seq"] for header, _ in client.records]
    assert seqs == sorted(set(seqs))
