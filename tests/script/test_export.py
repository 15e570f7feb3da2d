"""A script that `jupyter dist export` wrote runs under torchrun, and ends where the notebook did."""

import json
import re
import subprocess
import sys
from pathlib import Path

from libraries import EXAMPLES as LIBRARIES  # noqa: F401 (of the zygote of `group`)
from waits import PATIENCE_WITH_A_START

DIGITS = Path(__file__).parents[2] / "examples" / "ddp_digits.ipynb"


def test_the_script_of_a_notebook_has_its_losses(dist, group, tmp_path):
    """As JupyterLab runs it: cells with their ids, one of them twice; and one that stays in the kernel."""
    notebook = json.loads(DIGITS.read_text())
    code = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"}
    fields = {"notebook": "lessons/digits.ipynb", "check": True}
    group.run("%matplotlib inline\n1", cell_id="who", **fields)
    results = {cell_id: group.run(text, cell_id=cell_id, **fields) for cell_id, text in code.items()}
    group.run(code["data"], cell_id="data", **fields)
    group.run("print('alone')", "1", cell_id="alone", **fields)
    notebook["cells"].append({"cell_type": "code", "id": "kernel", "source": ["left = 'in the kernel'"]})
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "digits.ipynb").write_text(json.dumps(notebook))

    said = dist("export", "from-shell", "--notebook", "lessons/digits.ipynb", "-o", "train.py").stdout
    assert said == "Wrote 6 cells of lessons/digits.ipynb to train.py.\n"
    script = (tmp_path / "train.py").read_text()
    assert "# left = 'in the kernel'" in script
    assert "if rank in (1,):\n    print('alone')\n" in script
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_WITH_A_START, check=False
    )
    assert done.returncode == 0, done.stderr
    losses = re.findall(r"epoch 11: mean loss \S+", results["train"].text)
    assert len(losses) == 1  # both ranks have the same
    assert done.stdout.count(losses[0]) == 2
    assert done.stdout.count("alone") == 1


def test_what_cannot_be_exported_is_said(dist, group, tmp_path):
    assert "  export " in dist(status=2).stdout
    group.run("x = 1", notebook="a.ipynb", check=True)
    (tmp_path / "there.py").write_text("mine")
    assert "'there.py' exists. Choose another" in dist("export", "-o", "there.py", status=1).stderr
    assert (tmp_path / "there.py").read_text() == "mine"
    refused = dist("export", "from-shell", "--notebook", "b.ipynb", status=1)
    assert "No cell of 'b.ipynb' ran on this group." in refused.stderr
    (tmp_path / "bad.ipynb").write_text("[]")
    assert "bad.ipynb' is not a notebook" in dist("export", "--notebook", "bad.ipynb", status=1).stderr
    assert "cannot be written" in dist("export", "--notebook", "a.ipynb", "-o", "no/such.py", status=1).stderr
    assert "\nx = 1\n" in dist("export", "from-shell", "--notebook", "a.ipynb").stdout
