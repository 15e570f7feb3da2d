"""The rivals' own environment: benchmarks/.venv, which sees torch and Jupyter through ours."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
DIRECTORY = HERE / ".venv"
PYTHON = str(DIRECTORY / "bin" / "python")
REQUIREMENTS = ["nbdistributed==0.1.0", "ipyparallel==9.2.*"]
INSTALL_SECONDS = 300


def ensure() -> str:
    """Install the rivals if they are not there; return their Python."""
    ready = DIRECTORY / "ready"
    wanted = "\n".join([sys.executable, *REQUIREMENTS])
    if ready.exists() and ready.read_text() == wanted:
        return PYTHON
    venv.create(DIRECTORY, clear=True, symlinks=True)
    packages = sysconfig.get_path("purelib", vars={"base": str(DIRECTORY)})
    # After its own packages the environment uses ours, mainly torch, which is a large download.
    Path(packages, "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    print("installing", *REQUIREMENTS, flush=True)
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS]
    subprocess.run(command, check=True, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL)
    ready.write_text(wanted)
    return PYTHON
