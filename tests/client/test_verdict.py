"""A cell that cannot end says why to who waits for it, once."""

import io
import threading

from waits import PATIENCE, until

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
