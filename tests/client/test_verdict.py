"""A cell that cannot end says why to who waits for it, once; it may be run on the ranks that it waits for."""

import io
import threading

from waits import PATIENCE, until

from jupyter_dist.client.blocking.report import stacks_text
from jupyter_dist.client.results.display import TextDisplay


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
    assert "in <module>\n    dist.barrier()" in said
    assert said.endswith("rank 1: idle")
    execution.extend("1")
    waiting.join(PATIENCE)
    result = execution.result(PATIENCE)
    assert (result.state, result.execution["ranks"]) == ("ok", "0-1")
    assert [result[rank].text for rank in (0, 1)] == ["past it\n0", "past it\n1"]
    assert [record["kind"] for record in group.logs(1)[-4:]] == ["begin", "stream", "output", "end"]
