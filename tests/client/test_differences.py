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
    (same,) = found["same"]["rows"]
    assert (same["ranks"], same["type"], same["shape"], same["dtype"]) == ("0-1", "Tensor", "[2, 3]", "float32")
    assert (same["device"], same["bytes"], same["value"]) == ("cpu", 24, "")
    assert [(row["ranks"], row["shape"]) for row in found["seen"]["rows"]] == [("0", "2"), ("1", "3")]
    assert (found["only"]["missing"], found["only"]["rows"][0]["value"]) == ("0", "'here'")
    names = {one["name"] for one in found.differing}
    assert {"seen", "only"} <= names
    assert "same" not in names
    assert not {"rank", "torch", "dist", "device"} & {one["name"] for one in found}
    assert "* seen" in repr(found)
    assert "<strong>not defined</strong>" in found._repr_html_()


def test_a_desynchronised_model_is_found_by_parameter_rank_and_size(group):
    group.run(MODEL).raise_for_error()
    found = group.compare("apart")
    (one,) = found.differences
    assert (one["path"], one["what"], one["max_abs"]) == ("2.bias", "values", pytest.approx(0.25))
    assert {one["ranks"], one["reference"]} == {"0", "1"}
    assert (one["different"], one["compared"]) == (1, 2)
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


def test_tensors_of_every_layout_and_type_are_compared_by_bits(group):
    group.run(
        "big = torch.arange(700_000, dtype=torch.float32).reshape(700, 1000).t()\n"
        "if rank: big = big.clone(memory_format=torch.contiguous_format); big[999, 699] = float('nan'); big[0, 1] += 2\n"
        "state = {'a': torch.ones(3, dtype=torch.bfloat16) * (1 + rank), 'b': [torch.tensor(True)], 'c': torch.ones(2 + rank),"
        " 'd': torch.empty(0), 'e': torch.tensor([1 + 1j]).conj()}\n"
        "import numpy\narray = numpy.arange(6).reshape(2, 3)[::-1]"
    ).raise_for_error()
    (big,) = group.compare("big").differences
    assert (big["different"], big["compared"], big["max_abs"], big["nonfinite"]) == (2, 700_000, 2.0, True)
    state = {one["path"]: one for one in group.compare("state").differences}
    assert (state["a"]["max_abs"], state["c"]["what"], set(state)) == (1.0, "shape", {"a", "c"})
    assert group.compare("array").is_equal
    group.run("array = array + rank").raise_for_error()
    assert group.compare("array").differences[0]["max_abs"] == 1.0


def test_no_code_of_users_runs(group):
    group.run(HOSTILE).raise_for_error()
    found = group.variables()
    assert found["trapped"]["rows"][0]["type"] == "Trapped"
    assert found["trapped_model"]["rows"][0]["shape"] == "1 tensor"
    assert found["trapped_tensor"]["rows"][0]["type"] == "TrappedTensor"
    assert group.compare("trapped_model").is_equal
    assert group.compare("trapped_tensor").model["left_out"] == 1
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
    for name, code, said in [("plain", "bad_request", "'plain' has no tensors"), ("nowhere", "not_found", "nowhere")]:
        with pytest.raises(JupyterDistError, match=said) as refused:
            group.compare(name)
        assert refused.value.code == code
    with pytest.raises(JupyterDistError, match="rank 9"):
        group.variables("9")
