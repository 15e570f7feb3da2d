"""A cell that cannot end says why to who waits for it, once; it may be run on the ranks that it waits for."""

import io
import threading

import pytest
from waits import PATIENCE, until

from jupyter_dist.client import JupyterDistError
from jupyter_dist.client.blocking.report import stacks_text
from jupyter_dist.client.displays.live import TextDisplay
from jupyter_dist.protocol.models.models import PART_MIME, RANKS_MIME

pytestmark = pytest.mark.part("hangs")


def test_a_cell_that_cannot_end_says_so_once(group):
    out = io.StringIO()
    execution = group.submit("if rank == 0: dist.barrier()")
    waiting = threading.Thread(target=execution.wait, kwargs={"stream": TextDisplay(out)})
    waiting.start()
    until(lambda: "[cannot end]" in out.getvalue())
    group.interrupt()
    waiting.join(PATIENCE)
    told = [line for line in out.getvalue().splitlines() if line.startswith("[cannot end]")]
    assert len(told) == 1
    assert "Rank 0 waits in barrier" in told[0]
    assert "Rank 1 is idle and has not called it" in told[0]


def test_a_cell_that_waits_for_another_rank_is_run_there_too(group):
    out = io.StringIO()
    execution = group.submit("dist.barrier()\nprint('past it')\nrank", "0")
    waiting = threading.Thread(target=execution.wait, kwargs={"stream": TextDisplay(out)})
    waiting.start()
    until(lambda: "run it on rank 1, too: extend('1')" in out.getvalue())
    said = stacks_text(group.stacks())
    assert "rank 0: waits in barrier" in said
    assert "[warning] barrier needs all 2 ranks, 1 is chosen." in out.getvalue()
    assert "in <module>\n    dist.barrier()" in said
    assert said.endswith("rank 1: idle")
    execution.extend("1")
    waiting.join(PATIENCE)
    result = execution.result(PATIENCE)
    assert (result.state, result.execution["ranks"]) == ("ok", "0-1")
    assert [result[rank].text for rank in (0, 1)] == ["past it\n0", "past it\n1"]
    assert [record.kind for record in group.logs(1)[-4:]] == ["begin", "stream", "output", "end"]


WRAP = "ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1)); plain = torch.nn.Linear(2, 1)"


def test_a_wrapped_model_of_the_ranks_needs_all_of_them(group):
    step = "ddp(torch.ones(1, 2)).sum().backward()"
    group.run(WRAP).raise_for_error()
    with pytest.raises(JupyterDistError) as refused:
        group.submit(step, "0", ask_first=True)
    assert (refused.value.code, refused.value.message) == ("needs_all_ranks", "ddp needs all 2 ranks, 1 is chosen.")
    execution = group.submit(step, "0")
    assert execution.peek().execution["warning"] == "ddp needs all 2 ranks, 1 is chosen."
    execution.extend("1")
    assert execution.result(PATIENCE).ok
    assert group.submit(step, ask_first=True).result(PATIENCE).ok
    assert group.submit("plain(torch.ones(1, 2))", "0", ask_first=True).result(PATIENCE).ok
    assert group.submit("ddp(torch.ones(1, 2)).sum()", "0", ask_first=True).result(PATIENCE).ok  # has no buffers
    group.run("def one_step(model, batch):\n    model(batch).sum().backward()").raise_for_error()
    with pytest.raises(JupyterDistError, match="needs all 2 ranks"):
        group.submit("one_step(ddp, torch.ones(1, 2))", "0", ask_first=True)
    assert group.submit("one_step(plain, torch.ones(1, 2))", "0", ask_first=True).result(PATIENCE).ok
    group.run("del ddp").raise_for_error()
    assert "NameError" in group.submit("ddp(1)", "0", ask_first=True).result(PATIENCE).text


def test_a_notebook_without_our_page_says_it_once_and_our_page_can_hide_it(notebook):
    request = notebook.client.execute("%%distributed\nif rank == 0: dist.barrier()")
    said, bundle, is_over = [], {}, False
    while not is_over:
        message = notebook.client.get_iopub_msg(timeout=PATIENCE)
        kind, content = message["msg_type"], message["content"]
        if message["parent_header"].get("msg_id") == request:
            is_over = kind == "status" and content["execution_state"] == "idle"
            data = content.get("data", {})
            bundle = data.get(RANKS_MIME, bundle)
            if "[cannot end]" in (content.get("text") or data.get("text/plain", "")):
                said.append(data.get(PART_MIME))
                notebook.manager.interrupt_kernel()
    assert said == [{"of": bundle["execution_id"]}]
