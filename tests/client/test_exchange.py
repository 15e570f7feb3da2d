"""Objects to real ranks and back."""

import os
import threading

import numpy as np
import pytest
import torch

from jupyter_dist.client import JupyterDistError, RankError
from jupyter_dist.objects import files


def left_behind():
    return [name for name in os.listdir("/dev/shm") if name.startswith("jupyter-dist-")]


def test_any_object_goes_to_all_ranks_and_comes_back(group):
    before = left_behind()
    values = {"number": 7, "words": {"a": [1, 2]}, "array": np.arange(6.0).reshape(2, 3), "tensor": torch.ones(2)}
    group.push(values)
    assert (
        group.run("number, words, array.sum(), tensor.sum().item()").values[1]
        == "(7, {'a': [1, 2]}, np.float64(15.0), 2.0)"
    )
    group.run("array += rank")  # each rank's own: changing it changes no other's
    assert {rank: array.sum() for rank, array in group.gather("array").items()} == {0: 15.0, 1: 21.0}
    assert torch.equal(group.pull("tensor * 2", rank=-1), torch.full((2,), 2.0))
    assert values["array"].sum() == 15.0
    pulled = group.pull("array")
    pulled[:] = 0  # ours
    assert group.run("array.sum()", "0").values == {0: "np.float64(15.0)"}
    assert left_behind() == before


def test_only_the_ranks_that_are_named_get_it(group):
    group.run("only = None")
    group.push({"only": 1}, "1")
    assert group.gather("only") == {0: None, 1: 1}
    group.scatter("part", ["first", "second"])
    assert group.gather("part") == {0: "first", 1: "second"}


def test_what_cannot_be_done_is_a_sentence(group):
    with pytest.raises(JupyterDistError, match=r"'lock' \(lock\) cannot be sent"):
        group.push({"fine": 1, "lock": threading.Lock()})
    with pytest.raises(JupyterDistError, match="not a name"):
        group.push({"a b": 1})
    with pytest.raises(JupyterDistError, match=r"3 parts for 2 ranks.*array_split"):
        group.scatter("part", [1, 2, 3])
    with pytest.raises(RankError, match="ranks 0-1: NameError: name 'nothing' is not defined"):
        group.gather("nothing")
    with pytest.raises(JupyterDistError, match="not an expression"):
        group.pull("x = 1")
    group.run("class OfRanks: pass\nmine = OfRanks()")
    with pytest.raises(JupyterDistError, match=r"Something is missing here: .*OfRanks"):
        group.pull("mine")
    assert group.run("1").ok


def test_large_arrays_are_mapped_not_copied(tmp_path):
    path = str(tmp_path / "x")
    array = np.random.default_rng(0).random(1 << 20)
    files.save({"x": array, "y": array[:10]}, [path])
    assert os.stat(path).st_mode & 0o777 == 0o600
    found = files.load(path)
    assert np.array_equal(found["x"], array)
    assert found["x"].flags.writeable
    assert not found["x"].flags.owndata
    assert found["x"].ctypes.data % files.ALIGNMENT == 0
    with pytest.raises(JupyterDistError, match="not on this machine"):
        files.load(path + "nothing")


def test_functions_are_called_on_ranks(group):
    import statistics

    assert group.launch(statistics.mean, [1, 2, 6]) == {0: 3, 1: 3}
    assert group.launch(os.path.join, "a", "b", ranks="1") == {1: "a/b"}
    with pytest.raises(RankError, match="StatisticsError"):
        group.launch(statistics.mean, [])
    with pytest.raises(JupyterDistError, match="cannot be sent"):
        group.launch(print, threading.Lock())
