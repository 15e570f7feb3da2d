"""The ranks of each node of a group: consecutive numbers, in the order of the nodes, which may differ in how many."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Sequence
from itertools import accumulate


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
        return f"{counts[0]} {'rank' if counts[0] == 1 else 'ranks'} each"
    shown = [*map(str, counts[:8]), *(["more"] if len(counts) > 8 else [])]
    return f"{', '.join(shown[:-1])} and {shown[-1]} ranks"


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
