"""Make the plain methods of the blocking client from the asynchronous one, with their signatures and docstrings.

`make generate` writes them to jupyter_dist/client/blocking/wrapped.py. A method that the blocking class defines itself
is left out: it does more than wait, such as asking the user for input.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path

from jupyter_dist.protocol.parts import find_modules

CLIENT = Path(__file__).parents[1] / "jupyter_dist" / "client"
PACKAGE = "jupyter_dist.client.asynchronous"
WRAPPED = CLIENT / "blocking" / "wrapped.py"

# The asynchronous class, the blocking one, and the attribute that holds the former.
CLASSES = (
    ("AsyncClient", "Client", "_client"),
    ("AsyncGroup", "Group", "_group"),
    ("AsyncExecution", "Execution", "_execution"),
)
# Of groups: `run(stream=...)` is the blocking way. Of clients: `url` and `is_own` describe the server.
LEFT_OUT = {"Group": {"stream"}, "Client": {"server"}, "Execution": set()}

FUTURE = "from __future__ import annotations"
HEAD = '''"""Plain methods of the blocking client. Made by `make generate` from client/asynchronous: edit that."""

from __future__ import annotations

from jupyter_dist.client.blocking.loop import LoopThread
'''

Function = ast.FunctionDef | ast.AsyncFunctionDef


def blocking_source(generated: dict[Path, str]) -> str:
    """Return the text of wrapped.py; `generated` has newer texts of files that are made in the same run."""
    modules = {path: ast.parse(generated.get(path, "") or path.read_text()) for path in sources(generated)}
    classes = {node.name: node for tree in modules.values() for node in tree.body if isinstance(node, ast.ClassDef)}
    own = {
        node.name: {each.name for each in node.body if isinstance(each, Function)}
        for path in (CLIENT / "blocking").glob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and path != WRAPPED
    }
    parts = [HEAD, *imports(modules)]
    for name, blocking, attribute in CLASSES:
        left_out = own[blocking] | LEFT_OUT[blocking]
        parts += class_source(list(methods(classes, name)), name, blocking, attribute, left_out)
    return formatted("\n".join(parts), WRAPPED)


def sources(generated: dict[Path, str]) -> list[Path]:
    """Return the files of the asynchronous client."""
    folder = CLIENT / "asynchronous"
    return sorted({*folder.glob("*.py"), *(path for path in generated if path.parent == folder)})


def methods(classes: dict[str, ast.ClassDef], name: str) -> Iterator[Function]:
    """Yield the methods of a class, and those that it inherits from another class of the asynchronous client."""
    found = classes[name]
    names = {each.name for each in found.body if isinstance(each, Function)}
    yield from (each for each in found.body if isinstance(each, Function))
    for base in found.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from (each for each in methods(classes, base.id) if each.name not in names)


def imports(modules: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield all imports of the asynchronous client, and its own names: ruff removes those that are not used."""
    typing = ["from typing_extensions import Self"]
    known: set[str] = set()
    for path, tree in modules.items():
        for node in tree.body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                typing += [
                    ast.unparse(each) for each in node.body if not (isinstance(each, ast.ImportFrom) and each.level)
                ]
            elif isinstance(node, ast.ImportFrom | ast.Import) and ast.unparse(node) != FUTURE:
                known |= {each.name for each in node.names}
                yield import_source(node)
        own = [target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
        own += [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        yield from (f"from {PACKAGE}.{path.stem} import {name}" for name in own)
    yield from typing_only([*typing, *imports_of_parts("blocking", known)])


def imports_of_parts(module: str, known: Collection[str] = ()) -> list[str]:
    """Return what the modules of this name import in the packages `client` of parts, but for names that are known.

    Types of their functions may need it.
    """
    trees = [tree for part in find_modules("client").modules if (tree := tree_of_part(part, module)) is not None]
    found = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    elsewhere = ("jupyter_dist.parts", "__future__", "collections.abc", "typing.")
    return [
        f"from {node.module} import {each.name}"
        for node in found
        for each in node.names
        if each.name not in known and not f"{node.module}.".startswith(elsewhere)
    ]


def import_source(node: ast.stmt) -> str:
    """Return an import, with a relative module as an absolute one."""
    if isinstance(node, ast.ImportFrom) and node.level:
        node = ast.ImportFrom(f"{PACKAGE}.{node.module}" if node.module else PACKAGE, node.names, 0)
    return ast.unparse(node)


def class_source(found: list[Function], name: str, blocking: str, attribute: str, left_out: set[str]) -> Iterator[str]:
    """Yield the lines of the class that the blocking class extends."""
    yield f"class Blocking{blocking}:"
    yield f'    """Plain methods of {blocking}: each waits for the method of {name} with its name."""'
    yield f"    {attribute}: {name}\n    _loop: LoopThread"
    for method in found:
        if not method.name.startswith("_") and method.name not in left_out:
            yield from method_source(method, name, attribute)


@functools.cache
def functions_of_part(part: str, module: str) -> list[Function]:
    """Return the functions, for users, that a part has in a module of its package `client`."""
    tree = tree_of_part(part, module)
    found = [each for each in tree.body if isinstance(each, Function)] if tree is not None else []
    return [each for each in found if not each.name.startswith("_")]


def tree_of_part(part: str, module: str) -> ast.Module | None:
    """Return a module of the package `client` of a part; None if it has none."""
    path = Path(str(find_modules("client").modules[part].__file__)).with_name(f"{module}.py")
    return ast.parse(path.read_text()) if path.exists() else None


def typing_only(imports: list[str]) -> list[str]:
    """Return imports for type checkers alone, as lines."""
    head = ["from typing import TYPE_CHECKING", "if TYPE_CHECKING:"]
    return [*head, *(f"    {line}" for line in imports)] if imports else []


def is_setter(method: Function) -> bool:
    """Whether a method is the setter of a property."""
    return any(isinstance(each, ast.Attribute) for each in method.decorator_list)


def method_source(method: Function, name: str, attribute: str) -> Iterator[str]:
    """Yield the lines of a blocking method."""
    assert method.returns is not None, method.name
    returns = ast.unparse(method.returns)
    call = f"self.{attribute}.{method.name}"
    doc = "" if is_setter(method) else docstring(method)
    if is_setter(method):
        (value,) = method.args.args[1:]
        yield f"    @{method.name}.setter\n    def {method.name}({ast.unparse(method.args)}) -> None:"
        yield f"        {call} = {value.arg}"
        return
    if method.decorator_list:
        assert ast.unparse(method.decorator_list[0]) == "property", method.name
        yield f"    @property\n    def {method.name}(self) -> {returns}:\n        {doc}\n        return {call}"
        return
    call += f"({', '.join(passed(method.args))})"
    if returns.startswith("AsyncIterator["):
        returns, body = returns.removeprefix("Async"), f"return self._loop.iterate({call})"
    elif returns in (name, "Self"):
        returns, body = "Self", f"self._loop.run({call})\n        return self"
    else:
        body = f"return self._loop.run({call})"
    body = body.removeprefix("return ") if returns == "None" else body
    arguments = method.args
    for part in find_modules("client").modules:
        for each in functions_of_part(part, "blocking"):
            if each.name == method.name:  # it does more than wait
                arguments = each.args
                arguments.args[0] = ast.arg("self")
                doc = docstring(each)
                call = f"of_part({part!r}, 'blocking').{method.name}({', '.join(['self', *passed(arguments)])})"
                body = f"found: {returns} = {call}\n        return found"
    yield f"    def {method.name}({ast.unparse(arguments)}) -> {returns}:\n        {doc}\n        {body}"


def docstring(method: Function) -> str:
    """Return the docstring of a method as source."""
    text = ast.get_docstring(method)
    assert text, f"{method.name} has no docstring"
    assert "\\" not in text, method.name
    text = re.sub(r"(?m)^    group: .*\n", "", text)  # of a function of a part: `self`
    end = "\n" if "\n" in text else ""
    return textwrap.indent(f'"""{text}{end}"""', " " * 8).strip()


def passed(arguments: ast.arguments) -> Iterator[str]:
    """Yield the arguments of the call of the asynchronous method."""
    yield from (each.arg for each in arguments.args[1:])
    if arguments.vararg is not None:
        yield f"*{arguments.vararg.arg}"
    yield from (f"{each.arg}={each.arg}" for each in arguments.kwonlyargs)
    if arguments.kwarg is not None:
        yield f"**{arguments.kwarg.arg}"


def formatted(source: str, path: Path) -> str:
    """Return the source with sorted imports, without unused ones, formatted by ruff."""
    name = ["--stdin-filename", str(path)]
    ruff = [sys.executable, "-m", "ruff"]
    fix = [*ruff, "check", "--fix", "--quiet", "--exit-zero", *name, "-", "--select"]
    for command in ([*fix, "F401,F811"], [*fix, "I"], [*ruff, "format", "--quiet", *name, "-"]):
        source = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    return source
