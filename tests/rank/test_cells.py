"""What a cell can do: values, displays, magics, await, the namespace."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from rankclient import RankClient

from jupyter_dist.magics.base import RankMagics
from jupyter_dist.magics.distmagics import DistMagics
from jupyter_dist.magics.extension import vocabularies
from jupyter_dist.protocol.parts import find_parts
from jupyter_dist.rank.ipython import elsewhere


def test_result_is_the_last_expression(shared: RankClient) -> None:
    result = shared.run("1\n6 * 7")
    (content,) = result.outputs("execute_result")
    assert content["data"] == {"text/plain": "42"}
    assert content["execution_count"] == int(result.reply["execution_id"][1:])
    assert result.status == "ok"
    assert result.reply["seconds"] > 0


def test_semicolon_hides_the_result(shared: RankClient) -> None:
    assert shared.run("6 * 7;").events == []


def test_results_are_cached_like_in_any_notebook(shared: RankClient) -> None:
    shared.run("'first'")
    second = shared.run("'second'")
    count = second.outputs("execute_result")[0]["execution_count"]
    shared.run(f"assert (_, __, Out[{count}], _{count}) == ('second', 'first', 'second', 'second')")
    assert shared.run("In[-1]").outputs("execute_result")[0]["data"]["text/plain"] == "'In[-1]'"


def test_silent_cells_show_nothing_and_leave_no_trace(shared: RankClient) -> None:
    shared.run("'kept'")
    assert shared.run("'hidden'", silent=True).events == []
    assert shared.run("_").outputs("execute_result")[0]["data"]["text/plain"] == "'kept'"


@pytest.mark.parametrize("code", ["", "   \n", "# a comment", "pass"])
def test_cells_that_do_nothing(shared: RankClient, code: str) -> None:
    result = shared.run(code)
    assert result.status == "ok"
    assert result.events == []


def test_namespace_has_the_rank(shared: RankClient) -> None:
    result = shared.run("print(rank, local_rank, world_size, device, dist.get_rank(), torch.__name__)")
    assert result.text() == "0 0 1 cpu 0 torch\n"


def test_names_of_the_rank_are_hidden_and_survive_reset(shared: RankClient) -> None:
    shared.run("mine = 1")
    assert shared.run("%who").text().split() == ["mine"]
    assert shared.run("%reset -f").status == "ok"
    assert shared.run("print('mine' in globals(), world_size)").text() == "False 1\n"


def test_main_is_a_real_module(shared: RankClient) -> None:
    code = """
import pickle, sys, __main__
class Point: pass
again = pickle.loads(pickle.dumps(Point()))
print(type(again) is Point, Point.__module__, __main__.Point is Point, sys.modules['__main__'] is __main__, __name__)
"""
    assert shared.run(code).text() == "True __main__ True True __main__\n"


def test_no_interactive_prompt_is_left(shared: RankClient) -> None:
    assert shared.run("import sys; hasattr(sys, 'ps1') or hasattr(sys, 'ps2')").outputs("execute_result")[0][
        "data"
    ] == {"text/plain": "False"}


def test_await_and_background_tasks(shared: RankClient) -> None:
    assert shared.run("import asyncio\nawait asyncio.sleep(0.01, 'slept')").outputs("execute_result")
    start = "async def later():\n    await asyncio.sleep(0.01)\n    done.append(1)\ndone = []\ntask = asyncio.create_task(later())"
    assert shared.run(start).status == "ok"
    assert shared.run("await task\nprint(done)").text() == "[1]\n"


def test_background_task_runs_between_cells(rank: RankClient) -> None:
    rank.run(
        "import asyncio\nasync def late():\n    await asyncio.sleep(0.02)\n    print('late text')\nt = asyncio.create_task(late())"
    )
    rank.wait_text("late text")
    assert rank.events[-1][0] == "e1"


def test_display_and_update(shared: RankClient) -> None:
    code = """
from IPython.display import HTML, display, update_display, clear_output
handle = display(HTML('<b>x</b>'), display_id='here')
update_display(HTML('<b>y</b>'), display_id='here')
clear_output(wait=True)
"""
    result = shared.run(code)
    kinds = [kind for kind, _ in result.events]
    assert kinds == ["display_data", "update_display_data", "clear_output"]
    first, second, cleared = (content for _, content in result.events)
    assert first["data"]["text/html"] == "<b>x</b>"
    assert first["transient"] == second["transient"] == {"display_id": "here"}
    assert second["data"]["text/html"] == "<b>y</b>"
    assert cleared == {"wait": True}


def test_an_update_belongs_to_every_cell_that_shows_the_display(shared: RankClient) -> None:
    shared.run("first = display('a', display_id='of several cells')")
    shared.run("second = display('b', display_id='of several cells'); own = display('c', display_id=True)")
    earlier = [owner for owner, kind, _ in shared.events if kind == "display_data"][-3:-1]
    for number in range(2):
        last = shared.run(f"first.update('new {number}'); own.update('of the last'); display('d', display_id='new')")
        updates = [(owner, content) for owner, kind, content in shared.events if kind == "update_display_data"]
        found = [owner for owner, content in updates if content["data"]["text/plain"] == f"'new {number}'"]
        assert found == earlier
        assert last.outputs("update_display_data") == []
    assert shared.run("update = display('none', display_id='unknown', update=True)").outputs("update_display_data")


def test_libraries_that_show_errors_themselves_are_asked(rank: RankClient) -> None:
    pytest.importorskip("rich")
    rank.run("import rich.traceback\nrich.traceback.install()")
    for code in ("def fails(): 1 / 0\nfails()", "1 / 0"):
        failed = rank.run(code)
        (shown,) = failed.outputs("display_data")
        assert "╭─" in shown["data"]["text/plain"]  # a frame of rich
        assert (failed.status, len(failed.error["traceback"])) == ("error", 1)
    rank.run("def broken(*_): raise KeyError\nget_ipython()._showtraceback = broken")
    assert "1 / 0" in re.sub(r"\x1b\[[\d;]*m", "", rank.run("1 / 0").traceback)


def test_a_stream_of_the_users_is_flushed_at_the_end_of_its_cell(rank: RankClient) -> None:
    rank.run("import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach())")
    for number in range(2):
        assert rank.run(f"sys.stdout.write('text of {number}')").text().startswith(f"text of {number}")
    rank.run("class Broken:\n    write = lambda *_: 0\n    def flush(self): raise OSError\nsys.stdout = Broken()")
    assert rank.run("1").status == "ok"


def test_a_loop_in_debug_mode_reports_slow_callbacks_but_not_cells(rank: RankClient) -> None:
    assert rank.run("import asyncio, time\nloop = asyncio.get_running_loop(); loop.set_debug(True)").status == "ok"
    # On a busy machine a short callback takes milliseconds, too.
    slow = "loop.slow_callback_duration = 0.5; time.sleep(0.5)"
    assert rank.run(f"{slow}; await asyncio.sleep(0); time.sleep(0.5)").status == "ok"
    assert rank.run("time.sleep(0.5)").status == "ok"
    rank.run("def of_the_user(): time.sleep(0.5)\nloop.call_soon(of_the_user)")
    rank.wait_text("of_the_user() ", "stderr")
    slow_ones = [line for line in rank.text_of_all("stderr").splitlines() if "Executing <" in line]
    assert all("of_the_user()" in line for line in slow_ones), slow_ones


def test_torch_logs_of_a_cell_are_those_of_torch(rank: RankClient) -> None:
    use = "import torch\ntorch.compile(lambda x: (print(end=''), x + 1)[1], backend='eager')(torch.ones(1));"
    shown = rank.run(f"import os; os.environ['TORCH_LOGS'] = 'graph_breaks'\n{use}")
    assert "Graph break" in shown.text("stderr")
    wrong = rank.run("os.environ['TORCH_LOGS'] = 'no_such_log'\n1").text("stderr")
    assert wrong.startswith("TORCH_LOGS has no effect in this rank: ")
    assert "no_such_log" in wrong
    assert rank.run("2").text("stderr") == ""
    assert rank.run("del os.environ['TORCH_LOGS']\n1").text("stderr") == ""


def test_files_of_a_profile_are_named_in_the_log(make_group: Callable[..., list[RankClient]], tmp_path: Path) -> None:
    startup = tmp_path / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "10-first.py").write_text("started = 1")
    (rank,) = make_group(1, env={"GLOO_SOCKET_IFNAME": "lo", "IPYTHONDIR": str(tmp_path)})
    rank.wait_text(f"what you need of {startup}/10-first.py.", "stderr")
    assert rank.run("'started' in globals()").outputs("execute_result")[0]["data"]["text/plain"] == "False"


def test_displays_are_strict_json(shared: RankClient) -> None:
    code = "display({'application/json': {'a': float('nan'), 1: b'x', 's': {1}}, 'text/plain': 'p'}, raw=True)"
    (content,) = shared.run(code).outputs("display_data")
    assert content["data"]["application/json"] == {"a": "nan", "1": "eA==", "s": [1]}


def test_text_and_displays_keep_their_order(shared: RankClient) -> None:
    code = "import sys\nfor i in range(3):\n    print(i)\n    print('e', i, file=sys.stderr)\n    display(i)"
    events = shared.run(code).events
    assert [kind for kind, _ in events] == ["stdout", "stderr", "display_data"] * 3


def test_pandas_shows_a_table(shared: RankClient) -> None:
    (content,) = shared.run("import pandas as pd\npd.DataFrame({'a': [1]})").outputs("execute_result")
    assert "<table" in content["data"]["text/html"]


def test_figures_are_shown_inline(shared: RankClient) -> None:
    result = shared.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    (content,) = result.outputs("display_data")
    assert content["data"]["image/png"].startswith("iVBOR")
    assert shared.run("%matplotlib inline\nplt.plot([1, 2]);").outputs("display_data")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("%matplotlib notebook", "'notebook' needs a kernel. Use %matplotlib inline or %matplotlib widget"),
        ("%matplotlib", "Ranks have no display. Use %matplotlib inline"),
        ("%matplotlib qt", "Ranks have no display: 'qt' is not available. Use %matplotlib inline."),
        ("%store x", "Ranks have no %store: all of them would write the same entry."),
        ("%edit", "Ranks have no editor. Write a file in a cell with %%writefile"),
    ],
)
def test_magics_that_do_not_work_on_ranks_say_why(shared: RankClient, line: str, why: str) -> None:
    result = shared.run(f"x = 1\n{line}")
    (error,) = result.outputs("error")
    assert (error["ename"], error["evalue"][: len(why)]) == ("UsageError", why)
    assert "Traceback" not in "".join(error["traceback"])


WITHOUT_AUTORELOAD = pytest.mark.skipif(
    metadata.version("ipython") == "9.0.0", reason="IPython 9.0.0 was released without a part of its autoreload"
)

MAGICS_THAT_WORK = """
from pathlib import Path
Path('magic_module.py').write_text('def answer(): return 1')
Path('magic_script.py').write_text('made = 5; print(__name__)')
Path('magic_extension.py').write_text('def load_ipython_extension(ip): ip.user_ns["loaded"] = True')
import sys; sys.path.insert(0, '')
%load_ext magic_extension
%load_ext autoreload
%autoreload 2
import magic_module
%run magic_script.py
"""


@pytest.mark.part("ddip", "variables")
@WITHOUT_AUTORELOAD
def test_magics_of_a_kernel_say_where_they_run(shared: RankClient) -> None:
    classes = [DistMagics, *find_parts("magics", RankMagics).classes.values(), *vocabularies().values()]
    ours = {f"%{name}" for magics in classes for name in magics.magics["line"]}
    assert ours | {f"%%{name}" for magics in classes for name in magics.magics["cell"]} == elsewhere.NAMES
    for code in ("%dist_variables", "%dist_compare model", "%%rank [0]\nx = 1", "x = 1\n%sync"):
        name = code.splitlines()[-1 if "sync" in code else 0].split()[0]
        said = shared.run(code).error["evalue"]
        assert said.startswith(f"{name} is for a kernel, and this cell runs on ranks."), said
    assert "rank picker" in shared.run("%%rank 0\n1").error["evalue"]
    assert "not found" in shared.run("%dist_nothing").error["evalue"]


def test_folders_of_a_rank_begin_with_the_groups(shared: RankClient, tmp_path: Path) -> None:
    before = shared.run("print(*_dh)").text().strip()
    assert before == shared.spec.cwd
    for _ in range(2):
        shared.run(f"%cd -q {tmp_path}")
        assert shared.run("%cd -").text() == f"{before}\n"
    assert shared.run("%reset -f\nprint(_dh[0])").text().strip() == before


def test_magics_that_work_on_ranks(shared: RankClient, tmp_path: Path) -> None:
    shared.run(f"%cd -q {tmp_path}")
    assert shared.run(MAGICS_THAT_WORK).text() == "__main__\n"
    # Of another size: the time of a file counts in seconds for compiled code.
    (tmp_path / "magic_module.py").write_text("def answer(): return 2  # changed")
    assert shared.run("print(made, loaded, magic_module.answer())").text() == "5 True 2\n"
    shared.run("%autoreload 0\nloaded = get_ipython().extension_manager.loaded")
    shared.run("loaded -= {name for name in loaded if 'autoreload' in name}")  # as if it were not loaded, for others
    assert "print(made, loaded, magic_module.answer())" in shared.run("%history -n").text()
    assert "made = 5" in shared.run("%load magic_script.py").text()
    shared.run("%cd -q -")


def test_the_history_is_searched_in_memory(shared: RankClient) -> None:
    shared.run("searched_for = 1\nsearched_for += 1")
    shared.run("not_searched = 2")
    found = shared.run("%hist -g searched_for = ").text()
    assert re.search(r"^ *\d+:\nsearched_for = 1\nsearched_for \+= 1$", found, re.MULTILINE)
    assert "not_searched" not in found
    assert shared.run("%hist -l 1").text() == "%hist -g searched_for =\n"
    assert shared.run("%hist -g nobody_wrote_th?s_before").text().count("nobody") == 1  # itself


def test_other_gui_is_refused(shared: RankClient) -> None:
    assert "Ranks have no display" in shared.run("%gui qt").text("stderr")


def test_a_result_and_a_display_of_a_widget_are_alike(shared: RankClient) -> None:
    mime = "application/vnd.jupyter.widget-view+json"
    bundle = {"text/plain": "IntSlider()", mime: {"model_id": "x"}}
    shared.run(f"class View:\n    def _repr_mimebundle_(self, **_): return {bundle}")
    (shown,) = shared.run("display(View())").outputs("display_data")
    (result,) = shared.run("View()").outputs("execute_result")
    assert shown["data"] == result["data"] == bundle


def test_help_is_shown_as_output(shared: RankClient) -> None:
    (content,) = shared.run("len?").outputs("display_data")
    assert "Return the number of items" in content["data"]["text/plain"]
    (content,) = shared.run("import json\njson.dumps??").outputs("display_data")
    assert "def" in content["data"]["text/plain"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("!echo one; echo two 1>&2", "one\r\ntwo\r\n"),
        ("%%bash\necho from bash", "from bash\n"),
        ("%cd -q /tmp\n%pwd", ""),
        ("files = !echo a b\nprint(files)", "['a b']\n"),
        ("%%capture kept\nprint('hidden')", ""),
        ("print(kept.stdout)", "hidden\n\n"),
        pytest.param("%load_ext autoreload\n%autoreload 2", "", marks=WITHOUT_AUTORELOAD),
        ("%%writefile /tmp/jd_rank_test.py\nprint('ran', __name__)", "Writing /tmp/jd_rank_test.py\n"),
        ("%run /tmp/jd_rank_test.py", "ran __main__\n"),
        ("!rm /tmp/jd_rank_test.py", ""),
        ("get_ipython().set_next_input('x')", "# A rank cannot fill in a cell. Copy this:\nx\n"),
    ],
)
def test_magics(shared: RankClient, code: str, text: str) -> None:
    result = shared.run(code)
    assert (result.status, result.text()) == ("ok", text)


def test_time_magics(shared: RankClient) -> None:
    assert "Wall time" in shared.run("%time x = 1").text()
    assert "Wall time" in shared.run("%%time\nx = 1").text()
    assert "per loop" in shared.run("%timeit -n 2 -r 2 x").text()


def test_tb_without_an_error_is_no_error(rank: RankClient) -> None:
    result = rank.run("%tb")
    assert (result.status, result.text("stderr")) == ("ok", "No traceback available to show.\n")
    rank.run("1/0")
    assert rank.run("%tb").error["ename"] == "ZeroDivisionError"


def test_pip_magic(shared: RankClient) -> None:
    assert "pip" in shared.run("%pip --version").text()


def test_shell_output_keeps_its_place(shared: RankClient) -> None:
    assert shared.run("print(1)\n!echo 2\nprint(3)").text() == "1\n2\r\n3\n"


def test_tqdm_writes_to_stderr(shared: RankClient) -> None:
    result = shared.run("from tqdm.auto import tqdm\nfor _ in tqdm(range(3)): pass")
    assert result.status == "ok"
    assert "\r" in result.text("stderr")
    assert "100%" in result.text("stderr")


def test_warnings_and_logging(shared: RankClient) -> None:
    text = shared.run("import logging, warnings\nwarnings.warn('look out')\nlogging.warning('careful')").text("stderr")
    assert "UserWarning: look out" in text
    assert "WARNING:root:careful" in text


def test_large_cell(shared: RankClient) -> None:
    code = "x = 0\n" + "# filler\n" * 100_000 + "print(len(In[-1]))"
    assert shared.run(code).text() == f"{len(code)}\n"


def test_notebook_is_recognised(shared: RankClient) -> None:
    assert shared.run("print(type(get_ipython()).__name__)").text() == "ZMQInteractiveShell\n"


CELLS = [
    *(
        "x = 1",
        "exit",
        "exit()",
        "!ls",
        "%time x",
        "x?",
        "a = !ls",
        "%%bash\nls",
        "  x",
        "# c",
        "x\n",
        "\nx",
        "await x",
    ),
    *("s='''\n%magic\n!ls\n?x\n'''", ">>> x", "x;", "x ; y", "foo.bar", "/f x", ",f a b", "a b", "'?'", "x = '!'  # ?"),
    *(
        "f(\n a,\n b)",
        "for i in x:\n  !ls",
        "if 1:\n    pass\n",
        "\tx",
        "\fx=1",
        "x=1\r\ny=2\r\n",
        "x=1 ",
        "a\n\n\n",
        "'\\d'",
    ),
    *(
        "(1,\n%timeit)",
        "def f():\n  return 1\nf()",
        "print(1);  ",
        "x = (y\n%z)",
        "x = 1\n%time y",
        "lambda: 1",
        "x = b?",
    ),
    # Magics without "%" that are Python as well, names that hide them, and what IPython calls by its name alone.
    *("cd /data", "cd /data\n", "ls -la", "ls -la  # all", "reset -f", "who", "time", "hidden -la", "hidden"),
    *(
        "ls = 1",
        "ls -la\nx",
        "time.sleep(0)",
        "exit  # now",
        "exit; x",
        "recorded",
        "recorded  # again",
        "recorded + 1",
    ),
    # Pasted prompts, which IPython finds in texts, too.
    *("In [1]: 2+2", "In [1]: 2+2\nIn [2]: 3", "x\nIn [3]: y", "s = '''\n>>> 1\n'''", "s = '''\n... x\n'''"),
    *("s = '''\n   ...: x\n'''", "x = [\n...\n]", "x = '...'", "class A:\n    ...", "'''\nIn [1]: x\n'''", "a[...]"),
]


def test_cells_of_plain_python_are_left_as_ipython_would_leave_them(shared: RankClient) -> None:
    """They take a short way, which must end where IPython's does."""
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "from IPython.core.macro import Macro\n"
        "ip = get_ipython()\nhidden, recorded = 1, Macro('x = 1')\nip.alias_manager.define_alias('hidden', 'ls')\n"
        f"cells = {CELLS!r}\n"
        "differ = [cell for cell in cells if ip.transform_cell(cell) != InteractiveShell.transform_cell(ip, cell)]\n"
        "print(differ, 5 < sum(map(ip._is_plain, cells)) < len(cells) - 5)"
    )
    assert shared.run(code).text() == "[] True\n"
    shared.run("get_ipython().alias_manager.undefine_alias('hidden')")


def test_a_transformation_of_the_users_sees_plain_python_too(shared: RankClient) -> None:
    shared.run("swap = lambda lines: [line.replace('before', 'after') for line in lines]")
    for kind in ("cleanup", "post"):
        shared.run(f"get_ipython().input_transformers_{kind}.append(swap)")
        assert shared.run("print('before')").text() == "after\n"
        shared.run(f"get_ipython().input_transformers_{kind}.remove(swap)")
    shared.run("from IPython.core.prefilter import PrefilterTransformer\nmanager = get_ipython().prefilter_manager")
    shared.run(
        "class Swap(PrefilterTransformer):\n    transform = lambda self, line, _: line.replace('before', 'after')"
    )
    shared.run("swap = Swap(shell=get_ipython(), prefilter_manager=manager)")
    assert shared.run("print('before')").text() == "after\n"
    shared.run("manager.unregister_transformer(swap)")
    assert shared.run("print('before')").text() == "before\n"
