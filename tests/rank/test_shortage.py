"""What the report says on devices, from messages that torch wrote on them, and of which errors there is one."""

import pytest
import torch

from jupyter_dist.rank.cells.shortage import asked_bytes, find_shortage, lines_of
from jupyter_dist.rank.cells.variables.holders import Held, Holder
from jupyter_dist.rank.cells.variables.storages import Holding

GIB = 1 << 30
# As torch 2.0, 2.1, 2.5 and 1.0 wrote them, on devices of 6 to 32 GiB; torch and numpy on CPU; older numpy.
MESSAGES = {
    "CUDA out of memory. Tried to allocate 1.71 GiB (GPU 0; 6.00 GiB total capacity; 3.49 GiB already allocated; "
    "1.04 GiB free; 3.50 GiB reserved in total by PyTorch)": int(1.71 * GIB),
    "CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 11.06 MiB is "
    "free. Including non-PyTorch memory, this process has 23.60 GiB memory in use.": 22 << 20,
    "CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 31.47 GiB of which 12.73 GiB is "
    "free.": int(22.78 * GIB),
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    "34359738368 bytes. Error code 12 (Cannot allocate memory)": 32 * GIB,
    "Unable to allocate 64.0 TiB for an array with shape (1048576, 1048576, 8) and data type float64": 64 << 40,
    "": None,
}


@pytest.mark.parametrize(("message", "asked"), MESSAGES.items())
def test_what_was_asked_for_is_read_from_the_message(message, asked):
    assert asked_bytes(message) == asked


def test_it_is_found_below_the_error_that_a_framework_made_of_it():
    short = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
    wrapped = ValueError("training failed")
    wrapped.__cause__ = short
    assert find_shortage(wrapped) is short
    assert find_shortage(ValueError("CUDA out of memory")) is None
    looped = ValueError("a")
    looped.__context__ = looped
    assert find_shortage(looped) is None


def test_on_a_device_it_says_what_torch_has_and_what_it_only_keeps():
    storage = ("cuda:0", 1)
    net = Holder("net", "variable", None, Holding({storage: 9 * GIB}), frees=9 * GIB)
    counters = {"resident_bytes": 1, "allocated_bytes": 9 * GIB, "reserved_bytes": 18 * GIB, "peak_bytes": 9 * GIB}
    lines = list(lines_of(22 * GIB, Held([net], {storage: 9 * GIB}), counters, "cuda"))
    assert lines == [
        "Out of memory: 22.0 GiB more were asked for. Variables, results and calls hold 9.00 GiB on cuda:0; torch has "
        "9.00 GiB in tensors, and reserved 18.0 GiB:",
        "  net   9.00 GiB",
        "To free memory:",
        "  del net  (9.00 GiB)",
        "  torch.cuda.empty_cache()  (9.00 GiB reserved, not in tensors)",
    ]


def test_the_largest_that_shares_most_of_its_memory_is_freed_with_the_others():
    own, shared, other = ("cpu", 1), ("cpu", 2), ("cpu", 3)
    net = Holder("net", "variable", None, Holding({own: GIB, shared: 9 * GIB}), also=["pair"])
    pair = Holder("pair", "variable", None, Holding({shared: 9 * GIB, other: GIB}), also=["net"])
    counters = {"resident_bytes": 1, "allocated_bytes": None, "reserved_bytes": None, "peak_bytes": None}
    lines = list(lines_of(None, Held([net, pair], {own: GIB, shared: 9 * GIB, other: GIB}), counters, "cpu"))
    assert "  del net, pair  (10.0 GiB of net)" in lines
    assert "  del net  (1.00 GiB)" in lines
