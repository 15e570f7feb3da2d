"""A prompt for cells: reads lines until they form a complete cell."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager
from jupyter_core.paths import jupyter_data_dir

from jupyter_dist.system.files.private import make_folder
from jupyter_dist.system.terminal import for_terminal

CONTINUATION = "... "
INDENT = " " * 4

# From a cell and the cursor position to the completions, and the position at which they start.
Ask = Callable[[str, int], tuple[list[str], int]]
# The cells that the up arrow shows first, oldest first.
Recall = Callable[[], list[str]]


def cells(prompt: str, ask: Ask, recall: Recall) -> Iterator[str]:
    """Yield cells until Ctrl-D; Ctrl-C drops an unfinished cell."""
    read = _reader(prompt, ask, recall)
    while True:
        try:
            cell = read()
        except EOFError:
            return
        except KeyboardInterrupt:
            print()
            continue
        if cell.strip():
            yield cell


def _reader(prompt: str, ask: Ask, recall: Recall) -> Any:
    if sys.stdin.isatty():
        try:
            return _session(prompt, ask, recall)
        except ImportError:  # a dependency of IPython, but optional
            pass
    return lambda: _read_lines(prompt if sys.stdin.isatty() else "")


def missing_indent(text: str) -> int | None:
    """Return the indentation of the next line; None if the cell can run as it is, even if that raises SyntaxError."""
    lines = text.splitlines() or [""]
    if len(lines) > 1 and not lines[-1].strip():
        return None  # an empty line ends any cell
    state, indent = TransformerManager().check_complete(text)
    return (indent or 0) if state == "incomplete" else None


def _read_lines(prompt: str) -> str:
    lines = [input(prompt)]
    while missing_indent("\n".join(lines)) is not None:
        try:
            lines.append(input(CONTINUATION if prompt else ""))
        except EOFError:
            break
    return "\n".join(lines)


def _session(prompt: str, ask: Ask, recall: Recall) -> Any:
    from prompt_toolkit import PromptSession  # noqa: PLC0415  (slow, and optional)
    from prompt_toolkit.completion import Completer, Completion  # noqa: PLC0415
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415
    from prompt_toolkit.output import create_output  # noqa: PLC0415

    class RankCompleter(Completer):
        def get_completions(self, document: Any, complete_event: Any) -> Iterator[Any]:
            matches, start = ask(document.text, document.cursor_position)
            return (Completion(match, start - document.cursor_position) for match in matches)

    class GroupHistory(FileHistory):
        """The group's cells, and before them the cells typed at this prompt on any group. Newest first."""

        def load_history_strings(self) -> Iterator[str]:
            cells = recall()
            yield from reversed(cells)
            yield from (line for line in super().load_history_strings() if line not in cells)

    session: Any = PromptSession(
        for_terminal(prompt),
        output=create_output(sys.__stdout__),  # may move the cursor; output of ranks may not
        multiline=True,
        key_bindings=_keys(),
        history=GroupHistory(_history_path()),
        completer=RankCompleter(),
        complete_while_typing=False,
        complete_in_thread=True,
        prompt_continuation=CONTINUATION,
    )
    return session.prompt


def _keys() -> Any:
    from prompt_toolkit.application import get_app  # noqa: PLC0415
    from prompt_toolkit.filters import Condition  # noqa: PLC0415
    from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: Any) -> None:
        buffer = event.current_buffer
        at_end = not buffer.document.text_after_cursor.strip()
        indent = missing_indent(buffer.text) if at_end else 0
        if indent is None:
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n" + " " * indent)

    @keys.add("tab", filter=Condition(lambda: not get_app().current_buffer.document.current_line_before_cursor.strip()))
    def _(event: Any) -> None:
        event.current_buffer.insert_text(INDENT)

    return keys


def _history_path() -> str:
    path = Path(jupyter_data_dir(), "jupyter_dist", "history")
    make_folder(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))  # cells may hold secrets
    return str(path)
