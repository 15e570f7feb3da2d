"""Runs the states of states.py in this process: `save` and `restore` one after the other, or `control`, which never saved."""

from __future__ import annotations

import gc
import json
import re
import sys
from pathlib import Path
from typing import Any

import randomtypes
import states
from shells import Shell

from jupyter_dist.rank.state.process import beside, environment


def own_module(folder: Path, number: int, setup: str) -> str:
    """Write the user's own module of a state; return the code of the cell."""
    text, _, cell = setup.partition("---\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"own_{number}.py").write_text(text)
    return f"import sys; sys.path.insert(0, {str(folder)!r})\n{cell}"


def code_of(folder: Path, number: int, name: str) -> tuple[str, str]:
    setup, asked = states.STATES[name]
    setup = own_module(folder / "own", number, setup) if name.startswith("+") else setup
    return setup.replace("own_N", f"own_{number}"), asked.replace("own_N", f"own_{number}")


def answer(shell: Shell, asked: str) -> str:
    """Return what is asked, or the error."""
    results = [answer_to(shell, one) for one in asked.split("; ")]
    return " ".join(results)


def answer_to(shell: Shell, asked: str) -> str:
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", repr(eval(f"({asked},)", shell.names)))
    except Exception as err:
        return f"{type(err).__name__}: {err}"


def renew(shell: Shell, folder: Path) -> None:
    """Have no names, as a new group."""
    folder.mkdir(parents=True, exist_ok=True)
    gc.freeze()  # IPython collects garbage here, which takes long with the libraries of all states
    shell.shell.reset(new_session=True)
    shell.folder = folder
    beside.remember(shell.shell)
    environment.remember()


def run(mode: str, folder: Path) -> dict[str, Any]:
    shell = Shell(folder)
    found: dict[str, Any] = {}
    for number, name in enumerate(states.STATES):
        renew(shell, folder / str(number))
        setup, asked = code_of(folder, number, name)
        one: dict[str, Any] = {"said": [], "answer": ""}
        if mode != "restore":
            done = shell.shell.run_cell(setup, store_history=True)
            error = done.error_before_exec or done.error_in_exec
            one["failed"] = None if error is None else repr(error)
        if mode == "save":
            saved = shell.save()
            one["said"] = [f"{each['name']}: {each['reason']}" for each in (*saved.skipped, *saved.notes)]
        if mode == "restore":
            restored = shell.restore()
            one["said"] = [*restored.notes, *(f"{each['name']}: {each['reason']}" for each in restored.failed)]
        one["answer"] = answer(shell, asked)  # also where it is not compared: what comes next is as elsewhere
        found[name] = one
        shell.shell.run_cell(states.LAST.get(name, ""))
    return found


if __name__ == "__main__":
    if seed := sys.argv[4]:
        found = randomtypes.cases(int(seed), 150)
        states.STATES = {name: (f"{setup}\n{cell}", look) for name, (setup, cell, look) in found.items()}
    result = run(sys.argv[1], Path(sys.argv[2]))
    Path(sys.argv[3]).write_text(json.dumps(result))
