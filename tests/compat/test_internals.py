"""docs/torch-internals.md has every private name of torch that ranks use, and is what the table says."""

import ast
import importlib.util
import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOM = ROOT / "jupyter_dist" / "rank" / "collectives"
FILES = [ROOM / "torch_compat.py", ROOM / "torch_recorders.py", *(ROOM / "revival").glob("*.py")]
PRIVATE = re.compile(r"_\w*(?<!__)")
OF_OURS = {"_replace", "_asdict"}


def table():
    spec = importlib.util.spec_from_file_location("internals", ROOT / "tests" / "matrix" / "internals.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def private_names(path):
    """Attributes that a file reads and does not define itself, and those that it asks for by their name."""
    tree = ast.parse(path.read_text())
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else None
        if isinstance(name, str) and PRIVATE.fullmatch(name) and name not in own:
            yield name


def test_every_private_name_has_its_line():
    named = {row.name for row in table().NAMES}
    used = {name for path in FILES for name in private_names(path)} - OF_OURS
    assert used - named == set(), "add them to tests/matrix/internals.py: what they mean, and how that was found"


def test_the_page_is_what_the_table_says():
    internals = table()
    record = json.loads(internals.RECORD.read_text())
    assert internals.TABLE.read_text() == internals.page(record), "run python tests/matrix/internals.py"


def test_the_names_of_this_torch_are_as_recorded():
    """The canary: a name that a version has lost since is noticed where ranks would go without it."""
    now, record = table().here(), json.loads(table().RECORD.read_text())
    known = [one for one in record if (one["torch"], one["build"]) == (now["torch"], now["build"])]
    assert not known or known[0]["names"] == now["names"]
