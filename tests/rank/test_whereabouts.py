"""What a rank is doing, asked by another thread at any instruction of the main thread."""

from __future__ import annotations

import threading

from waits import PATIENCE

from jupyter_dist.rank.cells.looks import whereabouts


def asked_below(code) -> tuple[list[dict], str | None]:
    """Run the code of a cell in the main thread; its `ask()` asks from another thread."""
    answers = []

    def ask() -> None:
        thread = threading.Thread(
            target=lambda: answers.append((whereabouts.user_stack(namespace, []), whereabouts.current_call(namespace)))
        )
        thread.start()
        thread.join(PATIENCE)

    namespace = {"ask": ask}
    exec(code, namespace)
    return answers[0]


def test_the_stack_begins_with_the_cell():
    stack, call = asked_below(compile("\nask()", "<cell>", "exec"))
    assert (stack[0]["file"], stack[0]["line"]) == ("<cell>", 2)
    assert call is not None
    assert call.endswith("(cell line 2)")


def test_an_instruction_without_a_line_is_in_the_first_line_of_its_function():
    # Python gives some instructions no line; here all of them.
    stack, call = asked_below(compile("\n\nask()", "<cell>", "exec").replace(co_linetable=b""))
    assert (stack[0]["file"], stack[0]["line"]) == ("<cell>", 1)
    assert call is not None
    assert call.endswith("(cell line 1)")
