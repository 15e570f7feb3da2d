"""Merge the page's strings into the catalogues of its languages.

`make translations` writes them, and the JSON that JupyterLab reads; `--check` names what is out of date or has no
translation, and fails.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages import Catalog
from babel.messages.catalog import Message
from babel.messages.pofile import write_po
from catalogues import DOMAIN, LOCALES, catalogue_path, is_translated, languages, messages, read, write_json

ROOT = Path(__file__).parents[1]
TEMPLATE = LOCALES / f"{DOMAIN}.pot"
# Headers that change with each run or with Babel's version, or have no value here.
UNUSED_HEADERS = re.compile(
    rb'"(?:POT-Creation-Date|PO-Revision-Date|Generated-By|Last-Translator|Report-Msgid-Bugs-To'
    rb"|Project-Id-Version|Language-Team): .*\n"
)


def extracted() -> Catalog:
    """Return the strings of the page's sources."""
    node = subprocess.run(["node", ".ci/strings.mjs"], cwd=ROOT, capture_output=True, text=True, check=False)
    if node.returncode:
        sys.exit(node.stderr)
    template = Catalog(header_comment="# The strings of the page. Made by `make translations`.", fuzzy=False)
    plurals: dict[tuple[str | None, str], str | None] = {}
    for found in json.loads(node.stdout):
        context, single, plural = found["context"], found["id"], found["plural"]
        if plurals.setdefault((context, single), plural) != plural:
            # A catalogue has one entry for both, which then has translations for one of them only.
            sys.exit(f"{found['file']}: '{single}' is used with and without a plural form, or with two of them.")
        template.add((single, plural) if plural else single, context=context, locations=[(found["file"], None)])
    for path in sorted((ROOT / "jupyter_dist").rglob("*.py")):
        for single, plural in sentences_in(path):
            if plurals.setdefault((None, single), plural) != plural:
                sys.exit(f"{path}: '{single}' is used with and without a plural form, or with two of them.")
            template.add((single, plural) if plural else single, locations=[(str(path.relative_to(ROOT)), None)])
    return template


def sentences_in(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield the templates in a Python file: literals in calls of functions of protocol/models/sentences.py."""
    source = path.read_text()
    if not any(word in source for word in ("sentences import", "Option(", "OptionField(", "matches(")):
        return
    for node in ast.walk(ast.parse(source)):
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if isinstance(node, ast.Call) and name == "templates":
            yield from ((str(arg.value), None) for arg in node.args if isinstance(arg, ast.Constant))
        elif isinstance(node, ast.Call) and name == "OptionField":  # in forms: its label and its meaning
            texts = {each.arg: each.value.value for each in node.keywords if isinstance(each.value, ast.Constant)}
            yield from ((texts[key], None) for key in ("label", "start") if "label" in texts)
        elif isinstance(node, ast.Call) and name == "Option":  # of a launcher: its label and its help
            yield from ((arg.value, None) for arg in node.args[1:3] if isinstance(arg, ast.Constant))
        elif isinstance(node, ast.Call) and name in ("matches", "fault_of", "fault_in"):  # of a launcher's options
            yield from ((arg.value, None) for arg in node.args[1:2] if isinstance(arg, ast.Constant))
        elif isinstance(node, ast.Call) and name in ("say", "say_n"):
            number = 2 if name == "say_n" else 1
            texts = [arg.value for arg in node.args[:number] if isinstance(arg, ast.Constant)]
            if len(texts) == number and all(isinstance(text, str) for text in texts):
                yield str(texts[0]), str(texts[1]) if number == 2 else None


def merged(locale: str, template: Catalog) -> Catalog:
    """Return a locale's catalogue with today's strings: new ones have no translation yet."""
    catalogue = read(locale)
    catalogue.update(template, no_fuzzy_matching=True, keep_user_comments=True)
    # What the page no longer has is in the history of the repository.
    catalogue.obsolete.clear()
    return catalogue


def po_text(catalogue: Catalog) -> bytes:
    """Return a catalogue as a translator's tool reads it."""
    file = BytesIO()
    write_po(file, catalogue, width=120, include_lineno=False, sort_by_file=False)
    return UNUSED_HEADERS.sub(b"", file.getvalue())


def named(message: Message) -> str:
    """Return the English text of a message in all its forms."""
    return " | ".join(message.id) if message.pluralizable else message.id


def main() -> None:
    """Write template, catalogues and JSON; with `--check` name what is out of date or missing, and fail."""
    template = extracted()
    files = {TEMPLATE: po_text(template)}
    missing: list[str] = []
    for locale in languages():
        catalogue = merged(locale, template)
        files[catalogue_path(locale, "po")] = po_text(catalogue)
        missing += [f"{locale}: {named(message)}" for message in messages(catalogue) if not is_translated(message)]
    stale = {path: text for path, text in files.items() if not path.exists() or path.read_bytes() != text}
    if "--check" in sys.argv[1:]:
        if stale:
            names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
            sys.exit(f"Run `make translations`: {names} out of date.")
        if missing:
            sys.exit("Translate in jupyter_dist/locale, and run `make translations`:\n" + "\n".join(missing))
        return
    for path, text in stale.items():
        path.write_bytes(text)
    write_json()
    sys.stdout.write("\n".join([*missing, f"{len(missing)} translations are missing."]) + "\n")


if __name__ == "__main__":
    main()
