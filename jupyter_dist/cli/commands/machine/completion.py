"""`completion`: shell completion of commands, options and the names of groups."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterable
from pathlib import Path

from jupyter_dist.cli.command import Command
from jupyter_dist.cli.listing import COMMANDS
from jupyter_dist.client import Client, JupyterDistError
from jupyter_dist.protocol.states import GONE_GROUP_STATES

SCRIPTS = Path(__file__).parents[2] / "shells"
SHELLS = ("bash", "zsh", "fish")
ANSWER_SECONDS = 3.0  # who pressed TAB waits for it


class Completion(Command):
    """Print a script for shell completion. For bash, add to ~/.bashrc: eval "$(jupyter dist completion bash)"."""

    needs_client = False

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the shell, or, for calls by its script, the words so far."""
        parser.add_argument("shell", choices=[*SHELLS, "words"], help="words: completions of the last one")
        parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)

    def act(self) -> int:
        """Print the script or the completions."""
        if self.options.shell != "words":
            print((SCRIPTS / self.options.shell).read_text(), end="")
            return 0
        words = self.options.words[1:] if self.options.words[:1] == ["--"] else self.options.words
        found = sorted(word for word in candidates(words or [""]) if word.startswith((words or [""])[-1]))
        self.tell(found, "\n".join(found))
        return 0


def candidates(words: list[str]) -> Iterable[str]:
    """Return completions of the last word; none for file names and free text."""
    *before, last = words
    if not before:
        return COMMANDS
    if before[0] not in COMMANDS:
        return []
    parser = COMMANDS[before[0]].load()().parser()
    # argparse has no public way to list the arguments of a parser.
    options = {option: action for action in parser._actions for option in action.option_strings}
    awaited = _awaited(before[1:], options, [action for action in parser._actions if not action.option_strings])
    if last.startswith("-") and (awaited is None or not awaited.option_strings):
        return [] if awaited is not None and awaited.nargs == argparse.REMAINDER else options
    return [] if awaited is None else _values(awaited)


def _awaited(
    words: list[str], options: dict[str, argparse.Action], positional: list[argparse.Action]
) -> argparse.Action | None:
    """Return the option or argument whose value comes next."""
    value_of: argparse.Action | None = None
    for word in words:
        if value_of is not None:
            value_of = None
        elif word in options:
            value_of = options[word] if options[word].nargs is None else None
        elif not word.startswith("-") and positional and positional[0].nargs != argparse.REMAINDER:
            positional = positional[1:]
    return value_of or next(iter(positional), None)


def _values(action: argparse.Action) -> Iterable[str]:
    if action.choices is not None:
        return map(str, action.choices)
    return _group_names() if action.dest == "group" else []


def _group_names() -> list[str]:
    """Return the names of groups; none if the server does not answer soon, for it may be stopped or busy."""
    names: list[str] = []
    asking = threading.Thread(target=lambda: names.extend(_asked_names()), daemon=True)
    asking.start()
    asking.join(ANSWER_SECONDS)
    return names


def _asked_names() -> list[str]:
    try:
        with Client.connect(private=False) as client:
            return [group.name for group in client.groups() if group.model["state"] not in GONE_GROUP_STATES]
    except JupyterDistError:  # no completions if the server cannot be reached
        return []
