"""The line at which a thread spends its time, found by another thread: CPython lets that look at few instructions only."""

from __future__ import annotations

import difflib
import pathlib
import sys
import textwrap
import threading
import time
import types
from collections import Counter
from json import decoder

import pytest
from torch import _tensor_str

from jupyter_dist.rank.collectives.diagnosis.lines import spends, work_before

# What takes long is at a line marked so; `called` is a Python function.
CASES = {
    "a loop": """
n = 0
while running:
    if running:
        for k in range(400000):  #
            if k % 7 == 3:  #
                n += k  #
    called()
""",
    "a function": """
def count(words):
    for word in words:  #
        if word in (1, 2):  #
            word += 1  #
numbers = list(range(50000))
while running:
    count(numbers)
""",
    "a test of a list": """
numbers = list(range(100000))
while running:
    found = -1 in numbers  #
    n = 3
    called()
""",
    "a longer list": """
numbers = list(range(100000))
while running:
    more = numbers + [n]  #
    if n == 3: continue
    called()
""",
    "numbers": """
large = 7 ** 20000
while running:
    n = large * large * large  #
    called()
""",
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_what_takes_long_is_found_at_its_line(code):
    lines = code.splitlines()
    names = {"running": True, "called": lambda: None, "n": 0}
    found: Counter[str] = Counter()

    def look():
        for _ in range(60):
            time.sleep(0.003)
            frame, line = spends(sys._current_frames()[threading.main_thread().ident])
            found[lines[line - 1] if frame.f_code.co_filename == "cell" else "of this test"] += 1
        names["running"] = False

    thread = threading.Thread(target=look)
    thread.start()
    exec(compile(code, "cell", "exec"), names)
    thread.join()
    assert sum(number for line, number in found.items() if "#" in line) > 0.7 * found.total(), found


@pytest.mark.parametrize("module", [_tensor_str, decoder, difflib, textwrap], ids=lambda module: module.__name__)
def test_a_thread_may_be_at_any_instruction(module):
    """The end of a function, too: it has gone on since the other thread looked."""
    text = pathlib.Path(module.__file__).read_text()
    todo, number = [compile(text, module.__file__, "exec")], 0
    while todo:
        code = todo.pop()
        todo += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        known = {line for _, _, line in code.co_lines()}
        for at in (-1, *range(0, len(code.co_code), 2)):
            assert work_before(code, at) in {None, *known}
            number += 1
    assert number > 500
