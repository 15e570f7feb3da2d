"""The kernel *Ranks*: any Jupyter client runs a whole notebook on ranks, with no magics (decision 18)."""

import json
import os
import signal
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from ownserver import has_ended
from waits import PATIENCE, PATIENCE_WITH_A_START, read_until, running, until

from jupyter_dist.client.bundles.bundle import RANKS_MIME, without_ansi
from jupyter_dist.kernel.execution.outputs import joined
from jupyter_dist.protocol.operations import BY_NAME
from jupyter_dist.protocol.parts import declared

from .conftest import ranks_kernel


def notebook(*cells):
    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_code_cell(code) for code in cells]
    return made


def text_of(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


FIRST = """
from IPython.display import HTML, display
import sys
print("same")
print("rank", rank)
print("wrong", file=sys.stderr)
display(HTML(f"<b>{rank}</b>"))
world_size * 10
"""


def test_nbclient_runs_a_notebook_with_streams_displays_results_and_a_choice_of_ranks(group):
    made = notebook(FIRST, "%%rank [1]\nmine = rank", "1 / 0 if rank == 1 else None", "rank + 7")
    made.cells[2].metadata.tags = ["raises-exception"]
    NotebookClient(made, kernel_name="ranks", timeout=PATIENCE_WITH_A_START).execute()
    first, chosen, failed, last = made.cells
    assert "Cells run on group 'shared' (2 ranks), which keeps its variables." in text_of(first)
    assert "[ranks 0-1]\nsame\n" in text_of(first)
    assert "rank 0\n" in text_of(first)
    assert {output["name"] for output in first.outputs if output["output_type"] == "stream"} == {"stdout", "stderr"}
    shown = [output for output in first.outputs if output["output_type"] == "display_data"]
    assert {(each.metadata["jupyter_dist"]["ranks"], each.data["text/html"]) for each in shown} == {
        ("0", "<b>0</b>"),
        ("1", "<b>1</b>"),
    }
    results = [output for output in first.outputs if output["output_type"] == "execute_result"]
    assert {each.data["text/plain"] for each in results} == {"20"}
    assert results[0].execution_count == first.execution_count
    assert chosen.outputs == []  # the name of the group is shown once
    (error,) = failed.outputs
    assert (error.output_type, error.ename, error.evalue) == ("error", "ZeroDivisionError", "division by zero")
    assert "[rank 1]" in error.traceback[0]
    assert "8" in [output.data["text/plain"] for output in last.outputs if output["output_type"] == "execute_result"]
    with pytest.raises(Exception, match="mine"):
        group.pull("mine", 0)
    assert group.pull("mine", 1) == 1


def test_what_cannot_live_is_shown_in_its_last_state(group):
    """Clients without comms of ranks have only the text beside a widget, as nbclient, VS Code and saved files."""
    with_bar = "from tqdm.notebook import tqdm\nfor _ in tqdm(range(3), desc='work'): pass"
    kept = "bar = tqdm(total=4)\nbar.update(1)"
    sources = [
        with_bar,
        kept,
        "bar.update(3); bar.close()",
        "from ipywidgets import interact\n_ = interact(lambda x=3: print('squared', x * x), x=(0, 9))",
        "for _ in tqdm(range(3), leave=False): pass",
    ]
    made = notebook(*(f"%%rank 0\n{source}" for source in sources))
    NotebookClient(made, kernel_name="ranks", timeout=PATIENCE_WITH_A_START).execute()
    texts = [
        "".join(output["data"]["text/plain"] for output in cell.outputs if "data" in output) for cell in made.cells
    ]
    assert texts[0].startswith("work: 100% |\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588| 3/3 [")
    assert texts[1].startswith("100% |\u2588\u2588\u2588\u2588")  # by the next cell
    assert "squared 9" in texts[3]
    assert "0%" not in texts[4]


def test_a_display_of_an_earlier_cell_is_updated_in_that_cell(group):
    made = notebook(
        "handle, each = display('before', display_id=True), display('all', display_id=True)",
        "handle.update('meanwhile')",
        "handle.update('after'); each.update(rank)",
        "1",
    )
    NotebookClient(made, kernel_name="ranks", timeout=PATIENCE_WITH_A_START).execute()
    first, *others = [[each.data["text/plain"] for each in cell.outputs if "data" in each] for cell in made.cells]
    # Ranks that showed it a moment apart have an output each.
    lines = [line for text in first for line in text.splitlines() if not line.startswith("[rank")]
    assert ({*lines}, others[:2], {*others[2]}) == ({"'after'", "0", "1"}, [[], []], {"1"})


def test_an_output_for_ranks_that_differ_since_has_all_of_them():
    one = {"output_type": "display_data", "data": {"text/plain": "a", "text/html": "<i>a</i>"}, "metadata": {}}
    other = {"output_type": "display_data", "data": {"text/plain": ["b"], "text/html": ["<i>b</i>"]}, "metadata": {}}
    assert joined({"0-1": one}) == one
    assert joined({"0": one, "1": other})["data"] == {
        "text/plain": "[rank 0]\na\n[rank 1]\nb",
        "text/html": "<div><b>rank 0</b></div><i>a</i><div><b>rank 1</b></div><i>b</i>",
    }


def test_a_notebook_stops_at_an_error_which_names_all_ranks_that_failed(group):
    made = notebook("raise ValueError(rank) if rank else KeyError('first')", "never = 1")
    with pytest.raises(CellExecutionError) as caught:
        NotebookClient(made, kernel_name="ranks", timeout=PATIENCE_WITH_A_START).execute()
    shown = without_ansi(str(caught.value))  # of the one that failed first the traceback, of the other this line
    assert "KeyError: 'first'" in shown
    assert "ValueError: 1" in shown
    with pytest.raises(Exception, match="never"):
        group.pull("never", 0)


def test_a_cell_that_is_tagged_may_fail_and_the_notebook_continues(group):
    made = notebook("tolerated = 1\n1 / 0", "after_it = tolerated + rank")
    made.cells[0].metadata.tags = ["raises-exception"]
    NotebookClient(made, kernel_name="ranks", timeout=PATIENCE_WITH_A_START).execute()
    assert [output.ename for output in made.cells[0].outputs if output.output_type == "error"] == ["ZeroDivisionError"]
    assert group.gather("after_it") == {0: 1, 1: 2}


def test_nbconvert_starts_a_group_of_the_size_that_the_environment_says(group, client, tmp_path):
    path = tmp_path / "lesson.ipynb"
    nbformat.write(notebook("(rank, world_size)"), path)
    env = {**os.environ, "JUPYTER_DIST_GROUP": "fresh", "JUPYTER_DIST_RANKS": "1"}
    command = ["nbconvert", "--execute", "--to", "notebook", "--inplace", "--ExecutePreprocessor.kernel_name=ranks"]
    done = subprocess.run(
        [sys.executable, "-m", *command, str(path)],
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said, result = nbformat.read(path, 4).cells[0].outputs
    assert said.text.startswith("Group 'fresh' was started: 1 ranks, ready after")
    assert "It ends 1 min after process" in said.text
    assert result.data["text/plain"] == "(0, 1)"
    client.attach("fresh").shutdown()


def test_papermill_runs_it_with_parameters(group, tmp_path):
    papermill = pytest.importorskip("papermill")
    made = notebook("scale = 1", "[scale * world_size]")
    made.cells[0].metadata.tags = ["parameters"]
    made.metadata.kernelspec = {"name": "ranks", "display_name": "Ranks", "language": "python"}
    nbformat.write(made, tmp_path / "in.ipynb")
    papermill.execute_notebook(
        str(tmp_path / "in.ipynb"), str(tmp_path / "out.ipynb"), {"scale": 21}, progress_bar=False
    )
    result = nbformat.read(tmp_path / "out.ipynb", 4).cells[-1].outputs[-1]
    assert result.data["text/plain"] == "[42]"


def test_input_asks_the_client_which_answers_all_ranks_that_ask_the_same(kernel):
    cell = kernel.run("name = input('name? ')", answers=["Ada"])
    assert cell.asked == [("[ranks 0-1] name? ", False)]
    assert "name? Ada" in cell.text
    cell = kernel.run("%%rank 1\nsecret = __import__('getpass').getpass('key? ')", answers=["xyz"])
    assert cell.asked == [("[rank 1] key? ", True)]
    assert "xyz" not in cell.text
    cell = kernel.run("name")
    assert [display["text/plain"] for display in cell.results] == ["'Ada'"]
    # A client that takes no questions.
    cell = kernel.run("input('again? ')")
    assert "input() needs" in cell.error or "StdinNotImplementedError" in cell.error


def test_expressions_beside_a_cell_are_evaluated_on_its_first_rank(kernel):
    def reply(code, **expressions):
        return kernel.reply(kernel.client.execute(code, user_expressions=expressions))["user_expressions"]

    found = reply("%%rank [1]\nten = 10", sum="ten + rank", wrong="1 / 0")
    assert found["sum"]["data"] == {"text/plain": "11"}
    assert (found["wrong"]["status"], found["wrong"]["ename"]) == ("error", "ZeroDivisionError")
    assert reply("", where="rank")["where"]["data"] == {"text/plain": "0"}
    assert reply("1") == {}


def test_an_interrupt_frees_the_ranks_and_the_next_cell_runs(kernel):
    kept = kernel.run("kept = 5")
    cell = kernel.run("import time\nprint('begun')\ntime.sleep(1000)", after=lambda: _interrupt_once_it_runs(kernel))
    assert (kept.status, cell.status) == ("ok", "error")
    assert "KeyboardInterrupt" in cell.error
    assert [display["text/plain"] for display in kernel.run("kept").results] == ["5"]


def _interrupt_once_it_runs(kernel):
    def begun():
        message = kernel.client.get_iopub_msg(timeout=PATIENCE)
        return message["msg_type"] == "stream" and "begun" in message["content"]["text"]

    until(begun)
    # What is not a cell is answered meanwhile.
    assert "%dist_status" in kernel.complete("%dist_st")
    assert "Start this notebook's group" in kernel.inspect("%dist_init")
    kernel.manager.interrupt_kernel()


def test_cells_that_wait_are_aborted_by_an_error_unless_the_client_says_otherwise(kernel):
    client = kernel.client
    requests = [client.execute("import time; time.sleep(0.5); 1 / 0"), client.execute("1"), client.execute("2")]
    replies = {}
    while len(replies) < 3:
        message = client.get_shell_msg(timeout=PATIENCE)
        replies[message["parent_header"]["msg_id"]] = message["content"]["status"]
    assert [replies[request] for request in requests] == ["error", "aborted", "aborted"]
    assert kernel.run("3").status == "ok"


def test_magics_of_parts_are_the_kernels_too(kernel):
    assert set(declared("MAGICS")) <= set(kernel.complete("%dist_"))
    if "undo" in BY_NAME:
        assert kernel.run("%dist_undo --list").status == "ok"
        assert "Cells keep no undo." in kernel.run("%dist_keep_undo").text


@pytest.mark.part("ddip", "variables")
def test_magics_of_the_group_are_those_of_the_extension(kernel):
    assert "Group 'shared': ready, 2 ranks" in kernel.run("%load_ext jupyter_dist\n%dist_status").text
    if "variables" in BY_NAME:
        kernel.run("of_the_kernel = torch.ones(3) * rank")
        assert "of_the_kernel  ranks 0-1  Tensor" in kernel.run("%dist_variables").text
        assert "3 of 3 elements differ" in kernel.run("%dist_compare of_the_kernel").text
    assert kernel.run("%dist_init 2").text.startswith("Attached to group 'shared' with 2 ranks")
    refused = kernel.run("%dist_init 3 --name shared").error
    assert refused.startswith("DistError: Group 'shared' is already running with 2 ranks.")
    assert "choose another kernel" in kernel.run("%dist_mode -d").error
    assert "is for a Python kernel beside the ranks" in kernel.run("%%dip local\n1").error
    assert "%dist_status" in kernel.complete("%dist_s")
    found = kernel.run("# a comment\n%dist_mode\nsquare = rank ** 2\nsquare")
    assert found.text.startswith("Cells run on all ranks")
    assert sorted(display["text/plain"] for display in found.results) == ["0", "1"]
    assert kernel.run("  \n# nothing").status == "ok"


def test_help_goes_to_the_pager_of_the_client(kernel):
    cell = kernel.run("print('before')\n%pinfo len")
    assert "Return the number of items" in cell.pager
    assert (cell.text.count("before"), cell.displays) == (1, [])


def test_cleared_output_is_cleared_and_long_output_says_what_it_left_out(kernel):
    cell = kernel.run(
        "from IPython.display import clear_output\nprint('old', flush=True)\nimport time; time.sleep(1)\nclear_output()\nprint('new')"
    )
    assert cell.clears >= 1
    assert "new" in cell.text
    cell = kernel.run("for i in range(100_000): print(i)")
    assert "more lines" in cell.text
    assert cell.text.endswith("99999\n")


def test_a_rank_that_dies_is_an_error_that_says_so(kernel, group):
    cell = kernel.run("%%rank 1\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert cell.status == "error"
    assert "RankError" in cell.ename
    assert "killed" in cell.error or "SIGKILL" in cell.error
    assert [display["text/plain"] for display in kernel.run("%%rank 0\nrank").results] == ["0"]
    assert "rank 1 replaced" in kernel.run("%dist_restart -d").text
    assert kernel.run("dist.barrier()").status == "ok"


def test_a_restart_of_the_kernel_is_one_of_the_ranks_and_a_kill_is_not(group, tmp_path):
    with ranks_kernel() as kernel:
        kernel.run(f"mark = 1\nlog = open(f'{tmp_path}/log-{{rank}}', 'w')\nmark = log.write('s') and 1")
        pids = [rank.pid for rank in group.status().ranks]
        kernel.manager.restart_kernel(now=True)  # without a word to the kernel, as after its death
        kernel.client.wait_for_ready(PATIENCE)
        cell = kernel.run("mark")
        assert cell.text.startswith("Cells run on group 'shared' (2 ranks), which keeps its variables.")
        assert [display["text/plain"] for display in cell.results] == ["1"]
        kernel.manager.restart_kernel()
        kernel.client.wait_for_ready(PATIENCE)
        cell = kernel.run("mark")
        assert cell.text.startswith("Group 'shared': 2 new ranks.\n")
        assert cell.ename == "NameError"
        assert not set(pids) & {rank.pid for rank in group.status().ranks}
        assert [path.read_text() for path in tmp_path.iterdir()] == ["s", "s"]  # flushed at the end of the old ranks
        second = kernel.manager.client()  # with the identity of the first, as a client that has lost its connection
        second.start_channels()
        assert second.kernel_info(reply=True, timeout=PATIENCE)["content"]["status"] == "ok"
        assert second.execute_interactive("1", timeout=PATIENCE)["content"]["status"] == "ok"
        second.stop_channels()
    assert group.status().state == "ready"  # the kernel was shut down


def test_the_history_is_that_of_the_cells(kernel):
    kernel.run("first_of_history = 1")
    kernel.run("second_of_history = 2")
    request = kernel.client.history(hist_access_type="search", pattern="*_of_history = *", n=5)
    assert [code for _, _, code in kernel.reply(request)["history"]] == [
        "first_of_history = 1",
        "second_of_history = 2",
    ]


def test_the_history_is_that_of_the_group(kernel, group):
    kernel.run("1")
    group.run("of_another_client = 3")
    tail = kernel.reply(kernel.client.history(hist_access_type="tail", n=1))["history"]
    assert [code for _, _, code in tail] == ["of_another_client = 3"]


def test_a_page_with_our_extension_gets_one_output_for_all_ranks(kernel):
    client = kernel.client
    open_ = client.session.msg(
        "comm_open", {"comm_id": "page", "target_name": "jupyter_dist", "data": {"path": "a/b.ipynb"}}
    )
    client.shell_channel.send(open_)
    cell = kernel.run("print(rank)\n1 / 0")
    assert cell.bundle["state"] == "error"
    assert ("0", "0\n") in cell.said
    assert ("0-1", "ZeroDivisionError") in cell.said
    (traceback,) = (part["data"]["text/plain"] for number, part in cell.parts.items() if number is not None)
    assert "\x1b[" in traceback  # in color for other readers
    assert "1 / 0" in without_ansi(traceback)
    assert (cell.error, cell.status) == (None, "error")
    client.shell_channel.send(client.session.msg("comm_close", {"comm_id": "page", "data": {}}))
    assert RANKS_MIME not in json.dumps(kernel.run("rank").results)


def test_the_kernel_ends_when_it_is_told_to_end(group):
    with ranks_kernel() as kernel:
        kernel.run("1")
        process = kernel.manager.provisioner.process
        process.send_signal(signal.SIGTERM)
        until(lambda: process.poll() is not None)
        assert process.returncode == 0


PARENT = """
import time
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(90, "ranks")
print(manager.provisioner.process.pid, flush=True)
time.sleep(1000)
"""


def test_a_kernel_ends_with_the_program_that_started_it_however_that_ends(group):
    with running([sys.executable, "-c", PARENT]) as parent:
        pid = int(read_until(parent, str.strip))
        parent.kill()
        until(lambda: has_ended(pid))
    assert group.status().state == "ready"


def test_a_request_that_is_not_sound_does_not_end_the_kernel(kernel):
    client = kernel.client
    for kind in ("execute_request", "inspect_request", "comm_open", "no_such_request"):
        client.shell_channel.send(client.session.msg(kind, {}))
    assert kernel.run("1").status == "ok"


def test_usage_is_that_of_the_ranks(group, kernel):
    """jupyter-resource-usage asks each kernel, and waits for its answer."""
    kernel.run("x = 1")
    client = kernel.client
    client.control_channel.send(client.session.msg("usage_request"))
    usage = client.get_control_msg(timeout=PATIENCE)["content"]
    ranks = sum(sample.resident_bytes for sample in group.memory().ranks)
    assert usage["kernel_memory"] > ranks / 2
    assert usage["cpu_count"] >= 1
    assert usage["host_virtual_memory"]["total"] > usage["kernel_memory"]
