"""The example notebooks of this side run from top to bottom."""

from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from libraries import EXAMPLES as LIBRARIES  # noqa: F401 (of the groups that the notebooks start)
from nbclient import NotebookClient
from waits import PATIENCE_WITH_A_START

EXAMPLES = Path(__file__).parents[2] / "examples"
# Of tests/frameworks/requirements.txt: CI has them, the environments of the matrix do not.
FRAMEWORKS = {"fabric": "lightning", "accelerate": "accelerate", "fastai": "fastai"}


def text_of(cell):
    return "".join(output.get("text") or output["data"]["text/plain"] for output in cell.outputs)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "magics",
            ["epoch 4: loss 0.", "rank 0 gets 9", "All 2 ranks are in sync", "4 cells", "False False", "has ended"],
        ),
        pytest.param(
            "ddip",
            ["rank 1 has 898 of 1797 images", "epoch 4: loss 0.", "this cell is the kernel's False", "has ended"],
            marks=pytest.mark.part("ddip"),
        ),
        pytest.param(
            "fabric",
            [
                "rank 1 of 2",
                "15 batches of 50 on each",
                "epoch 4: loss 0.",
                "% of images",
                "torch.float32",
                "has ended",
            ],
            marks=pytest.mark.part("frameworks"),
        ),
        pytest.param(
            "accelerate",
            ["process 1 of 2", "epoch 4: loss 0.", "% of 297 images", "'bf16'", "has ended"],
            marks=pytest.mark.part("frameworks"),
        ),
        pytest.param(
            "fastai",
            ["learning rate 0.", "Sequential: ", "fit() outside of distrib_ctx", "has ended"],
            marks=pytest.mark.part("ddip", "frameworks"),
        ),
        # Last: nodes import by themselves, and what has imported for the others is gone when it has waited for a minute.
        (
            "two_nodes",
            [
                "node 1 of 2 has 2 of the 4 ranks",
                "rank 3 is local rank 1 of node 1",
                "epoch 7: mean loss 0.",
                "the ranks of this node add up to 5",
                "has ended",
            ],
        ),
    ],
)
def test_an_example_runs(client, tmp_path, name, lines):
    if name in FRAMEWORKS and not find_spec(FRAMEWORKS[name]):
        pytest.skip(f"needs {FRAMEWORKS[name]}")
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    NotebookClient(notebook, timeout=PATIENCE_WITH_A_START, resources={"metadata": {"path": str(tmp_path)}}).execute()
    text = "\n".join(text_of(cell) for cell in notebook.cells if cell.cell_type == "code")
    for line in lines:
        assert line in text
    assert "[wrong]" not in text
    for line in ("epoch 4", "fit() outside"):  # both ranks said it, and it stands there once
        assert text.count(line) <= 1


def cells_of(name):
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.part("saves")
def test_an_example_that_is_saved_in_the_middle_ends_alike_in_new_ranks(client, tmp_path):
    *before, training, testing = cells_of("ddp_digits")
    first, second = (training.replace("range(12)", part) for part in ("range(6)", "range(6, 12)"))
    assert first != training, "the notebook trains for 12 epochs"
    group = client.start("digits", num_ranks=2, accelerator="cpu")
    for cell in [*before, first]:
        group.run(cell, check=True)
    group.save("half", folder=str(tmp_path / "saves"))
    end = [group.run(cell, check=True).text for cell in (second, testing)]
    group.restart()
    group.restore("half", folder=str(tmp_path / "saves"))
    assert [group.run(cell, check=True).text for cell in (second, testing)] == end
    assert "epoch 11: mean loss 0." in end[0]
