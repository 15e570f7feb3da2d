"""Parts: how many lines each has, and which files outside of it name it."""

import ast
import json
import re
from functools import cache

from .sources import EXTENSION, PACKAGE, ROOT, place, python_files, typescript_files

FOLDERS = (PACKAGE / "parts", EXTENSION / "parts")
CPU_SECONDS = ROOT / ".venv" / "cputime.json"
MOST_OUTSIDE = 3  # files that name a new part
# `make generate` writes them from the rows of all parts.
GENERATED = {"infos.py", "plain.py", "wrapped.py"}


@cache
def names():
    return sorted({path.parent.name for path in (*FOLDERS[0].glob("*/__init__.py"), *FOLDERS[1].glob("*/plugin.ts*"))})


def has_package(name):
    """Whether a part has code in Python; others are of the page alone."""
    return (FOLDERS[0] / name).is_dir()


def words_of(name):
    """Return the words by which code would name a part: WORDS of its package, else its own name."""
    if not has_package(name):
        return (name,)
    for node in ast.parse((FOLDERS[0] / name / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "WORDS":
            return ast.literal_eval(node.value)
    return (name,)


def files_of(name):
    return [path for path in (*python_files(), *typescript_files()) if any(f / name in path.parents for f in FOLDERS)]


def lines_of(name):
    return sum(path.read_text().count("\n") for path in files_of(name))


def cpu_seconds():
    """Return the CPU seconds of each file of tests in its last whole run here (tests/cputime.py)."""
    try:
        return json.loads(CPU_SECONDS.read_text())
    except (OSError, ValueError):
        return {}


def cpu_seconds_of(name):
    """Return what the tests of a part took in their last whole run here; None if there was none."""
    own = [seconds for file, seconds in cpu_seconds().items() if file.startswith(f"tests/{name}/")]
    return sum(own) if own else None


def named_outside(name):
    """Return a line for each file outside of a part with a word of it, and how often."""
    pattern = re.compile(rf"(?i)(?<![a-z])(?:{'|'.join(words_of(name))})(?![a-z])|parts[./]{name}\b")
    own = set(files_of(name))
    every = (*(python_files() if has_package(name) else ()), *typescript_files())
    files = [path for path in every if path not in own and path.name not in GENERATED]
    found = {path: len(pattern.findall(path.read_text())) for path in files}
    return [f"{place(path)}: {count}" for path, count in found.items() if count]
