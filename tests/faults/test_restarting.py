"""A restart ends ranks as Python ends a process: what users left open is finished."""

import os
import signal
from pathlib import Path

from jupyter_dist.system.processes import below

OPEN = """
import atexit, sys, tempfile, types, zipfile
folder = {folder!r}
log = open(f'{{folder}}/log-{{rank}}', 'w')
log.write('step 1')
module = sys.modules['my_log'] = types.ModuleType('my_log')
module.file = open(f'{{folder}}/module-{{rank}}', 'wb')
module.file.write(b'from a module')
class Holder: pass
holder = Holder()
holder.itself, holder.archive = holder, zipfile.ZipFile(f'{{folder}}/archive-{{rank}}.zip', 'w')
holder.archive.writestr('name', 'text')
kept = tempfile.TemporaryDirectory(dir=folder)
atexit.register(lambda: open(f'{{folder}}/end-{{rank}}', 'w').close())
del holder
print('open', flush=True)
"""


def _left(folder: Path) -> dict[str, int]:
    left = {path.name: path.stat().st_size if path.is_file() else -1 for path in sorted(folder.iterdir())}
    for path in folder.iterdir():
        path.unlink()
    return left


def test_a_restart_flushes_files_and_runs_exit_handlers(pair, tmp_path):
    """Idle, then with rank 1 in a cell that ends when it is interrupted."""
    usual = {"archive": 110, "end": 0, "log": 6, "module": 13}
    expected = {f"{name}-{rank}{'.zip' * (name == 'archive')}": size for name, size in usual.items() for rank in (0, 1)}
    for busy in ("", "import time\nif rank == 1: time.sleep(1000)"):
        cell = pair.submit(OPEN.format(folder=str(tmp_path)) + busy, [0, 1])
        pair.wait(lambda cell=cell: all(pair.text(rank, cell) == "open\n" for rank in (0, 1)))
        if not busy:
            pair.wait_final(cell)
        pair.request("restart")
        pair.wait_group("ready")
        assert pair.executions[cell]["state"] == ("lost" if busy else "ok")
        assert _left(tmp_path) == expected
    notes = [data.decode() for header, data in pair.records if header["kind"] == "note"]
    assert notes.count("Rank 0 ended (the group was restarted).") == 2


def test_a_rank_that_is_in_c_code_is_killed_after_a_moment(pair):
    cell = pair.submit("print('go', flush=True)\nimport re\nre.match('(a+)+$', 'a' * 50 + 'b')", [1])
    pair.wait(lambda: pair.text(1, cell) == "go\n")
    pair.request("restart")
    pair.wait_group("ready")
    notes = [data.decode() for header, data in pair.records if header["kind"] == "note"]
    assert "Rank 1 was killed (the group was restarted)." in notes
    assert "Rank 0 ended (the group was restarted)." in notes
    assert pair.run("print(1)")["state"] == "ok"


def test_a_zygote_that_is_killed_before_or_in_a_start_costs_time_and_no_start(own):
    own.hello()
    for begin in (lambda: own.start(2, wait=False), lambda: own.request("restart")):
        agent = own.group["agent_pid"]
        (zygote,) = [process.pid for process in below(agent) if process.parent == agent]
        if own.group["state"] == "warm":
            os.kill(zygote, signal.SIGKILL)
            begin()
        else:
            begin()
            os.kill(zygote, signal.SIGKILL)
        own.wait_group("ready")
        assert own.group["error"] is None
        assert own.run("dist.barrier()")["state"] == "ok"
