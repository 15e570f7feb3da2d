"""Words that a shell may put in place of the last one: in a real shell, with a real group."""

import os
import shutil
import subprocess
import sys

import pytest
from waits import PATIENCE

from jupyter_dist.protocol.accelerators import ACCELERATOR_CHOICES

MAIN = "from jupyter_dist.cli.main import main; main()"
SHELLS = {
    "bash": """
        eval "$(jupyter-dist completion bash)"
        complete_words() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _jupyter_dist; printf '%s\\n' "${{COMPREPLY[@]}}"; }}
        complete_words {words}
    """,
    "zsh": """
        autoload -Uz compinit; compinit -u -D
        eval "$(jupyter-dist completion zsh)"
        compadd() {{ shift; printf '%s\\n' "$@"; }}; _files() {{ }}
        words=({words}); CURRENT=$#words; _jupyter_dist
    """,
    "fish": """
        jupyter-dist completion fish | source
        complete -C (string join ' ' -- {words})
    """,
}


@pytest.fixture
def bin_folder(tmp_path, own_runtime, monkeypatch):
    """The command where an installed package has it."""
    command = tmp_path / "bin" / "jupyter-dist"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{MAIN}" "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")


def completed(shell, *words):
    quoted = " ".join(f"'{word}'" for word in words)
    program = SHELLS[shell].format(words=quoted)
    done = subprocess.run([shell, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert not done.stderr, done.stderr
    return {line.split("\t")[0] for line in done.stdout.splitlines() if line}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(shell, bin_folder, group):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    assert completed(shell, "jupyter-dist", "sta") == {"stacks", "start", "status"}
    assert completed(shell, "jupyter", "dist", "start", "--acc") == {"--accelerator"}
    assert completed(shell, "jupyter-dist", "status", "from") == {"from-shell"}
    assert completed(shell, "jupyter-dist", "exec", "--group", "from") == {"from-shell"}


def test_words(dist, group):
    def words(*typed):
        return set(dist("completion", "words", "--", *typed).stdout.split())

    assert {"attach", "doctor", "run"} <= words("")
    assert words("start", "--accelerator", "") == set(ACCELERATOR_CHOICES)
    assert words("start", "name", "-n", "2", "--backend", "n") == {"nccl"}
    assert words("logs", "-f", "") == {"from-shell"}
    assert words("logs", "from-shell", "") == set()
    assert words("run", "train.py", "--dev") == set()  # the script's own
    assert words("exec", "-r", "") == set()
    assert words("nothing", "") == set()
    assert words("completion", "") == {"bash", "zsh", "fish", "words"}


def test_where_no_server_runs_none_is_started(dist, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "rt"))
    assert dist("completion", "words", "--", "stop", "").stdout == "\n"
    assert not (tmp_path / "rt").exists()
