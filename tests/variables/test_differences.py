"""Variables of real ranks side by side, and tensors of a desynchronised model by name, rank and size of the difference."""

import pytest
from waits import until

from jupyter_dist.client import JupyterDistError

MODEL = """
torch.manual_seed(0)
apart = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
with torch.no_grad():
    if rank == 1:
        apart[2].bias[1] += 0.25
"""
HOSTILE = """
class Trap(type):
    def __getattribute__(cls, name): raise SystemExit(name)
class Trapped(metaclass=Trap):
    def __repr__(self): raise SystemExit("repr")
    def __getattribute__(self, name): raise SystemExit(name)
class TrappedModel(torch.nn.Linear):
    def __getattr__(self, name): raise SystemExit(name)
    @property
    def weight(self): raise SystemExit("weight")
    def __repr__(self): raise SystemExit("repr")
class TrappedTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *_, **__): raise SystemExit("torch function")
class Dispatched(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, *_, **__): raise SystemExit("dispatch")
    def __tensor_flatten__(self): raise SystemExit("flatten")
wrapping = torch.Tensor._make_wrapper_subclass(Dispatched, (2,))
wrapping.inner = torch.ones(2)
computing = torch.Tensor._make_subclass(Dispatched, torch.ones(2))
trapped, trapped_model = object.__new__(Trapped), object.__new__(TrappedModel)
torch.nn.Module.__init__(trapped_model)
trapped_model._parameters["inner"] = torch.nn.Parameter(torch.ones(5))
trapped_tensor = torch.ones(2).as_subclass(TrappedTensor)
"""


def test_variables_are_listed_with_what_differs(group):
    group.run("same = torch.zeros(2, 3)\nseen = [1] * (rank + 2)\nonly = 'here' if rank else None").raise_for_error()
    group.run("if rank == 0: del only").raise_for_error()
    found = group.variables()
    assert found.model["ranks"] == "0-1"
    (same,) = found["same"].rows
    assert (same.ranks, same.type, same.shape, same.dtype) == ("0-1", "Tensor", "[2, 3]", "float32")
    assert (same.device, same.bytes, same.value) == ("cpu", 24, "")
    assert [(row.ranks, row.shape) for row in found["seen"].rows] == [("0", "2"), ("1", "3")]
    assert (found["only"].missing, found["only"].rows[0].value) == ("0", "'here'")
    names = {one.name for one in found.differing}
    assert {"seen", "only"} <= names
    assert "same" not in names
    assert not {"rank", "torch", "dist", "device"} & {one.name for one in found}
    assert "* seen" in repr(found)
    assert "<strong>not defined</strong>" in found._repr_html_()


def test_a_desynchronised_model_is_found_by_parameter_rank_and_size(group):
    group.run(MODEL).raise_for_error()
    found = group.compare("apart")
    (one,) = found.differences
    assert (one.path, one.what, one.max_abs) == ("2.bias", "values", pytest.approx(0.25))
    assert {one.ranks, one.reference} == {"0", "1"}
    assert (one.different, one.compared) == (1, 2)
    assert found.model["tensors"] == 4
    assert "2.bias  rank 1: 1 of 2 elements differ from rank 0, by at most 0.25" in repr(found)
    group.run("dist.broadcast(apart[2].bias.data, 0)").raise_for_error()
    assert group.compare("apart").is_equal


def test_a_variable_that_a_rank_does_not_have_is_missing_there(group):
    group.run("if rank == 0: lonely = torch.ones(3)").raise_for_error()
    found = group.compare("lonely")
    assert (found.model["ranks"], found.model["missing"], found.differences) == ("0", "1", [])
    assert not found.is_equal
    assert "not defined on rank 1" in repr(found)


def test_differences_that_are_not_listed_are_counted(group):
    group.run("many = [torch.full((1,), float(rank)) for _ in range(505)]").raise_for_error()
    found = group.compare("many")
    assert (len(found.differences), found.model["left_out"]) == (500, 5)
    assert found.outcome == "differs"


def test_tensors_of_every_layout_and_type_are_compared_by_bits(group):
    group.run(
        "big = torch.arange(700_000, dtype=torch.float32).reshape(700, 1000).t()\n"
        "if rank: big = big.clone(memory_format=torch.contiguous_format); big[999, 699] = float('nan'); big[0, 1] += 2\n"
        "state = {'a': torch.ones(3, dtype=torch.bfloat16) * (1 + rank), 'b': [torch.tensor(True)], 'c': torch.ones(2 + rank),"
        " 'd': torch.empty(0), 'e': torch.tensor([1 + 1j]).conj()}\n"
        "import numpy\narray = numpy.arange(6).reshape(2, 3)[::-1]"
    ).raise_for_error()
    (big,) = group.compare("big").differences
    assert (big.different, big.compared, big.max_abs, big.nonfinite) == (2, 700_000, 2.0, True)
    state = {one.path: one for one in group.compare("state").differences}
    assert (state["a"].max_abs, state["c"].what, set(state)) == (1.0, "shape", {"a", "c"})
    assert group.compare("array").is_equal
    group.run("array = array + rank").raise_for_error()
    assert group.compare("array").differences[0].max_abs == 1.0
    group.run("zero = torch.tensor([0.0, -0.0 if rank else 0.0])").raise_for_error()
    assert "1 of 2 elements differ from rank 0, in the sign of zero alone" in repr(group.compare("zero"))


def test_no_code_of_users_runs(group):
    group.run(HOSTILE).raise_for_error()
    found = group.variables()
    assert found["trapped"].rows[0].type == "Trapped"
    assert found["trapped_model"].rows[0].shape == "1 tensor"
    assert found["trapped_tensor"].rows[0].type == "TrappedTensor"
    assert group.compare("trapped_model").is_equal
    assert group.compare("trapped_tensor").is_equal  # by its numbers, past its class
    assert group.compare("trapped").is_equal
    assert group.compare("wrapping").outcome == "equal"
    assert group.compare("computing").outcome == "not_compared"
    assert group.run("rank").ok


def test_a_rank_that_runs_a_cell_is_not_asked(group):
    group.run("shown = torch.ones(1) * rank").raise_for_error()
    execution = group.submit("import time\ntime.sleep(1000)", "1")
    until(lambda: group.variables().model["busy"] == "1")
    found = group.compare("shown")
    assert (found.model["ranks"], found.model["busy"]) == ("0", "1")
    assert "Busy: rank 1." in repr(found)
    execution.cancel()
    until(lambda: not group.variables().model["busy"])


def test_what_cannot_be_compared_is_an_error_with_a_sentence(group):
    group.run("plain = 5").raise_for_error()
    assert group.compare("plain").is_equal
    for name, code, said in [
        ("plain + 1", "bad_request", "would have to be computed"),
        ("plain.real", "not_found", "plain.real"),
        ("nowhere", "not_found", "nowhere"),
    ]:
        with pytest.raises(JupyterDistError, match=said) as refused:
            group.compare(name)
        assert refused.value.code == code
    with pytest.raises(JupyterDistError, match="rank 9"):
        group.variables("9")


# Every shape in which a model or its state comes, alike on both ranks but for what `rank` says.
SHAPES = """
import collections, dataclasses, functools, pandas, threading, types
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
torch.manual_seed(0)
odd = 1.0 * rank
line, halves = init_device_mesh("cpu", (2,)), init_device_mesh("cpu", (2, 1), mesh_dim_names=("replicate", "shard"))
def dtensor(mesh, placements, part): return DTensor.from_local(part, mesh, placements, run_check=False)
@dataclasses.dataclass
class Config:
    lr: float
    sizes: list
Pair = collections.namedtuple("Pair", "left right")
class Slotted:
    __slots__ = ("inside",)
    def __init__(self, inside): self.inside = inside
def kept(inside):
    def function(): return inside
    return function
def shapes(x):
    def ones():
        made = torch.ones(4)
        made[2] += x
        return made
    net = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Dropout(0.5 + x / 4))
    with torch.no_grad(): net[0].weight.fill_(1 + x)
    adam = torch.optim.Adam(net.parameters(), lr=0.1 + x)
    frozen = torch.nn.Linear(2, 2).requires_grad_(not x)
    with torch.no_grad(): frozen.weight.fill_(1), frozen.bias.fill_(1)
    return {
        "state": net.state_dict(), "nested": {"m": [{"s": net.state_dict()}]}, "default": collections.defaultdict(list, a=ones()),
        "user": collections.UserDict(a=ones()), "config": Config(0.1 + x, [1]), "pair": Pair(1, ones()), "slotted": Slotted(ones()),
        "closure": kept(ones()), "partial": functools.partial(print, ones()), "optimizer": adam, "names": types.SimpleNamespace(lr=x),
        "sparse": ones().to_sparse(), "rows": torch.outer(ones(), ones()).to_sparse_csr(), "plain": {"lr": 0.1 + x}, "list": [1, 2, x],
        "text": "a" * 100 + str(x), "mode": torch.nn.Dropout(0.5).train(not x), "frozen": frozen, "dropout": torch.nn.Dropout(0.5 + x / 4),
        "quantized": torch.quantize_per_tensor(ones(), 0.5, 0, torch.quint8), "replicated": dtensor(line, [Replicate()], ones()),
        "replica": dtensor(halves, [Replicate(), Shard(0)], ones()),
        "frame": pandas.DataFrame({"number": [1.0, x], "text": ["a", str(x)]}), "series": pandas.Series([1.0, x]),
    }
"""


def test_each_shape_of_a_state_is_compared_and_its_difference_found(group):
    group.run(SHAPES).raise_for_error()
    group.run("same, other = shapes(0.0), shapes(odd)").raise_for_error()
    names = group.run("print(*other)", "0").raise_for_error()[0].text.split()
    same = group.compare("same")
    assert (same.is_equal, same.not_compared, same.differences) == (True, [], []), same
    found = group.compare("other")
    differing = {one.path.partition(".")[0] for one in found.differences}
    assert differing == set(names), (set(names) - differing, found)
    (one,) = (one for one in found.differences if one.path == "config.lr")
    assert {one.found, one.expected} == {"0.1", "1.1"}


def test_parts_of_sharded_tensors_are_compared_to_what_their_placement_says(group):
    group.run(SHAPES).raise_for_error()
    group.run(
        "fs = torch.nn.Linear(4, 4, bias=False)\nwith torch.no_grad(): fs.weight.fill_(1.0)\nfully_shard(fs)\n"
        "split = dtensor(line, [Shard(0)], torch.full((2,), float(rank)))\n"
        "wrong = DTensor.from_local(torch.ones(2 + rank), line, [Shard(0)], run_check=False, shape=(4,), stride=(1,))\n"
        "mixed = dtensor(line, [Shard(0) if rank else Replicate()], torch.ones(2))"
    ).raise_for_error()
    for name in ("fs", "split"):
        found = group.compare(name)
        assert (found.is_equal, found.model["tensors"], found.model["sharded"]) == (True, 1, 1), found
    assert "1 of them divided over ranks" in repr(group.compare("fs"))
    (one,) = group.compare("wrong").differences
    assert (one.what, one.ranks, one.found) == ("placement", "1", "a part of [3]")
    assert {one.what for one in group.compare("mixed").differences} & {"placement", "shape"}


def test_what_is_not_compared_is_named_and_hides_nothing(group):
    group.run(
        "import threading\nheld = {'a': torch.ones(2), 'm': torch.empty(2, device='meta'), 'lock': threading.Lock()}\n"
        "late = dict(held)\nif rank: late['extra'] = torch.ones(1)"
    ).raise_for_error()
    found = group.compare("held")
    assert (found.outcome, found.is_equal, found.differences) == ("not_compared", False, [])
    assert {(one.path, one.ranks) for one in found.not_compared} == {("m", "0-1"), ("lock", "0-1")}
    assert "what was compared is equal, 2 parts not compared" in repr(found)
    assert "m  not compared on ranks 0-1: it is on the meta device, without numbers" in repr(found)
    (one,) = (one for one in group.compare("late").differences if one.path == "extra")
    assert (one.what, one.ranks) == ("missing", "0")
    assert group.compare("held['lock']").outcome == "not_compared"


def test_a_part_of_a_variable_is_named_by_its_path(group):
    group.run(MODEL + "optimizer = torch.optim.SGD(apart.parameters(), lr=0.1)").raise_for_error()
    for name, expected in {
        "apart[2].bias": [""],
        "apart.state_dict()": ["2.bias"],
        "apart.state_dict()['2.bias']": [""],
        "apart[0]": [],
        "optimizer.state_dict()['param_groups'][0]": [],
    }.items():
        assert [one.path for one in group.compare(name).differences] == expected, name


def test_a_tensor_that_differs_late_says_how_far_it_was_compared(group):
    group.run("late = torch.zeros(66 << 20, dtype=torch.uint8)\nlate[-1] = rank").raise_for_error()
    found = group.compare("late")
    assert "the first 67108864 of 69206016 elements are equal, and the others were not compared" in repr(found)
    assert "0 of" not in repr(found)
    group.run("del late")


def test_what_differs_inside_is_marked_and_what_was_not_looked_at_is_said(group):
    group.run(SHAPES).raise_for_error()
    group.run(
        "same, other = shapes(0.0), shapes(odd)\n"
        "globals().update({f'a_{k}': v for k, v in same.items()} | {f'b_{k}': v for k, v in other.items()})\n"
        "lock = threading.Lock()"
    ).raise_for_error()
    found = group.variables()
    differing = {one.name for one in found.differing}
    assert not [name for name in differing if name.startswith("a_")]
    plain = ("config", "names", "plain", "list", "text", "mode", "frozen", "dropout", "optimizer")
    assert {f"b_{name}" for name in plain} <= differing
    for name in {one.name for one in found if one.name.startswith("b_")} - differing:
        assert found[name].rows[0].unseen.startswith("the numbers of"), name
    assert [row.value for row in found["b_mode"].rows] == ["", "eval"]
    assert "lock" in repr(found).partition("Not looked at to the end: ")[2]
