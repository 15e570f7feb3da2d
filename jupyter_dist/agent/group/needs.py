"""Whether a cell calls something that all ranks must call, by its code and by what ranks have under its names. Pure.

It is asked for a cell that is sent to some ranks only. It must not be wrong about code that has a process group of its
own, so where the code alone does not tell, the answer is no: a hang is still named when it happens (watch/verdict.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

# What is longer or denser takes more than 5 ms.
MAX_BYTES = 4_000
MAX_WORDS = 1_200
# Which argument of a collective is its process group.
GROUP_POSITIONS = {
    "all_reduce": 2,
    "broadcast": 2,
    "reduce": 3,
    "all_gather": 2,
    "gather": 3,
    "scatter": 3,
    "reduce_scatter": 3,
    "all_to_all": 2,
    "all_to_all_single": 4,
    "all_gather_into_tensor": 2,
    "reduce_scatter_tensor": 3,
    "all_gather_object": 2,
    "gather_object": 3,
    "broadcast_object_list": 2,
    "scatter_object_list": 3,
    "barrier": 0,
    "monitored_barrier": 0,
}
# The constructors of wrapped models, and which argument is their process group.
WRAPPERS = {"DistributedDataParallel": 6, "FullyShardedDataParallel": 1}
# What ranks may have under a name: its kind (rank/cells/kinds.py), and the methods that all ranks must call.
METHODS = {
    "model": frozenset({"__call__", "forward"}),
    "trainer": frozenset({"fit", "train", "validate", "test", "predict", "evaluate"}),
    "accelerator": frozenset({"prepare", "wait_for_everyone", "gather", "reduce", "backward"}),
}
_TIMED = re.compile(r"%%(?:time|capture|prun|timeit|profile)\b[^\n]*\n")
_MAGIC = re.compile(r"(?m)^([ \t]*)(?:%(?:time|timeit|prun)[ \t]+(?=\w)|[!%?][^\n]*)")
_WORD = re.compile(r"\w+")
_DEFINED = re.compile(r"\bdef[ \t]+(\w+)")
_BACKWARD = re.compile(r"(\w+)\.backward\b")
_ALIAS = re.compile(r"\bas[ \t]+(\w+)")
_QUIET = frozenset({"no_sync", "no_grad", "inference_mode"})  # DDP synchronizes nothing there
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def find_need(code: str, kinds: Mapping[str, str]) -> str | None:
    """Return the first call that all ranks must make, such as `all_reduce`; None if there is none, or it is not clear.

    Args:
        code: the cell, with IPython's syntax.
        kinds: what the ranks have under names: a key of METHODS by name.
    """
    is_long = len(code) > MAX_BYTES or len(_WORD.findall(code)) > MAX_WORDS
    if is_long or (code.startswith("%%") and not _TIMED.match(code)):
        return None
    plain = _MAGIC.sub(lambda found: found[1] + ("" if found[0].rstrip() != found[0] else "pass"), _TIMED.sub("", code))
    words = _words(plain, kinds)
    if not _matters(plain, words):
        return None
    try:
        body = ast.parse(plain).body
        lines = plain.splitlines()
        # Most of a cell has nothing to do with it: reading all of it would take ten times as long.
        body = [node for node in body if _matters("\n".join(lines[node.lineno - 1 : node.end_lineno]), words)]
        return next(_Reader(body, kinds).needs(body), None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _words(code: str, kinds: Mapping[str, str]) -> frozenset[str]:
    """Return the words of lines that matter: collectives, wrappers, what ranks have, and functions of the cell."""
    found = (name for pattern in (_DEFINED, _BACKWARD, _ALIAS) for name in pattern.findall(code))
    return frozenset(("dist", "distributed", "backward", *GROUP_POSITIONS, *WRAPPERS, *kinds, *found))


def _matters(text: str, words: frozenset[str]) -> bool:
    return "rank" in text.lower() or not words.isdisjoint(_WORD.findall(text))


class _Reader:
    """Reads the statements that a cell executes, in order."""

    def __init__(self, body: Sequence[ast.stmt], kinds: Mapping[str, str]) -> None:
        self._kinds = dict(kinds)
        self._modules = {"dist"}  # names of torch.distributed
        self._imported: dict[str, str] = {}  # collectives and wrappers by their name here
        self._functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self._assigned: set[str] = set()
        for node in (inner for statement in body for inner in ast.walk(statement)):
            self._note_import(node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._assigned.add(node.id)
                self._kinds.pop(node.id, None)

    def _note_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch.distributed" and alias.asname:
                    self._modules.add(alias.asname)
                elif (alias.asname or alias.name) == "dist":
                    self._modules.discard("dist")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            for alias in node.names:
                if (node.module, alias.name) == ("torch", "distributed"):
                    self._modules.add(alias.asname or alias.name)
                elif alias.name in GROUP_POSITIONS or alias.name in WRAPPERS:
                    self._imported[alias.asname or alias.name] = alias.name

    def needs(self, body: Sequence[ast.AST], is_quiet: bool = False) -> Iterator[str]:
        """Yield what these statements need, as far as they are executed by every rank that runs them."""
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._functions[node.name] = node
            elif isinstance(node, ast.If | ast.While | ast.IfExp) and _depends_on_rank(node.test):
                return  # what follows, too, may be meant for some ranks
            elif isinstance(node, ast.With | ast.AsyncWith):
                yield from self.needs([item.context_expr for item in node.items], is_quiet)
                yield from self.needs(node.body, is_quiet or any(_is_quiet(item.context_expr) for item in node.items))
            elif not isinstance(node, _FUNCTIONS):
                yield from self.needs(list(ast.iter_child_nodes(node)), is_quiet)
                if isinstance(node, ast.Call):
                    yield from self._call(node, is_quiet)

    def _call(self, node: ast.Call, is_quiet: bool) -> Iterator[str]:
        name = self._distributed(node.func)
        if name is not None:
            position = GROUP_POSITIONS.get(name, WRAPPERS.get(name, 0))
            if not _has_own_group(node, position):
                yield name
        elif isinstance(node.func, ast.Name) and node.func.id in self._functions:
            function = self._functions.pop(node.func.id)  # once: it may call itself
            yield from self.needs(function.body, is_quiet)
        elif not is_quiet:
            yield from self._method(node.func)

    def _distributed(self, func: ast.expr) -> str | None:
        """Return the name of the collective or wrapper that is called."""
        if isinstance(func, ast.Name):
            is_ours = func.id not in self._assigned and func.id not in self._functions
            return self._imported.get(func.id) if is_ours else None
        if not isinstance(func, ast.Attribute):
            return None
        if func.attr in WRAPPERS:
            return func.attr
        module = ast.unparse(func.value)
        is_module = module == "torch.distributed" or (module in self._modules and module not in self._assigned)
        return func.attr if func.attr in GROUP_POSITIONS and is_module else None

    def _method(self, func: ast.expr) -> Iterator[str]:
        """Yield the method of what a name of the ranks stands for."""
        method = func.attr if isinstance(func, ast.Attribute) else "__call__"
        owner = func.value if isinstance(func, ast.Attribute) else func
        if not isinstance(owner, ast.Name):
            return
        if method in METHODS.get(self._kinds.get(owner.id, ""), ()):
            yield owner.id if method == "__call__" else f"{owner.id}.{method}"
        elif method == "backward" and "model" in self._kinds.values() and owner.id not in self._assigned:
            yield f"{owner.id}.backward"  # computed by a cell before


def _depends_on_rank(test: ast.expr) -> bool:
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    words = {node.value for node in ast.walk(test) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return any("rank" in name.lower() or "main_process" in name for name in names | attributes | words)


def _is_quiet(context: ast.expr) -> bool:
    func = context.func if isinstance(context, ast.Call) else context
    return isinstance(func, ast.Attribute) and func.attr in _QUIET


def _has_own_group(node: ast.Call, position: int) -> bool:
    """Whether the call names a process group, or may do so."""
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return True
    for keyword in node.keywords:
        if keyword.arg in (None, "group", "process_group", "device_mesh"):
            return not _is_default(keyword.value)
    return len(node.args) > position and not _is_default(node.args[position])


def _is_default(value: ast.expr) -> bool:
    is_none = isinstance(value, ast.Constant) and value.value is None
    return is_none or (isinstance(value, ast.Attribute) and value.attr == "WORLD")
