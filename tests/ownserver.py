"""A private server of our own for the tests of the kernel's side: nothing of the user's is seen or touched."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from libraries import LIGHT, preloading
from waits import PATIENCE_WITH_A_START, until

from jupyter_dist.client import Client
from jupyter_dist.client.servers import attendance, private_server, running_servers

ROOT = Path(__file__).parents[1]


def variables(runtime_folder, libraries=LIGHT):
    """What tells a process that this package is here, and its servers to write their files there."""
    # The same within another's: groups with different environments share no import of torch.
    path = dict.fromkeys([str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    return {
        "JUPYTER_RUNTIME_DIR": str(runtime_folder),
        "JUPYTER_DATA_DIR": str(Path(runtime_folder) / "data"),  # no save goes to the user's
        "PYTHONPATH": os.pathsep.join(path),
        "JUPYTER_DIST_PREPARE": "0",  # most servers of tests start no group
        **preloading(libraries),
    }


@contextlib.contextmanager
def private(root_dir):
    """A private server of this process, also where no client is connected; ended in order, at once."""
    assert not [server for server in running_servers() if server.is_private], "another test's would be ended"
    place = attendance.join()
    server = private_server(str(root_dir))
    try:
        yield server
    finally:
        attendance.leave(place)
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: has_ended(server.pid))


def has_ended(pid):
    """Whether a process that is not ours to wait for has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@contextlib.contextmanager
def environment(runtime_folder, libraries=LIGHT):
    """Have all that is started within be told."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables(runtime_folder, libraries).items():
            patch.setenv(name, value)
        patch.delenv("JPY_SESSION_NAME", raising=False)
        yield


@pytest.fixture(scope="session")
def runtime_folder(tmp_path_factory):
    """One for each folder of tests: group directories hold sockets, whose paths are short."""
    return tmp_path_factory.mktemp("rt")


@pytest.fixture(scope="module", autouse=True)
def own_runtime(request, runtime_folder):
    """Processes that a test starts inherit it. No longer than a module: a worker's next one may be of another folder.

    Zygotes of groups that the module's tests start import its LIBRARIES.
    """
    with environment(runtime_folder, getattr(request.module, "LIBRARIES", LIGHT)):
        yield


@pytest.fixture(scope="session")
def client(runtime_folder):
    with environment(runtime_folder):
        client = Client.connect()
    with client:
        yield client
        for group in client.groups():
            group.shutdown()


@pytest.fixture(autouse=True)
def groups_of_the_test(request):
    """End the groups that a test began and did not end: one that fails halfway must not fail the next, or its own second run.

    The group of a kernel's notebook is as old as the kernel, which most modules share.
    """
    if "client" not in request.fixturenames or "kernel" in request.fixturenames:
        yield
        return
    client = request.getfixturevalue("client")
    before = {group.id for group in client.groups()}
    yield
    for group in client.groups():
        if group.id not in before:
            group.shutdown()


MAIN = "from jupyter_dist.cli.main import main; main()"


@pytest.fixture
def dist(own_runtime, tmp_path):
    """Run `jupyter dist ...`; returns the finished process."""

    def run(*arguments, status=0, **options):
        command = [sys.executable, "-c", MAIN, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=PATIENCE_WITH_A_START, **options
        )
        assert done.returncode == status, (done.stdout, done.stderr)
        return done

    return run
