"""The copy of the package that groups run."""

import errno
import fcntl
import os

import pytest

from jupyter_dist.server.spawner.code import PackageCode


def test_a_copy_that_is_damaged_while_the_disk_is_full_costs_no_other_file(tmp_path, monkeypatch):
    """A group still uses the copy. Once there is room again, groups start; no other file of the server was closed."""
    code = PackageCode(tmp_path / "code")
    first = code.boot_script()
    group = os.open(first.parents[2], os.O_RDONLY)
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
