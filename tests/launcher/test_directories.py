"""Directories for groups: private, short, and never somebody else's."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from jupyter_dist.launcher.directories import MAX_SOCKET_PATH_BYTES, GroupDirectory, groups_directory, make_private
from jupyter_dist.protocol.errors import JupyterDistError


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


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to give a directory to somebody else")
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
