"""An operation on the state of a group that ends in an error has changed nothing; one that ends well says what it lacks."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from waits import until

from jupyter_dist.client import JupyterDistError
from jupyter_dist.protocol.operations import BY_NAME

# Everything that a user can ask a rank about; `there` is a module in the working folder of the save.
LOOK = (
    "(sorted(n for n in ('v', 'w', 'mine', 'there') if n in globals()), v, os.getcwd(), sys.path[:], dict(os.environ), "
    "random.getstate()[1][:9], 'there' in sys.modules)"
)


@pytest.fixture(scope="module")
def shared_group(client, tmp_path_factory):
    shared = client.start("unchanged", num_ranks=2, accelerator="cpu", cwd=str(tmp_path_factory.mktemp("home")))
    yield shared
    shared.shutdown()


def edit(folder, name, change):
    """Change the record of a save: what its ranks' files have, with all checksums right."""
    place = Path(folder, "saves", name)
    record = json.loads((place / "save.json").read_text())
    (content,) = [path for path in place.iterdir() if path.is_dir()]
    for rank in range(record["save"]["world_size"]):
        file, index = content / f"rank-{rank}.json", content / f"index-{rank}.json"
        saved = json.loads(file.read_text())
        change(saved, rank)
        file.write_text(json.dumps(saved))
        found = json.loads(index.read_text())
        found["file_digest"] = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
        index.write_text(json.dumps(found))
        record["digests"][rank] = hashlib.blake2b(index.read_bytes(), digest_size=16).hexdigest()
    (place / "save.json").write_text(json.dumps(record))


def of(versions):
    def change(saved, _):
        saved["versions"].update(versions)

    return change


@pytest.fixture
def saved(group, folder, tmp_path):
    """A save in a folder of its own with a module; the group is elsewhere, and has other variables since."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "there.py").write_text("class There:\n    pass\n")
    home = group.model["cwd"]
    group.run(f"import os, sys, random\nos.chdir({str(place)!r})\nimport there\nw = there.There()\nv = 1", check=True)
    group.save("case", folder=folder)
    group.run(
        f"os.chdir({home!r}); sys.modules.pop('there', None); v = 2; mine = 3; random.seed(rank)\n"
        "sys.path[:] = [p for p in sys.path if 'place' not in p]",
        check=True,
    )
    return place


@pytest.mark.parametrize(
    "versions",
    [
        {"torch": "2.5.1"},
        {"numpy": "1.26.4"},
        {"python": "{minor}.99"},
        {"jupyter_dist": "0.2.1"},
        {"torch": "99.0", "numpy": "9.9", "python": "{minor}.0", "jupyter_dist": "9.9"},
    ],
    ids="+".join,
)
def test_a_save_of_other_versions_is_restored_with_a_note(group, folder, saved, versions):
    python = ".".join(group.gather("sys.version.split()[0]")[0].split(".")[:2])
    versions = {package: version.format(minor=python) for package, version in versions.items()}
    edit(folder, "case", of(versions))
    restored = group.restore("case", folder=folder)
    for package, version in versions.items():
        assert f"{package} {version} (here " in repr(restored)
    assert group.gather("(v, 'mine' in globals(), os.getcwd())") == dict.fromkeys((0, 1), (1, False, str(saved)))


def test_modules_of_the_saved_folder_are_found_and_a_folder_that_is_gone_is_noted(group, client, folder, saved):
    restored = group.restore("case", folder=folder)
    assert repr(restored).startswith("Restored 'case': 6 names on 2 ranks.")
    assert group.gather("isinstance(w, there.There)") == {0: True, 1: True}
    shutil.rmtree(saved)
    group.restart()
    part = group.restore("case", folder=folder)
    assert "The working directory" in repr(part)
    assert "No module named 'there'" in repr(part)
    assert repr(part).startswith("Restored 'case': 4 of 6 names on 2 ranks.")
    assert group.gather("(v, 'w' in globals())") == {0: (1, False), 1: (1, False)}
    new = client.start("began", num_ranks=2, accelerator="cpu", restore=f"{folder}/case")
    assert new.gather("v") == {0: 1, 1: 1}
    new.shutdown()


def _gone(group, folder, place):
    """Nothing of the save can be read."""
    shutil.rmtree(place)

    def change(saved, _):
        needed = [one for one in saved["covariables"] if {"w", "there"} & set(one["names"])]
        saved["covariables"] = [{**one, "needs": []} for one in needed]

    edit(folder, "case", change)
    group.restore("case", folder=folder)


def _gone_on_one(group, folder, place):
    """A rank alone cannot read a name."""

    def change(saved, rank):
        if rank:
            saved["covariables"] = [
                {**one, "pieces": []} if "v" in one["names"] else one for one in saved["covariables"]
            ]

    edit(folder, "case", change)
    group.restore("case", folder=folder)


def _damaged(group, folder, place):
    chunk = max(Path(folder, "chunks").glob("*/*"), key=lambda path: path.stat().st_size)
    chunk.write_bytes(b"")
    group.restore("case", folder=folder)


def _reads_for_ever(group, folder, place):
    (place / "there.py").write_text(
        "import time, os, random\nos.environ['LEFT'] = '1'\nrandom.random()\ntime.sleep(600)\n"
    )
    group.restore("case", folder=folder, timeout_seconds=1)


def _too_small(group, folder, place):
    group.resize(2)


def _differs(group, folder, place):
    group.resize(3)


def _home_is_gone(operation):
    def fail(group, folder, place):
        home = Path(group.model["cwd"])
        home.rename(place / "moved")
        try:
            operation(group)
        finally:
            (place / "moved").rename(home)

    return fail


FAILING = {
    "nothing can be read": _gone,
    "one rank cannot read a name": _gone_on_one,
    "a chunk is damaged": _damaged,
    "a module sleeps": _reads_for_ever,
    "resize to the same size": _too_small,
    "resize with names that differ": _differs,
    "restart without a folder": _home_is_gone(lambda group: group.restart()),
    "resize without a folder": _home_is_gone(lambda group: group.resize(3, others="copy")),
}


@pytest.mark.parametrize("what", FAILING)
def test_an_operation_that_ended_in_an_error_has_changed_nothing(group, folder, saved, what):
    if "resize" in what and "resize" not in BY_NAME:
        pytest.skip("without the part that resizes groups")
    group.run("mine = [rank]", check=True)
    before, pids = group.gather(LOOK), group.gather("os.getpid()")
    with pytest.raises(JupyterDistError) as raised:
        FAILING[what](group, folder, saved)
    assert "Traceback" not in str(raised.value)
    assert group.gather(LOOK) == before
    assert group.gather("(mine, os.getpid())") == {rank: ([rank], pids[rank]) for rank in pids}
    assert group.status().state == "ready"


def test_a_rank_is_not_replaced_without_its_folder_and_the_others_keep_their_variables(group, folder, saved):
    pid = group.gather("os.getpid()")[0]
    group.kill(1)
    until(lambda: group.status().state == "degraded")
    with pytest.raises(JupyterDistError, match=r"The group's folder .* is gone: no new rank can begin there"):
        _home_is_gone(lambda group: group.replace())(group, folder, saved)
    assert group.status().state == "degraded"
    group.replace("save", save="case", folder=folder)
    assert group.gather(f"(v, os.getpid() == {pid})") == {0: (2, True), 1: (1, False)}


def test_a_start_again_without_its_folder_leaves_the_group_that_had_ended(client, group, folder, saved):
    ended = client.start("ended", num_ranks=2, accelerator="cpu", cwd=str(saved))
    ended.run("print('the last words')", check=True)
    ended.kill(0)
    ended.kill(1)
    until(lambda: ended.status().state == "dead")
    before = {name: ended.status().model[name] for name in ("id", "state", "generation", "error", "cwd", "note")}
    saved.rename(saved.with_name("moved"))
    with pytest.raises(JupyterDistError) as raised:
        ended.start_again()
    saved.with_name("moved").rename(saved)
    assert "Traceback" not in str(raised.value)
    assert {name: ended.status().model[name] for name in before} == before
    assert "the last words" in str(ended.logs(0))
    ended.start_again()
    assert ended.gather("1 + rank") == {0: 1, 1: 2}
    ended.shutdown()


def test_a_start_again_restores_nothing_and_needs_no_save(client, group, folder, saved):
    ended = client.start("began", num_ranks=2, accelerator="cpu", restore=f"{folder}/case")
    assert ended.gather("v") == {0: 1, 1: 1}
    ended.kill(0)
    ended.kill(1)
    until(lambda: ended.status().state == "dead")
    shutil.rmtree(folder)
    ended.start_again()
    assert ended.gather("'v' in globals()") == {0: False, 1: False}
    with pytest.raises(JupyterDistError) as missing:
        ended.restore("case", folder=folder)
    assert (missing.value.code, missing.value.message) == ("not_found", f"There is no save 'case' in {folder}.")
    ended.shutdown()


def test_a_living_group_is_not_started_again(group, folder, saved):
    before = group.gather(LOOK)
    with pytest.raises(JupyterDistError, match="is ready"):
        group.start_again()
    assert group.gather(LOOK) == before


def _replaces_with_undo(group):
    group.replace("undo", others="copy")


@pytest.mark.skipif("undo" not in BY_NAME, reason="of another part")
def test_a_rank_that_cannot_be_taken_back_leaves_the_others_as_they_are(group, folder, saved):
    group.run("mine = [rank]", check=True)
    group.run("mine.append(5)\nif rank == 1: os._exit(3)", keep_undo=True)
    until(lambda: group.status().state == "degraded")
    before = group.gather("(mine, os.getpid())", "0")
    with pytest.raises(JupyterDistError, match="is gone: no new rank can begin there"):
        _home_is_gone(_replaces_with_undo)(group, folder, saved)
    assert group.gather("(mine, os.getpid())", "0") == before
    _replaces_with_undo(group)
    assert group.gather("mine")[0] == [0]
