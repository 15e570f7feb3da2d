"""Undo of cells whose tensors are on a device: the same objects, bytes and random numbers as before."""

from __future__ import annotations

import pytest
from keeping import Undoable

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]

MODEL = """
import torch
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Dropout(), torch.nn.Linear(64, 1)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
scaler = torch.amp.GradScaler("cuda")
losses = []
def train():
    with torch.autocast("cuda"):
        loss = net(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
"""


@pytest.fixture(autouse=True)
def _has_a_device():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")


def test_training_on_a_device_is_undone_and_repeated() -> None:
    space = Undoable()
    space.run(MODEL)
    space.run("train()")
    for _ in range(2):
        before = [parameter.tolist() for parameter in space["net"].parameters()]
        space.run("for _ in range(3): train()")
        losses = list(space["losses"])
        assert space.undo() == []
        assert [parameter.tolist() for parameter in space["net"].parameters()] == before
        space.run("for _ in range(3): train()")
        assert space["losses"] == losses


def test_a_large_tensor_is_written_on_any_stream() -> None:
    space = Undoable()
    space.run("import torch; big = torch.zeros(3 << 20, device='cuda'); view = big[7:]; s = torch.cuda.Stream()")
    space.run(
        "with torch.cuda.stream(s):\n    big[1 << 20] = 5\n    view.add_(1)\nbig.data = torch.ones(2, device='cuda')"
    )
    space.undo()
    assert space["big"].shape == (3 << 20,)
    assert float(space["big"].abs().sum()) == 0
    assert space["view"].data_ptr() == space["big"].data_ptr() + 28
