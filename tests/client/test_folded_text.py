"""Folded text for readers without our renderer: no rank's line is lost, moved or given to another rank."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist.client.bundles.blocks import Blocks
from jupyter_dist.protocol.ranks import RankSet

RANKS = st.sets(st.integers(0, 4), min_size=1).map(RankSet).map(str)
LINES = st.lists(st.sampled_from(["a", "b", "  c", ")", "", "d:"]), min_size=1, max_size=3)


@given(st.lists(st.tuples(RANKS, LINES, st.booleans()), max_size=30))
def test_every_rank_keeps_its_lines_in_order(items):
    blocks = Blocks()
    for ranks, lines, is_text in items:
        (blocks.add_text if is_text else blocks.add_output)(ranks, "\n".join(lines))
    found = list(blocks.close())
    for rank in range(5):
        printed = [line for ranks, lines, _ in items if rank in RankSet.from_text(ranks) for line in lines]
        assert [line for ranks, lines in found if rank in RankSet.from_text(ranks) for line in lines] == printed
    assert all(one[0] != other[0] for one, other in itertools.pairwise(found))
