"""A machine on which no file can be locked, as in some containers and on Lustre without `flock`."""

import shutil
import subprocess

import pytest

from .server import JupyterServer

SHIM = "#include <errno.h>\nint flock(int fd, int what) { errno = ENOLCK; return -1; }\n"


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_server_without_file_locks_serves_and_refuses_starts_with_the_reason(tmp_path):
    (tmp_path / "shim.c").write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "shim.so", tmp_path / "shim.c"], check=True)
    server = JupyterServer(tmp_path, env={"LD_PRELOAD": str(tmp_path / "shim.so"), "XDG_RUNTIME_DIR": str(tmp_path)})
    try:
        status, answer = server.refused("POST", "groups", {"num_ranks": 1})
        reason = "There is no private directory for groups."
        assert (status, answer["code"], answer["message"]) == (400, "bad_directory", reason)
        assert "file locks (flock) do not work there (No locks available)" in answer["hint"]
        assert server.ask("GET", "groups") == {"groups": []}
        environments = server.ask("GET", "environments")["environments"]
        assert {one["problem"].partition(" /")[0] for one in environments} == {reason}  # as the form shows it
        assert "Traceback" not in server.log()
        assert f"no group can be started. {reason}" in server.log()
    finally:
        server.end()
