"""Parts: how many lines each has, and which files outside of it name it."""

import ast
import io
import json
import re
import tokenize
from functools import cache

from .sources import EXTENSION, PACKAGE, ROOT, place, python_files, typescript_files

FOLDERS = (PACKAGE / "parts", EXTENSION / "parts")
CPU_SECONDS = ROOT / ".venv" / "cputime.json"
MOST_OUTSIDE = 3  # files that name a new part
# `make generate` writes them from the rows of all parts.
GENERATED = {"infos.py", "plain.py", "wrapped.py", "index.ts"}


@cache
def names():
    return sorted({path.parent.name for path in (*FOLDERS[0].glob("*/__init__.py"), *FOLDERS[1].glob("*/plugin.ts*"))})


def has_package(name):
    """Whether a part has code in Python; others are of the page alone."""
    return (FOLDERS[0] / name).is_dir()


def words_of(name):
    """Return the words by which code would name a part: WORDS of its package, else its own name."""
    return constant_of(name, "WORDS", (name,))


def constant_of(name, constant, default):
    """Return a literal of the package of a part; the default if it has none."""
    for node in assignments(FOLDERS[0] / name / "__init__.py"):
        if node.targets[0].id == constant:
            return ast.literal_eval(node.value)
    return default


def assignments(path):
    """Return the assignments of constants in a file; none if there is no such file."""
    body = ast.parse(path.read_text()).body if path.exists() else []
    return [node for node in body if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "").isupper()]


def declared_names(name):
    """Return the names that a part declares to users and on the wire: of operations, fields, options, magics.

    What it calls COMMON_WORDS is left out: code uses these words for other things, too.
    """
    found = set()
    for module in ("__init__", "api"):
        for node in assignments(FOLDERS[0] / name / f"{module}.py"):
            if isinstance(node.value, ast.Dict):
                found |= {key.value.lstrip("%") for key in node.value.keys if isinstance(key, ast.Constant)}
            calls = [each for each in ast.walk(node.value) if isinstance(each, ast.Call)]
            named = [each.value for call in calls for each in call.keywords if each.arg == "name"]
            found |= {each.value for each in named if isinstance(each, ast.Constant)}
    return found - set(constant_of(name, "COMMON_WORDS", ()))


@cache
def long_names_in(path):
    """Return the names with an underscore that code has, and its texts that are a word; not those in comments."""
    text = path.read_text()
    if path.suffix != ".py":
        code = re.sub(r"/\*.*?\*/|//.*", "", text, flags=re.DOTALL)
        return {*re.findall(r"\b\w+_\w+\b", code), *re.findall(r"'(\w+)'", code)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = {each.string for each in tokens if each.type in (tokenize.NAME, tokenize.STRING)}
    return {each.strip("\"'") for each in found if "_" in each.strip("_") or each[0] in "\"'"}


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
    """Return a line for each file outside of a part with a word of it, or a name that it declares."""
    pattern = re.compile(rf"(?i)(?<![a-z])(?:{'|'.join(words_of(name))})(?![a-z])|parts[./]{name}\b")
    declared = declared_names(name)
    own = set(files_of(name))
    every = (*(python_files() if has_package(name) else ()), *typescript_files())
    files = [path for path in every if path not in own and path.name not in GENERATED]
    found = {
        path: {*(each.group() for each in pattern.finditer(path.read_text())), *(declared & long_names_in(path))}
        for path in files
    }
    return [f"{place(path)}: {', '.join(sorted(words))}" for path, words in found.items() if words]
