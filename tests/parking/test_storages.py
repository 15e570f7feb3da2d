"""The storages of a rank: which are found, which cannot be moved, and that they come back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from rankclient import RankClient

FIND = """
import torch
from jupyter_dist.parts.parking.rank.storages import find_storages, why_addresses_matter
from jupyter_dist.parts.parking.rank.moving import MovedStorages
from jupyter_dist.rank.cells.values.opening import StepBudget
from jupyter_dist.rank.cells.values.storages import held_by
def is_found(tensor):
    return tensor.untyped_storage().data_ptr() in {one.data_ptr() for one in find_storages("cpu").movable}
"""


@pytest.fixture
def shared_rank(shared: RankClient) -> RankClient:
    assert shared.run(FIND).status == "ok"
    return shared


def text(rank: RankClient, code: str) -> str:
    result = rank.run(code)
    assert result.status == "ok", result.text()
    return result.text()


def test_each_kind_of_tensor_is_found(shared_rank: RankClient) -> None:
    code = """
weight = torch.nn.Parameter(torch.ones(4)); weight.grad = torch.ones(4)
sparse = torch.eye(3).to_sparse()
rows = torch.eye(3).to_sparse_csr()
base = torch.ones(8); view = base[2:4]
print(*map(is_found, (weight, weight.grad, sparse._values(), sparse._indices(), rows.values(), view)))
print(is_found(torch.empty(3, device="meta")))
"""
    assert text(shared_rank, code) == "True True True True True True\nFalse\n"


def test_memory_that_others_know_by_its_address_is_left(shared_rank: RankClient) -> None:
    code = """
import numpy
given = torch.ones(1000); array = given.numpy()
taken = torch.from_numpy(numpy.ones(1000))
common = torch.ones(1000).share_memory_()
print(*map(is_found, (given, taken, common)))
print(*find_storages("cpu").sentences(), sep="\\n")
"""
    assert text(shared_rank, code) == (
        "False False False\n"
        "12000 bytes stay where they are: a NumPy array, a file or another library shares them.\n"
        "4000 bytes stay where they are: they are shared with other processes.\n"
    )


def test_views_whose_base_was_changed_in_place_are_found_and_listed(shared_rank: RankClient) -> None:
    """torch raises where such a view is asked whether it is a leaf; the list of variables failed by that."""
    code = """
whole = torch.ones(4, requires_grad=True) * 1
first, second = whole.chunk(2)
with torch.no_grad(): _ = whole.mul_(2)
print(is_found(first), held_by(first, StepBudget(100)).num_bytes)
"""
    assert text(shared_rank, code) == "True 16\n"


@pytest.mark.parametrize("place", ["host", "file"])
def test_bytes_leave_and_return(shared_rank: RankClient, tmp_path: Path, place: str) -> None:
    path = None if place == "host" else str(tmp_path / "bytes")
    code = f"""
base = torch.arange(1000.0); view = base[10:20]; small = torch.tensor(7)
moved = MovedStorages([base.untyped_storage(), small.untyped_storage()], {path!r})
print(base.untyped_storage().nbytes(), small.untyped_storage().nbytes(), moved.num_bytes)
moved.bring_back()
print(base.sum().item(), view.tolist()[-1], small.item(), view.data_ptr() - base.data_ptr())
"""
    assert text(shared_rank, code) == "0 0 4008\n499500.0 19.0 7 40\n"
    assert list(tmp_path.iterdir()) == []


def test_nothing_changes_where_there_is_no_room(shared_rank: RankClient, tmp_path: Path) -> None:
    code = f"""
base = torch.arange(1000.0)
try: MovedStorages([base.untyped_storage()], {str(tmp_path / "none" / "bytes")!r})
except OSError as err: print(err.strerror, base.sum().item())
"""
    assert text(shared_rank, code) == "No such file or directory 499500.0\n"


def test_libraries_that_keep_addresses_are_named(shared_rank: RankClient) -> None:
    code = "import sys\nsys.modules['cupy'] = None\nprint(why_addresses_matter())\ndel sys.modules['cupy']"
    assert text(shared_rank, code) == "cupy is imported, which may share the memory of tensors by its address\n"
    assert text(shared_rank, "print(why_addresses_matter())") == "None\n"
