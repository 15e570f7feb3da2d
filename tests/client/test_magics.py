"""The magics in a real kernel, on real ranks."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
from magickernel import kernel_of
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from waits import PATIENCE, PATIENCE_WITH_A_START, until

from jupyter_dist.client.blocking.report import ending_text
from jupyter_dist.client.bundles.bundle import RANKS_MIME
from jupyter_dist.system.inherited import is_of_a_session


@pytest.fixture(scope="module")
def kernel(client, tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    (folder / "beside.py").write_text("value = 42\n")
    with kernel_of(folder / "train it.ipynb") as kernel:
        yield kernel


def test_without_a_group_it_is_said_what_to_do(kernel):
    cell = kernel.run("%%distributed\n1")
    assert cell.status == "error"
    assert cell.error.startswith("DistError: This notebook has no group. Start one: %dist_init -n 2")
    assert "\n" not in cell.error


def test_init_then_cells_go_to_the_ranks(kernel):
    cell = kernel.run("%dist_init -n 2 -a localhost --env GIVEN=here")
    assert cell.status == "ok", cell.error
    assert cell.text.startswith("Group 'train-it': 2 ranks ready")
    assert re.search(r"^It ends 1 min after process \d+\. JUPYTER_DIST_GRACE_SECONDS=keep keeps it\.$", cell.text, re.M)
    cell = kernel.run("import beside\nprint('same', beside.value)\nrank")
    assert cell.said == [("0-1", "same 42\n"), ("0", "0"), ("1", "1")]
    assert cell.bundle["state"] == "ok"
    assert cell.displays[-1]["text/plain"].startswith("[ranks 0-1]\nsame 42\n[rank 0]\n0")
    assert kernel.run("import os; os.environ['GIVEN']").said == [("0-1", "'here'")]
    assert "Only a start takes --env: this group is as it was started." in kernel.run("%dist_init --env A=1").text
    assert kernel.run("import sys; sys.executable").said == [("0-1", repr(sys.executable))]
    assert kernel.run("%time x = 1\n'x' in globals()").said[-1] == ("0-1", "True")


@pytest.mark.part("parking")
def test_a_group_is_parked_by_a_magic_and_resumed_by_a_cell(kernel):
    kernel.run("%dist_init")
    kernel.run("stays = torch.ones(1000)")
    assert "holds no devices" in kernel.run("%dist_park").error
    assert kernel.run("%dist_park --to file").text.startswith("Parked in ")
    assert ": parked, 2 ranks" in kernel.run("%dist_status").text
    assert kernel.run("int(stays.sum())").said == [("0-1", "1000")]
    kernel.run("%dist_park --to file")
    assert "All variables are kept." in kernel.run("%dist_resume").text


@pytest.mark.part("resizing")
def test_a_group_is_resized_by_a_magic(kernel):
    kernel.run("stays = 1")
    assert "'train-it' has 3 ranks, not 2, after" in kernel.run("%dist_resize 3 --others keep").text
    assert kernel.run("(world_size, 'stays' in globals())").said == [("0-2", "(3, True)")]
    assert "has 2 ranks, not 3" in kernel.run("%dist_resize 2 --others keep").text


@pytest.mark.parametrize("line", ["%%rank [1]", "%%rank[1]", "%%rank 1", "%%rank !0", "%%rank -1", "%%rank 1::2"])
def test_rank_takes_every_expression(kernel, line):
    assert kernel.run(f"{line}\nrank").said == [("1", "1")]


def test_mode_switches_between_kernel_and_ranks(kernel):
    assert "Cells run in the kernel" in kernel.run("%dist_mode -d").text
    cell = kernel.run("rank = 'mine'\nprint(rank)")
    assert (cell.text, cell.displays) == ("mine\n", [])
    assert kernel.run("%%distributed\nrank").said == [("0", "0"), ("1", "1")]
    assert kernel.run("print(rank)").text == "mine\n"
    assert "Cells run on the ranks" in kernel.run("%dist_mode -e").text
    assert "%dist_mode -d" in kernel.run("%dist_mode").text


@pytest.mark.part("ddip")  # whose magics are an entry point of the installed package
def test_a_notebook_has_one_group_whatever_folder_its_kernel_is_in(kernel, tmp_path):
    kernel.run("kept = 1")
    kernel.run(f"%cd {tmp_path}")
    for line in ("%dist_init", "%reload_ext jupyter_dist\n%dist_init"):
        assert "Attached to group 'train-it'" in kernel.run(line).text
        assert kernel.run("kept").said == [("0-1", "1")]
    assert kernel.run("%reload_ext jupyter_dist").text == "Cells run in the kernel again.\n"
    assert kernel.run("%dist_init").status == "ok"
    kernel.run("%cd -q -")


def test_a_group_that_starts_in_another_folder_is_found_by_the_next_kernel(client, tmp_path):
    path = tmp_path / "other.ipynb"
    (tmp_path / "sub").mkdir()
    with kernel_of(path) as kernel:
        kernel.run("%cd sub")
        name = re.search(r"Group '(other-\w+)'", kernel.run("%dist_init -n 1").text)[1]
        kernel.run("kept = 2")
        with kernel_of(path) as after:
            assert f"'{name}'" in after.run("%dist_status").text
            assert after.run("%%distributed\nkept").said == [("0", "2")]


def test_settings_by_line_magics_are_those_of_the_ranks_too(kernel, tmp_path):
    (tmp_path / "again.py").write_text("value = 1\n")
    cell = kernel.run(f"%cd {tmp_path}\n%env SETTING=1")
    assert cell.text.startswith("%cd and %env run in the kernel and on the ranks.\n")
    assert cell.said == [("0-1", f"{tmp_path}\nenv: SETTING=1\n")]
    assert kernel.run("%load_ext autoreload\n%autoreload 2").status == "ok"
    seen = "import os, again\nprint(os.getcwd() == os.environ['PWD_OF_TEST'], os.environ['SETTING'], again.value)"
    assert kernel.run(f"%env PWD_OF_TEST={tmp_path}").status == "ok"
    assert kernel.run(seen).said == [("0-1", "True 1 1\n")]
    (tmp_path / "again.py").write_text("value = 'changed'\n")
    assert kernel.run(seen).said == [("0-1", "True 1 changed\n")]
    assert kernel.run("mine = 1").status == "ok"
    assert "mine" in kernel.run("%who").said[0][1]
    assert kernel.run("%cd -q -\n%autoreload 0").status == "ok"
    assert (
        kernel.run(f"# dip_locally\nprint('here', __import__('os').getcwd() != {str(tmp_path)!r})").text
        == "here True\n"
    )


def test_a_display_of_an_earlier_cell_is_updated_in_that_cell(kernel):
    begin = "from IPython.display import HTML, display\nhandle = display(HTML(f'<b>{rank}</b>'), display_id=True)"
    first = kernel.run(begin)
    ids = [*first.display_ids, *(part["transient"]["display_id"] for part in first.parts.values())]
    for text in ("<i>one</i>", "<i>two</i>"):
        later = kernel.run(f"handle.update(HTML({text!r} + str(rank)))")
        assert sorted(later.of_earlier) == sorted(ids)
        shown = {data.get("text/html") for data in later.of_earlier.values()}
        assert shown >= {f"{text}0", f"{text}1"}
        assert later.of_earlier[first.display_ids[0]][RANKS_MIME]["execution_id"] == first.bundle["execution_id"]
    assert kernel.run("1").of_earlier == {}


def test_the_number_beside_a_cell_is_that_of_the_ranks(kernel):
    first = kernel.run("'first'").number
    kernel.run("%dist_status")
    second = kernel.run("'second'").number
    assert second == first + 2
    found = kernel.run(f"Out[{first}], _{first}, In[{second}], In[{first + 1}], get_ipython().displayhook.prompt_count")
    assert found.said == [("0-1", repr(("first", "first", "'second'", "", found.number)))]
    failed = kernel.run("%%rank 0\n1 / 0")
    assert f"In[{failed.number}]" in json.dumps([*failed.displays, *failed.parts.values()])
    kernel.run(f"%macro again {first}")
    assert kernel.run("again").said == [("0-1", "'first'")]


def test_an_error_on_a_rank_fails_the_cell_and_is_shown_once(kernel):
    cell = kernel.run("if rank == 1: raise ValueError('only here')\nprint('fine')")
    assert cell.status == "error"
    assert cell.error == "RankError: rank 1: ValueError: only here"
    assert set(cell.said) == {("0", "fine\n"), ("1", "ValueError")}
    assert kernel.run("%%rank 5\n1").error.startswith("DistError: There is no rank 5")
    cell = kernel.run("%%rank [1, 5]\nrank")
    assert (cell.text, cell.said) == ("There is no rank 5: group 'train-it' has 2 ranks.\n", [("1", "1")])
    assert kernel.run("%dist_init -n many").error.startswith("DistError: Argument")
    assert "already running with 2 ranks" in kernel.run("%dist_init -n 3").error


def test_ranks_ask_through_the_kernel(kernel):
    cell = kernel.run("%%rank [0,1]\nprint('hello', input('name? '))", answers=["Ada"])
    assert (cell.status, cell.asked) == ("ok", [("[ranks 0-1] name? ", False)])
    assert cell.said == [("0-1", "name? Ada\nhello Ada\n")]
    # A frontend that takes no questions, as nbclient's.
    assert "Nobody can answer" in kernel.run("%%rank [0,1]\ninput()").error


def test_output_streams_live(kernel):
    cell = kernel.run("import time\nfor i in range(10):\n    print(i)\n    time.sleep(0.1)")
    assert cell.said == [("0-1", "".join(f"{i}\n" for i in range(10)))]
    assert 2 <= cell.updates <= 8
    assert len(cell.displays) == 1


@pytest.fixture
def interrupt(kernel, client):
    """Interrupt the kernel once all ranks sleep in its cell."""

    def sleeps(stack):
        return any("time.sleep" in frame.code for frame in stack.frames[-1:])

    def interrupt():
        until(lambda: all(map(sleeps, client.attach("train-it").stacks())))
        kernel.manager.interrupt_kernel()

    return interrupt


def test_an_interrupt_keeps_the_ranks(kernel, interrupt):
    kernel.run("kept = rank + 100")
    cell = kernel.run("import time\ntime.sleep(1000)", after=interrupt)
    assert cell.status == "error"
    assert cell.error.startswith("KeyboardInterrupt: the ranks were interrupted")
    assert cell.bundle["state"] == "interrupted"
    assert kernel.run("kept").said == [("0", "100"), ("1", "101")]


@pytest.mark.part("hangs")
def test_a_frontend_without_a_server_is_told_why_a_cell_does_not_end(kernel):
    verdict, bundle = None, {}
    for bundle in kernel.bundles("if rank == 0: dist.barrier()"):
        if verdict is None and (verdict := bundle.get("verdict")):
            assert bundle["state"] == "running"
            kernel.manager.interrupt_kernel()
    assert verdict["kind"] == "cannot_end"
    assert [(part["ranks"], part["state"]) for part in verdict["waiting"] + verdict["needed"]] == [
        ("0", "waits"),
        ("1", "idle"),
    ]
    assert bundle["state"] == "interrupted"
    assert "verdict" not in bundle


def test_sync_status_and_debug(kernel):
    assert kernel.run("%sync").text.startswith("All 2 ranks are in sync")
    for _ in range(50):  # the state of the ranks may arrive after that of their cell
        status = kernel.run("%dist_status").text
        if status.count(": idle") == 2:
            break
    assert "Group 'train-it': ready, 2 ranks, gloo" in status
    assert re.search(r"rank 1: idle, pid \d+, on cpu, 0\.\d\d GiB", status)
    debug = kernel.run("%dist_debug").text
    assert "Server: http://127.0.0.1" in debug
    assert "train-it" in debug


@pytest.mark.part("ddip")
def test_ddip_cells_run_here_there_and_everywhere(kernel):
    kernel.run("%dist_mode -d")
    assert "Attached to group 'train-it'" in kernel.run("%makedip").text
    assert kernel.run("%%dip\nrank").said == [("0", "0")]
    assert kernel.run("%%dip remote --see all\nrank").said == [("0", "0"), ("1", "1")]
    assert kernel.run("%%dip -q\nrank").displays == []
    assert kernel.run("%%dip local\nprint('here')").text == "here\n"
    cell = kernel.run("%%dip everywhere --see 1\nprint('both')")
    assert (cell.text, cell.said) == ("both\n", [("1", "both\n")])
    assert "%%dip --see all" in kernel.run('%autodip on -a "--see all"').text
    assert kernel.run("rank").said == [("0", "0"), ("1", "1")]
    assert kernel.run("#dip_locally\nprint('here')").text == "here\n"
    assert "off" in kernel.run("%autodip off").text
    assert "rank 1: idle" in kernel.run("%makedip -i").text


@pytest.mark.part("ddip")
def test_ddip_variables_go_there_and_back(kernel):
    kernel.run("there = [1, 2]")
    assert kernel.run("%dipush there").status == "ok"
    kernel.run("%%distributed\nback = [*there, rank]")
    kernel.run("%dipull -r 1 back")
    assert kernel.run("print(back)").text == "[1, 2, 1]\n"
    kernel.run("%dipper dist_group")
    assert kernel.run("print(dist_group.gather('rank'))").text == "{0: 0, 1: 1}\n"
    assert kernel.run("%dipush nothing").error == "DistError: The kernel has no 'nothing'."
    assert "RankError: rank 0: NameError" in kernel.run("%dipull nothing").error


@pytest.mark.part("ddip")  # whose tests leave the notebook attached
def test_functions_of_the_notebook_are_launched(kernel):
    kernel.run("def train(a, *, b):\n    print('training')\n    return a + b + rank")
    cell = kernel.run("values = dist_group.launch(train, 1, b=2)\nprint(values)")
    assert (cell.text, cell.said) == ("{0: 3, 1: 4}\n", [("0-1", "training\n")])
    kernel.run("def needs():\n    return helper()")
    assert (
        kernel.run("dist_group.launch(needs)").error == "RankError: ranks 0-1: NameError: name 'helper' is not defined"
    )
    assert kernel.run("print(dist_group.launch(lambda: 1 + rank))").text == "{0: 1, 1: 2}\n"
    launched = "from jupyter_dist.client import notebook_launcher\ndef two(a):\n    import os\n    print(a, os.environ['ACCELERATE_MIXED_PRECISION'])"
    cell = kernel.run(f"{launched}\nnotebook_launcher(two, ('x',), num_processes=2, mixed_precision='bf16')")
    assert cell.said == [("0-1", "x bf16\n")]


def test_a_kernel_restart_attaches_again(kernel):
    kernel.run("%%distributed\nkept = 'through the restart'")
    kernel.manager.restart_kernel(now=True)
    kernel.client.wait_for_ready(timeout=PATIENCE)
    kernel.run("%load_ext jupyter_dist")
    assert kernel.run("%%rank 0\nkept").said == [("0", "'through the restart'")]
    cell = kernel.run("%dist_init")
    assert cell.text.startswith("Attached to group 'train-it' with 2 ranks; they keep their variables.")
    again = kernel.run("kept, get_ipython().displayhook.prompt_count")
    assert again.said == [("0-1", repr(("through the restart", again.number)))]


def test_what_ends_a_group_of_a_kernel_without_a_server(kernel, client):
    kernel.run("%dist_mode -d")
    pid = int(kernel.run("import os\nprint(os.getpid())").text)
    group = client.attach("train-it")
    # The kernel before the restart owned it, too.
    until(lambda: group.status().ends_with.owners == [pid])
    assert ending_text(group.model, is_private=True) == f"It ends 1 min after process {pid}."
    kernel.run("os.environ['JUPYTER_DIST_GRACE_SECONDS'] = 'never'")
    assert kernel.run("%dist_init --name other").error.startswith("DistError: JUPYTER_DIST_GRACE_SECONDS is 'never'.")
    kernel.run("del os.environ['JUPYTER_DIST_GRACE_SECONDS']")
    kernel.run("%dist_mode -e")


STUBBORN = """
import os, time
while True:
    try:
        time.sleep(1)
    except KeyboardInterrupt:
        {then}
"""


def test_what_an_interrupt_could_not_do_is_said(kernel, interrupt):
    cell = kernel.run(STUBBORN.format(then="if rank == 1: os._exit(3)\n        raise"), after=interrupt)
    assert cell.error.startswith("KeyboardInterrupt: rank 1 died; the other ranks keep their variables")
    until(lambda: "degraded" in kernel.run("%dist_status").text)
    attached = kernel.run("%dist_init").text
    assert "Group 'train-it': degraded, 2 ranks" in attached
    assert "rank 1: dead" in attached
    refused = kernel.run("%dist_restart -d --state copy")  # with a single other rank nothing can be compared
    assert refused.error.startswith("DistError: Only rank 0 is left")
    assert kernel.run("%dist_restart --state copy").error.startswith(
        "DistError: Only dead ranks can be given variables"
    )
    assert "rank 1 replaced; the other ranks" in kernel.run("%dist_restart -d").text
    assert kernel.run("'kept' in globals()").said == [("0", "True"), ("1", "False")]
    assert kernel.run("%dist_restart --dead").error.startswith("DistError: Group 'train-it' has no rank to replace")
    cell = kernel.run(STUBBORN.format(then="pass"), after=lambda: (interrupt(), interrupt()))
    assert cell.error.startswith("KeyboardInterrupt: the ranks were interrupted but are still running")


def test_restart_gives_fresh_ranks_and_reload_keeps_them(kernel):
    assert "2 new ranks" in kernel.run("%dist_restart").text
    assert kernel.run("new = 1\n'kept' in globals()").said == [("0-1", "False")]
    kernel.run("%reload_ext jupyter_dist")
    assert kernel.run("%%distributed\nnew").said == [("0-1", "1")]
    assert kernel.run("2 + 2").displays == []


def test_what_a_rank_printed_at_once_stays_together(kernel):
    cell = kernel.run("%%distributed\nprint({'x': torch.tensor([[rank, 0], [5, 5], [rank, 7]])})")
    both = [f"[rank {r}]\n{{'x': tensor([[{r}, 0],\n        [5, 5],\n        [{r}, 7]])}}" for r in (0, 1)]
    assert cell.displays[-1]["text/plain"] == "\n".join(both)


def test_shutdown_leaves_nothing(kernel, client):
    pids = [rank["pid"] for rank in client.attach("train-it").model["ranks"]]
    assert "has ended" in kernel.run("%dist_shutdown").text
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    assert "train-it" not in [group.name for group in client.groups()]
    assert kernel.run("2 + 2").status == "ok"


WITHOUT_A_GROUP = (
    "dist_status",
    "sync",
    "dist_shutdown",
    "dist_reset",
    "dist_sync_ide",
    *(pytest.param(f"makedip -{option}", marks=pytest.mark.part("ddip")) for option in "ki"),
)
TIMELINE = "timeline_debug", "timeline_save", "timeline_clear"


@pytest.mark.parametrize("magic", [*WITHOUT_A_GROUP, *TIMELINE])
def test_without_a_group_nothing_is_wrong(kernel, magic):
    cell = kernel.run(f"%{magic}")
    assert cell.status == "ok", cell.error
    assert cell.text.startswith("This notebook has no group. Start one: %dist_init -n 2")


def test_a_notebook_runs_where_there_is_no_server_or_it_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "rt"))
    kill_server = (
        "import os, signal\nfrom jupyter_dist.client.servers import running_servers\n"
        "(server,) = running_servers()\nos.kill(server.pid, signal.SIGKILL)"
    )
    sources = [
        "%load_ext jupyter_dist",
        "%dist_init -n 2",
        "print('from', rank)",
        "1 / rank",
        "%dist_mode -d",
        kill_server,
    ]
    sources += ["%%rank 1\nprint('still', rank)", "%dist_shutdown", "1 / 0"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    notebook.cells[3].metadata.tags = ["raises-exception"]
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        NotebookClient(
            notebook, timeout=PATIENCE_WITH_A_START, resources={"metadata": {"path": str(tmp_path)}}
        ).execute()
    (output,) = notebook.cells[2].outputs
    assert output["data"][RANKS_MIME]["state"] == "ok"
    assert output["data"]["text/plain"] == "[rank 0]\nfrom 0\n[rank 1]\nfrom 1"
    assert notebook.cells[3].outputs[0]["data"][RANKS_MIME]["state"] == "error"  # and the notebook continues
    assert notebook.cells[6].outputs[0]["data"]["text/plain"] == "[rank 1]\nstill 1"  # through another server


def test_a_script_alone_in_a_cell_runs_on_the_ranks(notebook):
    (notebook.folder / "said.py").write_text("import os\nprint('script of', os.environ.get('RANK'))\n")
    notebook.run("%dist_mode -e")
    try:
        assert sorted(notebook.run("%run said.py").said) == [("0", "script of 0\n"), ("1", "script of 1\n")]
        both = notebook.run("%pwd\n%run said.py")
        assert "%run runs in the kernel, because other magics of this cell do." in both.text
        assert "script of None" in both.text
    finally:
        notebook.run("%dist_mode -d")


def test_papermill_sets_parameters_on_the_ranks(tmp_path, monkeypatch):
    papermill = pytest.importorskip("papermill")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "rt"))
    sources = ["%load_ext jupyter_dist", "%dist_init -n 2", "scale = 1", "print(scale * world_size)", "%dist_shutdown"]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    made.cells[2].metadata.tags = ["parameters"]
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, tmp_path / "in.ipynb")
    files = (str(tmp_path / "in.ipynb"), str(tmp_path / "out.ipynb"))
    papermill.execute_notebook(*files, {"scale": 21}, cwd=str(tmp_path), progress_bar=False)
    *_, printed, _ = nbformat.read(tmp_path / "out.ipynb", 4).cells
    assert printed.outputs[0]["data"]["text/plain"] == "[ranks 0-1]\n42"


def test_nbconvert_executes_cells_on_ranks_and_those_that_may_fail(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "rt"))
    sources = ["%load_ext jupyter_dist", "%dist_init -n 2", "1 / 0", "print(21 * world_size)", "%dist_shutdown"]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    made.cells[2].metadata.tags = ["raises-exception"]
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, tmp_path / "in.ipynb")
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", "out.ipynb", "in.ipynb"]
    ended = subprocess.run(
        command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_WITH_A_START
    )
    assert ended.returncode == 0, ended.stderr
    _, _, failed, printed, _ = nbformat.read(tmp_path / "out.ipynb", 4).cells
    assert failed.outputs[-1]["ename"] == "RankError"
    assert printed.outputs[0]["data"]["text/plain"] == "[ranks 0-1]\n42"


def test_a_group_of_a_kernel_shares_the_import_of_torch_with_those_of_programs(notebook):
    def telling_apart(environ):
        return {name: value for name, value in environ.items() if not is_of_a_session(name)}

    kernels = json.loads(notebook.run("import json, os; print(json.dumps(dict(os.environ)))").text)
    assert kernels["PAGER"] == "cat"  # kernels do set variables
    assert telling_apart(kernels) == telling_apart(os.environ)


@pytest.mark.part("saves")
def test_a_group_is_saved_and_restored(notebook, tmp_path):
    notebook.run("%%distributed\nkept = rank + 5\nnumbers = (n for n in range(3))")
    place = f"--folder {tmp_path}"
    assert "numbers" in notebook.run(f"%dist_save --preview {place}").text
    saved = notebook.run(f"%dist_save half {place}")
    assert saved.text.startswith("Saved 'half': ")
    assert "Not saved: numbers (cell [" in saved.text
    notebook.run("%%distributed\nkept = 0")
    assert notebook.run(f"%dist_restore {place}").text.startswith("half: group '")
    assert "Restored 'half'" in notebook.run(f"%dist_restore half --rerun {place}").text
    assert notebook.run("%%rank [1]\nassert (kept, next(numbers)) == (6, 0)").status == "ok"
    assert notebook.run(f"%dist_restore nothing {place}").error.startswith("DistError: There is no save 'nothing'")
