import contextlib
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import RankSet, completions, parse_ranks, ranks_in, with_nodes

VECTORS, HOST_VECTORS = (
    json.loads((Path(__file__).parents[1] / "vectors" / f"{name}_expressions.json").read_text())
    for name in ("rank", "host")
)


def nodes_of(vector):
    return [RankSet.from_text(ranks) for ranks in vector.get("nodes", ())]


def of_two_ranks(hosts):
    return [{"host": host, "ranks": f"{2 * node}-{2 * node + 1}"} for node, host in enumerate(hosts)]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: repr(vector["expr"][:30]))
def test_shared_vectors(vector):
    if vector["error"] is None:
        ranks = parse_ranks(vector["expr"], vector["world_size"], nodes_of(vector))
        assert list(ranks) == vector["ranks"]
        assert str(RankSet(ranks)) == vector["canonical"]
    else:
        with pytest.raises(JupyterDistError) as raised:
            parse_ranks(vector["expr"], vector["world_size"], nodes_of(vector))
        assert raised.value.code == "bad_ranks"
        assert raised.value.message == vector["error"]
        assert "This group has rank" in raised.value.hint


@settings(settings.get_profile("expressions"))
@given(st.text(max_size=40) | st.text("0123456789-,:!+ alnode", max_size=30), st.integers(1, 64))
def test_any_text_is_a_sorted_set_of_ranks_or_one_clear_error(text, world_size):
    try:
        ranks = parse_ranks(text, world_size)
    except JupyterDistError as err:
        error, ranks = err, ()
    else:
        error = None
        assert ranks
    assert (error.code if error else "bad_ranks") == "bad_ranks"
    assert list(ranks) == sorted(set(ranks))
    assert set(ranks) <= set(range(world_size))


@given(st.text(alphabet="0123456789-:,! []al", max_size=30), st.integers(1, 16))
def test_near_misses_of_the_grammar(text, world_size):
    test_any_text_is_a_sorted_set_of_ranks_or_one_clear_error.hypothesis.inner_test(text, world_size)


@given(st.sets(st.integers(0, 200), min_size=1))
def test_canonical_form_comes_back(ranks):
    canonical = str(RankSet(ranks))
    assert set(RankSet.from_text(canonical)) == ranks
    assert set(parse_ranks(canonical, 201)) == ranks


@pytest.mark.parametrize(
    "text", ["0-9999999", "!0-9999999", "0-9999999," * 90 + "0", "::1," * 200 + "0", "0-999999999"]
)
def test_a_huge_range_costs_no_memory(text):
    tracemalloc.start()
    try:
        with contextlib.suppress(JupyterDistError):
            parse_ranks(text, 64)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_not_a_string():
    with pytest.raises(JupyterDistError, match="not int"):
        parse_ranks(3, 4)


@given(st.sets(st.integers(0, 200)), st.sets(st.integers(0, 200)))
def test_a_rank_set_is_a_set_a_text_and_a_list(some, others):
    ranks = RankSet(some)
    assert (list(ranks), set(ranks), len(ranks), bool(ranks)) == (sorted(some), some, len(some), bool(some))
    assert RankSet.from_text(str(ranks)) == ranks == RankSet(ranks)
    assert json.loads(json.dumps(ranks)) == sorted(some)
    assert {ranks: 1}[RankSet(sorted(some, reverse=True))] == 1
    assert (set(ranks | others), set(ranks & others), set(ranks - others)) == (
        some | others,
        some & others,
        some - others,
    )
    assert ranks.isdisjoint(others) == some.isdisjoint(others)
    for result in (ranks | others, ranks & others, ranks - others):
        assert isinstance(result, RankSet)
        assert list(result) == sorted(result)


@pytest.mark.parametrize("vector", HOST_VECTORS, ids=lambda vector: vector["expr"])
def test_names_of_hosts_stand_for_their_nodes(vector):
    assert with_nodes(vector["expr"], vector["hosts"]) == vector["nodes"]
    group = {"world_size": 2 * len(vector["hosts"]), "nodes": of_two_ranks(vector["hosts"])}
    if vector["ranks"] is None:
        with pytest.raises(JupyterDistError, match="is not a rank expression"):
            ranks_in(group, vector["expr"])
    else:
        assert str(ranks_in(group, vector["expr"])) == vector["ranks"]


@given(
    st.text("0123456789-,:!alnode[] ", max_size=20), st.lists(st.text("0123456789-:alnode.", min_size=1), max_size=4)
)
def test_an_expression_never_means_something_else_because_of_a_host(text, hosts):
    try:
        ranks = parse_ranks(text, 8, [range(2 * node, 2 * node + 2) for node in range(len(hosts))])
    except JupyterDistError:
        return
    assert ranks_in({"world_size": 8, "nodes": of_two_ranks(hosts)}, text) == ranks


@pytest.mark.parametrize(
    ("typed", "hosts", "found"),
    [
        ("", ["nd1.lab", "nd2.lab"], ["all", "node:0", "node:1", "nd1", "nd2"]),
        ("0-3,!mach", ["mach1.lab", "mach2.lab"], ["0-3,!mach1", "0-3,!mach2"]),
        ("[node:", ["nd1", "nd1"], ["[node:0", "[node:1"]),
        ("n", ["n.one", "n.two", "7"], ["node:0", "node:1", "node:2", "n.one", "n.two"]),
        ("a", [], ["all"]),
        ("n", [None], []),
    ],
)
def test_terms_that_an_expression_may_go_on_with(typed, hosts, found):
    assert completions(typed, {"nodes": [{"host": host} for host in hosts]}) == found


def test_what_is_no_text_is_a_clear_error():
    with pytest.raises(JupyterDistError, match="is a string, not int"):
        ranks_in({"world_size": 2, "nodes": of_two_ranks(["nd1"])}, 0)
