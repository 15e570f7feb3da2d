"""Memory, definitions and process groups, which streams name and do not contain.

A pickle stream refers to these functions by name. The loader (loading.py) puts its own methods in their
places; they raise an error if a stream is loaded otherwise.
"""

from __future__ import annotations

from typing import Any, NoReturn

CELLS = ""  # the module of cells; its name would look like a reference to a name of cells
EMPTY = "jupyter_dist: a variable without a value"

__all__ = [
    "array",
    "array_view",
    "definition",
    "device",
    "function",
    "generator",
    "main_module",
    "namespace_of",
    "process_group",
    "set_cell",
    "set_function",
    "set_tensor",
    "storage",
]


def _refuse(*_: Any) -> NoReturn:
    raise TypeError("This is a part of a save of jupyter_dist. Load it by restoring the save.")


def storage(*_: Any) -> Any:
    """Return the storage that is a block of memory."""
    _refuse()


def array(*_: Any) -> Any:
    """Return the array over a block of memory."""
    _refuse()


def array_view(*_: Any) -> Any:
    """Return a view of another array."""
    _refuse()


def device(*_: Any) -> Any:
    """Return the device here that takes the place of a device."""
    _refuse()


def definition(*_: Any) -> Any:
    """Return the function or class of a cell, by its number."""
    _refuse()


def function(*_: Any) -> Any:
    """Return a function of a cell."""
    _refuse()


def set_function(*_: Any) -> None:
    """Set the defaults, attributes and variables of a function."""
    _refuse()


def set_cell(*_: Any) -> None:
    """Set the value of a variable that functions share."""
    _refuse()


def set_tensor(*_: Any) -> None:
    """Set the gradient and the Python attributes of a tensor."""
    _refuse()


def namespace_of(*_: Any) -> Any:
    """Return the variables of a module; of the cells, for CELLS."""
    _refuse()


def main_module(*_: Any) -> Any:
    """Return the module of the cells."""
    _refuse()


def process_group(*_: Any) -> Any:
    """Return the process group with this name."""
    _refuse()


def generator(*_: Any) -> Any:
    """Return a random generator of torch."""
    _refuse()
