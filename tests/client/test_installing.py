"""%pip on ranks: they take turns, and one of those that run the same command does it for all."""

import fcntl
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from waits import PATIENCE, until

OTHER = "Another rank has run it in the same environment"
NAMED = "Waits for another rank, which installs packages in the same environment."


@pytest.fixture
def lock(group):
    """The file that ranks lock; they name at once what they wait for."""
    group.run("from jupyter_dist.rank.ipython import packages; patient, packages.NAMED_SECONDS = 5.0, 0.0")
    path = Path(group.run("str(packages.lock_file())").values[0].strip("'"))
    yield path
    group.run("packages.NAMED_SECONDS = patient")
    assert not path.exists()


def run_together(group, lock, code):
    """Run a cell whose ranks all wait for their turn before the first has it; return what each printed."""
    fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    waits = re.compile(rf"-> FLOCK .*:{os.fstat(fd).st_ino} ")
    with ThreadPoolExecutor() as pool:
        running = pool.submit(group.run, code, check=False)
        until(lambda: len(waits.findall(Path("/proc/locks").read_text())) == 2)
        os.close(fd)
        result = running.result(PATIENCE)
    return sorted((result[rank].text for rank in (0, 1)), key=lambda text: OTHER in text)


def test_one_rank_runs_pip_for_all_and_notes_speak_of_ranks(group, lock):
    own, other = run_together(group, lock, "%pip --version")
    assert other == f"{NAMED}\n{OTHER}.\n"
    assert own.startswith(f"{NAMED}\npip ")
    assert own.endswith("Note: you may need to restart the ranks to use updated packages.\n")


def test_a_failure_is_that_of_all(group, lock):
    _, other = run_together(group, lock, "%pip --no-such-option")
    assert other == f"{NAMED}\n{OTHER}, where it failed: exit status 2.\n"
    assert group.run("_exit_code").values == {0: "2", 1: "2"}


def test_ranks_with_commands_of_their_own_run_each(group, lock):
    texts = run_together(group, lock, "get_ipython().run_line_magic('pip', ['--version', 'cache dir'][rank])")
    assert OTHER not in "".join(texts)
    assert sum(text.startswith(f"{NAMED}\npip ") for text in texts) == 1


def test_where_no_file_can_be_locked_each_rank_runs_it(group):
    result = group.run("import tempfile; temp, tempfile.tempdir = tempfile.tempdir, '/proc'\n%pip --version")
    group.run("tempfile.tempdir = temp")
    assert [result[rank].text.startswith("pip ") for rank in (0, 1)] == [True, True]
