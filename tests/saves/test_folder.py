"""The folder of saves: what is there after a process was killed at any step, what is removed, and what is refused."""

import json
import os
import signal
from pathlib import Path

import pytest

from jupyter_dist.parts.saves.folder import drafts, locking, record, removal
from jupyter_dist.parts.saves.folder.fitness import cannot_restore, other_torch
from jupyter_dist.parts.saves.folder.layout import SavesFolder, check_name, index_file
from jupyter_dist.parts.saves.folder.locking import lock_shared
from jupyter_dist.parts.saves.folder.record import SaveRecord, digest_of, read_record
from jupyter_dist.parts.saves.server import places
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.memory import shortage

FIELDS = {
    **{"group": "g", "group_id": "g-1", "accelerator": "cpu", "python_version": "3.11.4", "torch_version": "2.13.0"},
    **{"jupyter_dist": "0.2.0", "world_size": 1, "saved_at": 5.0, "seconds": 1.0, "num_names": 1, "total_bytes": 3},
    **{"written_bytes": 3, "execution_count": 2, "skipped": [], "notes": []},
}


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch):
    monkeypatch.setattr(locking, "BUSY_SECONDS", 0.0)


INDEX = {"file": "rank-0.json", "file_digest": "", "total_bytes": 3, "host_bytes": 3, "skipped": [], "notes": []}
REST = "0" * 31  # of the name of a chunk


CALLS = ("open", "mkdir", "unlink", "rename", "replace", "rmdir", "fsync", "write")


@pytest.fixture
def folder(tmp_path):
    return SavesFolder(tmp_path / "saves")


def written(folder, name, save_id, chunks=("c1",), group="g"):
    """A draft as ranks leave it, and its record."""
    draft = drafts.begin(folder, name, save_id, group, overwrite=False)
    for chunk in chunks:
        place = folder.chunks / "ab" / f"{chunk}{REST}"
        place.parent.mkdir(mode=0o700, exist_ok=True)
        place.write_text(chunk)
        place.chmod(0o600)
    index = json.dumps({**INDEX, "chunks": [f"{chunk}{REST}" for chunk in chunks]}).encode()
    place = draft.content / index_file(0)
    place.write_bytes(index)
    place.chmod(0o600)
    model = {**FIELDS, "name": name, "id": save_id, "folder": str(folder.path), "group": group}
    return draft, SaveRecord(model, [digest_of(index)])


def save(folder, name, save_id, **options):
    drafts.commit(*written(folder, name, save_id, **options))


def chunks_in(folder):
    return {path.name.removesuffix(REST) for path in folder.chunks.glob("*/*")}


def test_saves_of_one_second_get_a_name_each_before_any_of_them_is_written(folder):
    names = [drafts.free_name(folder, "g-auto-20260101-120000") for _ in range(3)]
    assert names == [f"g-auto-20260101-120000{end}" for end in ("", "-2", "-3")]
    for number, name in enumerate(names[:2]):
        save(folder, name, f"e-{number}")
    assert removal.sweep(folder) == 0  # the third was never begun
    assert record.names(folder) == names[:2]
    assert drafts.free_name(folder, names[0]) == names[2]
    folder.path.chmod(0o777)
    assert drafts.free_name(folder, names[0]) == names[0]
    with pytest.raises(JupyterDistError):
        drafts.begin(folder, names[0], "e-9", "g", overwrite=False)


def test_other_folders_are_remembered_once_each_the_newest_last(folder, tmp_path):
    others = [SavesFolder(tmp_path / f"other-{number}") for number in range(places.MAX_PLACES + 1)]
    for other in (*others, others[5]):
        places.remember_folder(folder, other)
    assert places.other_folders(folder) == [*others[1:5], *others[6:], others[5]]
    (folder.path / places.PLACES).write_text("[1, {}, ")
    assert places.other_folders(folder) == []
    places.remember_folder(folder, others[0])
    (folder.path / places.PLACES).chmod(0o666)  # others could have written it
    assert places.other_folders(folder) == []


def kill_at(number):
    """Have this process killed when it is about to change the disk for the `number`-th time."""
    left = [number]

    def counted(function):
        def call(*args, **kwargs):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))


def in_a_child(work):
    """Run in a process of its own; whether it came to its end."""
    if not (pid := os.fork()):
        try:
            work()
        finally:
            os._exit(0)
    return not os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_killed_at_any_step_of_a_save_the_former_one_is_there_or_the_new_one(folder):
    save(folder, "x", "one", chunks=("c1",))

    def again():
        kill_at(number)
        save(folder, "x", "two", chunks=("c1", "c2"))

    number, found, ended = 0, [], False
    while not ended:
        number += 1
        ended = in_a_child(again)
        found.append(read_record(folder, "x").model["id"])
        assert record.read_index(folder, read_record(folder, "x"), 0)["chunks"][0] == f"c1{REST}"
        if found[-1] == "two":  # begin again from the former
            save(folder, "x", "one", chunks=("c1",))
        removal.sweep(folder)  # what the killed process had locked is free
        assert sorted(path.name for path in folder.record("x").parent.iterdir()) == ["one", "save.json"]
        assert chunks_in(folder) == {"c1"}
    assert number > 10
    assert found == sorted(found), "from some step on it is the new one"


def test_killed_at_any_step_of_a_removal_the_other_saves_are_whole(folder):
    number, ended = 0, False
    while not ended:
        number += 1
        save(folder, "keep", f"k{number}", chunks=("c1", "c2"))
        save(folder, "drop", f"d{number}", chunks=("c2", "c3"))

        def delete():
            kill_at(number)
            removal.delete(folder, "drop")

        ended = in_a_child(delete)
        assert read_record(folder, "keep").model["id"] == f"k{number}"
        assert {"c1", "c2"} <= chunks_in(folder)
        removal.sweep(folder)
    assert record.names(folder) == ["keep"]
    assert chunks_in(folder) == {"c1", "c2"}


def test_chunks_of_a_save_that_is_being_written_are_not_removed(folder):
    save(folder, "old", "one", chunks=("c1",))
    draft, new = written(folder, "new", "two", chunks=("c2",))
    assert removal.delete(folder, "old") is None
    assert chunks_in(folder) == {"c1", "c2"}
    drafts.commit(draft, new)
    assert removal.sweep(folder) > 0
    assert chunks_in(folder) == {"c2"}
    lock = lock_shared(folder)  # a restore reads
    assert removal.delete(folder, "new") is None
    lock.close()


def test_a_discarded_save_leaves_nothing(folder):
    draft, _ = written(folder, "x", "one")
    drafts.discard(draft)
    assert record.names(folder) == []
    removal.sweep(folder)
    assert [path.name for path in folder.path.rglob("*") if path.is_file()] == ["lock"]


def test_a_damaged_save_is_named_and_keeps_all_chunks(folder):
    save(folder, "good", "one", chunks=("c1",))
    save(folder, "bad", "two", chunks=("c2",))
    folder.record("bad").write_text("{")
    found, damaged = record.records(folder)
    assert [one.model["name"] for one in found] == ["good"]
    assert [error.code for error in damaged] == ["damaged"]
    assert removal.sweep(folder) == 0
    assert chunks_in(folder) == {"c1", "c2"}
    removal.delete(folder, "bad")
    assert chunks_in(folder) == {"c1"}


def victim_of(tmp_path):
    """A folder of the user that no save may touch."""
    victim = tmp_path / "victim"
    (victim / "thesis").mkdir(parents=True)
    (victim / "thesis" / "chapter.txt").write_text("all of it")
    (victim / "save.txt").write_text("mine")
    return victim, {str(path) for path in victim.rglob("*")}


IDS = ["../../../victim", "..", ".", "", "/tmp", "a/b", "save.json", "e\n", "-", "A", 7, None, ["one"]]


@pytest.mark.parametrize("save_id", IDS, ids=repr)
def test_an_id_that_someone_wrote_into_a_save_removes_nothing_of_mine(folder, tmp_path, save_id):
    victim, content = victim_of(tmp_path)
    save(folder, "x", "one")
    edited(folder.record("x"), lambda content: content["save"].update(id=save_id))
    with pytest.raises(JupyterDistError, match="field 'id'") as refused:
        read_record(folder, "x")
    assert refused.value.code == "damaged"
    save(folder, "x", "two")
    removal.sweep(folder)
    assert removal.delete(folder, "x")
    assert {str(path) for path in victim.rglob("*")} == content


def edited(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_what_is_no_save_stays_in_a_folder_of_saves_and_links_are_not_followed(folder, tmp_path):
    victim, content = victim_of(tmp_path)
    save(folder, "x", "one")
    (folder.saves / "linked").symlink_to(victim)
    (folder.saves / "x" / "thesis").symlink_to(victim / "thesis")
    (folder.chunks / "cd").symlink_to(victim)
    (folder.saves / "weights" / "step-1").mkdir(parents=True)  # of another program
    kept = [folder.saves / "weights" / "step-1" / "model.pt", folder.saves / "notes.txt", folder.chunks / "ab" / "c0de"]
    for path in kept:
        path.write_text("of another program")
    removal.sweep(folder)
    save(folder, "x", "two")
    removal.delete(folder, "x")
    removal.sweep(folder)
    assert {str(path) for path in victim.rglob("*")} == content
    assert [path.exists() for path in kept] == [True] * 3
    assert chunks_in(folder) - {"c0de", "save.txt", "thesis"} == set()


FIELDS_THAT_LIE = {
    "world_size": [0, -1, 1.0, 1e300, True, "1", 1 << 40],
    "saved_at": [float("nan"), float("inf"), "5", None],
    "skipped": [{}, [1], [{"name": "a", "reason": "b"}], [{"name": "a", "reason": "b", "ranks": "0-9"}]],
    "total_bytes": [-1, 1.5, 1 << 80],
    "group": [None, 1, {}],
}


@pytest.mark.parametrize("name", FIELDS_THAT_LIE)
def test_a_field_of_another_kind_is_damage_in_words(folder, name):
    for value in FIELDS_THAT_LIE[name]:
        save(folder, "x", "one")
        edited(folder.record("x"), lambda content, value=value: content["save"].update({name: value}))
        with pytest.raises(JupyterDistError, match="cannot be read") as refused:
            read_record(folder, "x")
        assert refused.value.code == "damaged"
        assert [error.code for error in record.records(folder)[1]] == ["damaged"]
        assert removal.delete(folder, "x")


LYING_INDEXES = [
    *[{}, [], None, 7, {**INDEX}, {**INDEX, "chunks": None}, {**INDEX, "chunks": [1]}],
    *[{**INDEX, "chunks": [name]} for name in ("../../victim", "x" + "0" * 31, "/etc/passwd", "X" + "0" * 32, "")],
    *[{**INDEX, "chunks": [], "file": name} for name in ("../rank-0.json", "rank-1.json", "/etc/passwd", None)],
]


@pytest.mark.parametrize("index", LYING_INDEXES, ids=repr)
def test_an_index_that_lies_is_damage_and_keeps_chunks(folder, index):
    """Its checksum is right: who can write it can write the other, too."""
    draft, _ = written(folder, "bad", "two", chunks=("c2",))
    content = json.dumps(index).encode()
    (draft.content / index_file(0)).write_bytes(content)
    model = {**FIELDS, "name": "bad", "id": "two", "folder": str(folder.path)}
    drafts.commit(draft, SaveRecord(model, [digest_of(content)]))
    with pytest.raises(JupyterDistError, match=r"is damaged: index-0\.json") as refused:
        record.read_index(folder, read_record(folder, "bad"), 0)
    assert refused.value.code == "damaged"
    save(folder, "good", "one", chunks=("c1",))
    removal.delete(folder, "good")
    assert chunks_in(folder) == {"c1", "c2"}  # which of them are needed is not known
    removal.delete(folder, "bad")
    assert chunks_in(folder) == set()


def test_an_index_that_was_changed_is_found_by_its_checksum(folder):
    save(folder, "x", "one")
    edited(folder.content("x", "one") / index_file(0), lambda content: content.update(total_bytes=4))
    with pytest.raises(JupyterDistError, match="its checksum differs") as refused:
        record.read_index(folder, read_record(folder, "x"), 0)
    assert refused.value.code == "damaged"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_files_that_others_can_write_are_not_read(folder, mode):
    save(folder, "x", "one")
    folder.record("x").chmod(mode)
    with pytest.raises(JupyterDistError, match=r"can be written by others .*runs code") as refused:
        read_record(folder, "x")
    assert refused.value.code == "not_yours"
    with pytest.raises(JupyterDistError, match="can be written by others"):
        removal.delete(folder, "x")


def test_links_and_folders_of_others_are_not_used(folder, tmp_path):
    save(folder, "x", "one")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.record("x").parent.rename(elsewhere / "x")
    folder.record("x").parent.symlink_to(elsewhere / "x")
    with pytest.raises(JupyterDistError, match="is a link, or no folder"):
        read_record(folder, "x")
    folder.path.chmod(0o777)
    with pytest.raises(JupyterDistError, match="can be written by others"):
        drafts.begin(folder, "y", "one", "g", overwrite=False)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_files_of_another_user_are_not_read(folder):
    save(folder, "x", "one")
    os.chown(folder.record("x"), 12345, -1)
    with pytest.raises(JupyterDistError, match="belongs to another user, with the id 12345"):
        read_record(folder, "x")


def test_files_are_private_whatever_the_umask(folder):
    before = os.umask(0)
    try:
        save(folder, "x", "one", chunks=())
    finally:
        os.umask(before)
    (folder.content("x", "one") / index_file(0)).unlink()  # the test's own
    modes = {path: path.stat().st_mode & 0o777 for path in [folder.path, *folder.path.rglob("*")]}
    assert {path: oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}


def test_a_save_of_another_group_is_replaced_on_request_only(folder):
    save(folder, "x", "one")
    with pytest.raises(JupyterDistError, match="The save 'x' is of group 'g'") as refused:
        drafts.begin(folder, "x", "two", "another", overwrite=False)
    assert refused.value.code == "name_taken"
    drafts.discard(drafts.begin(folder, "x", "two", "another", overwrite=True))
    assert read_record(folder, "x").model["id"] == "one"


def test_where_nothing_can_be_written_it_says_so(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", Path("/proc/saves")):
        with pytest.raises(JupyterDistError, match=f"Nothing can be saved in {place}: .*another folder") as refused:
            drafts.begin(SavesFolder(place), "x", "one", "g", overwrite=False)
        assert refused.value.code == "bad_directory"


@pytest.mark.parametrize("name", ["", ".x", "a/b", "..", "x" * 101, "a b", "-x", "x\n"])
def test_names_that_are_no_names_are_refused(name):
    with pytest.raises(JupyterDistError, match="Use up to 100 letters"):
        check_name(name)


def test_what_a_group_cannot_restore_is_said():
    model = {**FIELDS, "name": "x", "world_size": 4}
    assert cannot_restore(model, 4, "3.11.9") is None
    assert str(cannot_restore(model, 2, "3.11.9")) == (
        "The save 'x' has 4 ranks, and this group has 2. Start a group with 4 ranks, and restore it there."
    )
    other = cannot_restore(model, 4, "3.12.1")
    assert other.code == "other_version"
    assert "made by Python 3.11.4; this group runs 3.12.1" in str(other)
    assert other_torch("2.13.0", "2.13.1") is None
    assert "made with torch 2.9.1" in other_torch("2.9.1", "2.13.0")


def test_a_restore_is_refused_before_it_reads_more_than_the_machine_has_memory():
    assert shortage(8 << 30, None) is None
    assert shortage(8 << 30, 9 << 30) is None
    assert shortage(0, 0) is None
    assert str(shortage(8 << 30, 17 << 29)) == (
        "The variables of the save take 8.0 GiB of memory, and the machine has 8.5 GiB available. The present "
        "variables stay until all are read: delete large ones first, or begin a new group with the save."
    )


def test_saves_older_than_the_limit_are_removed(folder):
    save(folder, "old", "one")
    draft, new = written(folder, "new", "two")
    new.model["saved_at"] = 1e11
    drafts.commit(draft, new)
    assert removal.delete_older(folder, 30.0) == ["old"]
    assert record.names(folder) == ["new"]
