"""Class names: a name that stands in two modules means two things."""

import ast
from collections import defaultdict

from .sources import place, python_files, tree_of


def classes():
    """Map each name of a class to the places that define it."""
    found = defaultdict(list)
    for path in python_files():
        for node in tree_of(path).body:
            for each in (node, *getattr(node, "body", ()), *getattr(node, "orelse", ())):
                if isinstance(each, ast.ClassDef) and not each.name.startswith("__"):
                    found[each.name].append(place(path, each.lineno))
    return found


def shared_names():
    """Return a line for each name of more than one class."""
    return [f"{name}: {', '.join(places)}" for name, places in sorted(classes().items()) if len(places) > 1]
