"""The tutorial of the README works when it is pasted."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from waits import PATIENCE

README = (Path(__file__).parents[2] / "README.md").read_text()
# In the browser these are cells of the picker. The fifth step prints for a minute, to walk away from.
HURRY = {"time.sleep(1)": "time.sleep(0.01)"}


def blocks(language, step):
    """The fenced blocks of the tutorial's numbered step."""
    section = re.search(rf"^\*\*{step}\. (.*?)(?=^\*\*\d+\. |^## )", README, re.M | re.S)[1]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.M | re.S)


def text_of(cell):
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def test_the_tutorial_in_a_kernel_and_in_a_shell(client, own_runtime, tmp_path):
    begin, *in_kernel = blocks("python", 7)
    on_ranks = [cell for step in (3, 4, 5) for cell in blocks("python", step)]
    frameworks, python = blocks("python", 8), blocks("python", 9)
    sources = [begin, *on_ranks, *in_kernel, *frameworks, "%dist_shutdown", *python]
    notebook = new_notebook(cells=[new_code_cell(_hurried(source)) for source in sources])
    NotebookClient(notebook, timeout=PATIENCE, allow_error_names=["RankError"], resources=_in(tmp_path)).execute()
    said = dict(zip(sources, map(text_of, notebook.cells)))
    assert "tensor([3., 3., 3.])" in said[on_ranks[0]]
    assert "my rank is 1" in said[on_ranks[1]]
    assert "I am fine" in said[on_ranks[2]]
    assert notebook.cells[3].outputs[-1]["evalue"] == "rank 1: ValueError: only here"
    assert "step 59" in said[on_ranks[3]]
    assert "tensor([1., 3., 5., 7.])" in said[in_kernel[0]]
    assert "only here: tensor(16.)" in said[in_kernel[1]]
    assert said[in_kernel[2]] == "in the kernel: tensor([1., 3., 5., 7.])\n"
    assert "2 DistributedDataParallel" in said[frameworks[0]]
    assert said[python[0]] == "{0: '0.0', 1: '2.0'}\n{0: 21.0, 1: 21.0}\n"
    (shell,) = blocks("sh", 10)
    done = _shell(shell, tmp_path)
    assert "Group 'tutorial': 2 ranks" in done
    assert "0 2.0" in done
    assert "tutorial" not in [group.name for group in client.groups()]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_tutorial_over_http(client, tmp_path):
    (commands,) = blocks("sh", 6)
    env = {"URL": client.url.rstrip("/"), "TOKEN": client._client.server.token}
    said = _shell(commands, tmp_path, env)
    started, submitted = (json.loads(line) for line in said.replace("}{", "}\n{").splitlines())
    assert (started["name"], submitted["state"] in ("queued", "running")) == ("train", True)
    client.attach("train").shutdown()


def _hurried(source):
    for slow, quick in HURRY.items():
        source = source.replace(slow, quick)
    return source


def _in(folder):
    return {"metadata": {"path": str(folder)}}


def _shell(commands, folder, env=None):
    """What the commands print; `jupyter` need not be on the path for `jupyter dist`."""
    main = "from jupyter_dist.cli.main import main; main()"
    dist = f"jupyter() {{ shift; {sys.executable} -c '{main}' \"$@\"; }}\n"
    done = subprocess.run(
        ["bash", "-e", "-c", dist + commands],
        capture_output=True, text=True, check=False, cwd=folder, timeout=PATIENCE, env={**os.environ, **(env or {})},
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout
