"""What the report says on devices, from messages that torch wrote on them, and of which errors there is one."""

import os

import pytest

from jupyter_dist.rank.cells.errors import neighbours
from jupyter_dist.rank.cells.errors.shortage import asked_bytes, find_shortage, lines_of
from jupyter_dist.rank.cells.values.holders import HeldStorages, Holder
from jupyter_dist.rank.cells.values.storages import Holding
from jupyter_dist.system import processes

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
    import torch

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
    lines = list(lines_of(22 * GIB, HeldStorages([net], {storage: 9 * GIB}), counters, "cuda"))
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
    lines = list(lines_of(None, HeldStorages([net, pair], {own: GIB, shared: 9 * GIB, other: GIB}), counters, "cpu"))
    assert "  del net, pair  (10.0 GiB of net)" in lines
    assert "  del net  (1.00 GiB)" in lines


# As torch 2.1 and later write it; the pids are put in.
SHARED = (
    "CUDA out of memory. Tried to allocate 25.96 GiB. GPU 4 has a total capacity of 79.18 GiB of which 23.04 GiB is "
    "free. {}Of the allocated memory 45.89 GiB is allocated by PyTorch, and 3.01 GiB is reserved by PyTorch but "
    "unallocated."
)
OWN_PART = "Including non-PyTorch memory, this process has 52.02 GiB memory in use. "
NO_PID = (1 << 22) + 1  # more than Linux gives


def of_process(pid, size):
    return f"Process {pid} has {size} memory in use. "


def test_who_else_is_on_the_device_is_read_from_torchs_message():
    first, second = os.getpid(), os.getppid()
    message = SHARED.format(
        of_process(NO_PID, "1.50 GiB")
        + of_process(first, "512.00 MiB")
        + OWN_PART
        + of_process(NO_PID + 1, "512.00 MiB")
        + of_process(second, "4.08 GiB")
    )
    names = processes.name_of(first), processes.name_of(second)
    assert neighbours.line(message) == (
        f"Other processes hold memory on this device, too: {names[1]} (pid {second}) 4.08 GiB; {names[0]} (pid {first})"
        " 512 MiB; 2 of other users, or gone by now, 2.00 GiB"
    )
    many = neighbours.line(SHARED.format(OWN_PART + of_process(first, "1.00 GiB") * 20))
    assert many.count("pid") == neighbours.MAX_NAMED
    assert many.endswith("; 12 more of this user 12.0 GiB")


def test_nobody_is_named_where_pids_may_be_of_the_machine_or_there_are_none():
    # Seen in a container: this process is in the list, by a pid that is not its own there.
    assert neighbours.line(SHARED.format(of_process(os.getpid(), "14.52 GiB"))) is None
    assert neighbours.line(SHARED.format(OWN_PART)) is None
    assert neighbours.line("") is None
