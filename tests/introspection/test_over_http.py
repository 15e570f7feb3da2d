"""Completions and documentation over HTTP and in the Python client, and what a rank that cannot answer is to them."""

from waits import until

from jupyter_dist.client.bundles.bundle import without_ansi

SLOW = (
    "class Slow:\n    def __dir__(self):\n        import time\n        time.sleep(1)\n        return []\nslow = Slow()"
)


def completed(server, rank, code, **fields):
    return server.ask("POST", f"groups/g/ranks/{rank}/complete", {"code": code, **fields})


def test_code_completes_with_the_names_of_a_rank(group_server):
    server = group_server
    server.run("g", "if rank == 1: only_there = [1]")
    found = completed(server, 1, "x = only_t + 1", cursor_pos=10)
    known = {"types": ["instance"], "signatures": [""]}
    assert found == {"matches": ["only_there"], "cursor_start": 4, "cursor_end": 10, **known}
    assert completed(server, 0, "only_t")["matches"] == []
    assert "append" in str(completed(server, 1, "only_there.ap"))
    execution = server.submit("g", "import time\ntime.sleep(1000)", "1")
    until(lambda: server.ask("GET", "groups/g")["running"] == [execution])
    assert completed(server, 1, "only_t")["matches"] == ["only_there"]
    server.ask("DELETE", f"groups/g/executions/{execution}")
    status, error = server.refused("POST", "groups/g/ranks/2/complete", {"code": ""})
    assert (status, error["code"]) == (404, "unknown_rank")


def test_a_rank_that_cannot_answer_is_named(group_server):
    server = group_server
    server.run("g", SLOW)
    status, error = server.refused("POST", "groups/g/ranks/0/complete", {"code": "slow.x"})
    assert (status, error["code"]) == (504, "timed_out")
    assert "Rank 0" in error["message"]
    assert "goes on" in str(server.run("g", "print('goes on')"))
    server.ask("POST", "groups/g/ranks/0/kill")
    for request in ("complete", "inspect"):
        _, error = server.refused("POST", f"groups/g/ranks/0/{request}", {"code": "s"})
        assert error["code"] == "rank_dead"


def test_what_a_completer_raises_is_an_answer_and_the_rank_goes_on(group_server):
    server = group_server
    server.run("g", "def broken(*_): raise ValueError('no completions')\nget_ipython().Completer.completions = broken")
    status, error = server.refused("POST", "groups/g/ranks/0/complete", {"code": "pri"})
    assert (status, error["code"]) == (500, "internal")
    assert "ValueError: no completions" in error["message"]
    assert server.ask("POST", "groups/g/ranks/0/inspect", {"code": "print"})["found"]


def test_the_python_client_has_both(group):
    group.run("def scaled(x, *, by=2):\n    'Multiply.'\n    return x * by", check=True)
    found = group.complete("scal")
    assert (found.matches, found.types, found.signatures) == (["scaled"], ["function"], ["(x, *, by=2)"])
    assert "return x * by" in without_ansi(group.inspect("scaled", rank=1, detail=1).data["text/plain"])
