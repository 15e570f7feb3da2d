"""A notebook written for nbdistributed, fine-tuning with Accelerate cell by cell: only its %load_ext line is another."""

import re
from importlib.util import find_spec

import nbformat
import pytest
from nbclient import NotebookClient
from waits import PATIENCE_WITH_A_START

pytestmark = pytest.mark.skipif(not find_spec("accelerate"), reason="needs accelerate")

CELLS = [
    "%load_ext nbdistributed",
    "%dist_init --num-processes 2 --gpu-ids 3,4",
    "import torch.nn.functional as F\nfrom accelerate import Accelerator\nfrom accelerate.utils import set_seed\nfrom torch.utils.data import DataLoader, TensorDataset",
    "%%distributed\nprint(f'Rank {rank} of {world_size} is on {device}, gpu {gpu_id}')\nassert (__rank__, __world_size__) == (rank, world_size)",
    "set_seed(42)\nx = torch.rand(96, 8)\ndataset = TensorDataset(x, (x.sum(1) > 4).long())\nloader = DataLoader(dataset, batch_size=8, shuffle=True)",
    "for batch in loader:\n    print({'inputs': batch[0][:3] + rank, 'targets': batch[1].shape})\n    break",
    "%%rank [0]\nprint(f'{len(dataset)} samples, {len(loader)} batches')",
    "accelerator = Accelerator()\nmodel = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))\n"
    "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)\nmodel, optimizer, loader = accelerator.prepare(model, optimizer, loader)",
    "%%rank [0-1]\nprint(f'{len(loader)} batches on {accelerator.device} of {accelerator.num_processes}')",
    "for epoch in range(4):\n    model.train()\n    for inputs, targets in loader:\n        loss = F.cross_entropy(model(inputs), targets)\n"
    "        accelerator.backward(loss)\n        optimizer.step()\n        optimizer.zero_grad()\n"
    "    accelerator.print(f'epoch {epoch}: loss {accelerator.gather(loss.detach()).mean().item():.2f}')",
    "%sync",
    "%%rank[0,1]\nmodel.eval()\nwith torch.no_grad():\n    right = (model(x.to(device)).argmax(1) == dataset.tensors[1].to(device)).float().mean()\n"
    "same = accelerator.gather(right.reshape(1))\nprint('all ranks agree', bool((same == same[0]).all()))",
    "%dist_status",
    "%timeline_debug",
    "%dist_sync_ide",
    "%dist_mode -d",
    "print('here', 'model' in globals())",
    "%dist_mode --enable",
    "print('there', 'model' in globals())",
    "%timeline_save",
    "%timeline_clear",
    "%dist_debug",
    "%dist_restart",
    "%dist_reset",
    "%dist_shutdown",
]


# What each rank printed, a dictionary with a tensor of three lines, stands together.
BATCH = r"\[rank {rank}\]\n\{{'inputs': tensor\(\[\[.*\],\n +\[.*\],\n +\[.*\]\]\), 'targets': torch.Size\(\[8\]\)\}}"
BATCHES = "\n".join(BATCH.format(rank=rank) for rank in (0, 1))


def text_of(cell):
    return "".join(output.get("text") or output["data"]["text/plain"] for output in cell.outputs)


def test_it_runs_with_another_first_line(client, tmp_path):
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    cells[0].source = "%load_ext jupyter_dist"
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=PATIENCE_WITH_A_START, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = {source: text_of(cell) for source, cell in zip(CELLS, cells, strict=True)}
    text = "\n".join(said.values())
    for line in (
        "Rank 1 of 2 is on cpu, gpu None",
        "96 samples, 12 batches",
        "6 batches on cpu:0 of 2",
        "all ranks agree True",
        "All 2 ranks are in sync",
        "here False",
        "there True",
        "2 new ranks",
        "has ended",
        "This notebook has no group",
    ):
        assert line in text, text
    assert "-g 3,4 is ignored" in said["%dist_init --num-processes 2 --gpu-ids 3,4"]
    assert re.fullmatch(BATCHES, next(text for source, text in said.items() if source.startswith("for batch")))
    assert text.count("epoch 3: loss 0.") == 1
    assert "accelerator" in said["%dist_sync_ide"]
    assert list(tmp_path.glob("*-timeline.json"))
    assert all(output.get("output_type") != "error" for cell in cells for output in cell.outputs)
    # Nothing of the timeline is in the notebook: it stays as small as what was printed.
    assert len(nbformat.writes(notebook)) < 60_000


@pytest.mark.gpu
def test_the_gpus_that_it_names_are_those_that_it_gets(client, tmp_path):
    sources = [
        "%load_ext jupyter_dist",
        "%dist_init --num-processes 2 --gpu-ids 1,0",
        "from accelerate import Accelerator\ntorch.cuda.get_device_properties(Accelerator().device).uuid, gpu_id",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(notebook, timeout=PATIENCE_WITH_A_START, resources={"metadata": {"path": str(tmp_path)}}).execute()
    import torch

    text = text_of(notebook.cells[2])
    for index in (0, 1):
        assert f"{torch.cuda.get_device_properties(index).uuid!r}, {index})" in text
