"""Sentences for users that a page can show in its own language.

A `Sentence` is its English text. Beside that it has its template, which is its code in the page's catalogues, and the
values in it. Models have both: the text, and under another name its `words_of`. Without a template that it knows, a
page shows the text. `.ci/translations.py` collects the templates from the literals that the functions below get.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, TypedDict

from jupyter_dist.protocol.field import Field

_PLACE = re.compile(r"%(\d)")
MAX_VALUES = 9  # of a sentence


class Words(TypedDict):
    """A sentence: its template, and its values for `%1`, `%2` and so on."""

    text: Annotated[str, Field("In English, as in the page's catalogues.")]
    plural: Annotated[str | None, Field("The template for other numbers than one; the number is the first value.")]
    values: Annotated[list[Any], Field("Each a text, a number, or a list of such sentences.")]


Value = Any  # a text, perhaps a sentence, a number, or what has a text


class Sentence(str):
    """A text for users with its words."""

    __slots__ = ("words",)

    words: list[Words]

    def __new__(cls, text: str, words: list[Words]) -> Sentence:
        """Return the text with these words."""
        made = super().__new__(cls, text)
        made.words = words
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Called when it is pickled."""
        return Sentence, (str(self), self.words)


def say(template: str, *values: Value) -> Sentence:
    """Return a sentence: the template with these values, of which some may be sentences themselves."""
    return _said(template, template, None, values)


def say_n(single: str, plural: str, count: int, *values: Value) -> Sentence:
    """Return a sentence with the number `count` as its first value; in English `plural`, unless it is one."""
    return _said(single if count == 1 else plural, single, plural, (count, *values))


def templates(*texts: str) -> tuple[str, ...]:
    """Return the templates of a table: the catalogues have them from here."""
    return texts


def join(*texts: str | None, by: str = " ") -> str:
    """Return sentences one after the other, without empty ones; texts without words stay as they are."""
    kept = [text for text in texts if text]
    if not any(isinstance(text, Sentence) for text in kept):
        return by.join(kept)
    if by == " ":
        return Sentence(by.join(kept), [words for text in kept for words in words_of(text) or [_plain(text)]])
    if len(kept) > MAX_VALUES:
        kept = [*kept[: MAX_VALUES - 1], join(*kept[MAX_VALUES - 1 :], by=by)]
    return say(by.join(f"%{number}" for number in range(1, len(kept) + 1)), *kept)


def words_of(text: str | None) -> list[Words] | None:
    """Return the words of a text for a model; None if it has none."""
    return text.words if isinstance(text, Sentence) else None


def with_words(text: Any, words: Any) -> str:
    """Return a text that came with its words from another process; without them if they are damaged."""
    text = str(text)
    return Sentence(text, words) if isinstance(words, list) and all(map(_is_sound, words)) else text


def _is_sound(words: Any) -> bool:
    return isinstance(words, dict) and isinstance(words.get("text"), str) and isinstance(words.get("values"), list)


def _plain(text: str) -> Words:
    return {"text": "%1", "plural": None, "values": [str(text)]}


def text_of(value: object) -> str:
    """Return the text of a value, with its words if it is an error with a sentence alone."""
    first = value.args[0] if isinstance(value, Exception) and value.args else ""
    return first if isinstance(first, Sentence) and first == str(value) else str(value)


def _said(shown: str, single: str, plural: str | None, values: tuple[Value, ...]) -> Sentence:
    known = [value if isinstance(value, (str, int, float)) else text_of(value) for value in values]
    text = _PLACE.sub(lambda found: str(known[int(found[1]) - 1]), shown)
    sent = [value.words if isinstance(value, Sentence) else value for value in known]
    return Sentence(text, [{"text": single, "plural": plural, "values": sent}])
