"""After two interrupts a cell is given up: its thread keeps running, and the next cells do not notice that."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from waits import PATIENCE, until

from jupyter_dist.client import Group
from jupyter_dist.kernel.execution.cells import CellRunner
from jupyter_dist.kernel.execution.host import KernelHost
from jupyter_dist.kernel.execution.lines import KernelMagics
from jupyter_dist.magics.automode import AutoMode

STUBBORN = """
import time
print("begun", flush=True)
while True:
    try:
        while True:
            time.sleep(0.1)
    except BaseException:
        pass
"""
RESTARTS_AND_WAITS = """%dist_restart
import time
from IPython.display import display
display(rank)
print("begun", flush=True)
time.sleep(1000)
"""


@pytest.fixture(scope="module", autouse=True)
def new_ranks_for_the_next_file(group):
    yield
    group.restart()


def until_begun(kernel):
    """Return what was shown until then."""
    found = []
    while not any("begun" in content.get("text", "") for content in found):
        found.append(kernel.client.get_iopub_msg(timeout=PATIENCE)["content"])
    return found


def interrupt(kernel, times):
    """Once it has begun; return what was shown until then."""
    found = until_begun(kernel)
    for _ in range(times):
        send_interrupt(kernel)
    return found


def send_interrupt(kernel):
    """The manager's own messages can have the numbers of the client's."""
    kernel.client.control_channel.send(kernel.client.session.msg("interrupt_request", {}))


def give_up(kernel):
    cell = kernel.run(STUBBORN, after=lambda: interrupt(kernel, 2))
    assert cell.error == "The ranks were interrupted but are still running. `%dist_restart` restarts them."


def test_the_restart_that_the_message_recommends_says_so(kernel):
    give_up(kernel)
    cell = kernel.run("%dist_restart")
    assert (cell.status, cell.text) == ("ok", "Group 'shared': 2 new ranks.\n")
    assert kernel.run("%dist_mode").text.startswith("Cells run on all ranks")


def test_code_after_the_restart_runs_as_that_of_any_cell_and_can_be_interrupted(kernel):
    give_up(kernel)
    shown = []
    cell = kernel.run(RESTARTS_AND_WAITS, after=lambda: shown.extend(interrupt(kernel, 1)))
    assert "Group 'shared': 2 new ranks.\n" in [content.get("text") for content in shown]
    assert {"0", "1"} & {content.get("data", {}).get("text/plain") for content in shown}
    assert (cell.status, cell.ename) == ("error", "KeyboardInterrupt")
    assert "still running" not in cell.error
    assert sorted(result["text/plain"] for result in kernel.run("rank").results) == ["0", "1"]


@pytest.fixture(params=[False, True], ids=["without page", "with page"])
def page(kernel, request):
    """Perhaps a page that shows what ranks print itself."""
    client = kernel.client
    content = {"comm_id": "page", "target_name": "jupyter_dist", "data": {"path": "a.ipynb"}}
    if request.param:
        client.shell_channel.send(client.session.msg("comm_open", content))
    yield
    client.shell_channel.send(client.session.msg("comm_close", {"comm_id": "page", "data": {}}))


def test_an_interrupt_ends_what_a_magic_waits_for(kernel, group, page):
    held = group.begin("import time; time.sleep(1000)", "0")
    until(lambda: held.id in group.status().running)

    def interrupt_it():
        until(lambda: group.status().queued)
        send_interrupt(kernel)

    cell = kernel.run("%sync\n%dist_mode", after=interrupt_it)
    assert cell.status == "error"
    assert cell.error == "Cancelled before it ran."
    assert cell.text == ""
    held.cancel()
    held.result(PATIENCE)


def test_a_restart_waits_for_no_cell_that_has_begun_since_the_group_said_that_it_is_idle(
    group, tmp_path, monkeypatch, capsys
):
    host = KernelHost(str(tmp_path / "kernel.json"))
    status, earlier = Group.status, [host.session.group().status()]
    assert earlier[0].ranks[0].state == "idle"
    held = group.begin("import time; time.sleep(1000)")
    until(lambda: held.id in group.status().running)
    # What the server says just after a cell has begun: the agent tells it some milliseconds later.
    monkeypatch.setattr(Group, "status", lambda self: earlier.pop() if earlier else status(self))
    KernelMagics(host.session).call("dist_restart", "")
    assert not earlier
    assert capsys.readouterr().out == "Group 'shared': 2 new ranks.\n"
    assert held.result(PATIENCE).state == "lost"
    assert group.status().queued == []


def test_a_cell_that_is_interrupted_runs_no_more_of_its_magics(tmp_path):
    said = []
    host = KernelHost(str(tmp_path / "kernel.json"))
    cell = CellRunner(host, KernelMagics(host.session), lambda kind, content: said.append((kind, content)), print)
    cell.interrupt()
    with ThreadPoolExecutor(1) as threads:  # a cell has a thread of its own
        run = partial(cell.run, ranks="all", page=None, counted=print)
        reply = threads.submit(run, "%dist_mode\n%dist_shutdown", {}).result()
    assert reply["evalue"] == "The cell was interrupted before %dist_mode began."
    assert [kind for kind, _ in said] == ["error"]


def test_a_cell_that_runs_beside_a_local_one_is_sent_to_the_ranks():
    """In a subshell of ipykernel: a thread of its own."""
    auto, sent = AutoMode(), []
    auto.prefix = "distributed"
    with auto.suspended():
        beside = threading.Thread(target=lambda: sent.extend(auto(["x = 1\n"])))
        beside.start()
        beside.join()
        assert auto(["x = 1\n"]) == ["x = 1\n"]
    assert sent == auto(["x = 1\n"]) == ["get_ipython().run_cell_magic('distributed', '', 'x = 1\\n')\n"]
