"""The user's own modules: files in no library, whose variables, functions and classes cells use and change."""

from __future__ import annotations

import sys
import sysconfig
from functools import lru_cache
from types import ModuleType
from typing import Any

from jupyter_dist.rank.guard import folders

_dict_of: Any = vars(ModuleType)["__dict__"].__get__


def is_users(name: str) -> bool:
    """Whether a module is written by the user: its file belongs to no library, or it is in no file."""
    module = sys.modules.get(name) or sys.modules.get(name.partition(".")[0])
    return bool(name) if module is None else is_users_module(module)


def is_users_module(module: Any) -> bool:
    """Whether a module is written by the user: cells, files in no library, and modules that code has made."""
    attributes = variables_of(module)
    if attributes.get("__name__") == "__main__":
        return True
    file, spec = attributes.get("__file__"), attributes.get("__spec__")
    if type(file) is not str:
        return spec is None
    return not file.startswith(_library_places())


def variables_of(module: Any) -> dict[str, Any]:
    """Return the variables of a module; no code of the user runs, and a lazy module is not loaded."""
    found = _dict_of(module) if issubclass(type(module), ModuleType) else {}
    return found if type(found) is dict else {}


@lru_cache(maxsize=1)
def _library_places() -> tuple[str, ...]:
    places = {path for name, path in sysconfig.get_paths().items() if name.endswith(("stdlib", "lib"))}
    found = {path for path in sys.path if path.rstrip("/").endswith(("site-packages", "dist-packages"))}
    return tuple(f"{path.rstrip('/')}/" for path in {*places, *found, folders.PACKAGE} if path)
