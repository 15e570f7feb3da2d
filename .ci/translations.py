"""Merge the page's strings into the catalogues of its languages, and make of them the JSON that JupyterLab reads.

`make translations` writes all of it; `--check` names what is out of date or has no translation, and fails.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages import Catalog
from babel.messages.catalog import Message
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parents[1]
LOCALES = ROOT / "jupyter_dist" / "locale"
DOMAIN = "jupyter_dist"
TEMPLATE = LOCALES / f"{DOMAIN}.pot"
CONTEXT_END = "\x04"
# Headers that change with each run or with Babel's version, or have no value here.
UNUSED_HEADERS = re.compile(
    rb'"(?:POT-Creation-Date|PO-Revision-Date|Generated-By|Last-Translator|Report-Msgid-Bugs-To'
    rb"|Project-Id-Version|Language-Team): .*\n"
)


def languages() -> list[str]:
    """Return the locales that have a folder, such as `de_DE`."""
    return sorted(path.name for path in LOCALES.iterdir() if path.is_dir())


def catalogue_path(locale: str, kind: str) -> Path:
    """Return the path of a locale's `po` or `json`, where JupyterLab looks for it."""
    return LOCALES / locale / "LC_MESSAGES" / f"{DOMAIN}.{kind}"


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
    return template


def merged(locale: str, template: Catalog) -> Catalog:
    """Return a locale's catalogue with today's strings: new ones have no translation yet."""
    path = catalogue_path(locale, "po")
    with path.open("rb") as file:
        catalogue = read_po(file, locale=locale, charset="utf-8")
    catalogue.update(template, no_fuzzy_matching=True, keep_user_comments=True)
    # What the page no longer has is in the history of the repository.
    catalogue.obsolete.clear()
    return catalogue


def po_text(catalogue: Catalog) -> bytes:
    """Return a catalogue as a translator's tool reads it."""
    file = BytesIO()
    write_po(file, catalogue, width=120, include_lineno=False, sort_by_file=False)
    return UNUSED_HEADERS.sub(b"", file.getvalue())


def json_text(locale: str, catalogue: Catalog) -> bytes:
    """Return a catalogue as JupyterLab's page reads it; what has no translation is left out, and stays English."""
    head = {
        "domain": DOMAIN,
        "language": locale.replace("_", "-"),
        "plural_forms": catalogue.plural_forms,
    }
    texts: dict[str, object] = {"": head}
    for message in messages(catalogue):
        if is_translated(message):
            context = f"{message.context}{CONTEXT_END}" if message.context else ""
            texts[context + single_of(message)] = page_forms(message)
    return (json.dumps(texts, ensure_ascii=False, indent=1) + "\n").encode()


def page_forms(message: Message) -> list[str]:
    """Return the translations of a message by plural form.

    JupyterLab takes an entry with one form for a text without plural. Languages with a single form get an empty
    second one.
    """
    forms = list(message.string) if message.pluralizable else [message.string]
    return [*forms, ""] if message.pluralizable and len(forms) == 1 else forms


def messages(catalogue: Catalog) -> Iterator[Message]:
    """Return the messages of a catalogue, without its header."""
    return (message for message in catalogue if message.id)


def is_translated(message: Message) -> bool:
    """Return whether a message has all of its translations, and none that nobody has looked at."""
    return not message.fuzzy and all(message.string if message.pluralizable else [message.string])


def single_of(message: Message) -> str:
    """Return the English text of a message, for one where it has a plural."""
    return message.id[0] if message.pluralizable else message.id


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
        files[catalogue_path(locale, "json")] = json_text(locale, catalogue)
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
    sys.stdout.write("\n".join([*missing, f"{len(missing)} translations are missing."]) + "\n")


if __name__ == "__main__":
    main()
