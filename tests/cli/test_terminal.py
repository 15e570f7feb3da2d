"""Ranks run any code and print any text: on a terminal it is text and colours, in a pipe it is what they printed."""

from __future__ import annotations

import subprocess
import sys

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st
from waits import PATIENCE

from jupyter_dist.system.terminal import as_text, for_terminal

MAIN = "from jupyter_dist.cli.main import main; main()"

CLIPBOARD = "\x1b]52;c;ZXZpbA==\x07"
TITLE = "\x1b]0;pwned\x1b\\"
LINK = "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\"
CASES = [
    (CLIPBOARD, ""),
    (TITLE, ""),
    (LINK, "here"),
    ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
    ("\x1b[38;5;12mblue\x1b[38:2::1:2:3mx", "\x1b[38;5;12mblue\x1b[38:2::1:2:3mx"),
    ("\x1b[2J\x1b[H\x1b[?1049hx\x1b[6n\x1b[5i\x1bc\x1b(0\x1b7", "x"),
    ("\x9b2Jx\x9d52;c;AA\x9cy\x9f", "xy"),
    ("\x1bP1$r0m\x1b\\x", "x"),
    ("\x1b]52;c;never ends\nnext", "52;c;never ends\nnext"),
    ("a\x08b\x07\x00\x7f\x0c", "ab"),
    ("50%\r100%\tdone\n", "50%\r100%\tdone\n"),
    ("é\u2028漢\U0001f600", "é\u2028漢\U0001f600"),
    ("\x1b[3\x1b[1m", "3\x1b[1m"),
    ("rm \u202egpj.exe\u202c \u2067x\u2069", "rm gpj.exe x"),
    ("\u05d0\u200f \u200ex", "\u05d0\u200f \u200ex"),
    ("\x1b", ""),
]


@pytest.mark.parametrize(("said", "shown"), CASES)
def test_text_and_colours_are_kept_and_nothing_else(said, shown):
    assert for_terminal(said) == shown


@given(st.text(st.sampled_from("\x1b[]Pm0;1?52ch\x07\\\x9b\x9c\x9d\x08\u202e\u2066\nx") | st.characters(), max_size=60))
def test_nothing_that_acts_is_left_whatever_is_said(said):
    shown = for_terminal(said)
    assert for_terminal(shown) == shown
    rest = shown
    while "\x1b" in rest:
        _, rest = rest.split("\x1b", 1)
        colour, end, rest = rest.partition("m")
        assert end
        assert colour[0] == "["
        assert set(colour[1:]) <= set("0123456789;:")
    assert as_text(shown) == as_text(said)
    assert "\x1b" not in as_text(said)
    assert not set(shown) & {
        *"\u202a\u202e\u2066\u2069",
        *map(chr, range(9)),
        "\x0b",
        "\x0c",
        "\x7f",
        *map(chr, range(0x80, 0xA0)),
    }


def test_the_client_in_a_terminal_filters_too_and_a_pipe_gets_it_as_it_was_printed():
    code = "from jupyter_dist.client.displays.live import show_table; show_table({!r})"
    process = pexpect.spawn(sys.executable, ["-c", code.format(CLIPBOARD + "\x1b[31mred")], encoding="utf-8")
    process.expect(pexpect.EOF, timeout=PATIENCE)
    process.close()
    assert process.before == "\x1b[31mred\r\n"
    command = [sys.executable, "-c", code.format(CLIPBOARD)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"{CLIPBOARD}\n"


def in_a_terminal(*arguments):
    """All that the command writes to the terminal."""
    process = pexpect.spawn(sys.executable, ["-c", MAIN, *arguments], encoding="utf-8", dimensions=(40, 200))
    process.expect(pexpect.EOF, timeout=2 * PATIENCE)
    process.close()
    return process.before


def test_what_ranks_print_reaches_a_terminal_without_what_makes_it_act(dist, group, own_runtime):
    code = f"print({CLIPBOARD + TITLE + LINK!r} + '\\x1b[31mred\\x1b[0m')"
    code += f"; raise ValueError({CLIPBOARD!r} + 'failed')"
    shown = in_a_terminal("exec", "-g", "from-shell", "-r", "0", code) + in_a_terminal("logs", "from-shell")
    assert "\x1b]" not in shown
    assert "\x07" not in shown
    assert "here\x1b[31mred\x1b[0m" in shown
    assert "failed" in shown
    assert CLIPBOARD in in_a_terminal("logs", "--raw", "from-shell")
    assert CLIPBOARD + TITLE + LINK + "\x1b[31mred" in dist("logs", "from-shell").stdout
    error = in_a_terminal("exec", "-g", "from-shell", "-r", f"0{CLIPBOARD}{TITLE}", "1")
    assert "not a rank expression" in error
    assert "\x1b]" not in error
