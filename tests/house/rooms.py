"""Folders and files: how many files a folder has, and how many lines a file."""

from collections import Counter

from .sources import place, python_files, typescript_files

MOST_FILES = 8
MANY_LINES = 400


def full_folders(files):
    """Return a line for each folder with more than MOST_FILES files of its own; files that make a package do not count."""
    counts = Counter(path.parent for path in files if path.name not in ("__init__.py", "index.ts"))
    return [f"{place(folder)}: {count} files" for folder, count in counts.most_common() if count > MOST_FILES]


def full_python_folders():
    return full_folders(python_files())


def full_typescript_folders():
    return full_folders(typescript_files())


def long_files():
    """Return a line for each file with more than MANY_LINES lines: a hint that it may have become two ideas."""
    lengths = {path: path.read_text().count("\n") for path in (*python_files(), *typescript_files())}
    return [f"{place(path)}: {length} lines" for path, length in lengths.items() if length > MANY_LINES]
