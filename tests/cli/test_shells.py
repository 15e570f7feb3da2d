"""Words that a shell may put in place of the last one: in a real shell, with a real group."""

import os
import shutil
import subprocess
import sys

import pexpect
import pytest
from completing import PROGRAM, completions
from waits import PATIENCE

from jupyter_dist.cli.listing import COMMANDS
from jupyter_dist.protocol.accelerators import ACCELERATOR_CHOICES

PROGRAMS = {
    "jupyter-dist": PROGRAM,
    "jupyter": 'import sys; sys.argv[0] = "jupyter"; from jupyter_core.command import main; main()',
}
SHELLS = {
    "bash": """
        eval "$(jupyter-dist completion bash)"
        COMP_LINE={line}; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9
        _python_argcomplete {program}; printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    "zsh": """
        autoload -Uz compinit; compinit -u -D
        eval "$(jupyter-dist completion zsh)"
        _describe() {{ print -rl -- ${{(@P)2}} }}
        BUFFER={line}; CURSOR=$#BUFFER; words=({program})
        _python_argcomplete
    """,
    "fish": """
        jupyter-dist completion fish | source
        complete -C {line}
    """,
}


@pytest.fixture
def bin_folder(tmp_path, own_runtime, monkeypatch):
    """The commands where installed packages have them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, code in PROGRAMS.items():
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -c \'{code}\' "$@"\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def completed(shell, line):
    program = SHELLS[shell].format(line=f"'{line}'", program=line.split()[0])
    done = subprocess.run([shell, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert not done.stderr, done.stderr
    return {word.split("\t")[0].rstrip(": ") for word in done.stdout.splitlines() if word}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(shell, bin_folder, group):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    assert completed(shell, "jupyter dist sta") == {"stacks", "start", "start-again", "status"}
    assert completed(shell, "jupyter dist start --acc") == {"--accelerator"}
    assert completed(shell, "jupyter-dist status from") == {"from-shell"}


def test_the_tab_key_completes_in_bash(bin_folder):
    shell = pexpect.spawn("bash", ["--noprofile", "--norc", "-i"], encoding="utf-8", timeout=PATIENCE)
    try:
        shell.sendline('eval "$(jupyter-dist completion bash)"; echo ready-$((1 + 1))')
        shell.expect("ready-2")
        shell.send("jupyter dist sto\t")
        shell.expect("jupyter dist stop ")
        shell.send("--gro\t")
        shell.expect("--group ")
    finally:
        shell.close(force=True)


@pytest.fixture
def words(own_runtime, monkeypatch, tmp_path):
    """Return the completions of the last word, as the shells' scripts ask for them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()

    def ask(*typed):
        return completions(" ".join(("jupyter-dist", *typed)), tmp_path)

    return ask


def test_words(words, group):
    assert words("") == set(COMMANDS)
    assert words("start", "--accelerator", "") == set(ACCELERATOR_CHOICES)
    assert words("start", "name", "-n", "2", "--backend", "n") == {"nccl"}
    assert words("logs", "-f", "") == {"from-shell"}
    assert words("exec", "--group", "from") == {"from-shell"}
    assert words("run", "tr") == {"train.py"}
    assert words("run", "train.py", "--dev") == set()  # the script's own
    assert words("run", "--dev") == {"--devices"}
    assert words("nothing", "") == set()
    assert words("completion", "") == {"bash", "zsh", "fish"}


def test_where_no_server_runs_none_is_started(words, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "rt"))
    assert words("stop", "") == set()
    assert not (tmp_path / "rt").exists()
