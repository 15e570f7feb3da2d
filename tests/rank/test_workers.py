"""Workers that a cell starts: they know what the notebook defined, also where Python no longer forks by default."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from rankclient import RankClient, ZygoteClient, make_spec

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


def test_spawned_processes_have_what_a_cell_defined(rank: RankClient) -> None:
    rank.run(SQUARES)
    spawned = "DataLoader(Squares(), num_workers=1, multiprocessing_context='spawn')"
    assert rank.run(f"print(sum(batch.sum().item() for batch in {spawned}))").text() == "14\n"
    rank.run("""
import torch.multiprocessing as mp
offset = 30
def child(index, path, squares): open(path, 'w').write(f'{squares[3] + index + offset} of {type(squares).__name__}')
""")
    path = f"{rank.spec.cwd}/said"
    assert rank.run(f"mp.spawn(child, args=({path!r}, Squares()), nprocs=1)\nprint(open({path!r}).read())").text() == (
        "39 of Squares\n"
    )


def test_a_pool_that_was_forked_keeps_its_own_classes(rank: RankClient) -> None:
    rank.run(SQUARES)
    rank.run("def is_ours(squares): return isinstance(squares, Squares), squares")
    found = rank.run(
        "with multiprocessing.Pool(1) as pool: own, back = pool.apply(is_ours, (Squares(),))\n"
        "print(own, isinstance(back, Squares))"
    )
    assert found.text() == "True True\n"


def test_without_cloudpickle_a_spawned_process_says_what_to_do(rank: RankClient) -> None:
    rank.run("import multiprocessing, sys\nsys.modules['cloudpickle'] = None\ndef child(): pass")
    failed = rank.run("multiprocessing.get_context('spawn').Process(target=child).start()")
    assert failed.reply["ename"] == "JupyterDistError"
    assert failed.reply["evalue"].startswith(
        "A cell defines 'child', and a spawned process cannot import it from there."
    )
    rank.run("del sys.modules['cloudpickle']")
