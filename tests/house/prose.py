"""Idioms in comments and docstrings, and docstrings that do not name their object."""

import ast
import io
import re
import tokenize
from functools import cache

from .sources import ROOT, pages, place, python_files, tree_of, typescript_files

# Sentences in which things talk, and pronouns in the place of nouns: *hears nothing*, *those of*, *what it is told*.
IDIOM = re.compile(
    r"\b(?:says?|said|saying|tells?|told|telling|hears?|heard|hearing"
    r"|nobody|somebody|everybody|no one else|who asks|whoever"
    r"|those of|that of|those that|one that|ones that|one of its own|of its own|of their own"
    r"|what (?:it|they|he|one)"
    r"|anew|once more|for good|at hand|in sight|so long as it|as ever|goes on|go on|lives? on|becomes? of|became of"
    r"|makes? no sense|knows? nothing|knows? of|all of it|none of it)\b",
    re.IGNORECASE,
)
PRONOUN_FIRST = re.compile(r"^[A-Z]\w+ (?:it|them|those|that|what|one)\b")
FILE_NAME = re.compile(r"(?<![\w./])[\w-]+(?:/[\w-]+)*\.(?:py|ts|tsx|md)\b")
# Files of users and of torch, which comments give as examples.
OTHER_FILES = {"model.py", "torch/version.py", "torch/nn/modules/module.py"}
FOLDERS = ("jupyter_dist", "labextension", "docs", "tests", "ui-tests/tests", "examples", "benchmarks")
BLOCKS = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
TYPESCRIPT_COMMENT = re.compile(r"/\*.*?\*/|(?<![:'\"`\w])//[^\n]*", re.DOTALL)


def docstrings(path):
    """Yield each docstring with its line."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, BLOCKS) and (text := ast.get_docstring(node)):
            yield text, node.body[0].lineno


@cache
def python_prose(path):
    """Return each comment and docstring with its line."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    comments = [(token.string.lstrip("# "), token.start[0]) for token in tokens if token.type == tokenize.COMMENT]
    return [*docstrings(path), *comments]


def typescript_prose(path):
    """Yield each comment with its line."""
    text = path.read_text()
    for match in TYPESCRIPT_COMMENT.finditer(text):
        yield match[0], text.count("\n", 0, match.start()) + 1


def page_prose(path):
    """Yield each line of a page, without code."""
    text = re.sub(
        r"```.*?^```|`[^`\n]*`",
        lambda code: "\n" * code[0].count("\n"),
        path.read_text(),
        flags=re.DOTALL | re.MULTILINE,
    )
    yield from ((line, number) for number, line in enumerate(text.splitlines(), 1))


def idioms(prose):
    """Return the number of words, and a line for each idiom, of the comments and docstrings that `prose` yields for a file."""
    words, found = 0, []
    for path, texts in prose:
        for text, line in texts:
            words += len(re.findall(r"[A-Za-z']+", text))
            found += [f"{place(path, line)}: {' '.join(m[0].split())}" for m in IDIOM.finditer(text)]
    return words, found


def python_idioms():
    return idioms((path, python_prose(path)) for path in python_files())


def typescript_idioms():
    return idioms((path, typescript_prose(path)) for path in typescript_files())


def page_idioms():
    return idioms((path, page_prose(path)) for path in pages())


def pronoun_docstrings():
    """Return a line for each docstring that begins with a verb and a pronoun."""
    return [
        f"{place(path, line)}: {text.splitlines()[0]}"
        for path in python_files()
        for text, line in docstrings(path)
        if PRONOUN_FIRST.match(text)
    ]


def missing_files(prose):
    """Return a line for each file that a comment or docstring names, and that this repository does not have."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
    known = {
        "/".join(path.parts[-length:]) for path in paths for length in range(1, len(path.parts) - len(ROOT.parts) + 1)
    }
    return [
        f"{place(path, line)}: {name}"
        for path, texts in prose
        for text, line in texts
        for name in FILE_NAME.findall(text)
        if name not in known | OTHER_FILES
    ]


def missing_files_named():
    return missing_files((path, python_prose(path)) for path in python_files())
