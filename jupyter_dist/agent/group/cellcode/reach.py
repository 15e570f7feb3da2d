"""What names stand for, and which functions a call reaches: by other names, in containers, as arguments. Pure."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .definitions import ADDS, DROPS, WRAPS

MAX_STEPS = 8  # from a name to its value
MAX_EARLIER_CHARS = 8_000  # that are parsed for one cell
_SAME = frozenset({"list", "tuple", "set", "frozenset", "iter", "deque", "copy", "deepcopy"})
_ANY_ORDER = frozenset({"sorted", "reversed", "values"})
_OF_KEY = frozenset({"get", "pop", "setdefault", "__getitem__"})
_SPACES = frozenset({"globals", "locals", "vars"})

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Keyed = tuple[object, ast.expr]  # an element of a container with its key; None: at any index
Options = Sequence[ast.expr]  # of which a call reaches one


@dataclass
class Scope:
    """The names of a cell, or of a function that it calls."""

    kinds: dict[str, str]
    assigned: set[str]
    stands: dict[str, ast.expr] = field(default_factory=dict)  # what a name stands for: `red = dist.all_reduce`
    own: frozenset[str] = frozenset()  # names of the function
    is_quiet: bool = False
    instance: tuple[str, str] | None = None  # in a method: the name of `self` there, and outside
    cls: ast.ClassDef | None = None

    def name(self, owner: ast.expr) -> str:
        """Return under which name ranks have something: `model`, `trainer.model`, `models[]`."""
        if isinstance(owner, ast.Name):
            return owner.id
        if isinstance(owner, ast.Subscript) and isinstance(owner.value, ast.Name):
            return f"{owner.value.id}[]"
        if isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name):
            is_self = self.instance is not None and owner.value.id == self.instance[0]
            outside = self.instance[1] if is_self and self.instance is not None else owner.value.id
            return f"{outside}.{owner.attr}"
        return ""


@dataclass
class Reach:
    """The known names of a cell, and of earlier cells whose names it uses."""

    earlier: Mapping[str, str]
    assigned: set[str]  # by the cell
    note_import: Callable[[ast.AST], None]
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)  # the class of a name
    _attributes: dict[str, ast.expr] = field(default_factory=dict)  # what `loop.step` stands for
    _above: Scope = field(default_factory=lambda: Scope({}, set()))
    _loaded: set[str] = field(default_factory=set)
    _num_chars: int = 0

    # -- definitions ------------------------------------------------------------------------------

    def load(self, name: str) -> None:
        """Read the definition of a name in an earlier cell."""
        text = self.earlier.get(name)
        if text is None or name in self._loaded or name in self.assigned or name in self.functions:
            return
        self._loaded.add(name)
        self._num_chars += len(text)
        if self._num_chars <= MAX_EARLIER_CHARS:
            for node in ast.parse(text).body:
                self.note_import(node)
                self.defines(node.value if isinstance(node, ast.Expr) else node, self._above)

    def defines(self, node: ast.AST, scope: Scope) -> bool:
        """Note a function or class, which is executed when it is called, or another name for something."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.functions[node.name] = node
            scope.stands.pop(node.name, None)
        elif isinstance(node, ast.ClassDef):
            self.classes[node.name] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self.bind(target, node.value, scope)
            return isinstance(node.value, ast.Lambda)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self.bind(node.target, node.value, scope)
        elif isinstance(node, ast.AugAssign):
            self.bind(node.target, ast.BinOp(self.resolve(node.target, scope), node.op, node.value), scope)
        elif isinstance(node, ast.Call):
            self._changes(node, scope)
        return isinstance(node, (*FUNCTIONS, ast.ClassDef))

    def bind(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        """Let a name stand for a value, the names of a tuple for its elements."""
        if isinstance(target, ast.Name):
            value = self._apart(value, target.id, scope) if isinstance(value, ast.Starred) else value
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
                self.instances[target.id] = value.func.id
            kind = scope.kinds.get(scope.name(value.value if isinstance(value, ast.Starred) else value))
            held = scope.kinds.get(f"{scope.name(value.value)}[]") if isinstance(value, ast.Starred) else kind
            value = self.resolve(value, scope)
            scope.stands.pop(target.id, None)
            if not (isinstance(value, ast.Name) and value.id == target.id):
                scope.stands[target.id] = value
            if held is not None:
                scope.kinds[target.id] = held
        elif isinstance(target, ast.Attribute):
            self._attributes[scope.name(target)] = self.resolve(value, scope)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            before = self.resolve(target.value, scope)
            if isinstance(before, ast.Dict):
                scope.stands[target.value.id] = ast.Dict([*before.keys, target.slice], [*before.values, value])
        elif isinstance(target, ast.Tuple | ast.List):
            self._bind_each(target, value, scope)

    def _apart(self, value: ast.Starred, name: str, scope: Scope) -> ast.Starred:
        """Return the elements of a loop with another name for the function whose name it takes: `for f in (f, g)`."""
        found = self.elements(value.value, scope) or ()
        if not any(isinstance(one, ast.Name) and one.id == name for _, one in found):
            return value
        before = f"{name} before"
        earlier = ast.parse(self.earlier.get(name, "")).body
        defined = [node for node in earlier if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for function in (self.functions.get(name), *defined):
            if function is not None:
                self.functions.setdefault(before, function)
        other = ast.Name(before)
        return ast.Starred(
            ast.List([other if isinstance(one, ast.Name) and one.id == name else one for _, one in found])
        )

    def _bind_each(self, target: ast.Tuple | ast.List, value: ast.expr, scope: Scope) -> None:
        of_loop = self.elements(value.value, scope) if isinstance(value, ast.Starred) else [(None, value)]
        rows = [self.elements(row, scope) for _, row in of_loop or ()]
        for position, inner in enumerate(target.elts):
            column = [row[position][1] for row in rows if row is not None and position < len(row)]
            known = ast.Starred(ast.List(column)) if column and len(column) == len(rows) else ast.Constant(None)
            self.bind(inner, column[0] if not isinstance(value, ast.Starred) and column else known, scope)

    def _changes(self, node: ast.Call, scope: Scope) -> None:
        """Note the addition of a method to a container."""
        func = node.func
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
            return
        name, before = func.value.id, self.resolve(func.value, scope)
        if func.attr in DROPS:
            scope.stands.pop(name, None)
        known = None if before is func.value else self.elements(before, scope)
        if known is None or len(node.args) <= ADDS.get(func.attr, 0):
            return
        if func.attr == "update":
            scope.stands[name] = ast.BinOp(before, ast.BitOr(), node.args[0])
        elif func.attr in (*ADDS, "extend"):
            added = node.args[ADDS[func.attr]] if func.attr in ADDS else ast.Starred(node.args[0])
            scope.stands[name] = ast.List([*(element for _, element in known), added])

    # -- what is called ---------------------------------------------------------------------------

    def resolve(self, value: ast.expr, scope: Scope) -> ast.expr:
        """Return the value of an expression, as far as it is known."""
        for _ in range(MAX_STEPS):
            found = self._step(looked_up(value), scope)
            if found is value:
                break
            value = found
        return value

    def _step(self, value: ast.expr, scope: Scope) -> ast.expr:
        self.load(owner_of(value))
        if isinstance(value, ast.NamedExpr):
            return value.value
        if scope.name(value) in scope.kinds:
            return value
        if isinstance(value, ast.Name):
            known = scope.stands.get(value.id)
            is_above = known is None and value.id not in scope.assigned
            return known or (self._above.stands.get(value.id) if is_above else None) or value
        if isinstance(value, ast.Attribute):
            return self._attribute(value, scope)
        if isinstance(value, ast.Call):
            return self._returned(value) or value
        return self._of_space(value, scope) if isinstance(value, ast.Subscript) else value

    def _of_space(self, value: ast.Subscript, scope: Scope) -> ast.expr:
        """Return the name in `globals()["step"]`, the attribute in `vars(dist)["barrier"]`."""
        space, key = value.value, self.resolve(value.slice, scope)
        if not isinstance(space, ast.Call) or last_name(space.func) not in _SPACES:
            return value
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return value
        return ast.Attribute(space.args[0], key.value) if space.args else ast.Name(key.value)

    def _attribute(self, value: ast.Attribute, scope: Scope) -> ast.expr:
        if value.attr == "__call__":
            return value.value
        owner, outside = value.value, scope.name(value)
        known = self._attributes.get(outside)
        if known is None and self.instances.get(outside.partition(".")[0]) in self.classes:
            known = self._attributes.get(f".{value.attr}")  # set when it was made
        if known is not None:
            return known
        stands = self.resolve(owner, scope) if isinstance(owner, ast.Name) else owner
        is_name = stands is not owner and isinstance(stands, ast.Name | ast.Attribute)
        return ast.Attribute(stands, value.attr) if is_name else value

    def _returned(self, call: ast.Call) -> ast.expr | None:
        """Return the function that a function of the user returns."""
        self.load(owner_of(call.func))
        function = self.functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if function is None or isinstance(function, ast.Lambda):
            return None
        last = function.body[-1]
        returned = last.value if isinstance(last, ast.Return) else None
        inside = {node.name for node in function.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        is_function = isinstance(returned, ast.Lambda) or (isinstance(returned, ast.Name) and returned.id in inside)
        return returned if is_function else None

    def reached(self, func: ast.expr, scope: Scope, depth: int = 0) -> list[Options]:
        """Return the functions that a call of an expression reaches, one after the other."""
        func = self.resolve(func, scope)
        if depth > MAX_STEPS or (isinstance(func, ast.Name) and func.id in scope.own and func.id not in scope.stands):
            return []
        if isinstance(func, ast.BoolOp):
            return self.reached(func.values[0 if isinstance(func.op, ast.Or) else -1], scope, depth + 1)
        if isinstance(func, ast.IfExp) and isinstance(func.test, ast.Constant):
            return self.reached(func.body if func.test.value else func.orelse, scope, depth + 1)
        if isinstance(func, ast.IfExp):
            return [] if depends_on_rank(func.test) else self._one_of([func.body, func.orelse], scope, depth)
        if isinstance(func, ast.Starred):
            found = self.elements(func.value, scope)
            return [one for _, element in found or () for one in self.reached(element, scope, depth + 1)]
        chosen = self._chosen(func, scope)
        return [[func]] if chosen is None else self._one_of(chosen, scope, depth)

    def _one_of(self, options: Options, scope: Scope, depth: int) -> list[Options]:
        found = [self.reached(one, scope, depth + 1) for one in options]
        return [[one for each in found for several in each for one in several]] if all(found) and found else []

    def _chosen(self, func: ast.expr, scope: Scope) -> Options | None:
        """Return the elements that `functions[0]`, `functions.get("a")`, `next(iter(functions))` may be."""
        if isinstance(func, ast.Subscript):
            container, key = func.value, func.slice
        elif isinstance(func, ast.Call) and isinstance(func.func, ast.Attribute) and func.func.attr in _OF_KEY:
            container, key = func.func.value, func.args[0] if func.args else ast.Constant(-1)
        elif isinstance(func, ast.Call) and _last_name_of_call(func) == "next" and func.args:
            container, key = func.args[0], ast.Constant(0)
        else:
            return None
        found = self.elements(container, scope)
        if found is None:
            return None
        key, number = self.resolve(key, scope), len(found)
        try:
            index = ast.literal_eval(key)
        except (ValueError, TypeError, SyntaxError):
            return [] if depends_on_rank(key) else [element for _, element in found]
        index = index + number if type(index) is int and index < 0 else index
        return [element for at, element in found if at is None or at == index]

    # -- containers -------------------------------------------------------------------------------

    def elements(self, value: ast.expr, scope: Scope, depth: int = 0) -> list[Keyed] | None:
        """Return the elements of a container, with their keys; None if they are not known."""
        value = self.resolve(value, scope)
        if depth > MAX_STEPS:
            return None
        if isinstance(value, ast.List | ast.Tuple | ast.Set):
            return self._listed(value.elts, scope, depth)
        if isinstance(value, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
            return list(zip(keys, value.values, strict=True))
        if isinstance(value, ast.BinOp):
            return self._joined(value, scope, depth)
        if isinstance(value, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self._comprehended(value, scope, depth)
        return self._made(value, scope, depth) if isinstance(value, ast.Call) else None

    def _joined(self, value: ast.BinOp, scope: Scope, depth: int) -> list[Keyed] | None:
        sides = [self.elements(side, scope, depth + 1) for side in (value.left, value.right)]
        if sides[0] is None or (sides[1] is None and not isinstance(value.op, ast.Mult)):
            return None
        both = [*sides[0], *(sides[1] or ())]
        return both if isinstance(value.op, ast.BitOr) else list(enumerate(element for _, element in both))

    def _listed(self, elts: Sequence[ast.expr], scope: Scope, depth: int) -> list[Keyed] | None:
        found: list[ast.expr] = []
        for each in elts:
            inner = self.elements(each.value, scope, depth + 1) if isinstance(each, ast.Starred) else [(None, each)]
            if inner is None:
                return None
            found += [element for _, element in inner]
        return list(enumerate(found))

    def _comprehended(
        self, value: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope, depth: int
    ) -> list[Keyed] | None:
        generator = value.generators[0]
        names = [one.id for one in (value.elt, generator.target) if isinstance(one, ast.Name)]
        if len(names) == 2 and names[0] == names[1]:
            return self.elements(generator.iter, scope, depth + 1)
        return [(None, value.elt)]

    def _made(self, call: ast.Call, scope: Scope, depth: int) -> list[Keyed] | None:
        """Return the elements of what a function of Python's makes: `list(functions)`, `zip(names, functions)`."""
        name, method = last_name(call.func), isinstance(call.func, ast.Attribute)
        if name == "dict" and not call.args:
            return [(keyword.arg, keyword.value) for keyword in call.keywords]
        source = call.func.value if isinstance(call.func, ast.Attribute) and not call.args else None
        first = source or (call.args[0] if call.args else None)
        if first is None or name not in {*_SAME, *_ANY_ORDER, "items", "enumerate", "zip"}:
            return [] if first is None and name in _SAME else None
        found = self.elements(first, scope, depth + 1)
        if name == "zip" and not method:
            columns = [self.elements(each, scope, depth + 1) for each in call.args]
            several = [column for column in columns if column is not None]
            length = max(map(len, several), default=0)
            unknown: list[Keyed] = [(None, ast.Constant(None))] * length
            rows = zip(*(unknown if column is None else column for column in columns), strict=False)
            return [(None, ast.Tuple([element for _, element in row])) for row in rows]
        if found is None:
            return None
        if name in ("items", "enumerate"):
            return [(None, ast.Tuple([ast.Constant(None), element])) for _, element in found]
        return [(None, element) for _, element in found] if name in _ANY_ORDER else found

    def class_of(self, name: str) -> ast.ClassDef | None:
        """Return the class of the object that has a name."""
        cls = self.instances.get(name)
        if cls is not None:
            self.load(cls)
        return self.classes.get(cls or "")


def arguments(node: ast.Call, function: Function, params: Sequence[str]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters of a function with the arguments of a call, and with their defaults."""
    spec = function.args
    positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
    yield from zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True)
    yield from ((arg.arg, value) for arg, value in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if value)
    yield from zip(params, node.args, strict=False)
    if spec.vararg is not None:
        yield spec.vararg.arg, ast.Tuple(node.args[len(params) :])
    yield from ((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg)


def names_of(function: Function) -> set[str]:
    """Return the names that are a function's own."""
    spec = function.args
    params = {arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg) if arg}
    inner = (node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return params | {node.id for node in inner}


def owner_of(func: ast.expr) -> str:
    """Return the first name of `a.b[c]`."""
    while isinstance(func, ast.Attribute | ast.Subscript):
        func = func.value
    return func.id if isinstance(func, ast.Name) else ""


def last_name(func: ast.expr) -> str:
    """Return the last name of `a.b`."""
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _last_name_of_call(value: ast.expr) -> str:
    return last_name(value.func) if isinstance(value, ast.Call) else ""


def looked_up(func: ast.expr) -> ast.expr:
    """Return the object behind an expression such as `getattr(dist, "barrier")`, the function of a `partial(...)`."""
    if not isinstance(func, ast.Call) or not func.args:
        return func
    if last_name(func.func) in WRAPS and not has_own_group(func, len(func.args)):
        return looked_up(func.args[0])
    if isinstance(func.func, ast.Name) and func.func.id == "getattr" and len(func.args) > 1:
        owner, name = func.args[:2]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return ast.Attribute(owner, name.value, ast.Load())
    return func


_OWN_GROUP = frozenset({None, "group", "process_group", "device_mesh", "no_dist"})


def has_own_group(node: ast.Call, position: int) -> bool:
    """Whether the call names a process group, or may do so."""
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return True
    for keyword in node.keywords:
        if keyword.arg in _OWN_GROUP:
            return not _is_default(keyword.value)
    return len(node.args) > position and not _is_default(node.args[position])


def _is_default(value: ast.expr) -> bool:
    is_none = isinstance(value, ast.Constant) and value.value is None
    return is_none or (isinstance(value, ast.Attribute) and value.attr == "WORLD")


def depends_on_rank(test: ast.expr) -> bool:
    """Whether an expression may have another value on another rank."""
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    words = {node.value for node in ast.walk(test) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return any("rank" in name.lower() or "main_process" in name for name in names | attributes | words)
