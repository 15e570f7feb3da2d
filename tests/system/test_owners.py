"""Who can replace a folder: what is judged is compared with what another user can do, with real users and access lists."""

import contextlib
import os
import shutil
import struct
import tempfile
from pathlib import Path

import pytest

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.files.owners import open_above, open_folder

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root to be other users")
ALICE, BOB, GROUP = 543_201, 543_202, 543_203
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def as_user(uid, action, groups=()):
    """Whether an action of another user, in a process of theirs, raises no error."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(Exception):
            os.setgroups(groups)
            os.setgid(uid)
            os.setuid(uid)
            action()
            code = 0
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def allow(folder, *entries, mask=7, kind=ACCESS):
    """Set the access list of a folder: `entries` are (tag, permissions, id) beside those of the mode 0700."""
    none = 0xFFFF_FFFF
    rows = sorted([(0x01, 7, none), (0x04, 0, none), (0x10, mask, none), (0x20, 0, none), *entries])
    content = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)
    try:
        os.setxattr(folder, kind, content)
    except OSError as err:
        pytest.skip(f"no access lists here: {err.strerror}")


@pytest.fixture
def place():
    """A folder that all users can enter, with a folder of Alice."""
    with tempfile.TemporaryDirectory(prefix="jd", dir="/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        own(place / "alice", ALICE, 0o711)
        yield place


def own(folder, uid, mode):
    folder.mkdir(exist_ok=True)
    os.chown(folder, uid, uid)
    folder.chmod(mode)
    return folder


def of_mode(mode):
    return lambda place: own(place / "alice", ALICE, mode)


def with_list(*entries, **more):
    def make(place):
        allow(place / "alice", *entries, **more)
        return place / "alice"

    return make


def of_an_inherited_list(place):
    allow(place / "alice", (0x02, 7, BOB), kind=DEFAULT)
    allow(place / "alice", (0x02, 1, BOB))
    return own(place / "alice" / "inner", ALICE, 0o700)


def of_the_head_of_the_project(place):
    return own(place / "project", BOB, 0o755)


def behind_a_link(place):
    (place / "alice" / "scratch").symlink_to(own(place / "open", ALICE, 0o777))
    os.chown(place / "alice" / "scratch", ALICE, ALICE, follow_symlinks=False)
    return place / "alice" / "scratch"


def behind_a_link_of_bob(place):
    own(place / "tmp", 0, 0o1777)
    (place / "tmp" / "link").symlink_to("../alice/../alice")
    os.chown(place / "tmp" / "link", BOB, BOB, follow_symlinks=False)
    return place / "tmp" / "link"


def swap_link(folder):
    """Do what Bob can do: replace the folder of the job, or the link on the way to it."""
    if folder.is_symlink() and folder.lstat().st_uid == BOB:
        folder.unlink()
    else:
        (folder / "job").rename(folder / "moved")


@pytest.mark.parametrize(
    ("make", "who"),
    [
        (of_mode(0o711), None),
        (of_mode(0o777), "all users"),
        (of_mode(0o1777), None),
        (with_list((0x02, 7, BOB)), f"the user {BOB}"),
        (with_list((0x02, 5, BOB)), None),
        (with_list((0x02, 7, BOB), mask=5), None),
        (with_list((0x02, 7, ALICE)), None),
        (with_list((0x08, 7, GROUP)), f"members of the group {GROUP}"),
        (of_an_inherited_list, None),
        (of_the_head_of_the_project, f"the user {BOB}"),
        (behind_a_link, "all users"),
        (behind_a_link_of_bob, f"the user {BOB}"),
    ],
    ids=[
        *("mode", "all", "sticky", "list", "list_read", "list_masked", "list_own", "list_group", "list_inherited"),
        *("owner", "link", "link_of_other"),
    ],
)
def test_whom_a_folder_is_closed_to_is_what_other_users_can_do(place, make, who):
    folder = make(place)
    job = own(folder / "job", ALICE, 0o700)
    found = []

    def judged():
        above = open_above(job)
        assert (above and above.who) == who
        with contextlib.suppress(JupyterDistError):
            os.close(open_folder(job))
            found.append(None)
        assert bool(found) == (who is None)

    assert as_user(ALICE, judged)
    assert as_user(BOB, lambda: swap_link(folder), groups=[GROUP]) == (who is not None)


def test_what_is_opened_is_gone_on_with_whatever_its_name_becomes(place):
    job = own(place / "alice" / "job", ALICE, 0o700)

    def use():
        fd = open_folder(job)
        job.rename(job.with_name("moved"))
        job.symlink_to(place)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))

    assert as_user(ALICE, use)
    assert (place / "alice" / "moved" / "file").exists()
    with pytest.raises(FileNotFoundError):
        open_folder(place / "none")
    (place / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic"):
        open_folder(place / "loop")
    shutil.rmtree(place / "alice" / "moved")
