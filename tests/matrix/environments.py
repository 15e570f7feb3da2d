"""Environments of the matrix: one for each Python and torch, and over it a thin one for each other IPython."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".matrix"
# What the tests need of the extra "test"; the rest is for linters and for JupyterLab.
TEST_PACKAGES = {
    "hypothesis", "ipykernel", "ipywidgets", "jupyter_client", "matplotlib", "nbclient", "nbformat",
    "openapi-spec-validator", "pandas", "pexpect", "pytest", "pytest-jupyter", "pytest-timeout", "scikit-learn", "tqdm",
}  # fmt: skip


class NotHere(Exception):
    """A combination cannot be run on this machine; the message says why."""


@dataclass(frozen=True)
class Combination:
    """What runs together. An IPython of None is the newest that pip gives that Python."""

    python: str  # "3.11"
    torch: str | None  # None: only what runs without
    ipython: str | None = None  # a requirement: "ipython<9"

    def __str__(self) -> str:
        torch = "no torch" if self.torch is None else f"torch {self.torch}"
        return f"Python {self.python}, {torch}, {self.ipython or 'newest ipython'}"


def own() -> Combination:
    """The environment that this runs in."""
    from importlib import metadata

    version = metadata.version("torch").partition("+")[0]
    return Combination(f"{sys.version_info[0]}.{sys.version_info[1]}", version)


def interpreter(version: str) -> str:
    """A Python of this minor version: ours, on PATH, or one of pyenv's."""
    candidates = [sys.executable] if version == own().python else []
    candidates += [path for path in (shutil.which(f"python{version}"),) if path]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates += [str(path / "bin" / "python") for path in sorted(pyenv.glob(f"{version}.*"), reverse=True)]
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in candidates:
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return path
    raise NotHere(f"there is no Python {version} on this machine")


def python_of(combination: Combination) -> str:
    """The interpreter of its environment, which is made if it was not."""
    base = _base(combination)
    if combination.ipython is None:
        return base
    name = re.sub(r"[^\w.]+", "", combination.ipython.replace("<", "before").replace("==", "-"))
    folder = FOLDER / f"py{combination.python}-torch{combination.torch}-{name}"
    if not (folder / "ready").exists():
        _make(folder, base, [combination.ipython])
        site = _site_packages(str(folder / "bin" / "python"))
        (site / "zz_base.pth").write_text(f"{_site_packages(base)}\n")  # after this environment's own
        (folder / "ready").touch()
    return str(folder / "bin" / "python")


def remove(combination: Combination) -> None:
    """Free the gigabytes of its torch, and what lies over it."""
    for folder in FOLDER.glob(f"py{combination.python}-torch{combination.torch}*"):
        shutil.rmtree(folder)


def _base(combination: Combination) -> str:
    if (combination.python, combination.torch) == (own().python, own().torch):
        return sys.executable
    folder = FOLDER / f"py{combination.python}-torch{combination.torch}"
    if not (folder / "ready").exists():
        packages = ["pytest>=9", "pytest-timeout", "hypothesis", "pytest-jupyter[server]"]
        if combination.torch is not None:
            packages = [f"torch=={combination.torch}", "numpy", *_declared()]
        _make(folder, interpreter(combination.python), packages)
        (folder / "ready").touch()
    return str(folder / "bin" / "python")


def _make(folder: Path, python: str, packages: list[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    # Installing pip takes longer than what it installs: ours does it.
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    options = ["--disable-pip-version-check", "--no-cache-dir", "--no-compile"]
    steps = [packages]
    if index := os.environ.get("TORCH_INDEX"):  # for torch alone
        steps.insert(0, ["--index-url", index, *(name for name in packages if name.startswith("torch=="))])
    for step in steps:
        done = subprocess.run([*pip, *options, *step], capture_output=True, text=True, check=False)
        if done.returncode:
            break
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["no reason given"]
        shutil.rmtree(folder)
        raise NotHere(f"pip: {errors[-1].removeprefix('ERROR: ')}")


def _declared() -> list[str]:
    """Our dependencies, and those of the tests."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    test = project["optional-dependencies"]["test"]
    return project["dependencies"] + [line for line in test if re.match(r"[\w-]+", line)[0] in TEST_PACKAGES]


def _site_packages(python: str) -> Path:
    if python == sys.executable:
        return Path(sysconfig.get_path("purelib"))
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
