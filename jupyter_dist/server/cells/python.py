"""Turns a cell into plain Python: IPython's magics and `!` lines become Python, or a comment with the reason."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from jupyter_dist.protocol.parts import body_magics

_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
_TIMED = ("time", "timeit", "prun", "capture")
_WHY_NOT = {
    **dict.fromkeys(
        ("load_ext", "reload_ext", "autoreload", "matplotlib", "config", "pylab"), "Not needed in a script"
    ),
    **dict.fromkeys(("pip", "conda", "mamba", "uv"), "Install packages before the script starts"),
}
_SHELLS = ("bash", "sh")


class Plain(NamedTuple):
    """A cell as Python, its `from __future__` imports, and the modules that the translation needs."""

    text: str
    futures: list[str]
    modules: set[str]


class _IPythonCall(NamedTuple):
    """A statement that IPython made from IPython syntax."""

    method: str
    words: list[str]
    target: str  # `x = ` of an assignment, or nothing
    first: int
    last: int
    column: int


def to_python(code: str) -> Plain:
    """Return the cell as plain Python."""
    text, modules = _translated(code)
    text, futures = _without_futures(text)
    return Plain(_checked(text), futures, modules)


def commented(text: str) -> str:
    """Return the text as a comment."""
    return "\n".join(f"# {line}".rstrip() for line in text.strip("\n").splitlines())


def indented(text: str) -> str:
    """Indent Python code by one level, but no lines that continue a string."""
    try:
        inside = set(_lines_in_strings(text))
    except (tokenize.TokenError, SyntaxError):
        inside = set()
    lines = text.splitlines()
    return "\n".join(
        f"    {line}" if line and number not in inside else line for number, line in enumerate(lines, start=1)
    )


def is_empty(text: str) -> bool:
    """Whether the code consists of comments only."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines())


def _translated(code: str) -> tuple[str, set[str]]:
    from IPython.core.inputtransformer2 import TransformerManager  # noqa: PLC0415  (a third of a second, used rarely)

    transformed = TransformerManager().transform_cell(textwrap.dedent(code))
    calls = list(_ipython_calls(transformed))
    lines = transformed.splitlines()
    modules: set[str] = set()
    for call in reversed(calls):
        replaced, needs = _replacement(call)
        if call.column and is_empty(replaced):  # it may be the only statement of a block
            replaced = f"pass\n{replaced}"
        modules |= needs
        lines[call.first - 1 : call.last] = textwrap.indent(replaced, " " * call.column).splitlines()
    return "\n".join(lines), modules


def _ipython_calls(text: str) -> Iterator[_IPythonCall]:
    """Yield the statements `get_ipython().method(...)` and `x = get_ipython().method(...)`."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except _ERRORS:
        return
    found = []
    for node in nodes:
        if not isinstance(node, ast.Expr | ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        called = node.value.func
        is_ours = isinstance(called, ast.Attribute) and ast.unparse(called.value) == "get_ipython()"
        if is_ours and all(isinstance(word, ast.Constant) for word in node.value.args):
            words = [str(word.value) for word in node.value.args if isinstance(word, ast.Constant)]
            target = ast.unparse(node).partition("get_ipython()")[0]
            assert isinstance(called, ast.Attribute)
            last = node.end_lineno or node.lineno
            found.append(_IPythonCall(called.attr, words, target, node.lineno, last, node.col_offset))
    yield from sorted(found, key=lambda call: call.first)


def _replacement(call: _IPythonCall) -> tuple[str, set[str]]:
    """Return Python for one statement, and the modules it needs."""
    if call.method in ("system", "getoutput"):
        return _shell(call)
    if call.method == "run_line_magic":
        return _line_magic(call, call.words[0], call.words[1])
    if call.method == "run_cell_magic":
        return _cell_magic(*call.words)
    return _refused(f"{call.target}{' '.join(call.words)}", "A script has no IPython"), set()


def _shell(call: _IPythonCall) -> tuple[str, set[str]]:
    command = call.words[0]
    shown = f"{call.target}!{command}"
    if command.split()[:1] in (["pip"], ["conda"], ["uv"]):
        return _refused(shown, "Install packages before the script starts"), set()
    if "{" in command or "$" in command:
        return _refused(shown, "IPython may have inserted variables here: write it with subprocess.run(...)"), set()
    if call.target:
        run = f"subprocess.run({command!r}, shell=True, stdout=subprocess.PIPE, text=True)"
        return f"{call.target}{run}.stdout.splitlines()", {"subprocess"}
    return f"subprocess.run({command!r}, shell=True)", {"subprocess"}


def _line_magic(call: _IPythonCall, name: str, line: str) -> tuple[str, set[str]]:
    shown = f"{call.target}%{name} {line}".rstrip()
    is_plain = len(line.split()) == 1 and not line.startswith("-")
    if call.target:
        return _refused(shown, "A script has no magics: set the variable in another way"), set()
    if name in _TIMED and line and not line.startswith("-"):
        return f"{line}  # %{name}", set()
    if name == "cd" and is_plain:
        return f"os.chdir(os.path.expanduser({line.strip()!r}))", set()
    if name in ("env", "set_env") and "=" in line:
        variable, _, value = line.partition("=")
        return f"os.environ[{variable.strip()!r}] = {value.strip()!r}", set()
    if name == "run" and is_plain:
        return f"globals().update(runpy.run_path({line!r}, run_name='__main__'))", {"runpy"}
    return _refused(shown, _WHY_NOT.get(name, "A script has no magics")), set()


def _cell_magic(name: str, line: str, body: str) -> tuple[str, set[str]]:
    if name in body_magics():
        text, modules = _translated(body)
        return f"# %%{name}\n{text}", modules
    if name in _SHELLS and not line.strip():
        return f"subprocess.run([{name!r}, '-c', {body!r}], check=True)", {"subprocess"}
    if name == "writefile" and len(line.split()) == 1:
        return f"pathlib.Path({line.strip()!r}).write_text({body!r})", {"pathlib"}
    return _refused(f"%%{name} {line}".rstrip() + f"\n{body}", "A script has no magics"), set()


def _refused(text: str, why: str) -> str:
    return f"# {why}:\n{commented(text)}"


def _without_futures(text: str) -> tuple[str, list[str]]:
    """Take out `from __future__` imports, which stand at the top of a script."""
    try:
        nodes = ast.parse(text).body
    except _ERRORS:
        return text, []
    futures = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    lines = text.splitlines()
    for node in reversed(futures):
        lines[node.lineno - 1 : node.end_lineno] = []
    return "\n".join(lines), [alias.name for node in futures for alias in node.names]


def _checked(text: str) -> str:
    """Comment out a cell that awaits at its top level; newer syntax, of the ranks' Python, is kept."""
    if _compiles(text, 0) or not _compiles(text, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT):
        return text.strip("\n")
    return _refused(text, "A script cannot await at its top level: put this into a function for asyncio.run()")


def _compiles(text: str, flags: int) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<cell>", "exec", flags, dont_inherit=True)
    except _ERRORS:
        return False
    return True


def _lines_in_strings(text: str) -> Iterator[int]:
    """Yield the numbers of the lines that begin inside a string."""
    starts: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "STRING":
            yield from range(token.start[0] + 1, token.end[0] + 1)
        elif kind.endswith("STRING_START"):  # f-strings since Python 3.12
            starts.append(token.start[0])
        elif kind.endswith("STRING_END"):
            yield from range(starts.pop() + 1, token.end[0] + 1)
