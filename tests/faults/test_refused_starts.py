"""A start that the machine does not allow says why, and what to do; it never is an internal error."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.spawner.local import LocalSpawner

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture
def mounted():
    """A file system with these options, at a path that is short enough for a socket."""
    place = Path(tempfile.mkdtemp(prefix="jd-"))

    def mount(options: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", f"mode=700,{options}", "none", place]
        if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode:
            pytest.skip("needs the right to mount a tmpfs")
        return place

    yield mount
    subprocess.run(["umount", "-l", place], check=False, stderr=subprocess.DEVNULL)
    place.rmdir()


def refused(parent: Path) -> JupyterDistError:
    spawner = LocalSpawner(parent, [])
    with pytest.raises(JupyterDistError) as raised:
        asyncio.run(spawner.launch(sys.executable))
    assert raised.value.code == "bad_directory", raised.value
    assert "JUPYTER_RUNTIME_DIR" in raised.value.hint
    assert not list(parent.glob("g-*"))
    spawner.detach()
    return raised.value


def test_a_full_disk(mounted):
    place = mounted("size=1m")
    with (place / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"x" * 4096)
        except OSError:
            pass
    parent = place / "groups"
    os.truncate(place / "ballast", os.stat(place / "ballast").st_size - 4096)
    parent.mkdir(mode=0o700)
    assert "No space left" in refused(parent).message


def test_no_more_files(mounted):
    place = mounted("size=40m,nr_inodes=3")
    parent = place / "groups"
    parent.mkdir(mode=0o700)
    assert "No space left" in refused(parent).message


def test_a_folder_that_is_read_only(mounted):
    place = mounted("size=1m")
    parent = place / "groups"
    parent.mkdir(mode=0o700)
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    assert "Read-only file system" in refused(parent).message


def test_too_few_open_files(make_agent):
    process = make_agent(forked=False)
    client = process.client()
    client.hello()
    resource.prlimit(process.process.pid, resource.RLIMIT_NOFILE, (64, 64))
    with pytest.raises(JupyterDistError) as raised:
        client.start(2)
    assert raised.value.code == "bad_environment"
    assert raised.value.message.startswith("A process may only open 64 files here (ulimit -n); 2 ranks need ")
    assert "Raise the limit" in raised.value.hint


@needs_root
@pytest.mark.parametrize(
    ("kind", "expected"),
    [("6", "2 ::1"), ("none", "bad_environment This machine has no loopback network")],
)
def test_a_machine_without_loopback_of_version_4(tmp_path, kind, expected):
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs unshare and ip")
    command = ["unshare", "--net", sys.executable, str(Path(__file__).parent / "loopback.py"), str(tmp_path), kind]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    if found.returncode and "unshare" in found.stderr:
        pytest.skip(found.stderr)
    assert found.stdout.startswith(expected), found
