"""The launchers of this server by name: `processes`, and the entry points of this package and of others."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from traitlets.config import Config

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models import machine
from jupyter_dist.protocol.models.sentences import join, say, text_of, words_of
from jupyter_dist.system import points
from jupyter_dist.system.limits import within

from .allocation import Allocation, launcher_failed, saved
from .common.optionset import ExternalLauncher, LauncherOptions
from .launcher import Availability, Launcher
from .nodefiles import NodeFiles

log = logging.getLogger(__name__)

ENTRY_POINTS = "jupyter_dist.launchers"
# This launcher needs no engine.
OWN = {"processes": "jupyter_dist.server.launchers.processes:ProcessLauncher"}
PROBE_SECONDS = 10.0
_HERE = say("Ranks run where the server does.")
_LOCAL: machine.LauncherStatus = {
    "name": "local",
    "label": say("This machine"),
    "usable": True,
    "text": _HERE,
    "text_words": words_of(_HERE),
    "options": [],
}
_BY_USERS = say("You start a node agent on each host with a command that is shown: by ssh, mpirun or kubectl.")


class Launchers:
    """The launchers by name. Each is created once."""

    def __init__(self, config: Config | None = None) -> None:
        if warning := _missing():
            log.warning("jupyter_dist: %s", warning)
        self._by_name: dict[str, Launcher] = {
            name: kind(config=config or Config()) for name, kind in points.load(ENTRY_POINTS, Launcher, OWN).items()
        }
        self._external = ExternalLauncher(config=config or Config())

    def get(self, name: str) -> Launcher:
        """Return a launcher.

        Raises:
            JupyterDistError: `bad_request`, with the names of all launchers.
        """
        if name not in self._by_name:
            hint = join(say("Launchers: %1.", ", ".join(sorted(self._by_name))), _missing())
            raise bad_request(say("There is no launcher '%1'.", name[:60]), hint)
        return self._by_name[name]

    def options_of(self, name: str) -> LauncherOptions:
        """Return the options of a launcher, also of `external`, which starts nothing. Raises as `get`."""
        return self._external if name == self._external.name else self.get(name)

    async def probe(self) -> dict[str, Availability]:
        """Return the availability of each launcher."""
        found = await asyncio.gather(*map(_probed, self._by_name.values()))
        return dict(zip(self._by_name, found, strict=True))

    async def shown(self) -> list[machine.LauncherStatus]:
        """Return each launcher with its options and its availability; first the launchers that need no engine."""
        external = _model(self._external, Availability(is_usable=True, text=_BY_USERS))
        others = (_model(self._by_name[name], found) for name, found in (await self.probe()).items())
        return [_LOCAL, external, *others]

    def adopt(self, directory: Path) -> Allocation | None:
        """Return the allocation of a group that an earlier server started; None if it has none.

        Raises:
            JupyterDistError: `launcher_failed`, if this server does not have its launcher, or cannot read its state.
        """
        content = saved(directory)
        if content is None:
            return None
        launcher = self._by_name.get(content["launcher"])
        if launcher is None:
            message = say(
                "The group was started with the launcher '%1', which is not installed.", content["launcher"][:60]
            )
            hint = say("Install it again, or end the job with the tools of its engine.")
            raise launcher_failed(message, join(hint, _missing()))
        try:
            files = NodeFiles(Path(content["folder"]))
            allocation = launcher.adopt(directory, files, content["num_nodes"], content["state"])
        except (KeyError, TypeError, ValueError) as err:
            raise launcher_failed(
                say("What the launcher '%1' saved is damaged: %2.", launcher.name, repr(err))
            ) from err
        allocation.output_folder = content.get("output_folder")
        allocation.max_wait_seconds = content.get("max_wait_seconds")
        return allocation

    async def detach(self) -> None:
        """Leave all jobs to the next server."""
        for launcher in self._by_name.values():
            await launcher.detach()


def _model(launcher: LauncherOptions, found: Availability) -> machine.LauncherStatus:
    options = [
        option.model(
            found.choices.get(option.name, ()),
            launcher.defaults.get(option.name),
            is_fixed=option.name in launcher.fixed,
        )
        for option in launcher.all_options()
    ]
    return {
        "name": launcher.name,
        "label": launcher.label,
        "usable": found.is_usable,
        "text": found.text,
        "text_words": words_of(found.text),
        "options": options,
    }


def _missing() -> str:
    return points.missing(ENTRY_POINTS, "The launchers of batch queues, Ray and Kubernetes")


async def _probed(launcher: Launcher) -> Availability:
    try:
        return await within(PROBE_SECONDS, launcher.probe())
    except asyncio.TimeoutError:
        return Availability(is_usable=False, text=say("It did not answer within %1 s.", f"{PROBE_SECONDS:g}"))
    except (JupyterDistError, OSError) as err:
        return Availability(is_usable=False, text=text_of(err))
