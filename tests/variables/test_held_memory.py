"""What holds the memory of real ranks, what cells added to it, and the report of a rank that is out of memory."""

import re

import pytest
from waits import until

from jupyter_dist.client import JupyterDistError

MIB = 1 << 20
# Enough to train one step: parameters 4 MiB, gradients 4 MiB, Adam's state 8 MiB.
TRAINED = """
net = torch.nn.Linear(1024, 1024, bias=False)
adam = torch.optim.Adam(net.parameters())
net(torch.ones(1, 1024)).sum().backward()
adam.step()
"""
# The address space of the process, and so much more.
LIMITED = """
import resource
def limited(spare):
    now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + spare, resource.RLIM_INFINITY))
"""
UNLIMITED = "resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))"


@pytest.fixture
def fresh(group):
    """The shared group without what other tests hold."""
    group.run("%reset -f\nimport sys; sys.last_value = sys.last_traceback = sys.last_exc = None")
    yield group
    group.run(f"import resource\n{UNLIMITED}\n%reset -f")


def holders(group, rank=0):
    """By name. On a busy machine a rank may not answer within the time of one question."""

    def answered():
        found = group.variables().holders
        return len(found) == group.world_size and found

    return {one.name: one for one in until(answered)[rank].holders}


def test_views_count_once_and_are_named_together(fresh):
    fresh.run(
        "whole = torch.zeros(1024, 1024)\npart = whole[:10]\narray = part.numpy()\nalone = torch.zeros(256, 1024)"
    )
    found = fresh.variables()
    (part,) = found["part"].rows
    assert (part.shape, part.bytes, part.shares) == ("[10, 1024]", 4 * MIB, ["whole", "array"])
    assert found["alone"].rows[0].shares is None
    for rank in (0, 1):
        memory = found.holders[rank]
        assert (memory.bytes, memory.devices) == (5 * MIB, {"cpu": 5 * MIB})
        assert memory.resident_bytes > 5 * MIB
        assert (memory.allocated_bytes, memory.is_whole) == (None, True)
        assert [one.name for one in memory.holders] == ["whole", "part", "array", "alone"]
        assert [one.frees_bytes for one in memory.holders] == [0, 0, 0, MIB]
    text = repr(found.holders)
    assert "[ranks 0-1] 5.0 MiB held on each; up to" in text
    assert "  part     4.0 MiB  Tensor; shared with whole, array" in text


def test_modules_and_optimizers_are_totalled_by_part(fresh):
    fresh.run(TRAINED).raise_for_error()
    found = holders(fresh)
    assert found["net"].parts == {"parameters": 4 * MIB, "gradients": 4 * MIB}
    parts = found["adam"].parts
    assert (parts["parameters"], parts["gradients"]) == (4 * MIB, 4 * MIB)
    assert 8 * MIB <= parts["state"] < 8 * MIB + 1024  # and the number of its steps
    assert (found["adam"].also, found["adam"].frees_bytes) == (["net"], parts["state"])
    total = fresh.variables().holders[0].bytes
    assert 16 * MIB <= total < 16 * MIB + 1024


def test_what_objects_lists_and_arrays_hold_is_found(fresh):
    fresh.run(
        "import numpy\nclass Trainer: pass\ntrainer = Trainer()\ntrainer.net = torch.nn.Linear(512, 512, bias=False)\n"
        "batches = [{'x': torch.zeros(1024, 256)} for _ in range(3)]\narray = numpy.zeros((1024, 128))[::2]\n"
        "text = b'x' * (2 << 20)\nnumbers = [0] * (1 << 18)\nsmall = [1, 2]"
    ).raise_for_error()
    found = holders(fresh)
    sizes = {name: found[name].bytes for name in ("trainer", "batches", "array")}
    assert sizes == {"trainer": MIB, "batches": 3 * MIB, "array": MIB}
    assert 2 * MIB <= found["text"].bytes < 2 * MIB + 100
    assert 2 * MIB <= found["numbers"].bytes < 2 * MIB + 100
    assert "small" not in found


def test_results_and_the_last_traceback_hold_memory_until_it_is_cleared(fresh):
    fresh.run("torch.zeros(1024, 1024)").raise_for_error()
    (name,) = holders(fresh)
    assert name.startswith("Out[")
    assert holders(fresh)[name].frees_bytes == 4 * MIB
    fresh.run("%reset -f out").raise_for_error()
    assert not holders(fresh)

    fresh.run(
        "import weakref\ndef step():\n    global seen\n    inner = torch.zeros(1024, 1024)\n"
        "    seen = weakref.ref(inner)\n    raise ValueError('no')\nstep()"
    )
    (held,) = fresh.variables().holders[0].holders
    assert (held.name, held.where, held.bytes) == ("inner in step()", "traceback", 4 * MIB)
    fresh.run("import sys; sys.last_value = sys.last_traceback = sys.last_exc = None").raise_for_error()
    assert not holders(fresh)
    # Nothing else has it: IPython's copies are gone, too.
    assert fresh.run("import gc; gc.collect(); seen() is None").values == {0: "True", 1: "True"}


HOSTILE = """
class Trap(type):
    def __getattribute__(cls, name): raise SystemExit(name)
    def __eq__(cls, other): raise SystemExit("eq")
    def __hash__(cls): raise SystemExit("hash")
    def __instancecheck__(cls, one): raise SystemExit("instance")
class Trapped(metaclass=Trap):
    def __getattribute__(self, name): raise SystemExit(name)
    def __len__(self): raise SystemExit("len")
    def __sizeof__(self): raise SystemExit("sizeof")
    def __iter__(self): raise SystemExit("iter")
    __dict__ = property(lambda self: sys.exit("dict"))
class TrappedDict(dict):
    def values(self): raise SystemExit("values")
    def items(self): raise SystemExit("items")
class TrappedError(ValueError):
    __traceback__ = property(lambda self: sys.exit("traceback"))
    __cause__ = property(lambda self: sys.exit("cause"))
    def __str__(self): raise SystemExit("str")
trapped, trapped_dict = object.__new__(Trapped), TrappedDict(x=torch.zeros(1024, 256))
looped = []
looped.append(looped)
everything = globals()
"""


def test_no_code_of_users_runs_and_the_namespace_is_nobodys(fresh):
    fresh.run(f"import pandas, sys\n{HOSTILE}").raise_for_error()  # pandas: its frames are known by their types
    fresh.run("mine = torch.zeros(1024, 256)").raise_for_error()
    failed = fresh.run("def f():\n    held = torch.zeros(1024, 256)\n    raise TrappedError\nf()")
    assert failed.state == "error"
    found = holders(fresh)
    assert set(found) == {"mine", "trapped_dict", "held in f()"}
    assert fresh.variables()["trapped"].rows[0].type == "Trapped"
    assert fresh.run("1").ok


def test_what_closures_partials_generators_slots_and_sparse_tensors_hold_is_found(fresh):
    fresh.run(
        "import functools\ndef big(): return torch.zeros(1024, 256)\n"
        "def closing(inside):\n    def function(): return inside\n    return function\n"
        "class Slotted:\n    __slots__ = ('inside', 'unset')\n"
        "closure, partial, slotted = closing(big()), functools.partial(print, big()), Slotted()\nslotted.inside = big()\n"
        "def waiting(inside):\n    yield inside\n"
        "generator = waiting(big()); next(generator); sparse = torch.ones(1 << 18).to_sparse()\nnone = None"
    ).raise_for_error()
    sizes = {name: one.bytes for name, one in holders(fresh).items()}
    assert sizes == {"closure": MIB, "partial": MIB, "slotted": MIB, "generator": MIB, "sparse": 3 * MIB}


def test_many_objects_take_a_bounded_time_and_are_told(fresh):
    fresh.run("many = [[number] for number in range(200_000)]\nafter = torch.zeros(1024, 256)").raise_for_error()
    memory = fresh.variables().holders[0]
    assert not memory.is_whole
    assert {"many", "after"} <= {one.name for one in memory.holders}
    assert "Lists of many objects were not looked at to their ends." in repr(fresh.variables().holders)


def test_a_cell_tells_what_it_added_and_gave_back(fresh):
    added = fresh.run("kept = torch.ones(32 << 20, dtype=torch.uint8)").memory_changes
    assert set(added) == {0, 1}
    for rank in (0, 1):
        assert (added[rank].kind, added[rank].added_bytes >= 31 * MIB) == ("resident", True)
    assert fresh.run("rank").memory_changes == {}
    given = fresh.run("if rank == 1: del kept").memory_changes
    assert set(given) == {1}
    assert given[1].added_bytes <= -31 * MIB


def test_the_peak_of_a_cell_is_told_if_it_is_a_new_one(fresh):
    high = "high = torch.ones(600 << 20, dtype=torch.uint8); del high"
    told = fresh.run(high, "0").memory_changes[0]
    assert told.peak_bytes >= 600 * MIB
    assert told.added_bytes < 300 * MIB
    assert fresh.run("high = torch.ones(200 << 20, dtype=torch.uint8); del high", "0").memory_changes == {}


def test_a_tensor_that_does_not_fit_is_reported_with_what_holds_the_rest(fresh):
    fresh.run(TRAINED + LIMITED).raise_for_error()
    fresh.run("torch.zeros(1024, 1024)").raise_for_error()
    result = fresh.run(
        "def step():\n    work = torch.ones(2 << 20)\n    limited(1 << 30)\n    return torch.ones(8 << 30)\nstep()"
    )
    assert result.errors[0].ename == "RuntimeError"
    text = result[0].text
    assert "Out of memory: 32.0 GiB more were asked for." in text
    assert "MiB on cpu; the process has about" in text
    assert "del adam, net" not in text  # half of it is freed by one of them
    for line in (
        "adam             16.0 MiB  4.00 MiB of parameters, 4.00 MiB of gradients, 8.00 MiB of state; shared with net",
        "work in step()",
        "del adam  (8.00 MiB)",
        "adam.zero_grad()  (4.00 MiB of gradients)",
        "%reset -f out",
        "sys.last_value =",
    ):
        assert line in text, (line, text)
    # Equal lines of both ranks are one.
    folded = [item for item in result.folded if "adam.zero_grad()" in "".join(item.get("output", {}).get("text", ""))]
    assert [item["ranks"] for item in folded] == ["0-1"]


def test_names_of_one_object_are_one_line_and_what_frees_it_is_named(fresh):
    fresh.run(
        "big = torch.ones(8 << 20, dtype=torch.uint8)\nview, npv, alias = big[:10], big.numpy(), big\n"
        "other = torch.ones(3 << 20, dtype=torch.uint8)\nheld = [other]"
    ).raise_for_error()
    fresh.run("big")
    result = fresh.run(
        "def step():\n    batch = torch.ones(1 << 20, dtype=torch.uint8)\n    torch.ones(1 << 60)\nstep()"
    )
    text = result[0].text
    lines = [line.split("  ")[1:] for line in text.partition("more were asked for")[2].splitlines() if line[:2] == "  "]
    assert [(line[0], line[-1].strip()) for line in lines[:3]] == [
        ("big, view, npv, alias", "8.00 MiB"),
        ("other, held", "3.00 MiB"),
        ("batch in step()", "1.00 MiB"),
    ], text
    assert "  del big, view, npv, alias and %reset -f out  (8.00 MiB)" in text
    assert "  del other, held  (3.00 MiB)" in text


def test_memory_that_small_objects_used_up_is_reported_and_the_rank_goes_on(fresh):
    fresh.run(LIMITED).raise_for_error()
    result = fresh.run("limited(64 << 20)\nfilled = []\nwhile True: filled.append(bytearray(50_000))", "0")
    assert result.errors[0].ename == "MemoryError"
    assert "Out of memory: " in result.text
    assert "filled" in result.text
    fresh.run("filled = None", "0").raise_for_error()
    assert fresh.run(f"{UNLIMITED}\n'on'", "0").values[0] == "'on'"


def test_numpy_says_what_was_asked_for(fresh):
    result = fresh.run("import numpy\nnumpy.zeros((1 << 20, 1 << 20, 8))")
    assert "Out of memory: 64.0 TiB more were asked for. No variable holds any" in result.text
    assert "To free memory" not in result.text


def test_other_errors_have_no_report(fresh):
    result = fresh.run("raise RuntimeError('this model is out of memories')")
    assert "Out of memory:" not in result.text


def test_a_rank_that_runs_a_cell_is_not_asked(fresh):
    execution = fresh.submit("import time\ntime.sleep(1000)", "1")
    until(lambda: fresh.variables().model["busy"] == "1")
    memory = fresh.variables().holders
    assert [one.rank for one in memory] == [0]
    assert "Busy: rank 1." in repr(memory)
    with pytest.raises(KeyError, match="Rank 1 has not answered"):
        memory[1]
    execution.cancel()
    until(lambda: not fresh.variables().model["busy"])


def test_ranks_that_do_not_exist_are_an_error(fresh):
    with pytest.raises(JupyterDistError, match="There is no rank 7"):
        fresh.variables("7")


def test_who_else_holds_memory_of_the_device_is_named(fresh):
    said = (
        "Process {os.getppid()} has 4.08 GiB memory in use. Including non-PyTorch memory, this process has 52.02 GiB "
        "memory in use."
    )
    tried = "CUDA out of memory. Tried to allocate 25.96 GiB. "
    code = f"import os\ntry:\n    raise torch.OutOfMemoryError(f'{tried}{said}')\n"
    result = fresh.run(f"{code}except RuntimeError as err:\n    raise ValueError('training failed') from err", "0")
    assert "Out of memory: 26.0 GiB more were asked for." in result.text
    parent = fresh.run("os.getppid()", "0").values[0]
    assert re.search(rf"hold memory on this device, too: \S+ \(pid {parent}\) 4\.08 GiB$", result.text)
