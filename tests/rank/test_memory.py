"""Giving memory back after a cell that changed what is in use on the device."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from rankclient import RankClient

from jupyter_dist.rank.collectives.diagnosis import mainthread
from jupyter_dist.rank.memory import MemoryCounters

if TYPE_CHECKING:
    import torch

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

    def memory_stats_as_nested_dict(self, device: torch.device) -> dict[str, Any]:
        self.num_asked += 1
        number = 100 * self.num_asked
        return {
            "num_alloc_retries": self.num_asked,
            "allocated_bytes": {"all": {"current": number, "peak": number + 1}},
            "reserved_bytes": {"all": {"current": number + 2}},
        }


def test_another_thread_does_not_ask_torch_while_the_main_thread_is_in_one_call() -> None:
    """In such a call it may hold the allocator's lock until a hung collective ends."""
    counters, device = MemoryCounters("cuda", mainthread.main_thread_moves), Device()
    counters._module = device
    known = counters.counters()  # in the main thread, which holds no lock then
    assert {**known, "resident_bytes": 0} == {
        "resident_bytes": 0,
        "allocated_bytes": 100,
        "reserved_bytes": 102,
        "peak_bytes": 101,
    }
    assert (device.num_asked, counters.num_alloc_retries) == (1, 1)
    found: list[dict[str, int | None]] = []
    has_asked = threading.Lock()
    has_asked.acquire()

    def wait_in_one_call() -> None:
        has_asked.acquire()

    def waits() -> bool:
        frame, code = sys._current_frames()[threading.main_thread().ident or 0], wait_in_one_call.__code__
        return frame.f_code is code and frame.f_lineno == code.co_firstlineno + 1

    def ask_in_one_call() -> None:
        while not waits():  # the main thread may get no core for some time
            pass
        found.append(counters.counters())
        has_asked.release()

    asking = threading.Thread(target=ask_in_one_call)
    asking.start()
    wait_in_one_call()
    asking.join()
    assert (device.num_asked, counters.num_alloc_retries) == (1, 1)
    assert {**found[0], "resident_bytes": 0} == {**known, "resident_bytes": 0}

    def ask_until_answered() -> None:
        while device.num_asked == 1:  # the main thread may have got no core meanwhile
            found.append(counters.counters())

    asking = threading.Thread(target=ask_until_answered)
    asking.start()
    while asking.is_alive():
        pass
    assert (found[-1]["allocated_bytes"], counters.num_alloc_retries) == (200, 2)


class OtherDevice:
    """Stands for a kind of device that has each counter by itself."""

    def is_initialized(self) -> bool:
        return True

    def memory_allocated(self, device: torch.device) -> int:
        return 1

    def memory_reserved(self, device: torch.device) -> int:
        return 2

    def max_memory_allocated(self, device: torch.device) -> int:
        return 3


def test_a_kind_of_device_without_a_table_of_counters_is_asked_for_each() -> None:
    counters = MemoryCounters("xpu")
    counters._module = OtherDevice()
    found = counters.counters()
    assert (found["allocated_bytes"], found["reserved_bytes"], found["peak_bytes"]) == (1, 2, 3)
    assert counters.num_alloc_retries is None


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
