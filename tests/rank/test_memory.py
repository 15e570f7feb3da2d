"""Giving memory back after a cell that changed what is in use on the device."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rankclient import RankClient

GARBAGE = """
import gc, weakref
gc.disable()
class Cycle: pass
garbage = Cycle()
garbage.me = garbage
seen = weakref.ref(garbage)
{more}
del garbage
"""


def test_a_cpu_rank_does_nothing(rank: RankClient) -> None:
    assert rank.run(GARBAGE.format(more=""), empty_cache=True).status == "ok"
    assert rank.run("print(seen() is None)", empty_cache=True).text() == "False\n"


@pytest.mark.gpu
def test_a_cuda_rank_gives_back_what_a_cell_left(make_group: Callable[..., list[RankClient]]) -> None:
    fields = {"accelerator": "cuda", "device": "cuda:0", "env": {"CUDA_VISIBLE_DEVICES": "0"}}
    (rank,) = make_group(1, **fields)
    reserved = "print(torch.cuda.memory_reserved() >> 20, seen() is None)"
    left = GARBAGE.format(more="garbage.tensor = torch.zeros(64 << 20, device=device)")
    rank.run(left)
    assert rank.run(reserved).text() == "256 False\n"
    rank.run("torch.zeros(1, device=device); None", empty_cache=True)
    freed = rank.run(reserved).text().split()
    assert int(freed[0]) < 256
    assert freed[1] == "True"
    rank.run(left, empty_cache=True)
    assert int(rank.run(reserved).text().split()[0]) < 256
