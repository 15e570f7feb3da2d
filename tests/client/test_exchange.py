"""Objects to real ranks and back."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from waits import PATIENCE, until

from jupyter_dist.client import JupyterDistError, RankError, TimedOutError
from jupyter_dist.objects import files, functions, pickling, staging
from jupyter_dist.objects.segments import Segments, filled


class OnlyHere:
    """This module is not importable on the ranks, which have no tests."""


def define(source):
    """As a notebook's cell does: in __main__."""
    main = sys.modules["__main__"]
    exec(compile(source, "<cell>", "exec"), main.__dict__)
    return main


def left_behind():
    """Those of other tests of this machine come and go."""
    return {name for name in os.listdir("/dev/shm") if name.startswith("jupyter-dist-")}


def test_any_object_goes_to_all_ranks_and_comes_back(group):
    import torch

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
    until(lambda: not left_behind() - before, lambda: left_behind() - before)


def test_only_the_ranks_that_are_named_get_it(group):
    group.run("only = None")
    group.push({"only": 1}, "1")
    assert group.gather("only") == {0: None, 1: 1}
    group.scatter("part", ["first", "second"])
    assert group.gather("part") == {0: "first", 1: "second"}


def test_what_cannot_be_done_is_a_sentence(group):
    with pytest.raises(JupyterDistError, match=r"'lock' \(lock\) cannot be sent"):
        group.push({"fine": 1, "lock": threading.Lock()})
    for name in ("a b", "class"):
        with pytest.raises(JupyterDistError, match="not a variable name"):
            group.push({name: 1})
    with pytest.raises(JupyterDistError, match=r"3 parts for 2 ranks.*array_split"):
        group.scatter("part", [1, 2, 3])
    with pytest.raises(RankError, match="ranks 0-1: NameError: name 'nothing' is not defined"):
        group.gather("nothing")
    with pytest.raises(JupyterDistError, match="not an expression"):
        group.pull("x = 1")
    with pytest.raises(JupyterDistError, match="no rank 7"):
        group.pull("x", rank=7)
    with pytest.raises(RankError, match=r"Something is missing here: No module named 'test_exchange'"):
        group.push({"thing": OnlyHere()})
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


@pytest.mark.parametrize("is_warm", [False, True])
def test_tensors_that_stay_on_their_device_are_copied_in_parts_into_the_file(tmp_path, monkeypatch, is_warm):
    """As on a CUDA device (tests/agent/test_gpu.py), with the chunks of tensors on the CPU."""
    import torch

    monkeypatch.setattr(staging, "is_staged", lambda storage: storage.nbytes() >= 1 << 20)
    chunks = []

    def from_device(storage):
        whole = pickle.PickleBuffer(pickling._bytes_of(storage)).raw()
        chunks.extend(whole[start : start + 300_000] for start in range(0, whole.nbytes, 300_000))
        yield from chunks

    monkeypatch.setattr(staging, "chunks_of", from_device)
    path, warm = str(tmp_path / "x"), str(tmp_path / "warm")
    if is_warm:
        (tmp_path / "warm").write_bytes(bytes(8 << 20))
    values = {"before": torch.ones(3), "large": torch.arange(1 << 20, dtype=torch.float32), "after": b"after"}
    used = files.save(values, [path], warm)
    assert (used, len(chunks)) == (warm if is_warm else path, 14)
    found = files.load(used)
    assert torch.equal(found["large"], values["large"])
    assert (found["before"].sum().item(), found["after"]) == (3.0, b"after")
    # What is sent to another machine is packed whole: no bytes are left on a device.
    assert all(type(piece.obj) is not staging.OnDevice for piece in files.pack(values))


def test_functions_are_called_on_ranks(group):
    import statistics

    assert group.launch(statistics.mean, [1, 2, 6]) == {0: 3, 1: 3}
    assert group.launch(os.path.join, "a", "b", ranks="1") == {1: "a/b"}
    with pytest.raises(RankError, match="StatisticsError"):
        group.launch(statistics.mean, [])
    with pytest.raises(JupyterDistError, match="cannot be sent"):
        group.launch(print, threading.Lock())


def test_a_notebooks_classes_and_functions_go_along(group):
    main = define("""
class Config:
    scale = 3
    def __init__(self, x): self.x = x
    def scaled(self): return self.x * self.scale
def scaled_by(config, y): return config.scaled() * y
""")
    group.run("globals().pop('Config', None)")  # another test's: ranks take their own class of this name
    try:
        group.push({"config": main.Config(2), "by": main.scaled_by, "short": lambda x: x + 1})
        result = group.run("config.scaled(), by(config, 10), short(1), isinstance(config, Config)")
        assert result.values == dict.fromkeys((0, 1), "(6, 60, 2, True)"), result.text
        assert isinstance(group.pull("config"), main.Config)  # ours: the same class, not one like it
        define("class Config:\n    def scaled(self): return 'anew'")
        group.push({"config": main.Config()})
        assert group.run("config.scaled()").values[0] == "'anew'"
        group.run("class Config:\n    def scaled(self): return 'of ranks'")
        group.push({"config": main.Config()})
        assert group.run("config.scaled()").values[0] == "'of ranks'"
        group.run("class OfRanks:\n    word = 'theirs'\nmine = OfRanks()")
        assert group.pull("mine").word == "theirs"
    finally:
        for name in ("Config", "scaled_by", "OfRanks"):
            main.__dict__.pop(name, None)


def test_the_slots_of_a_notebooks_class_go_along(tmp_path):
    main = define("""
class Slotted:
    __slots__ = ("__own", "x")
    def __init__(self): self.__own, self.x = 1, [2]
    def own(self): return self.__own
""")
    path = str(tmp_path / "x")
    try:
        files.save({"one": main.Slotted()}, [path])
    finally:
        del main.Slotted
    code = (
        "import sys\nfrom jupyter_dist.objects import files\none = files.load(sys.argv[1])['one']\n"
        "print(one.own(), one.x, hasattr(one, '__dict__'))"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert done.stdout == "1 [2] False\n", done.stderr


def test_where_a_class_cannot_go_along_a_sentence_says_what_to_do(tmp_path):
    main = define("class Config: pass")
    path = str(tmp_path / "x")
    try:
        files.save({"config": main.Config()}, [path])
    finally:
        del main.Config
    code = (
        "import sys; sys.modules['cloudpickle'] = None\nfrom jupyter_dist.objects import files\nfiles.load(sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert "Something is missing here: 'Config', and the package cloudpickle" in done.stderr
    with pytest.raises(JupyterDistError, match=r"'Config', and it comes from Python.*Run the cell that defines it"):
        pickling._bring("Config", True, (3, 1), b"")


def test_tensors_are_mapped_not_copied(group, tmp_path):
    import torch

    base = torch.arange(1 << 20, dtype=torch.float32).reshape(1 << 10, -1)
    values = {
        "view": base[1:].t(),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "learned": torch.nn.Parameter(torch.ones(2)),
        "empty": torch.empty(0),
        "model": torch.nn.Linear(2, 2),
    }
    path = files.save(values, [str(tmp_path / "x")])
    assert sum(1 for piece in files.pack(values) if piece.nbytes == base.nbytes) == 1
    found = files.load(path)
    assert torch.equal(found["view"], values["view"])
    assert found["view"].stride() == values["view"].stride()
    assert found["half"].dtype == torch.bfloat16
    assert isinstance(found["learned"], torch.nn.Parameter)
    assert found["empty"].shape == (0,)
    found["view"] += 1
    assert torch.equal(files.load(path)["view"], values["view"])
    group.push(values)
    assert group.run("float(view[0, 0]), model(torch.ones(2)).shape").values[0] == "(1024.0, torch.Size([2]))"
    assert torch.equal(group.pull("model.state_dict()")["weight"], values["model"].weight)


def test_pages_are_written_over_only_when_nobody_reads_them(group):
    array = np.zeros(1 << 20)
    held = []
    for step in range(6):
        array[:] = step
        group.push({"x": array})
        held.append(group.pull("x"))
        if step == 2:
            group.run("kept = x[10:20]")
        if step == 4:
            del held[0]
    assert [int(found.max()) for found in held] == [1, 2, 3, 4, 5]
    assert [int(found.min()) for found in held] == [1, 2, 3, 4, 5]
    assert group.run("kept.sum(), x.sum() / len(x)").values[1] == "(np.float64(20.0), np.float64(5.0))"


def test_a_segment_is_free_when_the_last_reader_has_gone():
    segment = filled(None, files.pack({"x": np.arange(1 << 17)}))
    kept = segment.size_bytes
    found = files.load(segment.path)["x"][5:]
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; from jupyter_dist.objects import files; x = files.load(sys.argv[1]); print(1, flush=True); input()", segment.path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    child.stdout.readline()
    assert not segment.is_free
    del found
    assert not segment.is_free
    child.communicate(b"\n", timeout=PATIENCE)
    assert segment.is_free
    again = filled(segment, files.pack({"x": np.arange(1 << 16)}))
    assert again is segment
    assert again.size_bytes == kept
    assert files.load(segment.path)["x"].sum() == sum(range(1 << 16))
    segment.close()


def test_what_is_kept_is_bounded_and_given_back(monkeypatch):
    import asyncio

    from jupyter_dist.objects import segments

    monkeypatch.setattr(segments, "MAX_KEPT_BYTES", 5 << 20)

    async def program():
        store = Segments()
        made = [filled(None, [memoryview(bytes(size << 20))]) for size in (2, 1, 3)]
        for segment in made:
            store.keep(segment)
        assert store.take(1 << 22) is None
        assert store.take(1 << 20) is made[1]
        assert store.take() is made[2]
        assert store.take() is None  # the first one made room
        monkeypatch.setattr(segments, "KEEP_SECONDS", 0.05)
        store.keep(made[1])
        await asyncio.sleep(0.2)
        assert store.take() is None
        made[2].close()

    asyncio.run(program())


def test_a_rank_gives_the_others_its_value(group):
    group.run("import numpy\nbig = numpy.full(1 << 18, rank + 1)\nword = f'of {rank}'")
    group.broadcast("word", src=1)
    group.broadcast("big", src=-1, ranks="0")
    group.run("big += rank")
    assert group.gather("word") == {0: "of 1", 1: "of 1"}
    assert {rank: int(value[0]) for rank, value in group.gather("big").items()} == {0: 2, 1: 3}
    with pytest.raises(RankError, match="name 'nothing' is not defined"):
        group.broadcast("nothing")
    with pytest.raises(JupyterDistError, match="not a variable name"):
        group.broadcast("a + 1")


def test_a_push_that_is_given_up_does_no_harm(group):
    busy = group.submit("import time\ntime.sleep(2)")
    timer = threading.Timer(0.7, os.kill, [os.getpid(), signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the interrupt belongs to the block from here on
        timer.start()
        group.push({"late": np.ones(1 << 18)})
    group.push({"next": np.zeros(1 << 18)})  # queued behind it
    busy.result(PATIENCE)
    assert "late" not in group.run("' '.join(globals())").values[0]
    assert group.run("next.sum()").values[0] == "np.float64(0.0)"


def test_a_pull_that_is_given_up_is_not_evaluated_later(group):
    group.run("evaluated = []", "0")
    held = group.begin("import time; time.sleep(1000)", "0")
    with pytest.raises(TimedOutError):
        group.pull("evaluated.append(1)", timeout_seconds=0.2)
    until(lambda: group.status().queued == [])  # the server follows its agent
    held.cancel()
    held.result(PATIENCE)
    assert group.pull("evaluated", timeout_seconds=PATIENCE) == []


def test_notebook_launcher_takes_what_accelerates_takes():
    import inspect

    theirs = pytest.importorskip("accelerate").notebook_launcher
    from jupyter_dist.client import notebook_launcher

    ours, wanted = (inspect.signature(launcher).parameters for launcher in (notebook_launcher, theirs))
    assert [(name, found.default) for name, found in ours.items()] == [
        (name, found.default) for name, found in wanted.items()
    ]
    with pytest.raises(JupyterDistError, match=r"2 nodes were requested.*one machine"):
        notebook_launcher(print, num_nodes=2)


def test_a_cell_that_shadows_names_breaks_no_exchange(group):
    names = "globals, print, pickle, __import__, eval, files, os, exec, open, __builtins__"
    group.run(f"{names} = [None] * 10")
    try:
        group.push({"word": "pushed"})
        assert group.gather("word * 2") == {0: "pushedpushed", 1: "pushedpushed"}
        group.broadcast("word", 1)
        assert group.launch(os.path.join, "a", "b") == {0: "a/b", 1: "a/b"}
        assert group.run("1 + 1").ok
    finally:
        group.run(f"del {names}")


def test_the_log_has_a_note_of_what_was_exchanged_and_no_code(group):
    group.push({"weights": np.zeros(1 << 18), "step": 3})
    group.pull("step + 1")
    group.launch(os.getpid)
    begun = [record.code for record in group.logs(0) if record.kind == "begin"]
    assert begun[-3:] == ["# push of weights, step: 2.1 MB", "# pull of step + 1", "# launch of getpid"]


def test_lambdas_closures_and_decorated_functions_go_by_value(group):
    main = define("""
import functools
def counted(function):
    @functools.wraps(function)
    def wrapper(*args):
        wrapper.calls += 1
        return wrapper.calls, function(*args)
    wrapper.calls = 0
    return wrapper
@counted
def of_rank(x): return x * 10 + rank
def adder(y, *, z=1):
    def add(x, n=0, *, w=y): return x + y + z + rank if n == 0 else add(x + n)
    return add
add = adder(100)
double = lambda x: (x * 2, rank)
class Scale: by = 3
make = lambda: Scale().by
calls_double = lambda: double(1)
""")
    try:
        assert group.launch(main.double, 4) == {0: (8, 0), 1: (8, 1)}
        assert group.launch(main.add, 1, 5) == {0: 107, 1: 108}
        assert group.launch(main.of_rank, 2) == {0: (1, 20), 1: (1, 21)}
        assert group.launch(main.make, ranks="0") == {0: 3}
        with pytest.raises(RankError, match=r"The kernel has 'double', the ranks have not"):
            group.launch(main.calls_double)
    finally:
        for name in ("counted", "of_rank", "adder", "add", "double", "Scale", "make", "calls_double", "functools"):
            main.__dict__.pop(name, None)


def test_a_function_by_value_needs_the_same_python():
    with pytest.raises(JupyterDistError, match=r"'f' comes from Python 3.1, .*Define it with def"):
        functions._make((3, 1), b"", ("f", "f", "__main__"), 0, "")


def test_exceptions_with_an_init_of_their_own_cross(group):
    group.run("""
class Rejected(ValueError):
    def __init__(self, code, reason):
        super().__init__(f'{code}: {reason}')
        self.code = code
class Full(OSError):
    def __init__(self, path):
        super().__init__(28, 'full')
        self.path = path
found = [Rejected(7, 'too late'), Full('/x'), KeyError('k'), FileNotFoundError(2, 'gone', 'f')]
""")
    rejected, full, key, gone = group.pull("found")
    assert (str(rejected), rejected.code, isinstance(rejected, ValueError)) == ("7: too late", 7, True)
    assert (full.errno, full.strerror, full.path) == (28, "full", "/x")
    assert (key.args, gone.filename) == (("k",), "f")
    group.push({"back": [rejected, JupyterDistError("a", "b.", "c.")]})
    assert group.run("back[0].code, isinstance(back[0], Rejected), back[1].hint").values[0] == "(7, True, 'c.')"


def test_our_errors_can_be_pickled_by_anybody(group):
    with pytest.raises(RankError) as raised:
        group.run("1 / 0", check=True)
    found = pickle.loads(pickle.dumps(raised.value))
    assert (str(found), found.code, found.errors[1].ename) == (str(raised.value), "cell_failed", "ZeroDivisionError")
    late = pickle.loads(pickle.dumps(TimedOutError("Late.", "Wait.")))
    assert (str(late), late.code, isinstance(late, TimeoutError)) == ("Late. Wait.", "timed_out", True)


def test_what_ranks_do_for_a_client_can_be_interrupted(group):
    for wait in (lambda: group.launch(time.sleep, 600), lambda: group.pull("__import__('time').sleep(600)")):
        stop = threading.Thread(target=lambda: until(lambda: any(group.interrupt().interrupted)), daemon=True)
        stop.start()
        with pytest.raises(RankError, match="KeyboardInterrupt"):
            wait()
        stop.join(PATIENCE)
    assert group.run("rank").ok
