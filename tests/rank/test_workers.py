"""Workers that a cell starts: they know what the notebook defined, also where Python no longer forks by default."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import RankClient, ZygoteClient, make_spec

# Python 3.14's default, made in any version by a module that the zygote imports.
LATER_PYTHON = """
import multiprocessing
multiprocessing.get_context.__self__._default_context = multiprocessing.get_context("forkserver")
"""
SQUARES = """
import multiprocessing
from torch.utils.data import DataLoader, Dataset
class Squares(Dataset):
    def __len__(self): return 4
    def __getitem__(self, index): return index * index
"""
SUM = "print(sum(batch.sum().item() for batch in DataLoader(Squares(), num_workers=1)))"


@pytest.fixture
def rank_of_later_python(tmp_path: Path) -> Iterator[RankClient]:
    (tmp_path / "later_python.py").write_text(LATER_PYTHON)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    zygote = ZygoteClient(("later_python",), PYTHONPATH=path)
    rank = RankClient(zygote, make_spec(tmp_path / "store"))
    yield rank.ready()
    rank.close()
    zygote.close()


def test_classes_of_a_cell_where_python_does_not_fork_by_default(rank_of_later_python: RankClient) -> None:
    rank = rank_of_later_python
    assert rank.run(SQUARES).status == "ok"
    assert rank.run("print(multiprocessing.get_start_method(allow_none=True))").text() == "None\n"
    assert rank.run(SUM).text() == "14\n"


def test_the_user_may_choose_another_way(rank: RankClient) -> None:
    rank.run(SQUARES)
    assert rank.run("multiprocessing.set_start_method('forkserver')").status == "ok"
    assert rank.run("print(multiprocessing.get_start_method())").text() == "forkserver\n"
