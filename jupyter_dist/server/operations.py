"""The operations of a server: a method for each operation of protocol/operations without a group, by its name."""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_dist.protocol.models import machine, models
from jupyter_dist.protocol.wire.specs import PROTOCOL_VERSION

from .environments.environments import default_environment
from .groups.manager import GroupManager
from .groups.resolve import WantedGroup
from .startrows import start_option_rows

API_VERSION = 1


class ServerOperations:
    """The operations of one server."""

    def __init__(self, manager: GroupManager, version: str) -> None:
        self._manager = manager
        self._version = version

    async def versions(self) -> models.Versions:
        """Return the versions."""
        return {"jupyter_dist": self._version, "protocol": PROTOCOL_VERSION, "api": API_VERSION}

    async def environments(self) -> models.EnvironmentsModel:
        """Return all environments, probed."""
        environments = await self._manager.environments.all()
        shown = [environment.to_dict() for environment in environments]
        if (problem := self._manager.refusal) is not None:
            shown = [{**environment, "problem": problem} for environment in shown]
        return {"environments": shown, "default": default_environment(environments).name}

    async def warm(self, name: str) -> models.Nothing:
        """Make sure that an agent is waiting in an environment."""
        await self._manager.warm(name)
        return {}

    async def devices(self) -> machine.Devices:
        """Return the devices and the host, and how they are used."""
        return await self._manager.devices.read(self._manager.rank_of_pid)

    async def launchers(self) -> machine.LaunchersModel:
        """Return all launchers, with whether each can be used here."""
        return {"launchers": await self._manager.launchers.shown()}

    async def presets(self) -> machine.PresetsModel:
        """Return all presets."""
        return {"presets": await asyncio.to_thread(self._manager.presets.listed)}

    async def start_options(self) -> machine.StartOptionRows:
        """Return the options of a start that a form shows by their rows alone."""
        defaults = self._manager.defaults
        return {"options": start_option_rows({**vars(defaults), **defaults.of_parts})}

    async def prepared(self) -> machine.Prepared:
        """Return forkservers and waiting agents."""
        return {"processes": await self._manager.prepared()}

    async def groups(self) -> models.Groups:
        """Return all groups, oldest first."""
        return {"groups": [group.model() for group in self._manager.all()]}

    async def start(self, key: str | None = None, **wanted: Any) -> models.GroupModel:
        """Start a group with the fields of StartRequest."""
        return (await self._manager.start(WantedGroup.of(wanted), key)).model()
