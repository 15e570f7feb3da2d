"""The options of a launcher that users can set; they are checked before anything is submitted."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import machine
from jupyter_dist.protocol.models.sentences import Sentence, Words, join, say, words_of

MAX_CHARS = 500
MAX_WORDS = 50
MAX_VARIABLES = 200
MAX_SCRIPT_CHARS = 4000

Kind = Literal["text", "integer", "flag", "words", "object", "script"]


@dataclass(frozen=True)
class Option:
    """One option. `check` returns the fault of a value, as the end of a sentence that begins with the option's name."""

    name: str
    label: str
    help: str
    kind: Kind = "text"
    minimum: int = 0
    is_common: bool = False  # shown first
    is_advanced: bool = False  # shown under Advanced
    choices: tuple[str, ...] = ()  # values that are known to work everywhere
    measure: Callable[[Any], float | None] | None = None  # how much a value asks for; by default the number in it
    check: Callable[[Any], str | None] | None = None

    def problem(self, value: Any) -> str | None:
        """Return the fault of a value, as a sentence; None if the value is valid."""
        wrong = _wrong_kind(self, value) or (self.check and self.check(value))
        return say("'%1' %2", self.name, wrong) if wrong else None

    def model(self, choices: Sequence[str], default: Any = None, *, is_fixed: bool = False) -> machine.LauncherOption:
        """Return the model of the option for forms.

        Args:
            choices: values that are known to work here.
            default: the administrator's.
            is_fixed: whether only the administrator sets it.
        """
        return {
            "name": self.name,
            "label": self.label,
            "label_words": _words(self.label),
            "help": self.help,
            "help_words": _words(self.help),
            "kind": self.kind,
            "choices": list(choices or self.choices),
            "common": self.is_common,
            "advanced": self.is_advanced,
            "default": "" if default is None else as_text(default),
            "fixed": is_fixed,
        }


def _words(text: str) -> list[Words] | None:
    return words_of(text) or words_of(say(text))


def checked(launcher: str, options: Sequence[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options without empty ones.

    Raises:
        JupyterDistError: `bad_request`, with a sentence for each mistake.
    """
    by_name = {option.name: option for option in options}
    wanted = {
        name: _read(by_name[name], value) if name in by_name else value
        for name, value in given.items()
        if type(value) is int or value not in (None, "", [], {}, False, "false")  # 0 == False
    }
    problems: list[str] = [
        say("The launcher %1 has no option '%2'.", launcher, name[:60]) for name in wanted if name not in by_name
    ]
    problems += filter(None, (by_name[name].problem(value) for name, value in wanted.items() if name in by_name))
    if problems:
        known = say("Its options are: %1.", ", ".join(sorted(by_name))) if by_name else say("It has no options.")
        raise JupyterDistError("bad_request", join(*problems), known)
    return wanted


def _read(option: Option, value: Any) -> Any:
    """Return a value that a command line or a form sent as text, in the option's type."""
    if option.kind == "text" and type(value) is int:
        return str(value)
    if option.kind == "flag" and value == "true":
        return True
    if option.kind == "integer" and isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,9}", value):
        return int(value)
    if option.kind == "words" and isinstance(value, str):
        with contextlib.suppress(ValueError, RecursionError):  # a quotation that does not end
            return json.loads(value) if value.startswith("[") else shlex.split(value)
    if option.kind == "object" and isinstance(value, str):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def as_text(value: Any) -> str:
    """Return a value as a user may type it."""
    if isinstance(value, list):
        return shlex.join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def matches(pattern: str, wanted: str) -> Callable[[Any], str | None]:
    """Return a check of texts against a regular expression; `wanted` describes the expected text, with an example."""
    compiled = re.compile(pattern, re.ASCII)  # engines do not know the digits of other scripts

    def check(value: Any) -> str | None:
        return None if compiled.fullmatch(value) else fault_of(value, wanted)

    return check


def fault_of(value: str, wanted: str) -> Sentence:
    """Return the fault of a text; `wanted` describes the expected text."""
    return say("is %1; %2", repr(value[:60]), _sentence(wanted))


def fault_in(word: str, wanted: str) -> Sentence:
    """Return the fault of a value that has such a word."""
    return say("has %1; %2", repr(word[:60]), _sentence(wanted))


def _sentence(words: str) -> Sentence:
    return words if isinstance(words, Sentence) else say(words)


def _wrong_kind(option: Option, value: Any) -> str | None:
    checks = {"text": _wrong_text, "integer": _wrong_integer, "flag": _wrong_flag, "words": _wrong_words}
    checks["script"] = _wrong_script
    wrong = checks[option.kind](value) if option.kind in checks else _wrong_object(value)
    if wrong is None and option.kind == "integer" and value < option.minimum:
        return say("is %1; it must be at least %2.", value, option.minimum)
    return wrong


def _wrong_text(value: Any) -> str | None:
    if not isinstance(value, str):
        return say("must be a text.")
    if len(value) > MAX_CHARS or not value.isprintable():
        return say("must be one line of at most %1 printable characters.", MAX_CHARS)
    return None


def _wrong_script(value: Any) -> str | None:
    if not isinstance(value, str):
        return say("must be a text.")
    if len(value) > MAX_SCRIPT_CHARS or not all(line.isprintable() for line in value.expandtabs().split("\n")):
        return say("must be lines of printable characters, at most %1 characters.", MAX_SCRIPT_CHARS)
    return None


def _wrong_integer(value: Any) -> str | None:
    return None if type(value) is int else say("must be a whole number.")


def _wrong_flag(value: Any) -> str | None:
    return None if type(value) is bool else say("must be true or false.")


def _wrong_words(value: Any) -> str | None:
    if not isinstance(value, list) or len(value) > MAX_WORDS:
        return say("must be a list of at most %1 texts.", MAX_WORDS)
    return next((wrong for wrong in map(_wrong_text, value) if wrong), None)


def _wrong_object(value: Any) -> str | None:
    is_object = isinstance(value, dict) and len(value) <= MAX_VARIABLES
    return None if is_object else say('must be an object, as {"name": "value"}.')
