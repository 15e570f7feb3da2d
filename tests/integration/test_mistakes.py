"""The teacher's notebook: each mistake is run as a user would run it, and the notebook says what its text promises."""

import json
from pathlib import Path

import accused
import pytest
from waits import until

from jupyter_dist.protocol.ranks import RankSet

NOTEBOOK = json.loads((Path(__file__).parents[2] / "examples" / "mistakes.ipynb").read_text())
CELLS = {cell["id"]: cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"}

# What the verdict of a cell says that cannot end: its reason, and words of its message.
HANGS = {
    "one-rank": ("missing", ["Rank 0 waits in all_reduce", "line 3", "Rank 1 is idle and has not called it"]),
    "one-batch-more": ("missing", ["Rank 0 waits in all_reduce", "collectives against"]),
    "one-exception": ("missing", ["Rank 0 waits in all_reduce", "Rank 1 is idle"]),
    "another-collective": ("mismatch", ["broadcast", "all_reduce", "do not match"]),
    "both-receive": ("mismatch", ["recv"]),
    "some-ranks": ("missing", ["Rank 0 waits in all_reduce", "Rank 1 is idle"]),
}
RANKS = range(2)


def submit(server, cell_id):
    cell = CELLS[cell_id]
    ranks = cell["metadata"].get("jupyter_dist", {}).get("ranks", "all")
    return server.submit("g", "".join(cell["source"]), ranks, notebook="mistakes.ipynb", cell_id=cell_id)


def run(server, cell_id):
    view = server.view("g", submit(server, cell_id))
    assert view["execution"]["state"] == "ok", view
    return view["items"]


def hung(server, cell_id):
    """The cell and its verdict, as soon as it cannot end."""
    reason, words = HANGS[cell_id]
    execution = submit(server, cell_id)
    view = {}

    def cannot_end():
        view.update(server.view("g", execution, wait=0))
        return (view["execution"].get("verdict") or {}).get("kind") == "cannot_end"

    until(cannot_end, lambda: view)
    verdict = view["execution"]["verdict"]
    assert verdict["reason"] == reason
    for word in words:
        assert word in verdict["message"]
    return execution, view


def interrupt(server, execution):
    server.ask("POST", "groups/g/interrupt", {"ranks": "all"})
    server.view("g", execution)


def lines(items):
    """Each line, with its ranks."""
    texts = [(item["ranks"], "".join(item["output"].get("text", ""))) for item in items if "output" in item]
    return [(ranks, line) for ranks, text in texts for line in text.splitlines()]


def differing(server):
    """What a comparison of the model names."""
    found = server.ask("POST", "groups/g/compare", {"name": "model"})
    return {one["path"] for one in found["differences"]}


@pytest.mark.part("hangs", "variables", "curves", "profile", "checks")
def test_all_in_the_order_of_the_notebook(group_server):
    said = lines(run(group_server, "setup"))
    assert said == [("0-1", "2 ranks")]
    for cell_id in ("one-rank", "one-batch-more"):
        execution, _ = hung(group_server, cell_id)
        interrupt(group_server, execution)
    execution, view = hung(group_server, "one-exception")
    failed = [item for item in view["items"] if item["output"]["output_type"] == "error"]
    assert [item["ranks"] for item in failed] == ["1"]
    assert "label 10 is out of range" in failed[0]["output"]["evalue"]
    interrupt(group_server, execution)
    for cell_id in ("another-collective", "both-receive"):
        execution, _ = hung(group_server, cell_id)
        interrupt(group_server, execution)
    run_on_some_ranks(group_server)
    data_and_orders(group_server)
    numbers_and_models(group_server)
    chores(group_server)
    wrong(group_server)
    assert lines(run(group_server, "still-whole")) == [("0-1", "all ranks are here")]


def run_on_some_ranks(server):
    """The guard knows before; the rank that is missing joins, and the cell ends."""
    body = {"code": "".join(CELLS["some-ranks"]["source"]), "ranks": "0", "ask_first": True}
    status, error = server.refused("POST", "groups/g/executions", body)
    assert (status, error["message"]) == (409, "all_reduce needs all 2 ranks, 1 is chosen.")
    execution, view = hung(server, "some-ranks")
    verdict = view["execution"]["verdict"]
    assert verdict["could_join"] == "1"
    server.ask("POST", f"groups/g/executions/{execution}/extend", {"ranks": verdict["could_join"]})
    ended = server.view("g", execution)
    assert ended["execution"]["state"] == "ok"
    assert lines(ended["items"]) == [("0-1", "ranks that took part: 2")]


def data_and_orders(server):
    assert {ranks for ranks, _ in lines(run(server, "same-data"))} == {"0-1"}
    assert {ranks for ranks, _ in lines(run(server, "own-data"))} == {"0", "1"}
    said = lines(run(server, "same-order"))
    for rank in RANKS:
        mine = [line for ranks, line in said if str(RankSet([rank])) in (ranks, "0-1") or ranks == "0-1"]
        first = {line.rpartition("sample ")[2] for line in mine[:3]}
        told = {line.rpartition("sample ")[2].split()[0] for line in mine[3:]}
        assert len(first) == 1, mine
        assert len(told) > 1, mine


def numbers_and_models(server):
    from jupyter_dist.parts.curves.tokens import tokenize

    items = run(server, "local-loss")
    words = {one: [tokenize(text)[0] for ranks, text in lines(items) if ranks == one] for one in ("0", "1")}
    assert words["0"] == words["1"] != []  # only their numbers differ
    run(server, "own-models")
    assert differing(server) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    run(server, "one-checkpoint")
    assert differing(server) == {"2.bias"}


def chores(server):
    from jupyter_dist.parts.profile.models import PROFILE_MIME

    code = "".join(CELLS["chores"]["source"])
    assert "time.sleep(0.5)" in code
    # Rank 0 takes longer than in the notebook, to be the last on a busy machine, too.
    view = server.run("g", code.replace("time.sleep(0.5)", "time.sleep(3)"))
    assert view["execution"]["state"] == "ok", view
    data = [item["output"]["data"] for item in view["items"] if "data" in item["output"]]
    profile = next(found[PROFILE_MIME] for found in data if PROFILE_MIME in found)
    assert profile["stragglers"] == "0"
    assert profile["ranks"][0]["last"] == 4
    assert profile["ranks"][1]["waiting"] > 1.5


# Part two: the kind of check of each cell.
WRONG = {
    "same-batches": "same_batch",
    "inner-module": "inner_module",
    "earlier-optimizer": "other_optimizer",
    "new-head": "parameters_not_held",
    "unfrozen": "changed_after_wrap",
    "no-sync": "no_sync",
    "one-rank-loads": "replicas_differ",
    "no-zero-grad": "not_zeroed",
    "own-rate": "settings_differ",
    "one-nan": "not_finite",
}


def wrong(server):
    """Nothing fails, and each cell has one check."""
    assert accused.take() == {}
    run(server, "setup-two")
    for cell_id, kind in WRONG.items():
        view = server.view("g", submit(server, cell_id))
        assert view["execution"]["state"] == "ok", view
        checks = view["execution"].get("checks", [])
        assert [(check["kind"], check["ranks"]) for check in checks] == [(kind, "1" if kind == "not_finite" else "0-1")]
    accused.take()


@pytest.mark.parametrize("cell_id", CELLS)
def test_the_text_after_a_cell_says_what_to_do(cell_id):
    """Each mistake has a heading before it, and a text after it."""
    ids = [cell["id"] for cell in NOTEBOOK["cells"]]
    if cell_id not in ("setup", "own-data", "setup-two", "still-whole"):
        around = [NOTEBOOK["cells"][ids.index(cell_id) + step] for step in (-1, 1)]
        assert [cell["cell_type"] for cell in around] == ["markdown", "markdown"]
        assert around[0]["source"][0].startswith("## ")


def test_there_are_twenty_two():
    headings = [cell for cell in NOTEBOOK["cells"] if cell["source"][0].startswith("## ")]
    assert len(headings) == 22
