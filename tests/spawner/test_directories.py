"""Directories for groups: private, short, and never another user's."""

import errno
import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.spawner import directories
from jupyter_dist.server.spawner.directories import (
    MAX_SOCKET_PATH_BYTES,
    GroupDirectory,
    groups_directory,
)
from jupyter_dist.server.spawner.local import LocalSpawner
from jupyter_dist.system.files.private import make_private


@pytest.fixture
def runtime(tmp_path_factory, monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return tmp_path_factory.mktemp("r", numbered=True)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_it_is_private_whatever_the_umask(runtime, umask):
    old = os.umask(umask)
    try:
        group = GroupDirectory.create(groups_directory(str(runtime)))
    finally:
        os.umask(old)
    for path in (group.path, group.path.parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    group.remove()
    assert not group.path.exists()


def test_a_long_path_falls_back_to_a_short_private_one(runtime, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", tempfile.mkdtemp(prefix="jd", dir="/tmp"))
    long = runtime / ("x" * 120)
    found = groups_directory(str(long))
    assert len(str(found / "g-00000000" / "agent.sock")) <= MAX_SOCKET_PATH_BYTES
    assert groups_directory(str(runtime / ("y" * 120))) != found  # other runtime directories, other groups
    assert groups_directory(str(long)) == found
    xdg = Path(tempfile.gettempdir()) / "xdg"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(xdg))
    assert groups_directory(str(long)).parent == xdg
    shutil.rmtree(tempfile.gettempdir())


def test_what_is_open_to_others_or_a_link_is_refused(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").touch()
    for name in ("open", "link", "file"):
        with pytest.raises(JupyterDistError) as raised:
            make_private(tmp_path / name)
        assert raised.value.code == "bad_directory"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to change the owner of a directory")
def test_somebody_elses_directory_is_refused(tmp_path):
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 65534, 65534)
    with pytest.raises(JupyterDistError):
        make_private(tmp_path / "theirs")


def test_only_one_server_holds_a_group(tmp_path):
    first = GroupDirectory.create(tmp_path)
    second = GroupDirectory(first.path)
    assert not second.hold()
    first.release()
    assert second.hold()
    assert second.hold()
    second.release()


def test_a_damaged_group_json_is_no_group_json(tmp_path):
    group = GroupDirectory.create(tmp_path)
    assert group.read_group_json() == {}
    (group.path / "group.json").write_text("{")
    assert group.read_group_json() == {}
    assert group.log_tail() == ""
    group.release()


def test_a_runtime_path_of_any_bytes_has_a_place(runtime):
    """Under LC_ALL=C too, where Python takes a path's bytes for what they are."""
    name = os.fsdecode(bytes(runtime) + b"/\xff\xfc")
    found = groups_directory(name)
    assert str(found).isprintable()  # torch takes no other path for its store
    assert not found.is_relative_to(name)
    shutil.rmtree(GroupDirectory.create(found).path.parent)
    code = (
        "import shutil, sys; from jupyter_dist.server.spawner.directories import groups_directory as g; "
        "found = g(sys.argv[1]); str(found).encode(); shutil.rmtree(found)"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run([sys.executable, "-c", code, os.fsencode(str(runtime)) + "/ü".encode()], check=True, env=environment)


def test_a_file_system_without_locks_is_named_and_another_place_is_taken(runtime, monkeypatch):
    """NFS without its lock daemon, Lustre mounted without flock."""

    def flock(fd, operation):
        if os.readlink(f"/proc/self/fd/{fd}").startswith(str(runtime)):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        fcntl.flock(fd, operation)

    monkeypatch.setattr(directories, "fcntl", SimpleNamespace(**{**vars(fcntl), "flock": flock}))
    found = groups_directory(str(runtime))
    assert not found.is_relative_to(runtime)
    shutil.rmtree(found)
    monkeypatch.setattr(directories, "group_places", lambda folder: [Path(folder) / "jupyter_dist"])
    with pytest.raises(JupyterDistError, match=r"file locks \(flock\) do not work there \(No locks available\)"):
        groups_directory(str(runtime))
    with pytest.raises(JupyterDistError, match="No locks available"):
        GroupDirectory.create(runtime / "jupyter_dist")
    assert not list((runtime / "jupyter_dist").iterdir())


def test_a_folder_that_anybody_may_rename_comes_last(runtime, monkeypatch):
    open_to_all = runtime / "all"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    xdg = runtime / "xdg"
    xdg.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(xdg))
    assert groups_directory(str(open_to_all / "runtime")).parent == xdg
    open_to_all.chmod(0o1777)  # like /tmp: users cannot rename files of others
    assert groups_directory(str(open_to_all / "runtime")).parent == open_to_all / "runtime"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to change the owner of a directory")
def test_a_planted_name_costs_another_name_and_the_next_server_finds_that(runtime, monkeypatch):
    short = Path(tempfile.mkdtemp(prefix="jd", dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    long = str(runtime / ("x" * 120))
    expected = groups_directory(long)
    os.chown(expected, 65534, 65534)
    other = groups_directory(long)
    assert (other.parent, other != expected) == (short, True)
    assert groups_directory(long) == other
    os.chown(other, 65534, 65534)
    assert groups_directory(long) not in (expected, other)
    shutil.rmtree(short)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to change the owner of a directory")
def test_groups_of_somebody_else_are_not_listed(tmp_path):
    parent = tmp_path / "groups"
    mine, theirs = (GroupDirectory.create(parent) for _ in range(2))
    spawner = LocalSpawner(parent, [])
    os.chown(theirs.path, 65534, 65534)
    assert [found.path for found in spawner.directories()] == [mine.path]
    os.chown(parent, 65534, 65534)  # theirs, put in the place of ours
    assert spawner.directories() == []
    mine.release()
    theirs.release()


def test_the_values_that_an_earlier_version_kept_are_out_of_the_file_once_it_is_read(tmp_path):
    """The result still has them: a group of 0.3.0 is started again with its values."""
    group = GroupDirectory(tmp_path)
    path = tmp_path / "group.json"
    path.write_bytes(Path(__file__).with_name("group-0.3.0.json").read_bytes())
    before = json.loads(path.read_text())
    assert group.read_group_json() == before
    assert "canary" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    request = {**before["spec"]["request"], "env": ["MY_SECRET"], "environ": ["HOME", "JUPYTERHUB_API_TOKEN", "MY_KEY"]}
    assert group.read_group_json() == {**before, "spec": {**before["spec"], "request": request}}
    assert [each.name for each in tmp_path.iterdir()] == ["group.json"]
