"""Workers that a cell starts: they know what the notebook defined, also where Python no longer forks by default."""

from __future__ import annotations

import multiprocessing
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


# What each cell prints in a plain kernel: a forked worker has the classes itself, and what it has changed in them.
FORKED = {
    "a class that an initializer sets up": (
        """
from concurrent.futures import ProcessPoolExecutor
class Job:
    offset = 0
    @staticmethod
    def begin(value): Job.offset = value
    @staticmethod
    def step(number): return Job.offset + number
with ProcessPoolExecutor(1, mp_context=fork, initializer=Job.begin, initargs=(100,)) as pool:
    print(list(pool.map(Job.step, [1, 2])))
""",
        "[101, 102]",
    ),
    "a global": (
        """
class Base:
    @staticmethod
    def begin(value):
        global BASE
        BASE = value
    @staticmethod
    def step(number): return BASE + number
with fork.Pool(1, Base.begin, (4,)) as pool: print(pool.map(Base.step, [1, 2]))
""",
        "[5, 6]",
    ),
    "a member of an Enum in a class, by a queue": (
        """
from enum import Enum
class Options:
    class Mode(Enum):
        A = 1
def work(given, back): back.put(given.get() is Options.Mode.A)
given, back = fork.Queue(), fork.SimpleQueue()
process = fork.Process(target=work, args=(given, back)); process.start()
given.put(Options.Mode.A); print(back.get()); process.join()
""",
        "True",
    ),
    "a class in a class, and back": (
        """
class Tree:
    class Node: pass
def same(node): return node
with fork.Pool(1) as pool: print(type(pool.apply(same, (Tree.Node(),))) is Tree.Node)
""",
        "True",
    ),
    "by a connection": (
        """
def answer(end): end.send(end.recv() is Options.Mode.A)
here, there = fork.Pipe()
process = fork.Process(target=answer, args=(there,)); process.start()
here.send(Options.Mode.A); print(here.recv()); process.join()
""",
        "True",
    ),
}


def test_forked_workers_have_their_own_classes_before_and_after_something_may_be_spawned(shared: RankClient) -> None:
    shared.run("import multiprocessing\nfork = multiprocessing.get_context('fork')\nnum_sent = 0")
    shared.run(
        "from jupyter_dist.rank.output import spawning\nby_value = spawning.by_value\n"
        "def count(obj):\n    global num_sent\n    num_sent += 1\n    return by_value(obj)\nspawning.by_value = count"
    )
    for method in ("fork", "spawn"):
        shared.run(f"other = multiprocessing.get_context({method!r}).Queue()")
        for what, (code, text) in FORKED.items():
            assert (what, shared.run(f"num_sent = 0{code}").text()) == (what, f"{text}\n")
            # Only a connection may lead to a process that was spawned; before Python 3.11.5 it may be any queue.
            if method == "fork" or (what != "by a connection" and hasattr(multiprocessing.Lock(), "_is_fork_ctx")):
                assert (method, what, shared.run("print(num_sent)").text()) == (method, what, "0\n")
    shared.run("spawning.by_value = by_value")


def test_spawned_processes_get_classes_by_queues_and_connections(shared: RankClient) -> None:
    """What is put before the process starts, too; a name that stands for something else is not used."""
    code = """
spawn = multiprocessing.get_context("spawn")
class Pair:
    class Mode(Enum):
        A = 1
    def __init__(self, number): self.number = number
def twice(function): return lambda number: 2 * function(number)
@twice
def one(number): return number + 1
inner = one.__closure__[0].cell_contents
def work(given, end, back):
    pair, (mode, function) = given.get(), end.recv()
    back.put((pair.number, mode is pair.Mode.A, function(1), type(pair).__name__))
given, back, (here, there) = spawn.Queue(), spawn.SimpleQueue(), spawn.Pipe()
given.put(Pair(7)); here.send((Pair.Mode.A, inner))
process = spawn.Process(target=work, args=(given, there, back)); process.start()
print(back.get()); process.join()
"""
    shared.run("import multiprocessing\nfrom enum import Enum")
    assert shared.run(code).text() == "(7, True, 2, 'Pair')\n"


def test_a_file_of_the_users_may_be_called_cloudpickle(shared: RankClient) -> None:
    shared.run(
        "import sys, types, multiprocessing\nkept = sys.modules.get('cloudpickle')\nsys.modules['cloudpickle'] = types.ModuleType('cloudpickle')"
    )
    shared.run("class Mine: pass\ndef is_mine(it): return type(it) is Mine")
    assert shared.run("with multiprocessing.Pool(1) as pool: print(pool.apply(is_mine, (Mine(),)))").text() == "True\n"
    shared.run("sys.modules.pop('cloudpickle')\nif kept is not None: sys.modules['cloudpickle'] = kept")


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
