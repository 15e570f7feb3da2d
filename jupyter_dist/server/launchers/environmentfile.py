"""The environment of a command as a file of shell commands: engines pass few variables, or show them to others."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What a node sets itself is right there, and the server's value is not.
OF_THE_NODE = re.compile(r"TMPDIR|TMP|TEMP|HOSTNAME|\w*VISIBLE_DEVICES|XDG_RUNTIME_DIR")
_OF_THE_SHELL = frozenset({"_", "PWD", "OLDPWD", "SHLVL"})


def environment_script(
    env: Mapping[str, str], prefixes: Iterable[str], of_the_node: re.Pattern[str] = OF_THE_NODE
) -> str:
    """Return the lines that export these variables.

    Args:
        env: the variables.
        prefixes: how the names of variables begin that the engine sets for a job; they are left out.
        of_the_node: the names of variables that keep their value where a node has one.
    """
    own = tuple(prefixes)
    lines = []
    for name, value in sorted(env.items()):
        if not _VARIABLE.fullmatch(name) or name.startswith(own) or name in _OF_THE_SHELL:
            continue
        line = f"export {name}={shlex.quote(value)}"
        lines.append(f'[ -n "${{{name}+set}}" ] || {line}' if of_the_node.fullmatch(name) else line)
    return "\n".join(lines) + "\n"
