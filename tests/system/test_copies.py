"""Copies of the package that groups and nodes run: shared, removed by the last user, and written somewhere."""

import contextlib
import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from waits import until

from jupyter_dist.system.code.copies import ABANDONED_SECONDS, CodeCopy, remove_unused
from jupyter_dist.system.code.running import LOCK
from jupyter_dist.system.code.sources import own_sources

ROOT = Path(__file__).parents[2]
OTHER_USER = 65534
as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to give a folder to another user, or to mount")
HOLDER = """
import sys, time
from pathlib import Path
from jupyter_dist.system.code.copies import CodeCopy
from jupyter_dist.system.code.sources import own_sources
print(CodeCopy(own_sources(), [Path(sys.argv[1])]).boot_script(), flush=True)
time.sleep(1000)
"""


@pytest.fixture(scope="module")
def sources():
    return own_sources()


@contextlib.contextmanager
def holding(place):
    """Another process that uses a copy: it, and its script."""
    words = [sys.executable, "-c", HOLDER, str(place)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(ROOT)}) as process:
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def folder_of(boot):
    return boot.parents[2]


def test_a_copy_that_is_damaged_while_the_disk_is_full_costs_no_other_file(tmp_path, monkeypatch, sources):
    """A group still uses the copy. Once there is room again, groups start; no other file of the server was closed."""
    code = CodeCopy(sources, [tmp_path / "code"])
    first = code.boot_script()
    group = os.open(folder_of(first) / LOCK, os.O_RDWR)
    fcntl.flock(group, fcntl.LOCK_SH)
    first.unlink()
    with monkeypatch.context() as patched:

        def fail(folder):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patched.setattr(code, "_write", fail)
        with pytest.raises(OSError, match="No space left"):
            code.boot_script()
    with (tmp_path / "other").open("wb") as other:  # it takes the number that has become free
        second = code.boot_script()
        assert os.path.samestat(os.fstat(other.fileno()), os.stat(other.name))
    assert second.exists()
    assert second != first
    os.close(group)
    code.release()
    assert not (tmp_path / "code").exists()


def test_processes_of_one_version_share_a_copy_and_a_killed_one_leaves_none(tmp_path, sources):
    place = tmp_path / "code"
    with holding(place) as (first, boot), holding(place) as (second, same):
        assert boot == same
        first.kill()
        first.wait()
        remove_unused(place)
        assert boot.exists()  # the second uses it
        second.send_signal(signal.SIGKILL)
        second.wait()
        assert boot.exists()
        code = CodeCopy(sources, [tmp_path / "elsewhere", place])
        code.boot_script()
        remove_unused(place)
        assert not place.exists()
        code.release()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("is_written_again", [False, True])
def test_a_copy_that_is_removed_while_another_process_takes_it_is_not_used(tmp_path, sources, is_written_again):
    place = tmp_path / "code"
    ended, taking, third = (CodeCopy(sources, [place]) for _ in range(3))
    folder = folder_of(ended.boot_script())
    remover = os.open(folder / LOCK, os.O_RDWR)
    fcntl.flock(ended.lock, fcntl.LOCK_UN)
    fcntl.flock(remover, fcntl.LOCK_EX)
    with ThreadPoolExecutor() as pool:
        taken = pool.submit(taking.boot_script)
        waits = re.compile(rf"-> FLOCK .*:{os.fstat(remover).st_ino} ")
        until(lambda: waits.search(Path("/proc/locks").read_text()))
        folder.rename(place / "new-removed")
        if is_written_again:
            third.boot_script()
        os.close(remover)
        boot = taken.result(60)
    assert taking.problems == []
    third.release()
    remove_unused(place)  # it would remove a copy that nobody holds
    assert boot.exists()
    for copy in (ended, taking):
        copy.release()


def test_the_copy_of_a_killed_server_goes_whichever_runtime_folder_it_had(tmp_path, sources, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / f"jupyter_dist-{os.getuid()}-0123abcd-code"
    with holding(left) as (process, boot):
        one = CodeCopy(sources, [tmp_path / "one"])
        one.boot_script()
        assert boot.exists()
        process.kill()
        process.wait()
        other = CodeCopy(sources, [tmp_path / "other"])
        other.boot_script()
        assert not left.exists()
        one.release()
        other.release()


def test_what_was_left_half_written_or_half_removed_goes_when_it_is_old(tmp_path, sources):
    place = tmp_path / "code"
    (place / "new-12345678" / "jupyter_dist").mkdir(parents=True, mode=0o700)
    place.chmod(0o700)
    remove_unused(place)
    assert place.exists()  # it may be written just now
    code = f"""
import time
from pathlib import Path
from jupyter_dist.system.code.copies import remove_unused
now = time.time()
time.time = lambda: now + {ABANDONED_SECONDS + 1}
remove_unused(Path({str(place)!r}))
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT)})
    assert not place.exists()


def test_a_copy_that_groups_of_0_2_use_stays_as_long_as_they_do(tmp_path):
    """They lock its folder."""
    theirs = tmp_path / "code" / "code-0123456789ab"
    theirs.mkdir(parents=True, mode=0o700)
    fd = os.open(theirs, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    remove_unused(theirs.parent)
    assert theirs.exists()
    os.close(fd)
    remove_unused(theirs.parent)
    assert not theirs.parent.exists()


@pytest.mark.parametrize("damage", ["open", "without lock", "of another user", "a link"])
def test_a_copy_that_others_could_change_is_not_used(tmp_path, sources, damage):
    if damage == "of another user" and os.getuid() != 0:
        pytest.skip("needs root")
    one, other = CodeCopy(sources, [tmp_path / "code"]), CodeCopy(sources, [tmp_path / "code"])
    folder = folder_of(one.boot_script())
    if damage == "open":
        folder.chmod(0o770)
    elif damage == "without lock":
        (folder / LOCK).unlink()
    elif damage == "of another user":
        os.chown(folder, OTHER_USER, OTHER_USER)
    else:
        folder.rename(tmp_path / "moved")
        folder.symlink_to(tmp_path / "moved")
    assert folder_of(other.boot_script()) != folder
    assert folder_of(other.boot_script()).lstat().st_mode & 0o777 == 0o700
    other.release()
    one.release()


def mounted(path, options):
    """A small disk with these options; the test is skipped where none can be mounted."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"mode=700,{options}", "none", str(path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    return contextlib.ExitStack()


@as_root
@pytest.mark.parametrize(
    ("options", "problem"), [("size=1m", "No space left on device"), ("ro", "Read-only file system")]
)
def test_a_place_that_is_full_or_cannot_be_written_is_named_and_the_next_one_used(tmp_path, sources, options, problem):
    disk, other = tmp_path / "disk", tmp_path / "other"
    with mounted(disk, options) as stack:
        stack.callback(subprocess.run, ["umount", "-l", str(disk)], check=True)
        code = CodeCopy(sources, [disk / "code", other / "code"])
        assert code.boot_script().is_relative_to(other)
        assert code.problems == [f"{disk}: {problem}"]
        assert not list(disk.rglob("*.py"))
        with pytest.raises(OSError, match=problem):
            CodeCopy(sources, [disk / "code"]).boot_script()
        code.release()
    assert not (other / "code").exists()


@as_root
def test_a_folder_from_which_no_program_may_be_executed_is_as_good_as_others(tmp_path, sources):
    """Python reads the files, and nothing in a copy is executed by the system."""
    disk = tmp_path / "disk"
    with mounted(disk, "noexec") as stack:
        stack.callback(subprocess.run, ["umount", "-l", str(disk)], check=True)
        code = CodeCopy(sources, [disk / "code"])
        bridge = tmp_path / "socket"
        words = [sys.executable, str(code.boot_script()), "bridge", str(bridge)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"jupyter-dist tunnel\n"
            process.stdin.close()
            assert process.wait() == 0
        code.release()


def test_a_place_that_others_can_replace_is_only_used_by_choice(tmp_path, sources):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (tmp_path / "file").touch()
    code = CodeCopy(sources, [tmp_path / "file" / "code", shared / "code", tmp_path / "code"])
    assert code.boot_script().is_relative_to(tmp_path / "code")
    assert code.problems[1] == f"{shared}: all users can replace what is in it"
    code.release()


def test_an_archive_is_the_same_version_and_runs(tmp_path, sources):
    archive = tmp_path / "code.zip"
    archive.write_bytes(sources.archive())
    code = "import sys; sys.path[0] = sys.argv[1]\nfrom jupyter_dist.system.code.sources import own_sources as own\n"
    code += (
        "found = own(); print(found.digest, len(found.files), len({changed for _, changed in found.files.values()}))"
    )
    env = {"PATH": os.environ["PATH"]}
    said = subprocess.run([sys.executable, "-I", "-c", code, archive], check=True, capture_output=True, env=env)
    times = len({changed for _, changed in sources.files.values()})
    assert said.stdout.split() == [str(one).encode() for one in (sources.digest, len(sources.files), times)]
    with subprocess.Popen(
        [sys.executable, str(archive), "bridge", str(tmp_path / "socket")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"jupyter-dist tunnel\n"
        process.stdin.close()
        until(lambda: process.poll() is not None)
        assert process.returncode == 0
    code = f"import runpy, sys; sys.version_info = (3, 8, 1); runpy.run_path({str(archive)!r}, run_name='__main__')"
    said = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=env)
    needs = f"jupyter dist: jupyter_dist needs Python 3.10 or later; {sys.executable} is Python 3.8.\n"
    assert (said.returncode, said.stderr) == (1, needs)  # not a traceback of code that it cannot read
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
    assert not [name for name in names if not name.endswith(".py") or name.startswith("jupyter_dist/server/")]
