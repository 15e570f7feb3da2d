"""Names of cells, saved and restored: in this process, and in a new one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import shells
import torch
from shells import Shell, restored

from jupyter_dist.protocol.errors import JupyterDistError


def test_shared_objects_stay_shared(shell: Shell) -> None:
    shell.run("a = [1, 2]; b = {'a': a}; c = (a, b); d = e = [3]; x = y = 1; lone = [4]")
    names = restored(shell).names
    assert names["b"]["a"] is names["a"]
    assert names["c"][0] is names["a"]
    assert names["c"][1] is names["b"]
    assert names["d"] is names["e"]
    assert names["lone"] == [4]
    assert names["x"] == names["y"] == 1


def test_tensors_share_storages_also_with_arrays(shell: Shell) -> None:
    shell.run("""
import numpy as np, torch
t = torch.arange(40000.)
u = t.view(200, 200)[3:7, ::2]
same = t
a = np.array([[0., 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
v = a[1:, ::-2]
w = torch.from_numpy(a)
row = torch.from_numpy(a[1])
n = t.numpy()
""")
    names = restored(shell).names
    assert names["same"] is names["t"]
    assert torch.equal(names["t"], torch.arange(40000.0))
    names["t"][600:620] = -1
    assert (names["u"][0, :10] == -1).all()
    assert names["u"].stride() == (200, 2)
    assert names["n"][601] == -1
    names["a"][1, 1] = 77
    assert names["v"].base is names["a"]
    assert names["v"][0, 1] == 77
    assert names["w"][1, 1] == 77
    assert names["row"][1] == 77


def test_a_model_and_its_optimizer_go_on_alike(shell: Shell) -> None:
    shell.run("""
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
    def forward(self, x): return self.second(torch.relu(self.first(x)))
net = Net()
optimizer = torch.optim.Adam(net.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
def step():
    optimizer.zero_grad()
    loss = net(torch.rand(16, 8)).square().mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss.item()
before = [step() for _ in range(3)]
""")
    after = restored(shell)
    shell.run("losses = [step() for _ in range(3)]")
    losses = shell.names["losses"]
    after = Shell(shell.folder)
    after.restore()
    after.run("losses = [step() for _ in range(3)]; same = net.first.weight is optimizer.param_groups[0]['params'][0]")
    assert after.names["losses"] == losses
    assert after.names["same"]
    assert type(after.names["net"]) is after.names["Net"]


def test_functions_use_the_names_of_the_namespace(shell: Shell) -> None:
    shell.run("""
factor = 2
def double(x): return x * factor
def counter():
    count = 0
    def up():
        nonlocal count
        count += 1
        return count
    def value(): return count
    return up, value
up, value = counter()
up()
""")
    after = restored(shell)
    after.run("factor = 3; tripled = double(5); up(); now = value()")
    assert after.names["tripled"] == 15
    assert after.names["now"] == 2


def test_what_cannot_be_saved_is_named_and_the_rest_is_saved(shell: Shell) -> None:
    shell.run("import threading; model = [1.0]")
    shell.run("stream = (x for x in [1])\nholder = {'model': model, 'lock': threading.Lock()}")
    preview = shell.preview()
    reasons = {one["name"]: (one["reason"], one["cell"]) for one in preview.skipped}
    assert reasons["stream"] == ("it holds a generator, whose position in its code cannot be saved", 2)
    assert "lock" in reasons["holder"][0]
    assert set(reasons) == {"stream", "holder"}
    names = restored(shell).names
    assert names["model"] == [1.0]
    assert "holder" not in names


def test_a_second_save_writes_what_changed(shell: Shell) -> None:
    shell.run("import torch; parts = [torch.rand(1 << 18) for _ in range(10)]")
    first = shell.save()
    shell.run("parts[3][7] = 5")
    second = shell.save()
    assert first.written_bytes > 10 << 20
    assert 1 << 20 <= second.written_bytes < 1.1 * (1 << 20)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in shell.folder.rglob("*") if path.is_file())


def test_results_inputs_and_random_numbers(shell: Shell) -> None:
    shell.run("import random, torch; random.seed(1); torch.manual_seed(1)")
    shell.run("[1, 2]")
    shell.save()
    numbers = "drawn = (random.random(), torch.rand(1).item())"
    shell.run(numbers)
    after = Shell(shell.folder)
    after.restore()
    after.run(f"old = Out[2]; code = In[2]; {numbers}")
    assert after.names["old"] == [1, 2]
    assert after.names["code"] == "[1, 2]"
    assert after.names["drawn"] == shell.names["drawn"]


def test_in_a_new_process(shell: Shell) -> None:
    shell.run("""
import torch, enum, dataclasses, collections.abc as abc
class Color(enum.Enum):
    RED = 1
@dataclasses.dataclass
class Point:
    x: int
    tensor: torch.Tensor
    color: Color = Color.RED
    def twice(self): return helper(self.x)
def helper(x): return 2 * x
class Point3(Point):
    def twice(self): return super().twice() + 1
point = Point3(4, torch.ones(3, requires_grad=True))
point.tensor.grad = torch.full((3,), 2.0)
""")
    shell.save()
    code = "assert point.twice() == 9 and point.color is Color.RED and isinstance(point, Point)"
    code += "\nassert point.tensor.grad.tolist() == [2, 2, 2] and abc.Mapping"
    run_in_new_process(shell.folder, code)


def run_in_new_process(folder: Path, code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", shells.__file__, str(folder), code], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_damaged_or_missing_chunk_is_named_and_nothing_changes(shell: Shell) -> None:
    shell.run("import torch; t = torch.rand(1 << 16)")
    shell.save()
    chunk = max(shell.folder.glob("chunks/*/*"), key=lambda path: path.stat().st_size)
    data = bytearray(chunk.read_bytes())
    data[100] ^= 1
    chunk.write_bytes(data)
    shell.run("t = 5")
    with pytest.raises(JupyterDistError, match="was changed after it was saved"):
        shell.load()
    chunk.unlink()
    with pytest.raises(JupyterDistError, match="cannot be read"):
        shell.load()
    assert shell.names["t"] == 5


def test_loading_changes_nothing_until_it_is_committed(shell: Shell) -> None:
    shell.run("x = [1]")
    shell.save()
    shell.run("x = [2]; y = 3")
    loaded = shell.load()
    assert shell.names["x"] == [2]
    loaded.discard()
    assert shell.names["x"] == [2]
    shell.load().commit()
    assert shell.names["x"] == [1]
    assert shell.names["y"] == 3
