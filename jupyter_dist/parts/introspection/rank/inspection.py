"""Documentation at the cursor: from the shell while the rank is idle; during a cell, without running users' code."""

from __future__ import annotations

import builtins
import inspect
import re
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from IPython.utils.tokenutil import token_at_cursor

from jupyter_dist.rank.cells.shell import RankShell

if TYPE_CHECKING:
    from jupyter_dist.parts.introspection.models import Inspection

MAX_TEXT_CHARS = 100_000
BUSY = "This rank is running a cell. It can answer when the cell has ended."

_NOTHING = object()
_PLAIN = (FunctionType, BuiltinFunctionType, ModuleType)
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*\Z")


def look(shell: RankShell, code: str, cursor_pos: int, detail: int) -> Inspection:
    """Return the documentation of `name?`, with `detail` 1 of `name??`. Attribute access may run user code."""
    name = token_at_cursor(code, cursor_pos)
    try:
        data = shell.object_inspect_mime(name, detail_level=detail)
    except KeyError:
        return {"found": False, "data": {}, "busy": False}
    return {"found": True, "data": {"text/plain": data["text/plain"][:MAX_TEXT_CHARS]}, "busy": False}


def glance(namespace: dict[Any, Any], code: str, cursor_pos: int) -> Inspection:
    """Return signature and docstring of a function, a class or a module, in the side thread while a cell runs."""
    name = token_at_cursor(code, cursor_pos)
    found = static_value(namespace, name)
    if isinstance(found, _PLAIN):
        text = found.__doc__ or ""
    elif type(found) is type and isinstance(doc := vars(found).get("__doc__"), str):
        text = doc
    else:
        return {"found": False, "data": {"text/plain": BUSY}, "busy": True}
    head = f"Signature: {name}{signature_of(found)}\n" if not isinstance(found, ModuleType) else ""
    shown = f"{head}Docstring:\n{inspect.cleandoc(text)}\n\n{BUSY}"
    return {"found": True, "data": {"text/plain": shown[:MAX_TEXT_CHARS]}, "busy": True}


def static_value(namespace: dict[Any, Any], dotted: str) -> Any:
    """Return the value of `a.b.c` without running code of users; `_NOTHING` if that is not possible."""
    if not _DOTTED.match(dotted):
        return _NOTHING
    first, *rest = dotted.split(".")
    found = namespace.get(first, getattr(builtins, first, _NOTHING))
    for name in rest:
        found = static_attribute(found, name)
    return found


def static_attribute(value: Any, name: str) -> Any:
    """Return an attribute without running code of users; a property is returned itself."""
    found = inspect.getattr_static(value, name, _NOTHING)
    return found.__func__ if isinstance(found, (staticmethod, classmethod)) else found


def kind_of(value: Any) -> str:
    """Return the kind of a value, which a completer shows beside its name."""
    if isinstance(value, ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    if isinstance(value, property):
        return "property"
    if inspect.isroutine(value):
        return "function"
    return "" if value is _NOTHING else "instance"


def signature_of(value: Any) -> str:
    """Return the signature of a function or class; empty if it has none."""
    if not (inspect.isroutine(value) or isinstance(value, type)):
        return ""
    try:
        return str(inspect.signature(value))
    except Exception:  # built-in functions have none, and classes may define anything
        return ""
