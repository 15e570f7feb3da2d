"""How a magic fails: the cell fails with a sentence, and the kernel stays usable."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from jupyter_dist.client import JupyterDistError, RankError

F = TypeVar("F", bound=Callable[..., Any])


class DistError(Exception):
    """One sentence, and the way on."""

    def _render_traceback_(self) -> list[str]:
        return [f"\x1b[0;31mDistError\x1b[0m: {self}"]


class CellInterrupted(KeyboardInterrupt):
    """The ranks have stopped, and keep their variables."""

    def _render_traceback_(self) -> list[str]:
        return [f"\x1b[0;31mKeyboardInterrupt\x1b[0m: {self}"]


class MagicParser(argparse.ArgumentParser):
    """Arguments of a magic: what is wrong is a sentence, and never ends the kernel."""

    def error(self, message: str) -> NoReturn:
        """Called by argparse."""
        raise DistError(f"{message[:1].upper()}{message[1:]}. {self.format_usage().strip()}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Called after --help was printed."""
        raise DistError("Nothing was done.")


def sentences(method: F) -> F:
    """Turn our failures into one sentence without a traceback."""

    @functools.wraps(method)
    def guarded(*arguments: Any, **keywords: Any) -> Any:
        try:
            return method(*arguments, **keywords)
        except RankError:
            raise
        except JupyterDistError as err:
            raise DistError(str(err)) from None
        except KeyboardInterrupt:
            raise CellInterrupted("the ranks were interrupted; they and their variables are still there") from None

    return guarded  # type: ignore[return-value]
