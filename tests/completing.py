"""Completions as a shell asks for them by argcomplete: the line in environment variables, the answer in a file."""

import os
import subprocess
import sys
from pathlib import Path

from waits import PATIENCE

PROGRAM = 'import sys; sys.argv[0] = "jupyter-dist"; from jupyter_dist.cli.main import main; main()'


def completions(line: str, place: Path) -> set[str]:
    """Return the completions of the last word of a line that begins with `jupyter-dist`; nothing else is printed."""
    answer = place / "answer"
    env = {
        **{**os.environ, "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)},
        **{"_ARGCOMPLETE_SUPPRESS_SPACE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))},
    }
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    words = set(answer.read_text().split())
    answer.unlink()
    return words
