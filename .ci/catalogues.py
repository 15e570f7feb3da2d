"""Make the JSON that JupyterLab reads of the catalogues of the page's languages.

A build of the package does so (buildhook.py), and `make` after a change of a catalogue.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from babel.messages import Catalog
from babel.messages.catalog import Message
from babel.messages.pofile import read_po

LOCALES = Path(__file__).parents[1] / "jupyter_dist" / "locale"
DOMAIN = "jupyter_dist"
CONTEXT_END = "\x04"


def languages() -> list[str]:
    """Return the locales that have a folder, such as `de_DE`."""
    return sorted(path.name for path in LOCALES.iterdir() if path.is_dir())


def catalogue_path(locale: str, kind: str) -> Path:
    """Return the path of a locale's `po` or `json`, where JupyterLab looks for it."""
    return LOCALES / locale / "LC_MESSAGES" / f"{DOMAIN}.{kind}"


def read(locale: str) -> Catalog:
    """Return the catalogue of a locale."""
    with catalogue_path(locale, "po").open("rb") as file:
        return read_po(file, locale=locale, charset="utf-8")


def write_json() -> None:
    """Write the JSON of each locale, if it is not as its catalogue makes it."""
    for locale in languages():
        path, text = catalogue_path(locale, "json"), json_text(locale, read(locale))
        if not path.exists() or path.read_bytes() != text:
            path.write_bytes(text)


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


if __name__ == "__main__":
    write_json()
