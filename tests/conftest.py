"""Fixtures for all tests; those of one folder are in its own conftest.py. tests/README.md says which fixture to take for what."""

import gc
import os
import shutil
import signal
import stat
import tempfile
from pathlib import Path

import accused
import pytest
import secondrun
from cputime import CpuTimes
from exits import pytest_runtest_makereport  # noqa: F401 (a hook)
from faults.server import REPOSITORY, shared_home
from hypothesis import HealthCheck, settings
from leaks import adopt_orphans, pytest_sessionfinish  # noqa: F401 (a hook)
from libraries import LIGHT, preloading
from shared import SharedAgent, SharedServer

from jupyter_dist.server.spawner.forkservers import FOLDER_VARIABLE

PARTS = Path(REPOSITORY, "jupyter_dist", "parts")
_OWN_BASE = pytest.StashKey[str]()
pytest_plugins = ("pytest_jupyter.jupyter_server",)


def pytest_addoption(parser):
    """The long variants of docs/reliability/figures.md."""
    group = parser.getgroup("jupyter_dist")
    group.addoption("--cycles", type=int, default=4, help="restarts in the leak test")
    group.addoption("--flood-lines", type=int, default=100_000, help="lines each of 2 ranks prints in the flood test")
    group.addoption("--chaos-kills", type=int, default=40, help="kills in the chaos test")
    group.addoption("--chaos-seed", type=int, default=None, help="repeat the chaos of that seed")
    group.addoption("--clients-seconds", type=float, default=0.0, help="how long clients are killed; 0: once")
    group.addoption("--cuts", type=int, default=12, help="how often a page is cut in the test that counts its lines")
    group.addoption("--bad-cells", type=int, default=20, help="cells over a bad network, which is cut every 100")
    group.addoption(
        "--stop-seconds", type=float, default=0.0, help="how long a rank is stopped after it is seen silent"
    )
    group.addoption("--silent-seconds", type=float, default=6.0, help="how long a cell says nothing")
    group.addoption(
        "--fuzz-examples",
        type=int,
        default=60,
        help="bad requests, messages and frames; 10 times as many rank expressions",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Settings of hypothesis by kind of test; and zygotes that import no more than the tests need.

    What is left out is a third of the cost of a start. tests/rank and tests/frameworks import all that users' do.
    """
    # A shell that starts a job in the background has it ignore Ctrl-C; what the tests start would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Paths of unix sockets must be short, whatever the name of user and machine. Workers have theirs below it.
    if not config.option.basetemp:
        config.option.basetemp = config.stash[_OWN_BASE] = tempfile.mkdtemp(prefix="jpt-", dir="/tmp")
    adopt_orphans()
    config.pluginmanager.register(CpuTimes(config))
    config.pluginmanager.register(secondrun)
    os.environ.update(preloading(LIGHT))
    # One import of torch for all groups with the same environment, whatever runtime folder a test has. Each worker has
    # its own: the kernel gives it the keepers that are forked.
    os.environ[FOLDER_VARIABLE] = f"{config.option.basetemp}/fork"
    examples = config.getoption("--fuzz-examples")
    # How long an example takes says how busy the machine is.
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")
    settings.register_profile("channels", max_examples=examples)
    settings.register_profile("expressions", max_examples=10 * examples)


@pytest.fixture(autouse=True)
def no_folder_of_all_tests_is_left_open(pytestconfig):
    """Launchers refuse to run a script below a folder that others can write to: one test would fail those after it."""
    yield
    base = Path(pytestconfig.option.basetemp)
    for folder in (*([base] if base.exists() else []), *base.parents[:-1]):  # pytest makes it when it is first used
        mode = folder.stat().st_mode
        assert not mode & 0o022 or mode & stat.S_ISVTX, f"{folder} was left with mode {mode:o}"


@pytest.fixture(autouse=True)
def no_cell_is_accused(request):
    """The whole suite is a judge of checks: what came where no error is planned is listed at the end, to be looked at."""
    accused.take()
    yield
    if (found := accused.take()) and request.path.parent.name != "checks":
        request.node.user_properties.append(("accused", list(found.values())))


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    """List the checks that came; remove the files of a run that passed: nobody looks at them."""
    for report in (one for several in terminalreporter.stats.values() for one in several):
        for name, messages in getattr(report, "user_properties", ()):
            if name == "accused" and report.when == "teardown":
                terminalreporter.write_line(f"a cell of {report.nodeid} has a check: {'; '.join(messages)}")
    if exitstatus == 0 and (base := config.stash.get(_OWN_BASE, None)):
        shutil.rmtree(base, ignore_errors=True)


# What takes a minute or more begins first, so that no process is left alone with it at the end.
LONG = (
    *("test_chaos", "test_examples", "test_server_agent", "test_keeper", "test_death", "test_magics"),
    *("test_site", "test_blocks", "test_verdicts", "test_matrix", "test_losing", "test_namespaces"),
)


def pytest_collection_modifyitems(items):
    """Long files first. Tests marked `gpu` are skipped where the NVIDIA driver is not, and `part` without that part."""
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))
    if not Path("/dev/nvidiactl").exists():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))
    for item in items:
        needed = {name for marker in item.iter_markers("part") for name in marker.args}
        if missing := sorted(name for name in needed if not (PARTS / name).is_dir()):
            item.add_marker(pytest.mark.skip(reason=f"without the part {missing[0]}"))


def pytest_collection_finish():
    """What was collected lives until the end: no garbage collection of a test need look through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def jp_home_dir():
    """The same for all tests: groups with different environments share no import of torch."""
    return shared_home()


@pytest.fixture
def jp_environ(jp_environ, monkeypatch):
    """The same as JupyterServer's, instead of the path of this process, which differs by folder of tests."""
    monkeypatch.setenv("PYTHONPATH", REPOSITORY)


@pytest.fixture(scope="session")
def shared_agent(tmp_path_factory):
    shared = SharedAgent(tmp_path_factory.mktemp("agent"))
    yield shared
    shared.end()


@pytest.fixture
def pair(shared_agent):
    """Two new ranks, and a connection to their agent. Tests may do anything to the ranks; the agent is shared."""
    client = shared_agent.lend()
    yield client
    shared_agent.take_back(client)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory):
    shared = SharedServer(tmp_path_factory.mktemp("s"))
    yield shared
    shared.end()


@pytest.fixture
def group_server(shared_server):
    """A real server whose group `g` has two new ranks. Tests may do anything to them; server and agent are shared."""
    yield shared_server.lend()
    shared_server.take_back()
