"""Names of classes and types: a name that stands in two modules means two things."""

import ast
import re
from collections import defaultdict

from .sources import EXTENSION, place, python_files, tree_of

EXPORTED_TYPE = re.compile(r"^export (?:declare )?(?:abstract )?(?:class|interface|type|enum) (\w+)", re.MULTILINE)


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


def exported_types():
    """Map each name of an exported TypeScript type to the places that define it, generated files included."""
    found = defaultdict(list)
    for path in sorted(EXTENSION.rglob("*.ts*")):
        text = path.read_text()
        for match in EXPORTED_TYPE.finditer(text):
            found[match[1]].append(place(path, text.count("\n", 0, match.start()) + 1))
    return found


def shared_type_names():
    """Return a line for each name of more than one exported TypeScript type."""
    return [f"{name}: {', '.join(places)}" for name, places in sorted(exported_types().items()) if len(places) > 1]
