"""Folders that nobody else can enter, nor replace from above."""

import os
import re
import stat
import tempfile
from importlib import import_module
from pathlib import Path

import pytest

from jupyter_dist.client.servers.attendance import open_lock
from jupyter_dist.journal.writer import JournalWriter
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.launchers.batch.place import check_place
from jupyter_dist.server.launchers.nodefiles import NodeFiles
from jupyter_dist.server.spawner.directories import groups_directory
from jupyter_dist.system.code.copies import CodeCopy
from jupyter_dist.system.code.sources import own_sources
from jupyter_dist.system.files.owners import open_above
from jupyter_dist.system.files.private import make_private

UNKNOWN_GROUP = 543_210
as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to change the group of a directory")


@pytest.fixture
def short():
    """A folder whose path leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="jd", dir="/tmp") as folder:
        yield Path(folder)


def modes(*paths):
    return {stat.S_IMODE(path.stat().st_mode) for path in paths}


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def make_trace(path):
    import_module("jupyter_dist.parts.profile.agent").Traces(path.parent).add(path.name, 0, b"x", True)


@pytest.mark.parametrize(
    "create",
    [
        make_private,
        lambda path: NodeFiles.create(path, []),
        lambda path: JournalWriter(path).close(),
        pytest.param(make_trace, marks=pytest.mark.part("profile")),
        lambda path: open_lock("server"),
    ],
    ids=["groups", "jobs", "journal", "traces", "locks"],
)
def test_what_is_created_above_a_private_folder_is_private_too(tmp_path, monkeypatch, open_umask, create):
    above = tmp_path / "a" / "b"
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(above / "c"))
    create(above / "c")
    assert modes(above.parent, above, above / "c") == {0o700}


def test_no_private_folder_is_created_with_open_ones_above_it():
    made = re.compile(r"mkdir\((?=[^\n]*parents=True)(?=[^\n]*0o700)")
    package = Path(__file__).parents[2] / "jupyter_dist"
    found = [path.name for path in package.rglob("*.py") if made.search(path.read_text())]
    assert not found


@as_root
def test_who_may_replace_a_folder_is_named(tmp_path):
    place, folder = tmp_path / "place", tmp_path / "place" / "job"
    place.mkdir()
    place.chmod(0o777)
    assert open_above(folder)[:2] == (place, "all users")
    assert open_above(folder / "deeper")[:2] == (place, "all users")
    place.chmod(0o775)
    assert open_above(folder) is None  # the group of this user alone
    os.chown(place, -1, UNKNOWN_GROUP)
    assert open_above(folder)[:2] == (place, f"members of the group {UNKNOWN_GROUP}")
    for mode in (0o1777, 0o1775, 0o755, 0o2755):
        place.chmod(mode)
        assert open_above(folder) is None


@as_root
def test_a_job_is_refused_where_its_script_could_be_replaced_and_ours_is_closed(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    own = tmp_path / ".jupyter_dist"
    own.mkdir()
    own.chmod(0o775)  # by an earlier version
    os.chown(own, -1, UNKNOWN_GROUP)
    check_place(own / "g-1", "SlurmLauncher.shared_dir")
    assert modes(own) == {0o700}
    place = tmp_path / "project"
    place.mkdir()
    place.chmod(0o2775)
    os.chown(place, -1, UNKNOWN_GROUP)
    place.chmod(0o2775)
    with pytest.raises(JupyterDistError) as refused:
        check_place(place / "g-1", "SlurmLauncher.shared_dir")
    words = f"What is in {place} can be replaced by members of the group {UNKNOWN_GROUP}, who could run programs as you"
    assert refused.value.message.startswith(words)
    assert f"'chmod +t {place}'" in refused.value.hint
    place.chmod(0o3775)
    check_place(place / "g-1", "SlurmLauncher.shared_dir")


@as_root
def test_a_folder_that_a_group_may_rename_comes_last(monkeypatch, short):
    shared, xdg = short / "shared", short / "xdg"
    shared.mkdir()
    os.chown(shared, -1, UNKNOWN_GROUP)
    shared.chmod(0o775)
    xdg.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(xdg))
    assert groups_directory(str(shared / "runtime")).parent == xdg
    shared.chmod(0o755)
    assert groups_directory(str(shared / "runtime")).parent == shared / "runtime"


@as_root
@pytest.mark.parametrize("planted", ["folder", "link", "file"])
def test_a_planted_name_of_the_code_costs_another_name_and_the_next_server_finds_that(tmp_path, planted):
    """And the folder of groups does not take one that is for code."""
    name = tmp_path / "jupyter_dist-0-12345678-code"
    if planted == "folder":
        name.mkdir(mode=0o700)
        (name / "theirs").touch()
    elif planted == "link":
        name.symlink_to(tmp_path)
    else:
        name.touch()
    os.chown(name, 65534, 65534, follow_symlinks=False)
    first, second = (CodeCopy(own_sources(), [name]) for _ in range(2))
    boot = first.boot_script()
    assert boot.is_file()
    assert boot.parents[3].name.startswith(f"{name.name}-")
    assert modes(boot.parents[3]) == {0o700}
    assert second.boot_script() == boot
    first.release()
    assert boot.is_file()
    second.release()
    assert not boot.parents[3].exists()


@as_root
def test_groups_take_no_folder_of_code_or_forkservers(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    long = str(tmp_path / ("x" * 120))
    taken = groups_directory(long)
    for kind in ("code", "fork"):
        make_private(taken.with_name(f"{taken.name}-{kind}"))
    os.chown(taken, 65534, 65534)
    other = groups_directory(long)
    assert other.name.removeprefix(f"{taken.name}-") not in ("code", "fork", taken.name)
