"""Reads the statements that a cell executes, in order, with those in functions and classes of earlier cells. Pure."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .reach import Function, Reach, Scope, arguments, depends_on_rank, has_own_group, last_name, names_of, owner_of

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
# The kinds of objects that ranks have under names (kinds.py of ranks), and their methods that all ranks must call. A
# `ddp` has no buffers, so that its forward alone needs no other rank.
METHODS = {
    "model": frozenset({"__call__", "forward"}),
    "ddp": frozenset[str](),
    "sharded": frozenset({"__call__", "forward", "unshard"}),  # gathers its parameters, also without gradients
    "trainer": frozenset({"fit", "train", "validate", "test", "predict", "evaluate"}),
    "accelerator": frozenset({"prepare", "wait_for_everyone", "gather", "reduce", "backward"}),
}
_FORWARD = METHODS["model"]
_MODELS = frozenset({"model", "ddp", "sharded"})
# Modules whose functions have the names of collectives, and another place for the process group.
_FUNCTIONAL = "torch.distributed.nn.functional"
_FUNCTIONAL_POSITIONS = {"gather": 2, "all_gather": 1, "scatter": 2}
# Functions that call one of their arguments, and which.
_CALLERS = {
    **dict.fromkeys(("map", "filter", "starmap", "reduce", "tree_map", "apply"), 0),
    **dict.fromkeys(("to_thread", "submit", "apply_async", "call_soon"), 0),
    **dict.fromkeys(("run_in_executor", "Timer", "call_later"), 1),
    "Thread": 1,
}
_OWN_SPACES = frozenset({"globals()", "locals()"})
TENSOR_METHODS = frozenset({"full_tensor"})  # DTensor alone has it
CHECKPOINT = frozenset({"save", "load", "async_save"})  # of torch.distributed.checkpoint
_QUIET = frozenset({"no_sync", "no_grad", "inference_mode"})  # DDP synchronizes nothing there
_EXITS = frozenset({"exit", "quit", "_exit"})
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
MAX_ENTERED = 4  # times that a function is read: it may call itself, or get other arguments


@dataclass
class Reader:
    """Reads a cell once."""

    body: Sequence[ast.stmt]
    kinds: Mapping[str, str]
    earlier: Mapping[str, str]
    world_size: int | None = None
    _modules: set[str] = field(default_factory=lambda: {"dist"})  # names of torch.distributed
    _checkpoint: set[str] = field(default_factory=set)  # and of torch.distributed.checkpoint
    _functional: set[str] = field(default_factory=lambda: {_FUNCTIONAL, "dist.nn.functional"})
    _imported: dict[str, str] = field(default_factory=dict)  # collectives and wrappers by their name here
    _entered: Counter[int] = field(default_factory=Counter)  # functions
    _forwards: list[str] = field(default_factory=list)  # models whose backward will need all ranks

    def __post_init__(self) -> None:
        stored: set[str] = set()
        for node in (inner for statement in self.body for inner in ast.walk(statement)):
            self._note_import(node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stored.add(node.id)
        self._reach = Reach(self.earlier, stored, self._note_import)
        self._top = Scope({name: kind for name, kind in self.kinds.items() if _owner(name) not in stored}, stored)

    def needs(self, body: Sequence[ast.AST], scope: Scope | None = None) -> Iterator[str]:
        """Yield the needs of these statements, as far as every rank that runs the cell executes them."""
        scope = scope or self._top
        for node in body:
            if isinstance(node, ast.If | ast.While | ast.IfExp):
                if depends_on_rank(node.test):
                    if _leaves(node):
                        return  # what follows is meant for some ranks
                    continue
                yield from self.needs(self._taken(node), scope)
            elif isinstance(node, ast.With | ast.AsyncWith):
                contexts = [item.context_expr for item in node.items]
                yield from self.needs(contexts, scope)
                yield from self._within(node.body, scope, scope.is_quiet or any(map(_is_quiet, contexts)))
            elif isinstance(node, ast.For | ast.AsyncFor):
                yield from self.needs([node.iter], scope)
                self._reach.bind(node.target, ast.Starred(node.iter), scope)
                yield from self.needs([*node.body, *node.orelse], scope)
            elif isinstance(node, Comprehension):
                yield from self._comprehension(node, scope)
            elif not self._reach.defines(node, scope):
                yield from self.needs(list(ast.iter_child_nodes(node)), scope)
                if isinstance(node, ast.Call):
                    yield from self._call(node, scope)

    def _comprehension(self, node: Comprehension, scope: Scope) -> Iterator[str]:
        outside = dict(scope.stands)
        for generator in node.generators:
            yield from self.needs([generator.iter], scope)
            if any(map(depends_on_rank, generator.ifs)):
                break
            self._reach.bind(generator.target, ast.Starred(generator.iter), scope)
            yield from self.needs(generator.ifs, scope)
        else:
            yield from self.needs([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], scope)
        scope.stands = outside

    def _within(self, body: Sequence[ast.AST], scope: Scope, is_quiet: bool) -> Iterator[str]:
        was_quiet, scope.is_quiet = scope.is_quiet, is_quiet
        yield from self.needs(body, scope)
        scope.is_quiet = was_quiet

    def _taken(self, node: ast.If | ast.While | ast.IfExp) -> list[ast.AST]:
        """Return the branches that may be taken."""
        bodies = [node.body if isinstance(node.body, list) else [node.body]]
        others = [node.orelse if isinstance(node.orelse, list) else [node.orelse]]
        value = _value(node.test, self.world_size)
        if value is None:
            of_size = "world_size" in ast.unparse(node.test)  # it is not known which way
            return [] if of_size else [node.test, *(each for body in [*bodies, *others] for each in body)]
        return [each for body in (bodies if value else others) for each in body]

    # -- names ------------------------------------------------------------------------------------

    def _note_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name
                if alias.name == "torch.distributed" and alias.asname:
                    self._modules.add(name)
                elif alias.name == "torch.distributed.checkpoint" and alias.asname:
                    self._checkpoint.add(name)
                elif alias.name == _FUNCTIONAL and alias.asname:
                    self._functional.add(name)
                elif name == "dist":
                    self._modules.discard("dist")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            for alias in node.names:
                self._note_from(f"{node.module}.{alias.name}", alias.name, alias.asname or alias.name)

    def _note_from(self, path: str, name: str, known_as: str) -> None:
        if path == "torch.distributed":
            self._modules.add(known_as)
        elif path == _FUNCTIONAL:
            self._functional.add(known_as)
        elif path == "torch.distributed.checkpoint":
            self._checkpoint.add(known_as)
        elif name in GROUP_POSITIONS or name in WRAPPERS:
            self._imported[known_as] = name

    def _distributed(self, func: ast.expr, scope: Scope) -> str | None:
        """Return the name of the collective or wrapper that is called."""
        if isinstance(func, ast.Name):
            is_ours = func.id not in scope.assigned and func.id not in self._reach.functions
            return self._imported.get(func.id) if is_ours else None
        if not isinstance(func, ast.Attribute):
            return None
        if func.attr in WRAPPERS:
            return func.attr
        module = ast.unparse(func.value)
        is_module = module in self._functional or module == "torch.distributed"
        is_module = is_module or (module in self._modules and module not in scope.assigned)
        return func.attr if func.attr in GROUP_POSITIONS and is_module else None

    # -- calls ------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, scope: Scope) -> Iterator[str]:
        for options in self._reach.reached(node.func, scope):
            if len(options) == 1:
                yield from self._call_of(options[0], node, scope)
            elif all(found := [next(self._call_of(func, node, scope), None) for func in options]):
                yield found[0] or ""

    def _call_of(self, func: ast.expr, node: ast.Call, scope: Scope) -> Iterator[str]:
        name = self._distributed(func, scope)
        if name is not None:
            if not has_own_group(self._given(node, scope), self._position(name, func)):
                yield name
            return
        if (called := _called_by(node)) is not None:
            yield from self._call(called, scope)
        function, inner = self._function(func, node, scope)
        if function is not None and self._entered[id(function)] < MAX_ENTERED:
            self._entered[id(function)] += 1
            yield from self.needs(function.body if isinstance(function.body, list) else [function.body], inner)
        elif function is None:
            yield from self.needs(self._code(func, node, scope), scope)
            yield from self._of_torch(node, func)
            yield from self._method(func, scope)

    def _given(self, node: ast.Call, scope: Scope) -> ast.Call:
        """Return a call with its arguments in place of `*arguments`, where these are known."""
        found: list[ast.expr] = []
        for each in node.args:
            known = self._reach.elements(each.value, scope) if isinstance(each, ast.Starred) else None
            found += [each] if known is None else [element for _, element in known]
        return ast.Call(node.func, found, node.keywords)

    def _code(self, func: ast.expr, node: ast.Call, scope: Scope) -> list[ast.stmt]:
        """Return the statements of a text that is run as code."""
        is_run = last_name(func) == "run_cell" or (isinstance(func, ast.Name) and func.id in ("exec", "eval"))
        spaces = [ast.unparse(argument) for argument in node.args[1:]]
        text = self._reach.resolve(node.args[0], scope) if is_run and node.args else None
        if not isinstance(text, ast.Constant) or not isinstance(text.value, str) or set(spaces) - _OWN_SPACES:
            return []
        try:
            body = ast.parse(text.value.strip()).body
        except (SyntaxError, ValueError):
            return []
        for inner in (inner for statement in body for inner in ast.walk(statement)):
            self._note_import(inner)
        return body

    def _position(self, name: str, func: ast.expr) -> int:
        """Return which argument of a collective or wrapper is its process group."""
        if isinstance(func, ast.Attribute) and ast.unparse(func.value) in self._functional:
            return _FUNCTIONAL_POSITIONS.get(name, GROUP_POSITIONS[name])
        return GROUP_POSITIONS.get(name, WRAPPERS.get(name, 0))

    def _of_torch(self, node: ast.Call, func: ast.expr) -> Iterator[str]:
        """Yield a method of a DTensor, or a function of torch.distributed.checkpoint."""
        if isinstance(func, ast.Attribute) and not has_own_group(node, len(node.args)):
            owner = ast.unparse(func.value)
            is_checkpoint = owner in self._checkpoint or owner == "torch.distributed.checkpoint"
            if func.attr in TENSOR_METHODS or (func.attr in CHECKPOINT and is_checkpoint):
                yield f"{owner}.{func.attr}"

    def _function(self, func: ast.expr, node: ast.Call, scope: Scope) -> tuple[Function | None, Scope]:
        """Return the function of the user that is called, and its scope."""
        if isinstance(func, ast.Lambda):
            return func, self._inner(func, node, scope, None)
        if isinstance(func, ast.Name):
            function = self._reach.functions.get(func.id)
            cls = self._reach.classes.get(func.id)
            if function is None and cls is not None:
                function = _method_of(cls, "__init__")
                return function, self._inner(function, node, scope, ("", cls))
            return function, self._inner(function, node, scope, None)
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            owner = func.value.id
            is_self = scope.instance is not None and owner == scope.instance[0]
            cls = scope.cls if is_self else self._reach.class_of(owner)
            function = _method_of(cls, func.attr) if cls is not None else None
            outside = scope.instance[1] if is_self and scope.instance is not None else owner
            return function, self._inner(function, node, scope, (outside, cls) if cls is not None else None)
        return None, scope

    def _inner(
        self, function: Function | None, node: ast.Call, scope: Scope, bound: tuple[str, ast.ClassDef] | None
    ) -> Scope:
        """Return the scope of a function, with its parameters bound to the arguments of the call."""
        if function is None:
            return scope
        params = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
        own = names_of(function)
        instance = (params.pop(0), bound[0]) if bound is not None and params else None
        given = dict(arguments(node, function, params))
        kinds = {name: kind for name, kind in scope.kinds.items() if _owner(name) not in own}
        kinds |= {
            name: scope.kinds[value.id]
            for name, value in given.items()
            if isinstance(value, ast.Name) and value.id in scope.kinds
        }
        stands = {name: value for name, value in scope.stands.items() if name not in own}
        stands |= {name: self._reach.resolve(value, scope) for name, value in given.items()}
        cls = bound[1] if bound is not None else None
        return Scope(kinds, scope.assigned | own, stands, frozenset(own), scope.is_quiet, instance, cls)

    def _method(self, func: ast.expr, scope: Scope) -> Iterator[str]:
        """Yield the method of an object that the ranks have under a name."""
        for method, owner in _readings(func):
            kind = scope.kinds.get(scope.name(owner), "")
            label = ast.unparse(owner)
            if scope.is_quiet and kind != "sharded":
                continue
            if kind == "ddp" and method in _FORWARD:
                self._forwards.append(label)
            elif method in METHODS.get(kind, ()):
                yield label if method == "__call__" else f"{label}.{method}"
            elif method == "backward" and not kind:
                is_earlier = isinstance(owner, ast.Name) and owner.id not in scope.assigned
                if self._forwards:
                    yield self._forwards[0]
                elif is_earlier and not _MODELS.isdisjoint(scope.kinds.values()):
                    yield f"{label}.backward"  # computed by a cell before


def _readings(func: ast.expr) -> list[tuple[str, ast.expr]]:
    """Return how a call can be read: a method of something, or something called itself."""
    as_method = [(func.attr, func.value)] if isinstance(func, ast.Attribute) else []
    return [*as_method, ("__call__", func)]


def _owner(name: str) -> str:
    return name.partition(".")[0].partition("[")[0]


def _called_by(node: ast.Call) -> ast.Call | None:
    """Return the call that a function makes of its arguments: `asyncio.to_thread(dist.barrier)`."""
    position = _CALLERS.get(last_name(node.func), -1)
    target = next((keyword.value for keyword in node.keywords if keyword.arg in ("target", "func")), None)
    if position >= 0 and (target is not None or position < len(node.args)):
        rest = [each for each in node.keywords if each.arg not in ("target", "func")]
        return ast.Call(target or node.args[position], node.args[position + 1 :], rest)
    return None


def _method_of(cls: ast.ClassDef, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    found = (node for node in cls.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return next((node for node in found if node.name == name), None)


def _value(test: ast.expr, world_size: int | None) -> bool | None:
    """Return the value of a condition: a constant, or a comparison of one with the world size; None if unknown."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or world_size is None:
        return None
    left, right = (_number(side, world_size) for side in (test.left, test.comparators[0]))
    if left is None or right is None or "world_size" not in ast.unparse(test):
        return None
    compare = _COMPARE.get(type(test.ops[0]))
    return compare(left, right) if compare is not None else None


_COMPARE = {
    ast.Gt: int.__gt__,
    ast.GtE: int.__ge__,
    ast.Lt: int.__lt__,
    ast.LtE: int.__le__,
    ast.Eq: int.__eq__,
    ast.NotEq: int.__ne__,
}


def _number(side: ast.expr, world_size: int) -> int | None:
    if isinstance(side, ast.Constant):
        return side.value if type(side.value) is int else None
    return world_size if ast.unparse(side).removesuffix("()").endswith("world_size") else None


def _leaves(node: ast.AST) -> bool:
    """Whether ranks may leave the code that follows."""
    inner = list(ast.walk(node))
    called = {owner_of(call.func) for call in inner if isinstance(call, ast.Call)}
    called |= {call.func.attr for call in inner if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)}
    jumps = ast.Return | ast.Raise | ast.Break | ast.Continue
    return not _EXITS.isdisjoint(called) or any(isinstance(each, jumps) for each in inner)


def _is_quiet(context: ast.expr) -> bool:
    func = context.func if isinstance(context, ast.Call) else context
    return isinstance(func, ast.Attribute) and func.attr in _QUIET
