"""Errors of magics: the cell fails with a sentence, and the kernel stays usable."""

from __future__ import annotations

import argparse
import functools
import shlex
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from jupyter_dist.client import JupyterDistError, RankError

F = TypeVar("F", bound=Callable[..., Any])

HELP_COLUMNS = 86


class DistError(Exception):
    """An error of a magic: one sentence and a hint."""

    def _render_traceback_(self) -> list[str]:
        return [f"\x1b[0;31mDistError\x1b[0m: {self}"]


class CellInterrupted(KeyboardInterrupt):
    """Raised by Ctrl-C; the message names what was stopped and what was not."""

    def _render_traceback_(self) -> list[str]:
        return [f"\x1b[0;31mKeyboardInterrupt\x1b[0m: {self}"]


class HelpShown(Exception):  # noqa: N818
    """Raised after --help was printed, to end the magic."""


class MagicParser(argparse.ArgumentParser):
    """Parses the arguments of a magic; errors are one sentence and never end the kernel."""

    def __init__(self, magic: str, **options: Any) -> None:
        # As wide in a docstring as in a cell: argparse would ask the environment.
        super().__init__(
            magic, formatter_class=functools.partial(argparse.HelpFormatter, width=HELP_COLUMNS), **options
        )

    def parse(self, line: str) -> argparse.Namespace:
        """Parse the line after the magic. Raises DistError."""
        return self.parse_args(self.split(line))

    def split(self, line: str) -> list[str]:
        """Split the line like a shell. Raises DistError."""
        try:
            return shlex.split(line)
        except ValueError as err:  # an unclosed quote
            self.error(f"'{line.strip()}': {str(err).lower()}")

    def error(self, message: str) -> NoReturn:
        """Called by argparse."""
        raise DistError(f"{message[:1].upper()}{message[1:]}. {' '.join(self.format_usage().split())}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Called by argparse after --help was printed."""
        raise HelpShown


def takes(make_parser: Callable[[], MagicParser]) -> Callable[[F], F]:
    """Add the text of `--help` to a magic's docstring, which `%magic?` shows."""

    def document(method: F) -> F:
        help_text = make_parser().format_help().rstrip()
        documented: Any = method
        documented.summary, documented.help_text = method.__doc__, help_text
        method.__doc__ = f"{method.__doc__}\n\n{help_text}\n"
        return method

    return document


def no_arguments(magic: str, line: str) -> None:
    """Raise DistError if a magic without arguments got any."""
    MagicParser(magic).parse(line)


def sentences(method: F) -> F:
    """Turn our errors into one sentence without a traceback."""

    @functools.wraps(method)
    def guarded(*arguments: Any, **keywords: Any) -> Any:
        try:
            return method(*arguments, **keywords)
        except HelpShown:
            return None
        except RankError:
            raise
        except JupyterDistError as err:
            raise DistError(str(err)) from None
        except CellInterrupted:
            raise
        except KeyboardInterrupt:
            raise CellInterrupted("stopped waiting for it; %dist_debug shows its state") from None

    return guarded  # type: ignore[return-value]
