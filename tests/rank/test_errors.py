"""A cell's error is one output with the user's frames only, and the rank keeps running."""

from __future__ import annotations

import re
import sys

import pytest
from rankclient import RankClient, Result

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def plain(result: Result) -> str:
    text = ANSI.sub("", result.traceback)
    return text.replace("Cell In [", "Cell In[")  # with a blank before IPython 8.7


def test_error_names_cell_and_line(shared: RankClient) -> None:
    result = shared.run("x = 1\n1 / 0")
    assert result.status == "error"
    assert (result.reply["ename"], result.reply["evalue"]) == ("ZeroDivisionError", "division by zero")
    assert result.error["ename"] == "ZeroDivisionError"
    count = result.reply["execution_id"][1:]
    assert f"Cell In[{count}], line 2" in plain(result)
    assert "----> 2 1 / 0" in plain(result)


def test_a_warning_names_the_cell_as_a_traceback_does(shared: RankClient) -> None:
    first = shared.run("import warnings\ndef warns():\n    warnings.warn('inside', stacklevel=1)")
    result = shared.run("warns()\nwarnings.warn('careful')")
    inside, count = (each.reply["execution_id"][1:] for each in (first, result))
    said = result.text("stderr").replace("In [", "In[")
    assert f"Cell In[{inside}]:3: UserWarning: inside\n  warnings.warn('inside', stacklevel=1)\n" in said
    assert f"Cell In[{count}]:2: UserWarning: careful\n  warnings.warn('careful')\n" in said


def test_error_in_function_of_an_earlier_cell(shared: RankClient) -> None:
    first = shared.run("def fails():\n    raise ValueError('inside')").reply["execution_id"][1:]
    second = shared.run("x = 1\n\nfails()")
    text = plain(second)
    assert f"Cell In[{second.reply['execution_id'][1:]}], line 3" in text
    assert f"Cell In[{first}], line 2, in fails()" in text


KEPT = """
import ast, executing, gc, os, stack_data
gc.collect()
trees = [each.name for each in gc.get_objects() if type(each) is ast.FunctionDef and each.name.startswith("fails_")]
print("trees", len(trees), trees)
sources = [each for each in gc.get_objects() if isinstance(each, executing.Source)]
print("sources", len(sources), [each.filename for each in sources if not os.path.isfile(each.filename)])
for owner in (executing.Source, stack_data.Source):
    for name, cache in vars(owner).items():
        if "cache" in name and isinstance(cache, dict):
            files = [getattr(key[0], "co_filename", key[0]) for key in cache]
            print(name, len(files), [file for file in files if not os.path.isfile(file)])
"""


def test_the_sources_of_failed_cells_are_not_kept(shared: RankClient) -> None:
    """A month of errors would be as many trees and tokens; those of torch, which take long to parse, stay."""
    for number in range(5):
        shared.run(f"def fails_{number}():\n    return 1 / 0\nfails_{number}()")
    shared.run("torch.distributed.all_reduce(None)")
    kept = shared.run(KEPT).text("stdout").splitlines()
    assert {line.split()[0] for line in kept} == {"trees", "sources", "__source_cache_with_lines", "__executing_cache"}
    assert any(int(line.split()[1]) for line in kept)
    assert all(line.endswith("[]") for line in kept), kept


@pytest.mark.parametrize(
    "code",
    [
        "1/0",
        "%time 1/0",
        "%%time\n1/0",
        "import torch\ntorch.ones(2) @ torch.ones(3)",
        "%timeit 1/0",
        "await wrong()",
        "display(1/0)",
    ],
)
def test_no_frame_of_ours_or_ipython(shared: RankClient, code: str) -> None:
    text = plain(shared.run(code))
    assert "IPython" not in text
    assert "jupyter_dist" not in text


def test_chained_errors(shared: RankClient) -> None:
    text = plain(shared.run("try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k') from e"))
    assert text.index("ZeroDivisionError") < text.index("direct cause") < text.index("KeyError: 'k'")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.11 has exception groups")
def test_exception_group(shared: RankClient) -> None:
    result = shared.run("raise ExceptionGroup('several', [ValueError('a'), TypeError('b')])")
    assert "ValueError: a" in result.traceback
    assert "IPython" not in result.traceback


@pytest.mark.parametrize(
    "code", ["x = = 1", "if True:\nx", "'\x00'", "return 5", "await", "def f(:\n  pass", "%%time\nx = = 1"]
)
def test_syntax_errors(shared: RankClient, code: str) -> None:
    result = shared.run(code)
    assert result.status == "error"
    assert result.error["ename"] in ("SyntaxError", "IndentationError", "ValueError")
    assert "IPython" not in result.traceback


def test_unknown_magic(shared: RankClient) -> None:
    result = shared.run("%nosuchmagic")
    assert result.status == "error"
    assert result.error["ename"] == "UsageError"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import sys; sys.exit(1)", "SystemExit"),
        ("exit()", "SystemExit"),
        ("quit", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("class Mine(BaseException): pass\nraise Mine('x')", "Mine"),
        ("class Bad:\n    def __repr__(self): raise SystemExit(3)\nBad()", "SystemExit"),
        ("import asyncio\nawait asyncio.sleep(0)\nraise SystemExit(3)", "SystemExit"),
        ("import asyncio\nraise asyncio.CancelledError", "CancelledError"),
    ],
)
def test_base_exceptions_are_the_cells_error(shared: RankClient, code: str, name: str) -> None:
    result = shared.run(code)
    assert (result.status, result.error["ename"]) == ("error", name)
    assert result.text("stderr") == ""
    assert shared.run("1").status == "ok"


def test_exit_tells_what_to_do(shared: RankClient) -> None:
    assert "shut down or restarted" in shared.run("exit()").error["evalue"]


def test_message_that_raises(shared: RankClient) -> None:
    result = shared.run("class Odd(Exception):\n    def __str__(self): raise RuntimeError('no')\nraise Odd")
    assert result.error["ename"] == "Odd"
    assert "__str__ raised RuntimeError" in result.error["evalue"]


def test_repr_that_raises_is_an_error(shared: RankClient) -> None:
    result = shared.run("class Odd:\n    def __repr__(self): raise RuntimeError('no')\nOdd()")
    assert result.error["ename"] == "RuntimeError"


def test_huge_message_is_cut(shared: RankClient) -> None:
    result = shared.run("raise ValueError('x' * 50_000_000)")
    assert "characters cut" in result.error["evalue"]
    assert len(result.error["evalue"]) + len(result.traceback) < 65536


def test_recursion_is_short(shared: RankClient) -> None:
    result = shared.run("def f(n): return g(n + 1)\ndef g(n):\n    return f(n)\nf(0)")
    assert result.error["ename"] == "RecursionError"
    assert result.traceback.count("\n") < 200


def test_error_in_a_hook_after_the_cell(rank: RankClient) -> None:
    rank.run("def hook(*_): raise SystemExit(4)\nget_ipython().events.register('post_run_cell', hook)")
    assert rank.run("1").status == "error"
    assert rank.run("get_ipython().events.unregister('post_run_cell', hook)").status == "ok"
    assert rank.run("1").status == "ok"


def test_stray_exit_in_a_callback_is_told(rank: RankClient) -> None:
    rank.run("import asyncio, sys\nasyncio.get_running_loop().call_soon(sys.exit, 5)")
    rank.wait_text("SystemExit: 5", "stderr")
    assert rank.run("1").status == "ok"


def test_an_error_does_not_ask_every_module_for_its_file(shared: RankClient) -> None:
    """There are thousands with torch: n ranks that are interrupted at once would do so at the same time."""
    shared.run("def fails():\n    1 / 0")
    shared.run(
        "import sys, types\n"
        "class Asked(types.ModuleType):\n"
        "    number = 0\n"
        "    def __getattr__(self, name):\n"
        "        Asked.number += name == '__file__'\n"
        "        raise AttributeError(name)\n"
        "sys.modules['asked'] = Asked('asked')"
    )
    try:
        shared.run("fails()")  # may look up the files of modules once
        shared.run("Asked.number = 0")
        text = plain(shared.run("fails()"))
        assert "----> 1 fails()" in text
        assert "----> 2     1 / 0" in text
        assert shared.run("print(Asked.number)").text() == "0\n"
    finally:
        shared.run("del sys.modules['asked'], Asked")


LONG_NAMES = {
    "class": "class Bad(Exception): pass\nBad.__name__ = 'B' * 2_000_000\nraise Bad('why')",
    "metaclass": (
        "class Meta(type):\n    @property\n    def __name__(cls): raise RuntimeError\n"
        "class Bad(Exception, metaclass=Meta): pass\nraise Bad('why')"
    ),
}


@pytest.mark.parametrize("what", LONG_NAMES)
def test_an_error_with_a_name_that_cannot_be_sent_ends_its_cell(shared: RankClient, what: str) -> None:
    result = shared.run(LONG_NAMES[what])
    assert result.status == "error"
    assert (result.reply["ename"][:1], result.reply["evalue"]) == ("B", "why")
    assert len(result.reply["ename"]) < 1000
    assert result.error["ename"] == result.reply["ename"]


# As torch words them (c10::Error::what), without symbols and with them; the addresses are those of one run.
FRAMES = (
    "Exception raised from c10_cuda_check_implementation at /c10/cuda/CUDAException.cpp:44 (most recent call first):"
    "\nframe #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f03ad6b9446 in /usr/lib/libc10.so)"
    "\n<omitting python frames>"
    "\nframe #27: __libc_start_main + 0x85 (0x7f7bf7e45305 in /lib/libc.so.6)"
)
OF_SYMBOLS = (
    "Exception raised from _assert_async_msg_cpu at /aten/src/ATen/native/TensorCompare.cpp:496 (most recent call first):"
    "\nC++ CapturedTraceback:\n#4 ?? from /torch/lib/libc10.so:700674"
    "\n#9 at::_ops::_assert_async_msg::call(at::Tensor const&, std::basic_string_view<char, std::char_traits<char> >)"
    " from /torch/lib/libtorch_cpu.so:46868061\n#22 _start from /bin/python3.11:4224"
)
BEFORE = "CUDA error: no kernel image is available\nCompile with `TORCH_USE_CUDA_DSA`.\n\n"
AFTER = "\nThis may mean that rank 0 has ended."
IN_LOG = "C++ frames: in the rank's log"


def of_cpp(kind: str = "torch.distributed.DistBackendError") -> str:
    """A cell in which C code raises an error with this `text`, and another one comes from it."""
    raises = f"ctypes.pythonapi.PyErr_SetString(ctypes.py_object({kind}), text.encode())"
    return f"import ctypes, torch\ntry:\n    {raises}\nexcept Exception as err:\n    raise ValueError('mine') from err"


def test_cpp_frames_of_torch_are_in_the_log_and_its_sentences_in_the_cell(rank: RankClient) -> None:
    for frames in (FRAMES, OF_SYMBOLS):
        rank.run(f"text = {BEFORE + frames + AFTER!r}")
        result = rank.run(of_cpp())
        shown = plain(result)
        assert f"{BEFORE}{IN_LOG}{AFTER}" in shown
        assert "frame #" not in shown
        assert result.reply["evalue"] == "mine"
        assert result.text("stderr") == ""
        log = b"".join(text for owner, _, text in rank.events if owner is None).decode()
        cell = f"In [{result.reply['execution_id'][1:]}]"
        assert f"{cell}: an error with its C++ frames:\n{BEFORE}{frames}{AFTER}\n" in log
    alone = rank.run("torch._assert_async(torch.tensor(0), text)")
    assert alone.reply["evalue"] == alone.error["evalue"] == f"{BEFORE}{IN_LOG}{AFTER}"
    assert rank.run("import sys\nprint(str(sys.last_value) == text)").text() == "True\n"  # the exception has them
    # Whoever sets this wants to see them.
    shown = plain(rank.run(f"import os\nos.environ['TORCH_SHOW_CPP_STACKTRACES'] = '1'\n{of_cpp()}"))
    assert f"{BEFORE}{OF_SYMBOLS}{AFTER}" in shown


def test_what_only_looks_like_cpp_frames_is_the_users_own(shared: RankClient) -> None:
    own = "class Own(RuntimeError): pass\n"
    for text, code in (
        (FRAMES, "raise RuntimeError(text)"),
        (FRAMES, own + of_cpp("Own")),
        ("frame #0: mine", of_cpp()),
    ):
        shared.run(f"text = {text!r}")
        result = shared.run(code)
        assert text in plain(result), code
        assert IN_LOG not in plain(result)
