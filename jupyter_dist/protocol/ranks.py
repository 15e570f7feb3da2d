"""Sets of ranks (RankSet), and rank expressions: `all`, `0-3,7`, `::2`, `!0`, `node:1`. Parsed, never evaluated.

The TypeScript counterpart is labextension/src/model/format/ranks.ts; both run rank_expressions.json
and host_expressions.json of tests/vectors.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

from .errors import JupyterDistError
from .models.sentences import say, say_n

EXAMPLES = "all, 0, 0-3,7, ::2, !0, node:0, a host"  # of rank expressions, for help texts
MAX_EXPRESSION_LENGTH = 1000
# More ranks than any group has: sets with other ranks are damaged, and are rejected cheaply.
MAX_RANKS = 4096
MAX_CANONICAL_LENGTH = 6 * MAX_RANKS

# White space of Python and of JavaScript, for a set of a regular expression; the same as in format/characters.ts.
WHITE = r"\s\ufeff"
_SPACES = re.compile(rf"[{WHITE}]+")
_AROUND = re.compile(rf"\A[{WHITE}]+|[{WHITE}]+\Z")

# Seven digits are more than any group has, and keep int() and range() cheap.
_NUMBER = r"-?[0-9]{1,7}"
_SINGLE = re.compile(rf"({_NUMBER})\Z")
_RANGE = re.compile(r"([0-9]{1,7})-([0-9]{1,7})\Z")
_CANONICAL = re.compile(r"(?:[0-9]{1,7}(?:-[0-9]{1,7})?(?:,[0-9]{1,7}(?:-[0-9]{1,7})?)*)?\Z")
_NODE = re.compile(r"node:([0-9]{1,7})\Z")
_SLICE = re.compile(rf"({_NUMBER})?:({_NUMBER})?(?::({_NUMBER})?)?\Z")


class RankSet(tuple[int, ...]):
    """An immutable set of ranks: sorted, each once. In JSON it is a list, and `str` is its canonical expression.

    Two places have a form of their own, for speed: the page's log is folded with bit masks (server/folding), and the
    journal's loop over records passes on plain tuples (journal/records/wide.py).

    >>> ranks = RankSet([3, 0, 1, 2, 7])
    >>> str(ranks), 2 in ranks, str(ranks - [7]), str(RankSet.from_text("0-3") | [5])
    ('0-3,7', True, '0-3', '0-3,5')
    """

    __slots__ = ()

    def __new__(cls, ranks: Iterable[int] = ()) -> RankSet:
        """Create a set of these ranks."""
        return ranks if isinstance(ranks, RankSet) else super().__new__(cls, sorted(set(ranks)))

    @classmethod
    def from_text(cls, canonical: str, world_size: int = MAX_RANKS) -> RankSet:
        """Return the set with this canonical expression, as `str` writes it.

        Raises:
            ValueError: it is not canonical, or names a rank beyond `world_size` (from a damaged file).
        """
        return _expanded(canonical, world_size)

    def __str__(self) -> str:
        """Return the canonical expression: ranges as `a-b`. Empty for no ranks."""
        if len(self) > 1 and self[-1] - self[0] == len(self) - 1:  # most are, and some are long
            return f"{self[0]}-{self[-1]}"
        runs: list[list[int]] = []  # first and last rank of each
        last = -2
        for rank in self:
            if rank == last + 1:
                runs[-1][1] = rank
            else:
                runs.append([rank, rank])
            last = rank
        return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)

    def __repr__(self) -> str:
        """Return an expression that creates the set."""
        return f"RankSet({list(self)})"

    def __or__(self, others: Iterable[int]) -> RankSet:
        """Return the ranks of both sets."""
        return RankSet({*self, *others})

    def __and__(self, others: Iterable[int]) -> RankSet:
        """Return the ranks that are in both sets."""
        return RankSet(set(self).intersection(others))

    def __sub__(self, others: Iterable[int]) -> RankSet:
        """Return the ranks that are not in the other set."""
        return RankSet(set(self).difference(others))

    def isdisjoint(self, others: Iterable[int]) -> bool:
        """Whether no rank is in both sets."""
        return set(self).isdisjoint(others)


def parse_ranks(expression: str, world_size: int, nodes: Sequence[Iterable[int]] = ()) -> RankSet:
    """Return the ranks that `expression` names in a group of `world_size`, with these ranks on its nodes.

    Without nodes the group is on one machine, `node:0`.

    Raises:
        JupyterDistError: `bad_ranks`, if it is malformed, names a rank that does not exist, or names none.
    """
    if not isinstance(expression, str):
        raise _bad(say("A rank expression is a string, not %1.", type(expression).__name__), world_size)
    if len(expression) > MAX_EXPRESSION_LENGTH:
        raise _bad(say("The rank expression is longer than %1 characters.", MAX_EXPRESSION_LENGTH), world_size)
    terms = _terms(expression)
    if terms == [""]:
        raise _bad(say("The rank expression is empty."), world_size)
    chosen = set(range(world_size)) if terms[0].startswith("!") else set()
    for term in terms:
        if term.startswith("!"):
            chosen.difference_update(_term_ranks(term[1:], expression, world_size, nodes))
        else:
            chosen.update(_term_ranks(term, expression, world_size, nodes))
    if not chosen:
        raise _bad(say("'%1' names no rank.", _AROUND.sub("", expression)), world_size)
    return RankSet(chosen)


def with_nodes(expression: str, hosts: Sequence[str | None]) -> str:
    """Return an expression with nodes in the place of hosts' names: `nd1,!2` becomes `node:0,!2`.

    Args:
        expression: a rank expression, which may name hosts, in full or up to the first dot. A name that is an
            expression itself, such as `all` or `7`, keeps its meaning, and so does a short name of several hosts.
        hosts: the host of each node; None for a node that has not joined.
    """
    if not any(hosts) or len(expression) > MAX_EXPRESSION_LENGTH:
        return expression
    terms = _terms(expression)
    found = [_with_nodes(term, hosts) for term in terms]
    return expression if found == terms else ",".join(found)


def _with_nodes(term: str, hosts: Sequence[str | None]) -> str:
    sign, name = ("!", term[1:]) if term.startswith("!") else ("", term)
    if not name or name == "all" or any(pattern.match(name) for pattern in (_SINGLE, _RANGE, _NODE, _SLICE)):
        return term
    chosen = {name} if name in hosts else {host for host in hosts if host and host.partition(".")[0] == name}
    nodes = [node for node, host in enumerate(hosts) if host in chosen] if len(chosen) == 1 else []
    return ",".join(f"{sign}node:{node}" for node in nodes) or term


def completions(typed: str, group: Mapping[str, Any]) -> list[str]:
    """Return the expressions that a typed one may become in this group (a GroupModel): `all`, nodes and hosts.

    Args:
        typed: the expression up to the cursor. Its last term is completed, also after `!`; a list of numbers is not.
        group: the group whose nodes are named.
    """
    term = typed.rpartition(",")[2].lstrip("[ ").removeprefix("!")
    hosts = [node.get("host") for node in group.get("nodes") or []]
    names = [f"node:{node}" for node in range(len(hosts))] if len(hosts) > 1 else []
    names += dict.fromkeys(_shown_host(host, hosts) for host in hosts if host)
    before = typed.removesuffix(term)
    return [f"{before}{name}" for name in ("all", *names) if name.startswith(term)]


def _shown_host(host: str, hosts: Sequence[str | None]) -> str:
    """Return the name of a host up to the first dot, if no other host has the same and it is no expression."""
    short = host.partition(".")[0]
    return short if with_nodes(short, hosts) == with_nodes(host, hosts) else host


def ranks_in(group: Mapping[str, Any], expression: str) -> RankSet:
    """Return the ranks that an expression names in this group (a GroupModel); it may name hosts.

    Raises:
        JupyterDistError: `bad_ranks`, like `parse_ranks`.
    """
    nodes = group.get("nodes") or []
    if isinstance(expression, str):
        expression = with_nodes(expression, [node.get("host") for node in nodes])
    return parse_ranks(expression, group["world_size"], [RankSet.from_text(node["ranks"]) for node in nodes])


def existing_ranks(expression: str, world_size: int) -> tuple[str, str]:
    """Return the expression without ranks after the group's last one (maybe empty), and the ranks that were left out.

    Only single ranks and ranges are looked at; what is wrong with other terms, `parse_ranks` reports.
    """
    kept: list[str] = []
    missing: list[str] = []
    for term in _terms(expression):
        match = _RANGE.match(term) or _SINGLE.match(term)
        first, last = (int(match[1]), int(match[match.lastindex or 1])) if match else (0, -1)
        if not world_size <= last >= first:
            kept.append(term)
            continue
        missing.append(f"{max(first, world_size)}-{last}" if max(first, world_size) < last else str(last))
        if first < world_size:
            kept.append(f"{first}-{world_size - 1}")
    return (",".join(kept), ",".join(missing)) if missing else (expression, "")


@lru_cache(maxsize=1024)  # the same few sets come with every record, and each node of a group has one
def _expanded(canonical: str, world_size: int) -> RankSet:
    if len(canonical) > MAX_CANONICAL_LENGTH or not _CANONICAL.match(canonical):
        raise ValueError("not a set of ranks")
    ranks: list[int] = []
    next_rank = 0
    for part in canonical.split(",") if canonical else []:
        first, _, last = part.partition("-")
        start, stop = int(first), int(last or first) + 1
        # Each range comes after the one before it, so together they do not exceed the world size.
        if not next_rank <= start < stop <= world_size:
            raise ValueError(f"not a set of ranks below {world_size}")
        ranks.extend(range(start, stop))
        next_rank = stop
    return RankSet(ranks)


def _terms(expression: str) -> list[str]:
    text = _SPACES.sub("", expression)
    return (text[1:-1] if text.startswith("[") and text.endswith("]") else text).split(",")


def _term_ranks(term: str, expression: str, world_size: int, nodes: Sequence[Iterable[int]]) -> Iterable[int]:
    if term == "all":
        return range(world_size)
    if match := _SINGLE.match(term):
        return [_existing(int(match[1]), term, world_size)]
    if match := _RANGE.match(term):
        first, last = (_existing(int(number), term, world_size) for number in match.groups())
        if first > last:
            raise _bad(say("'%1' is reversed; did you mean '%2-%3'?", term, last, first), world_size)
        return range(first, last + 1)
    if match := _NODE.match(term):
        return _node_ranks(int(match[1]), term, world_size, nodes or [range(world_size)])
    if match := _SLICE.match(term):
        start, stop, step = (int(number) if number else None for number in match.groups())
        if step is not None and step < 1:
            raise _bad(say("The step of '%1' must be 1 or more.", term), world_size)
        return range(world_size)[slice(start, stop, step)]
    raise _bad(say("'%1' in '%2' is not a rank expression.", term, _AROUND.sub("", expression)[:60]), world_size)


def _node_ranks(node: int, term: str, world_size: int, nodes: Sequence[Iterable[int]]) -> Iterable[int]:
    if node >= len(nodes):
        known = say("node 0") if len(nodes) == 1 else say("nodes 0 to %1", len(nodes) - 1)
        raise _bad(say("There is no node %1 ('%2'): this group has %3.", node, term, known), world_size)
    return nodes[node]


def _existing(rank: int, term: str, world_size: int) -> int:
    actual = rank + world_size if rank < 0 else rank
    if not 0 <= actual < world_size:
        raise _bad(say("There is no rank %1 ('%2').", rank, term), world_size)
    return actual


def _bad(message: str, world_size: int) -> JupyterDistError:
    valid = say("rank %1", 0) if world_size == 1 else say("ranks 0 to %1", world_size - 1)
    hint = say("This group has %1. Write all, 0, 0-3, 0-3,7, ::2, !0 or node:0.", valid)
    return JupyterDistError("bad_ranks", message, hint)


# -- the ranks of each node: consecutive numbers, in the order of the nodes, which may differ in how many they have ----


def node_ranges(counts: Sequence[int]) -> list[range]:
    """Return the ranks of each node, given how many it has.

    >>> node_ranges([1, 3])
    [range(0, 1), range(1, 4)]
    """
    return [range(end - count, end) for end, count in zip(accumulate(counts), counts, strict=True)]


def place_of(rank: int, counts: Sequence[int]) -> tuple[int, int]:
    """Return the node of a rank and its number there (torchrun's GROUP_RANK and LOCAL_RANK).

    >>> place_of(2, [1, 3])
    (1, 1)
    """
    for node, count in enumerate(counts):
        if rank < count:
            return node, rank
        rank -= count
    raise IndexError(f"no node has rank {rank}")


def divided(num_ranks: int, rooms: Sequence[int]) -> list[int]:
    """Return how many ranks each node gets, if every node is filled before the next one gets any.

    >>> divided(5, [4, 8, 8])
    [4, 1]
    """
    counts = []
    for room in rooms:
        if num_ranks <= 0:
            break
        counts.append(min(room, num_ranks))
        num_ranks -= room
    return counts


def in_proportion(most: int, counts: Sequence[int]) -> list[int]:
    """Return the amount of each node, if the node with the most ranks has `most`, and others as many per rank.

    >>> in_proportion(16, [4, 8]), in_proportion(3, [1, 2])
    ([8, 16], [2, 3])
    """
    return [-(-most * count // max(counts)) for count in counts]


def in_words(counts: Sequence[int]) -> str:
    """Return the numbers of ranks of nodes for a sentence.

    >>> in_words([2, 2]), in_words([4, 4, 8])
    ('2 ranks each', '4, 4 and 8 ranks')
    """
    if len(set(counts)) == 1:
        return say_n("%1 rank each", "%1 ranks each", counts[0])
    if len(counts) > 8:
        return say("%1 and more ranks", ", ".join(map(str, counts[:8])))
    return say("%1 and %2 ranks", ", ".join(map(str, counts[:-1])), counts[-1])


def ranks_per_node(text: str) -> list[int] | int:
    """Parse `4`, or `4,8`: the number of each node. Raises ArgumentTypeError.

    >>> ranks_per_node("4"), ranks_per_node("4,8")
    (4, [4, 8])
    """
    try:
        counts = [int(part) for part in text.strip("[]").split(",")]
    except ValueError:
        message = f"{text[:60]!r} is not a number of ranks: write 4, or the number of each node, such as 4,8"
        raise ArgumentTypeError(message) from None
    return counts if len(counts) > 1 else counts[0]


def name_ranks(ranks: Iterable[int], begins: bool = False) -> str:
    """Return ranks in a sentence, or at its begin: rank 5, Ranks 0-3."""
    found = RankSet(ranks)
    if begins:
        return say("Ranks %1", found) if len(found) > 1 else say("Rank %1", found)
    return say("ranks %1", found) if len(found) > 1 else say("rank %1", found)
