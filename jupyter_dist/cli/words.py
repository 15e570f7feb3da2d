"""Completion in a shell, by argcomplete: the shell's script runs the command with the line in environment variables."""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Iterable
from typing import Any

from argcomplete.completers import BaseCompleter, FilesCompleter
from argcomplete.finders import CompletionFinder

from jupyter_dist.client import Client, Group, JupyterDistError
from jupyter_dist.protocol.ranks import completions
from jupyter_dist.protocol.states import GONE_GROUP_STATES

ANSWER_SECONDS = 3.0  # a user who pressed TAB waits


class WordFinder(CompletionFinder):
    """Finds options, choices, names of groups, rank expressions and files. A script's arguments are its own."""

    def collect_completions(
        self, active_parsers: list[argparse.ArgumentParser], parsed_args: argparse.Namespace, cword_prefix: str
    ) -> list[str]:
        """Called by argcomplete with the parsed words before the cursor."""
        if getattr(parsed_args, "script", None):
            return [*FilesCompleter()(cword_prefix)]
        return super().collect_completions(active_parsers, parsed_args, cword_prefix)


class ValueCompleter(BaseCompleter):
    """Returns values of an argument that has no list of choices: names of groups, rank expressions, or files."""

    def __call__(
        self, *, prefix: str, action: argparse.Action, parsed_args: argparse.Namespace, **_: Any
    ) -> Iterable[str]:
        """Called by argcomplete."""
        if action.dest == "group":
            return [group.name for group in living_groups()]
        if action.dest == "ranks":
            return rank_expressions(prefix, getattr(parsed_args, "group", None))
        return FilesCompleter()(prefix)


def typed_words() -> list[str] | None:
    """Return the words before the cursor, without the program's name; None if no shell asks for completions."""
    if "_ARGCOMPLETE" not in os.environ:
        return None
    # With older versions than traitlets 5.8 and jupyter_core 5.2 a shell completes nothing.
    from traitlets.config.argcomplete_config import get_argcomplete_cwords  # noqa: PLC0415

    words = get_argcomplete_cwords()
    return None if words is None else words[1:]


def complete(parser: argparse.ArgumentParser) -> None:
    """Write the completions of the last word of the shell's line and end this process; nothing if no shell asks."""
    WordFinder()(parser, always_complete_options=False, print_suppressed=True, default_completer=ValueCompleter())


def rank_expressions(typed: str, name: str | None) -> list[str]:
    """Return the rank expressions that begin so; without a name, of the only group that lives."""
    groups = [group for group in living_groups() if name in (None, group.name, group.id)]
    return completions(typed, groups[0].model) if len(groups) == 1 else []


def living_groups() -> list[Group]:
    """Return the living groups; none if the server does not answer soon, because it is stopped or busy."""
    groups: list[Group] = []
    asking = threading.Thread(target=lambda: groups.extend(_asked_groups()), daemon=True)
    asking.start()
    asking.join(ANSWER_SECONDS)
    return groups


def _asked_groups() -> list[Group]:
    try:
        with Client.connect(private=False) as client:
            return [group for group in client.groups() if group.model["state"] not in GONE_GROUP_STATES]
    except JupyterDistError:  # no completions if the server cannot be reached
        return []
