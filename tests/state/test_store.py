"""Chunks and manifests: their hashes, their owners, and versions that cannot be read."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from shells import Shell

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.rank.state.graph.memory import Memory
from jupyter_dist.rank.state.store import devicehash, hashing
from jupyter_dist.rank.state.store.chunks import ChunkStore, WrittenChunks
from jupyter_dist.rank.state.store.hashing import Hasher
from jupyter_dist.system.files.owned import OwnFolder

WORDS = torch.arange(1000, dtype=torch.int64).view(torch.uint8)


def test_the_hash_of_devices_is_the_same_in_all_versions() -> None:
    """Computed with Python's integers; saves of all versions are named by it."""
    assert devicehash.digest(WORDS) == "fc251dc4eb131a0b78f84c4b433b2f2f"
    assert devicehash.digest(WORDS[:-3]) == "fb5c85d31e2f70cd7e52c548f2947a27"
    assert devicehash.digest(WORDS[3:]) == "c0350e7b0a982b53ce9dc838b35ef16f"


def test_the_hash_of_devices_finds_changes() -> None:
    seen = {devicehash.digest(WORDS[:0])}
    numbers = random.Random(1)
    for _ in range(200):
        data = WORDS.clone()
        place = numbers.randrange(8000)
        data[place] ^= 1 << numbers.randrange(8)
        seen.add(devicehash.digest(data))
    for size in range(1, 40):
        seen.add(devicehash.digest(torch.zeros(size, dtype=torch.uint8)))
    swapped = WORDS.view(torch.int64).flip(0).view(torch.uint8)
    assert devicehash.digest(swapped) not in seen
    assert len(seen) > 230


def test_a_chunk_that_a_device_has_named_is_not_read_again(tmp_path: Path) -> None:
    store, written = ChunkStore(OwnFolder(tmp_path)), WrittenChunks()
    name = hashing.DEVICE + devicehash.digest(WORDS)
    reads = []

    def read() -> memoryview:
        reads.append(1)
        return memoryview(WORDS.numpy()).cast("B")

    for _ in range(2):
        store.put_named(name, 8000, read, written)
    assert (len(reads), written.num_bytes, written.names) == (1, 8000, {name})
    target = bytearray(8000)
    store.read_into(name, memoryview(target))
    assert bytes(target) == bytes(WORDS.tolist())
    (tmp_path / "chunks" / name[1:3] / name).write_bytes(bytes(8000))
    with pytest.raises(JupyterDistError, match="was changed"):
        store.read_into(name, memoryview(target))


def test_without_xxhash_chunks_have_another_hash_and_its_own_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = memoryview(b"some bytes")
    name = Hasher().name_of(data)
    monkeypatch.setitem(__import__("sys").modules, "xxhash", None)
    other = Hasher()
    assert name.startswith("x")
    assert other.name_of(data).startswith("b")
    assert other.is_named(other.name_of(data), data)
    with pytest.raises(JupyterDistError, match="xxhash"):
        other.is_named(name, data)


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    file = folder / "rank-0.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(manifest))


def test_another_format_or_python_is_named(shell: Shell) -> None:
    shell.run("class Net:\n  pass\nnet = Net()\nnumbers = [1]")
    shell.save()
    edit(shell.folder, lambda manifest: manifest["versions"].update(python="3.9.1"))
    result = shell.restore()
    reasons = {one["name"]: one["reason"] for one in result.failed}
    assert "functions and classes of Python 3.9.1 cannot be read by" in reasons["Net"]
    assert reasons["net"] == reasons["Net"]
    assert reasons.keys() == {"Net", "net"}
    assert result.names == ["numbers"]
    assert "It was saved with python 3.9.1" in result.notes[0]
    edit(shell.folder, lambda manifest: manifest.update(format=99))
    with pytest.raises(JupyterDistError, match="has format 99"):
        shell.load()


def test_what_does_not_fit_into_memory_is_named_before_it_is_read(shell: Shell) -> None:
    shell.run("import torch; t = torch.ones(1 << 16)")
    assert 4 << 16 < shell.save().to_dict()["host_bytes"] < 5 << 16  # with the random states

    def resize(num_bytes: int) -> None:
        edit(shell.folder, lambda manifest: max(manifest["memories"], key=_size).update(num_bytes=num_bytes))

    resize(1 << 50)
    with pytest.raises(JupyterDistError, match=r"take 1048576\.0 GiB of memory, and the machine has"):
        shell.restore()
    resize(4 << 16)
    assert shell.restore().names == ["t", "torch"]


def _size(memory: dict[str, Any]) -> int:
    return int(memory["num_bytes"])


def chunk_of(folder: Path) -> Path:
    return next(path for path in folder.glob("chunks/*/*") if path.is_file())


def linked(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


OTHERS = {
    "a chunk that all can write": lambda folder: chunk_of(folder).chmod(0o666),
    "a chunk that the group can write": lambda folder: chunk_of(folder).chmod(0o620),  # so is one with an access list
    "a chunk of another user": lambda folder: os.chown(chunk_of(folder), 12345, -1),
    "a chunk that is a link": lambda folder: linked(chunk_of(folder)),
    "a folder of a chunk that all can write": lambda folder: chunk_of(folder).parent.chmod(0o777),
    "a folder of a chunk of another user": lambda folder: os.chown(chunk_of(folder).parent, 12345, -1),
    "a folder of a chunk that is a link": lambda folder: linked(chunk_of(folder).parent),
    "chunks that all can write": lambda folder: (folder / "chunks").chmod(0o777),
    "chunks of another user": lambda folder: os.chown(folder / "chunks", 12345, -1),
    "chunks that are a link": lambda folder: linked(folder / "chunks"),
    "a rank file that all can write": lambda folder: (folder / "rank-0.json").chmod(0o666),
    "a rank file of another user": lambda folder: os.chown(folder / "rank-0.json", 12345, -1),
    "a rank file that is a link": lambda folder: linked(folder / "rank-0.json"),
    "a folder that all can write": lambda folder: folder.chmod(0o777),
    "a folder of another user": lambda folder: os.chown(folder, 12345, -1),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("case", OTHERS)
def test_what_other_users_could_have_written_is_not_restored(shell: Shell, case: str) -> None:
    shell.run("numbers = list(range(1000))")
    shell.save()
    assert shell.restore().names == ["numbers"]
    OTHERS[case](shell.folder)
    with pytest.raises(JupyterDistError, match=r"runs code from the files|only you can write") as refused:
        shell.restore()
    assert refused.value.code == "not_yours"


@pytest.mark.parametrize("name", ["../../../etc/passwd", "x/../../rank-0.json", "", "x" + "0" * 31, "X" + "0" * 32])
def test_a_name_that_no_chunk_can_have_is_not_opened(tmp_path: Path, name: str) -> None:
    store = ChunkStore(OwnFolder(tmp_path))
    with pytest.raises(JupyterDistError, match="a name that none can have"):
        store.size_of(name)
    with pytest.raises(JupyterDistError, match="a name that none can have"):
        store.put_named(name, 1, lambda: memoryview(b"a"), WrittenChunks())


def test_tensors_of_the_device_of_a_rank_go_to_its_new_device(shell: Shell) -> None:
    shell.run(
        "import torch; t = torch.ones(1 << 15); of_host = torch.ones(3); one = [torch.device('cuda:3'), t.device]"
    )
    shell.save()

    def change(manifest: dict[str, Any]) -> None:
        manifest["device"] = "cuda:3"
        max(manifest["memories"], key=lambda memory: memory["num_bytes"])["device"] = "cuda:3"

    edit(shell.folder, change)
    after = Shell(shell.folder)
    after.shell.user_ns_hidden["device"] = torch.device("meta")  # a device that each machine has
    after.restore()
    assert after.names["t"].device.type == after.names["one"][0].type == "meta"
    assert after.names["of_host"].device.type == after.names["one"][1].type == "cpu"


@pytest.mark.gpu
def test_memory_of_a_device_that_has_not_changed_is_not_copied(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.run("import torch; t = torch.rand(1 << 22, device='cuda'); v = t[5:]; e = [t[:3].tolist()]")
    shell.save()
    shell.run("t[1 << 21] = 7")
    copied = []
    read = Memory.read
    monkeypatch.setattr(Memory, "read", lambda memory, at, size: (copied.append(size), read(memory, at, size))[1])
    assert shell.save().written_bytes < (17 << 20)
    assert sum(size for size in copied if size > 1 << 20) == 16 << 20
    after = Shell(shell.folder)
    after.restore()
    after.run("v[0] = 9; assert t.is_cuda and t[5] == 9 and t[1 << 21] == 7 and t[:3].tolist() == e[0]")
