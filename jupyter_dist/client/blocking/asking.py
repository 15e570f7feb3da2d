"""Passes questions of ranks to the user of this program: at its terminal, or in its kernel's frontend."""

from __future__ import annotations

import getpass
import sys
import threading
from collections.abc import Callable

from jupyter_dist.client.answers.infos import InputPromptInfo
from jupyter_dist.client.bundles.bundle import rank_label

# Returns the answer to a question; None: there is no more input.
Ask = Callable[[InputPromptInfo], "str | None"]


def ask_user(question: InputPromptInfo) -> str | None:
    """Ask with this program's own `input` or `getpass`; None after Ctrl-D."""
    prompt = f"[{rank_label(question.ranks)}] {question.prompt}"
    try:
        return getpass.getpass(prompt) if question.password else input(prompt)
    except EOFError:
        return None


def asker(wanted: Ask | bool | None) -> Ask | None:
    """Return the function that answers the questions of a cell; None if they are not answered.

    Args:
        wanted: a function, True for `ask_user`, False for no answers; None: `ask_user` if there is a user to ask.
    """
    if wanted is False:
        return None
    if wanted is None or wanted is True:
        return ask_user if wanted or _has_user() else None
    return wanted


def _has_user() -> bool:
    """Whether `input()` reaches a user: in a kernel if its frontend takes questions, else at a terminal."""
    if threading.current_thread() is not threading.main_thread():
        return False
    if "ipykernel" in sys.modules:
        from IPython import get_ipython  # noqa: PLC0415

        kernel = getattr(get_ipython(), "kernel", None)
        if kernel is not None:
            # Set by the frontend in its request; without it ipykernel's `input()` raises an error.
            return bool(getattr(kernel, "_allow_stdin", False))
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()
