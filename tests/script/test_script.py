"""Which cells stand in an exported script, in which order, and what becomes of IPython's syntax."""

import json

import pytest

from jupyter_dist.parts.script.writer import write_script
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.cells.python import indented, to_python
from jupyter_dist.server.cells.runs import RecordedRun

GROUP = {"world_size": 3, "name": "g", "cwd": "/tmp", "accelerator": "cpu", "backend": "gloo"}


def written(*cells, sources=None, notebook=None, group=GROUP):
    """The script of (cell id, code) or (cell id, code, ranks, state, count, notebook)."""
    runs, codes = [], {}
    for number, (cell_id, code, *rest) in enumerate(cells, start=1):
        ranks, state, count, path = (*rest, *(None,) * 4)[:4]
        runs.append(
            RecordedRun(f"e-{number}", ranks or "0-2", state or "ok", count or number, path or "n.ipynb", cell_id)
        )
        codes[f"e-{number}"] = code
    found = write_script(group, runs, codes, notebook, json.dumps(sources) if sources else None)
    compile(found["script"], "script", "exec")
    return found


def code_of(found):
    return found["script"].partition("# %%")[2]


def test_a_cell_stands_once_in_its_last_version_where_it_first_ran():
    found = written(("a", "x = 1"), ("b", "print(x)"), ("a", "x = 2"))
    assert code_of(found).index("x = 2") < code_of(found).index("print(x)")
    assert "x = 1" not in found["script"]
    assert found["cells"] == 2
    assert found["notes"] == []


def test_on_gloo_python_ends_after_its_threads():
    """One that still holds a tensor aborts the process, which was seen in 3 of 80 scripts on a busy machine."""
    assert written(("a", "from time import time"))["script"].endswith(
        "\nsleep(0.5)  # gloo's threads must be idle when Python ends\n"
    )
    on_gpus = {**GROUP, "accelerator": "cuda", "backend": "nccl"}
    assert written(("a", "1"), group=on_gpus)["script"].endswith("\ndist.destroy_process_group()\n")


def test_a_cell_that_uses_a_later_ones_names_stands_where_it_ran_last():
    found = written(("a", "1"), ("b", "y = 5"), ("a", "z = y"))
    assert found["notes"] == []
    assert code_of(found).index("y = 5") < code_of(found).index("z = y")


def test_a_kernel_that_counts_from_1_again_is_no_restart_of_the_ranks():
    runs = [
        RecordedRun(f"e-{number}", "0-2", "ok", count, "n.ipynb", f"cell-{number}", started_at=float(number))
        for number, count in enumerate((3, 1, 2, 5, 1, 1))
    ]
    codes = {run.execution_id: f"x{run.execution_id[2:]} = 1" for run in runs}
    script = write_script({**GROUP, "started_at": 1.0}, runs, codes, None, None)["script"]
    assert [f"x{number} = 1" in script for number in range(6)] == [False, True, True, True, True, True]


def test_names_that_no_cell_defines_are_named():
    found = written(("a", "def f(q):\n    return later\nprint(sent, rank, [i for i in range(3)])"))
    assert found["notes"] == ["No cell defines these names before they are used: sent. The kernel may have sent them."]


def test_cells_on_some_ranks_keep_their_strings():
    found = written(("a", 'text = """\nunmoved\n"""\nprint(f"""{text}\n too""")', "0,2"), ("b", "# nothing", "1"))
    assert "if rank in (0, 2):\n    text" in found["script"]
    assert "\nunmoved\n" in found["script"]
    assert "\n too" in found["script"]
    assert "if rank in (1,)" not in found["script"]


def test_a_failed_cell_is_a_comment_and_its_last_success_is_kept():
    found = written(("a", "x = 1"), ("a", "x = oops", None, "error"), ("b", "1 / 0\n2", None, "error"))
    assert "x = 1" in found["script"]
    assert "oops" not in found["script"]
    assert "is left out: it ended with 'error'.\n# 1 / 0\n# 2\n" in found["script"]
    assert found["notes"] == ["Cells that did not succeed are comments: [3]."]
    broken = written(("a", "x = 1"), ("b", "y = '\0'\r1 / 0", None, "error"))["script"]
    compile(broken, "script.py", "exec")  # Python refuses a file with a NUL anywhere
    assert "# y = '\N{SYMBOL FOR NULL}'\n# 1 / 0" in broken


def test_cells_before_a_restart_are_left_out():
    found = written(("a", "old = 1"), ("b", "b = 1"), ("b", "b = 2", None, None, 1))
    assert "old" not in found["script"]
    assert found["notes"] == ["Cells that ran before the ranks were restarted are left out."]


def test_cells_of_the_kernel_are_comments_after_the_cell_before_them():
    sources = [
        {"id": "k1", "source": "%dist_init -n 3"},
        {"id": "a", "source": "x = 1"},
        {"id": "k2", "source": "import kernel"},
        {"id": "m", "source": "%%distributed\nprint(x)"},
    ]
    script = written(("a", "x = 1"), (None, "print(x)"), sources=sources)["script"]
    order = [script.index(text) for text in ("# %dist_init", "x = 1", "# import kernel", "print(x)")]
    assert order == sorted(order)
    assert script.count("Did not run on ranks") == 2


def test_without_ids_the_file_says_which_version_is_the_last():
    """As magics run them: an edited cell is known by its code alone."""
    sources = [{"id": "p", "source": "%%distributed\nx = 2"}, {"id": "q", "source": "print(x)"}]
    cells = ((None, "x = 1"), (None, "print(x)"), (None, "x = 2"), (None, "print(x)"))
    found = written(*cells, sources=sources)
    assert "x = 1" not in found["script"]
    assert code_of(found).index("x = 2") < code_of(found).index("print(x)")
    assert found["notes"] == ["Left out, because the notebook's file no longer has their code: [1]."]
    assert "x = 1" in written(*cells, sources=[{"id": "z", "source": "another = 'file'"}])["script"]


def test_cells_from_before_a_resize_have_the_ranks_that_they_had():
    """Those of all ranks stay cells of all, whatever the size is now; the journal of earlier versions has no size."""
    kept = {"state": "ok", "count": 1, "notebook": "n.ipynb", "cell_id": "a"}
    runs = [
        RecordedRun("e-1", "0-2", **kept, num_ranks=3),
        RecordedRun("e-2", "2", **{**kept, "count": 2, "cell_id": "b"}, num_ranks=3),
        RecordedRun("e-3", "0-1", **{**kept, "count": 3, "cell_id": "c"}),
    ]
    codes = {"e-1": "x = 1", "e-2": "y = 2", "e-3": "z = 3"}
    found = write_script({**GROUP, "world_size": 2}, runs, codes, None, None)
    assert "\nx = 1\n" in found["script"]
    assert "if rank in (2,):\n    y = 2" in found["script"]
    assert "\nz = 3\n" in found["script"]
    assert found["notes"] == ["The group was resized: cells that ran on ranks which it no longer has are [2]."]


def test_the_notebook_is_found_by_its_path_or_the_end_of_it():
    cells = (("a", "x = 1", None, None, None, "deep/a.ipynb"), ("a", "y = 1", None, None, None, "b.ipynb"))
    tried = ("c", "tried = 1", None, None, None, "console:1234/console of train")
    assert "tried" not in written(cells[0], tried)["script"]
    assert "x = 1" in written(*cells, notebook="/home/me/deep/a.ipynb")["script"]
    assert "y = 1" in written(*cells, notebook="b.ipynb")["script"]
    with pytest.raises(JupyterDistError, match=r"2 notebooks ran.*: b.ipynb, deep/a.ipynb"):
        written(*cells)
    with pytest.raises(JupyterDistError, match=r"No cell of 'c.ipynb' ran"):
        written(*cells, notebook="c.ipynb")
    with pytest.raises(JupyterDistError, match="No cell has succeeded"):
        written(("a", "x", None, "error"))


@pytest.mark.parametrize("cells", ["{", "[1]", '[{"id": "a"}]', "[" * 100_000])
def test_bad_cells_of_a_file_are_refused_with_a_sentence(cells):
    with pytest.raises(JupyterDistError, match="The field 'cells' is not"):
        write_script(GROUP, [RecordedRun("e-1", "0", "ok", 1, None, None)], {"e-1": "1"}, None, cells)


@pytest.mark.parametrize(
    ("code", "python"),
    [
        ("x = 1  # as it is\n", "x = 1  # as it is"),
        ("%time y = 1", "y = 1  # %time"),
        ("%%time\nx = 1\n%cd sub", "# %%time\nx = 1\nos.chdir(os.path.expanduser('sub'))"),
        ("%env A=b c", "os.environ['A'] = 'b c'"),
        ("!ls -l", "subprocess.run('ls -l', shell=True)"),
        ("a = !ls", "a = subprocess.run('ls', shell=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()"),
        ("%%bash\nls", "subprocess.run(['bash', '-c', 'ls\\n'], check=True)"),
        ("%run x.py", "globals().update(runpy.run_path('x.py', run_name='__main__'))"),
        ("%matplotlib inline", "# Not needed in a script:\n# %matplotlib inline"),
        ("!pip install x", "# Install packages before the script starts:\n# !pip install x"),
        ("if 1:\n    %who", "if 1:\n    pass\n    # A script has no magics:\n    # %who"),
        (
            "!echo {x}",
            "# IPython may have inserted variables here: write it with subprocess.run(...):\n# !echo {x}",
        ),
        (
            "await f()",
            "# A script cannot await at its top level: put this into a function for asyncio.run():\n# await f()",
        ),
        ("match = 1; syntax of tomorrow", "match = 1; syntax of tomorrow"),
    ],
)
def test_what_becomes_of_ipythons_syntax(code, python):
    assert to_python(code).text == python


def test_futures_stand_at_the_top():
    script = written(("a", "x = 1"), ("b", "from __future__ import annotations\ny: Later = 1"))["script"]
    assert script.index("from __future__ import annotations") < script.index("import os")


def test_track_is_there_where_a_cell_calls_it_and_prints_what_ranks_print(capsys):
    assert "def track(" not in written(("a", "tracks = 1"))["script"]
    script = written(("a", "track(loss=1, step=3)"))["script"]
    body = script[script.index("def track(") : script.index("dist.init_process_group")]
    exec(f"{body}\ntrack({{'val/loss': 0.25}}, loss=1, step=3)\ntrack(loss=0.5)")
    assert capsys.readouterr().out == "step=3  val/loss=0.25  loss=1.0\nloss=0.5\n"


def test_devices_are_chosen_as_on_ranks():
    group = {**GROUP, "accelerator": "cuda", "backend": "nccl"}
    script = written(("a", "print(gpu_id)"), group=group)["script"]
    assert 'device = torch.device("cuda", local_rank)\ntorch.cuda.set_device(device)\ngpu_id = local_rank\n' in script
    assert 'dist.init_process_group("nccl")' in script


def test_a_cell_that_cannot_be_read_is_indented_as_a_whole():
    assert indented("a = '''\nopen") == "    a = '''\n    open"
