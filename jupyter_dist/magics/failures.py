"""How a magic fails: the cell fails with a sentence, and the kernel stays usable."""

from __future__ import annotations

import argparse
import functools
import shlex
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from jupyter_dist.client import JupyterDistError, RankError

F = TypeVar("F", bound=Callable[..., Any])


class DistError(Exception):
    """One sentence, and the way on."""

    def _render_traceback_(self) -> list[str]:
        return [f"\x1b[0;31mDistError\x1b[0m: {self}"]


class CellInterrupted(KeyboardInterrupt):
    """Ctrl-C: what it stopped, and what it did not."""

    def _render_traceback_(self) -> list[str]:
        return [f"\x1b[0;31mKeyboardInterrupt\x1b[0m: {self}"]


class HelpShown(Exception):  # noqa: N818
    """--help was asked for, and printed: there is nothing else to do."""


class MagicParser(argparse.ArgumentParser):
    """Arguments of a magic: what is wrong is a sentence, and never ends the kernel."""

    def parse(self, line: str) -> argparse.Namespace:
        """The options in what stands behind the magic. Raises DistError."""
        return self.parse_args(self.split(line))

    def split(self, line: str) -> list[str]:
        """The words as a shell takes them. Raises DistError."""
        try:
            return shlex.split(line)
        except ValueError as err:  # a quote that does not end
            self.error(f"'{line.strip()}': {str(err).lower()}")

    def error(self, message: str) -> NoReturn:
        """Called by argparse."""
        raise DistError(f"{message[:1].upper()}{message[1:]}. {' '.join(self.format_usage().split())}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Called by argparse after --help was printed."""
        raise HelpShown


def no_arguments(magic: str, line: str) -> None:
    """Raises DistError for what stands behind a magic that takes nothing."""
    MagicParser(magic).parse(line)


def sentences(method: F) -> F:
    """Turn our failures into one sentence without a traceback."""

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
            raise CellInterrupted("nobody waits for it any more; %dist_debug shows what became of it") from None

    return guarded  # type: ignore[return-value]
