"""JupyterLab's debugger on ranks of two nodes, each of which has the files of cells in a folder of its own."""

import os

import pytest
from agent.debugpage import CODE, Debugger

pytest.importorskip("debugpy")


def test_a_breakpoint_that_names_the_file_of_the_first_rank_stops_a_rank_of_another_node(shared_nodes):
    client, page = shared_nodes.client, Debugger(shared_nodes.client)
    page.attach((0, 2))
    first, other = (page.done(rank, "dumpCell", code=CODE)["sourcePath"] for rank in (0, 2))
    assert first != other
    assert os.path.basename(first) == os.path.basename(other)
    for rank in (0, 2):
        page.done(rank, "setBreakpoints", source={"path": first}, breakpoints=[{"line": 2}])
    assert page.done(2, "source", source={"path": first})["content"] == CODE
    cell = client.submit(CODE, (0, 2))
    for rank, path in ((0, first), (2, other)):
        page.wait_stopped(rank, 2)
        assert [frame["source"]["path"] for frame in page.stack(rank)] == [path, path]
        # A page translates what is in a rank's own folder.
        info = page.done(rank, "debugInfo")
        assert path.startswith(info["tmpFilePrefix"])
        assert [point["source"] for point in info["breakpoints"]] == [path]
    for rank in (0, 2):
        page.done(rank, "disconnect")
    assert client.ended(cell)["state"] == "ok"
