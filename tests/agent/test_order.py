"""In which order an agent sends output and ends of cells: real ranks, and a client that reads late."""

from __future__ import annotations

import time
from contextlib import closing

from waits import until

from jupyter_dist.agent.agent import MAX_OVERTAKEN_BYTES, OVERTAKE_SECONDS
from jupyter_dist.journal.reader import JournalCursor


def test_the_end_of_a_cell_does_not_wait_for_the_output_of_another_that_nobody_reads(pair):
    folder = pair.agent.directory.parent
    go, done = folder / "go", folder / "done"
    wait = "import os, time\nwhile not os.path.exists({!r}): time.sleep(0.01)\n"
    num_bytes = 4 * MAX_OVERTAKEN_BYTES
    write = f"n = os.write(1, b'x' * {num_bytes})\nopen({str(done)!r}, 'w').close()"
    flood = pair.submit(wait.format(str(go)) + write, [0])
    other = pair.submit(wait.format(str(done)) + "print('other')", [1])
    pair.wait(lambda: pair.executions[other]["state"] == "running")
    go.touch()
    with closing(JournalCursor(pair.agent.directory / "journal")) as journal:
        until(lambda: any(_ends(record, other) for record in journal.read()))
    time.sleep(2 * OVERTAKE_SECONDS)  # what an end waits for records at most
    pair.wait_final(other)
    assert len(pair.text(0, flood)) < num_bytes
    pair.wait_final(flood)
    assert len(pair.text(0, flood)) == num_bytes  # more than can be read later: its end comes after all of it
    for file in (go, done):
        file.unlink()


def _ends(record, execution_id):
    return (record.header["kind"], record.header.get("execution_id")) == ("end", execution_id)
