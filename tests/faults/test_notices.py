"""The command that a server runs when a long cell has ended or cannot end: a real server, a real command."""

import json
import os
import stat

import pytest
from waits import until

from .server import JupyterServer

SCRIPT = """#!/bin/sh
cat > {folder}/$$.part
mv {folder}/$$.part {folder}/$$.json
{rest}
"""


def command(folder, rest=""):
    """A program that keeps what it was given, a file each time."""
    path = folder / "notice.sh"
    path.write_text(SCRIPT.format(folder=folder, rest=rest))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def notices(folder):
    return [json.loads(path.read_text()) for path in folder.glob("*.json")]


@pytest.fixture
def kept(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    return folder


def served(tmp_path, program, seconds):
    """A server that is configured as the how-to says; its groups end with it."""
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    lines = f"c.DistApp.notice_command = {[str(program), '; touch never']!r}\nc.DistApp.notice_seconds = {seconds}\n"
    (home / "config" / "jupyter_server_config.py").write_text(lines)
    return JupyterServer(home, on_server_stop="end")


@pytest.mark.part("hangs")
def test_a_command_is_told_what_ended_and_what_hangs(tmp_path, kept):
    server = served(tmp_path, command(kept), 0)
    try:
        server.start(2, name="g")
        server.run("g", "# one\n1 / 0", "0")
        (failed,) = until(lambda: notices(kept))
        assert (failed["event"], failed["group"], failed["ranks"]) == ("error", "g", "0")
        assert failed["text"].startswith("Cell [1] on g (ranks 0) ended: error")
        hung = server.submit("g", "if rank == 0: dist.barrier()")
        hangs = until(lambda: [told for told in notices(kept) if told["event"] == "hangs"])
        assert "Rank 1 is idle" in hangs[0]["message"]
        server.ask("POST", "groups/g/interrupt", {"ranks": "all"})
        assert server.view("g", hung)["execution"]["state"] == "interrupted"
        until(lambda: [told for told in notices(kept) if told["event"] == "interrupted"])
        assert len([told for told in notices(kept) if told["event"] == "hangs"]) == 1
        assert not (tmp_path / "home" / "never").exists()
        server.ask("DELETE", "groups/g")
    finally:
        server.end()


def test_short_cells_are_not_told_and_a_failing_command_is_named_in_the_log(tmp_path, kept):
    server = served(tmp_path, command(kept, "echo went wrong; exit 3"), 1)
    try:
        server.start(1, name="g")
        server.run("g", "1")
        server.run("g", "import time; time.sleep(1.5)")
        until(lambda: "the notice command ended with status 3: went wrong" in server.log(), server.log)
        (told,) = notices(kept)
        assert (told["event"], told["line"]) == ("ok", "import time; time.sleep(1.5)")
        server.ask("DELETE", "groups/g")
    finally:
        server.end()


def test_no_request_names_a_command(group_server, tmp_path):
    body = {"code": "1", "notice_command": ["touch", str(tmp_path / "made")]}
    status, error = group_server.refused("POST", "groups/g/executions", body)
    assert (status, error["code"]) == (400, "bad_request")
    assert not os.path.exists(tmp_path / "made")
