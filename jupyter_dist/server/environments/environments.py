"""The Pythons that groups can run in: the server's, the Pythons of kernelspecs, and any Python by its path."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from jupyter_dist.protocol.accelerators import WITH_DEVICES, built_for
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.server.spawner.local import agent_environment
from jupyter_dist.system.limits import within

from .requirements import problem

PROBE_SECONDS = 60.0
FAILED_SECONDS = 5.0  # as long as a page that lists environments, and a start after it, take
MAX_PROBES_AT_ONCE = 2
SERVER_NAME = "server"

_PROBE_SCRIPT = (Path(__file__).parent / "probe.py").read_text()
_IS_PYTHON = re.compile(r"python[\d.]*\Z")

KernelSpecs = Callable[[], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True)
class Environment:
    """A Python and the packages that matter here."""

    name: str
    display_name: str
    python: str
    source: str  # "server", "kernelspec" or "path"
    env: dict[str, str] = field(default_factory=dict, repr=False)  # variables of the kernelspec, or of a client
    python_version: str | None = None
    torch_version: str | None = None
    ipython_version: str | None = None
    accelerators: dict[str, str] = field(default_factory=dict)  # that its torch was built for, with their versions
    problem: str | None = None

    def to_dict(self) -> models.EnvironmentModel:
        """Return the environment as the API shows it."""
        shown = ("name", "display_name", "python", "source", "python_version", "torch_version")
        fields = {name: getattr(self, name) for name in (*shown, "ipython_version", "problem")}
        fields |= {"problem_words": words_of(self.problem), "accelerators": _accelerators(self.accelerators)}
        return cast("models.EnvironmentModel", fields)


def _accelerators(built: Mapping[str, str]) -> list[models.AcceleratorModel]:
    """Return an environment's `accelerators` (docs/api.md), of the versions that its torch was built for."""
    return [
        {"name": row.name, "label": row.label, "version": built[row.name], "backends": list(row.backends)}
        for row in WITH_DEVICES
        if row.name in built
    ]


@dataclass(frozen=True)
class _Probed:
    stamp: tuple[tuple[str, int], ...]  # changes when a package is installed or removed
    found: dict[str, Any]
    at: float  # monotonic

    def is_outdated(self, python: str) -> bool:
        """Whether the Python must be probed again: after a failure also if no file has changed."""
        if "problem" in self.found:
            return time.monotonic() - self.at > FAILED_SECONDS
        return self.stamp != _stamp(python, self.found)


class Environments:
    """Lists and probes environments; an answer is kept until the environment changes, a failure for some seconds."""

    def __init__(self, kernel_specs: KernelSpecs) -> None:
        self._kernel_specs = kernel_specs
        self._probed: dict[str, _Probed] = {}
        self._at_once = asyncio.Semaphore(MAX_PROBES_AT_ONCE)
        self._of_python: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def all(self) -> list[Environment]:
        """Return all known environments, probed, the server's own first."""
        candidates = await self._candidates()
        return list(await asyncio.gather(*(self._probe(candidate) for candidate in candidates)))

    async def get(self, name: str | None = None, python: str | None = None) -> Environment:
        """Return the usable environment with that name or interpreter; without either, the default.

        Raises:
            JupyterDistError: `bad_environment`, if there is none, or it lacks a requirement.
        """
        if python is not None:
            environment = await self._probe(_from_path(python))
        elif name is not None:
            environment = await self._probe(await self._named(name))
        else:
            environment = default_environment(await self.all())
        if environment.problem is not None:
            hint = say("Environments: %1.", await self._usable_names())
            raise JupyterDistError("bad_environment", environment.problem, hint)
        return environment

    async def listed(self, name: str) -> Environment:
        """Return the environment with that name from the list; does not start other interpreters.

        Raises:
            JupyterDistError: `bad_environment`, also for a path.
        """
        if os.path.isabs(name):
            raise _unknown(name, await self._candidates())
        return await self.get(name)

    async def _named(self, name: str) -> Environment:
        candidates = await self._candidates()
        for candidate in candidates:
            if candidate.name == name:
                return candidate
        if os.path.isabs(name):
            return _from_path(name)
        raise _unknown(name, candidates)

    async def _usable_names(self) -> str:
        usable = [environment.name for environment in await self.all() if environment.problem is None]
        return ", ".join(usable) or "none is usable"

    async def _candidates(self) -> list[Environment]:
        specs = (_from_kernel_spec(name, entry["spec"]) for name, entry in (await self._kernel_specs()).items())
        found = sorted((spec for spec in specs if spec is not None), key=lambda spec: spec.name)
        # The usual kernel "python3" is the server's own Python: list it once, under its familiar name.
        own = [spec for spec in found if spec.python == sys.executable and not spec.env]
        if not own:
            return [Environment(SERVER_NAME, "Jupyter server", sys.executable, "server"), *found]
        server = next((spec for spec in own if spec.name == "python3"), own[0])
        found.remove(server)
        found.insert(0, replace(server, source="server"))
        return found

    async def _probe(self, candidate: Environment) -> Environment:
        async with self._of_python[candidate.python]:  # requests meanwhile wait for the same answer
            known = self._probed.get(candidate.python)
            if known is None or known.is_outdated(candidate.python):
                async with self._at_once:
                    found = await _run_probe(candidate)
                stamp = _stamp(candidate.python, found)
                known = self._probed[candidate.python] = _Probed(stamp, found, time.monotonic())
        fields = ("python_version", "torch_version", "ipython_version")
        versions: dict[str, Any] = {name: known.found.get(name) for name in fields}
        built = built_for(known.found.get("built_for") or {})
        return replace(candidate, **versions, accelerators=built, problem=problem(candidate.python, known.found))


def default_environment(environments: list[Environment]) -> Environment:
    """Return the first usable environment, which is the server's own if that has torch."""
    usable = (environment for environment in environments if environment.problem is None)
    return next(usable, environments[0])


def _unknown(name: str, candidates: list[Environment]) -> JupyterDistError:
    names = ", ".join(candidate.name for candidate in candidates)
    message = say("There is no environment '%1'.", name[:80])
    return JupyterDistError("bad_environment", message, say("Environments: %1.", names))


def _from_path(python: str) -> Environment:
    if not os.path.isabs(python):
        message = say("'%1' is not an absolute path.", python[:200])
        raise JupyterDistError("bad_environment", message, say("Give the full path of the interpreter."))
    return Environment(python, python, python, "path")


def _from_kernel_spec(name: str, spec: Mapping[str, Any]) -> Environment | None:
    argv = spec.get("argv") or []
    if spec.get("language") != "python" or not argv or not _IS_PYTHON.match(os.path.basename(argv[0])):
        return None
    python = str(argv[0])
    if not os.path.isabs(python):
        python = sys.executable  # as jupyter_client starts such a kernel
    return Environment(name, spec.get("display_name") or name, python, "kernelspec", env=dict(spec.get("env") or {}))


async def _run_probe(candidate: Environment) -> dict[str, Any]:
    try:
        process = await asyncio.create_subprocess_exec(
            candidate.python,
            "-c",
            _PROBE_SCRIPT,
            *(row.built_as for row in WITH_DEVICES if row.built_as),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=agent_environment([], candidate.env),
            cwd="/",
        )
    except OSError as err:
        return {"problem": say("%1 cannot be started: %2. Choose another Python.", candidate.python, err.strerror)}
    try:
        out, err_text = await within(PROBE_SECONDS, process.communicate())
    except asyncio.TimeoutError:
        late = say("%1 did not answer within %2 s. Start it in a terminal.", candidate.python, f"{PROBE_SECONDS:g}")
        return {"problem": late}
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        found = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        words = err_text.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no output"]
        said = words[0][:200]
        return {"problem": say("%1 is not a working Python 3 (%2). Choose another one.", candidate.python, said)}
    return found if isinstance(found, dict) else {"problem": say("%1 is not a Python.", candidate.python)}


def _stamp(python: str, found: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    stamps = []
    for path in (python, *found.get("paths", [])):
        with contextlib.suppress(OSError):
            stamps.append((path, os.stat(path).st_mtime_ns))
    return tuple(stamps)
