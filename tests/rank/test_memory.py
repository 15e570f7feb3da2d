"""Giving memory back after a cell that changed what is in use on the device."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from rankclient import RankClient

from jupyter_dist.rank.collectives.diagnosis import mainthread
from jupyter_dist.rank.memory import MemoryCounters

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


class Device:
    """Stands for torch.cuda where there is no device: its counters, which would wait for a lock of the main thread."""

    def __init__(self) -> None:
        self.num_asked = 0

    def is_initialized(self) -> bool:
        return True

    def memory_allocated(self, device: torch.device) -> int:
        self.num_asked += 1
        return 100 * self.num_asked

    memory_reserved = max_memory_allocated = memory_allocated

    def memory_stats_as_nested_dict(self, device: torch.device) -> dict[str, int]:
        return {"num_alloc_retries": self.memory_allocated(device)}


def test_another_thread_does_not_ask_torch_while_the_main_thread_is_in_one_call() -> None:
    """In such a call it may hold the allocator's lock until a hung collective ends."""
    counters, device = MemoryCounters("cuda", mainthread.main_thread_moves), Device()
    counters._module = device
    known = counters.counters()  # in the main thread, which holds no lock then
    assert device.num_asked == 3
    found: list[dict[str, int | None]] = []
    retries: list[int | None] = []

    def ask() -> None:
        found.append(counters.counters())
        retries.append(counters.num_alloc_retries())

    def ask_in_one_call() -> None:
        while mainthread.main_thread_moves():
            pass
        ask()

    asking = threading.Thread(target=ask_in_one_call)
    asking.start()
    asking.join()  # one call, in which the main thread waits
    assert (device.num_asked, retries) == (3, [None])
    assert {**found[0], "resident_bytes": 0} == {**known, "resident_bytes": 0}

    def ask_until_answered() -> None:
        while device.num_asked == 3:  # the main thread may have got no core meanwhile
            found.append(counters.counters())
        while retries[-1] is None:
            retries.append(counters.num_alloc_retries())

    asking = threading.Thread(target=ask_until_answered)
    asking.start()
    while asking.is_alive():
        pass
    assert found[-1]["allocated_bytes"] == 400
    assert retries[-1] == 700


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
