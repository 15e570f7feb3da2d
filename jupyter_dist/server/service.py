"""The groups of one server and their limits, for both kinds of server: a Jupyter server, and a private one."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.field import OptionField
from jupyter_dist.server.devices.reader import DeviceReader
from jupyter_dist.server.environments.environments import Environments, KernelSpecs
from jupyter_dist.server.groups.manager import GroupManager
from jupyter_dist.server.groups.notices import Notices
from jupyter_dist.server.groups.operations import GroupOperations
from jupyter_dist.server.groups.resolve import GroupDefaults
from jupyter_dist.server.launchers.common.presets import Presets
from jupyter_dist.server.operations import ServerOperations
from jupyter_dist.server.part import ServerParts
from jupyter_dist.server.spawner.directories import groups_directory
from jupyter_dist.server.spawner.spawner import NoSpawner, Spawner
from jupyter_dist.server.spawner.spawner import find as find_spawner
from jupyter_dist.system.memory import keep_present_objects
from jupyter_dist.transport.tasks import start_task
from jupyter_dist.version import __version__

if TYPE_CHECKING:
    from jupyter_dist.server.launchers.registry import Launchers

log = logging.getLogger(__name__)

# Groups of a server that was killed are looked for at most this often.
ADOPT_SECONDS = 1.0
LOAD_SECONDS = 5.0  # a private server has a group to start before


class Cap:
    """Limits the connections or downloads that each user may have open, so that other users can have theirs."""

    def __init__(self, what: str, limit: int, setting: str) -> None:
        self._what = what
        self._limit = limit
        self._setting = setting
        self._open: Counter[str] = Counter()

    @contextmanager
    def counted(self, handler: Any, is_capped: bool = True) -> Iterator[None]:
        """Count the request for its user while the block runs, if it is capped.

        Raises:
            JupyterDistError: `too_many`.
        """
        if not is_capped:
            yield
            return
        user = _user(handler)
        if self._open[user] >= self._limit:
            message = f"You have {self._limit} {self._what} open."
            raise JupyterDistError("too_many", message, f"Close some, or raise the limit ({self._setting}).")
        self._open[user] += 1
        try:
            yield
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]


def _launchers(config: Any) -> Launchers:
    from jupyter_dist.server.launchers.registry import Launchers  # noqa: PLC0415 - few servers need traitlets for them

    return Launchers(config)


def _user(handler: Any) -> str:
    # A user who only sends the token gets a new name with each request.
    return "" if handler.token_authenticated else str(handler.current_user.username)


@dataclass(frozen=True)
class Settings(GroupDefaults):
    """All settings of the core, a row each; settings of parts are in `of_parts`."""

    warm_environment: Annotated[
        bool,
        OptionField("Whether to keep an agent with torch imported ready for the next start; each takes about 300 MB."),
    ] = True
    forkserver_seconds: Annotated[
        float,
        OptionField(
            "How long a process that has imported torch, from which groups are forked, stays after the last server"
            " that uses it. 0: every group imports torch itself.",
            minimum=0,
        ),
    ] = 60.0
    on_server_stop: Annotated[
        Literal["keep", "end"],
        OptionField(
            "What happens to groups when the server shuts down: they keep running for the next server, or they end."
        ),
    ] = "keep"
    spawner: Annotated[
        str,
        OptionField(
            "What starts the agents of groups: 'local', or a spawner of another package (entry points"
            " 'jupyter_dist.spawners')."
        ),
    ] = "local"
    max_pages_per_user: Annotated[
        int,
        OptionField(
            "How many pages and programs of one user may follow groups at once, with one WebSocket each.", minimum=1
        ),
    ] = 100
    max_downloads_per_user: Annotated[
        int,
        OptionField(
            "How many logs one user may download at once; each takes some megabytes of server memory.", minimum=1
        ),
    ] = 8
    presets: Annotated[
        Mapping[str, Any],
        OptionField("Presets: options of a start by the name of the preset, which users choose in place of them."),
    ] = field(default_factory=dict)
    presets_file: Annotated[
        str,
        OptionField(
            "A YAML file with more presets. Empty: jupyter_dist_presets.yaml in each folder of Jupyter's config path"
            " ('jupyter --paths')."
        ),
    ] = ""
    notice_command: Annotated[
        tuple[str, ...],
        OptionField(
            "A command to run on this server when a cell that ran for notice_seconds has ended, failed, or cannot end:"
            " a program and its arguments, run without a shell, with what happened as JSON on its standard input."
            " Empty: none."
        ),
    ] = ()
    notice_seconds: Annotated[
        float,
        OptionField("How long a cell must have run before notice_command is run for it, in seconds.", minimum=0),
    ] = 60.0


def configured_spawner(settings: Settings, runtime_dir: str) -> Spawner:
    """Return the spawner of a server.

    Where there is none (no folder for groups, no file locks, no spawner of that name), pages and clients find the
    server all the same, and a start shows the reason.
    """
    try:
        spawner = find_spawner(settings.spawner)(groups_directory(runtime_dir), list(settings.preload_modules))
        spawner.share_imports(settings.forkserver_seconds, keep=settings.warm_environment)
    except JupyterDistError as err:
        log.error("jupyter_dist: no group can be started. %s", err)
        return NoSpawner(err)
    return spawner


class Service:
    """The parts of a server that handlers use: its groups, settings and limits."""

    version = __version__

    def __init__(
        self, settings: Settings, spawner: Spawner, root_dir: str, kernel_specs: KernelSpecs, config: Any = None
    ) -> None:
        """Create the parts; `config` is the configuration of traitlets, for launchers."""
        self.pages = Cap("pages", settings.max_pages_per_user, "DistApp.max_pages_per_user")
        self.downloads = Cap("downloads", settings.max_downloads_per_user, "DistApp.max_downloads_per_user")
        self.manager = GroupManager(
            spawner,
            Environments(kernel_specs),
            DeviceReader(),
            replace(settings, root_dir=root_dir),
            keep_warm=settings.warm_environment,
            launchers=lambda: _launchers(config),
            presets=Presets(settings.presets, settings.presets_file),
        )
        self.operations = ServerOperations(self.manager, self.version)
        self._notices = Notices(self.manager, settings.notice_command, settings.notice_seconds)
        self.parts = ServerParts(self.manager)
        self._ends_groups = settings.on_server_stop == "end"
        self._adoption: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._adopted_at = 0.0
        self._was_adopted = False

    def group(self, id_or_name: str) -> GroupOperations:
        """Return the operations of a group. Raises JupyterDistError `unknown_group`."""
        return GroupOperations(self.manager.get(id_or_name), self.manager)

    async def start(self) -> None:
        """Adopt the groups that an earlier server left, once the event loop runs."""
        await self.adopted()
        self.parts.start()
        self._loading = start_task(self._load(), "load launchers")
        gc.collect()
        keep_present_objects()

    async def adopted(self) -> None:
        """Wait until the groups that an earlier server left have been adopted.

        Later calls check again without waiting, because that server may have ended after this one started.
        """
        first = self._adoption is None
        if self._adoption is None or (self._adoption.done() and time.monotonic() - self._adopted_at > ADOPT_SECONDS):
            self._adopted_at = time.monotonic()
            self._adoption = asyncio.ensure_future(self.manager.adopt())
            self.parts.adopted()
        if first or not self._was_adopted:
            await asyncio.shield(self._adoption)
            self._was_adopted = True

    async def _load(self) -> None:
        """Import all that this server may need, so that an upgrade of the package changes nothing in it."""
        await asyncio.sleep(LOAD_SECONDS)
        await self.manager.load_launchers()

    async def stop(self) -> None:
        """Leave the groups to the next server, or end them, as configured."""
        if self._adoption is not None:
            await asyncio.wait([self._adoption])
        if self._loading is not None:
            self._loading.cancel()
        gc.unfreeze()
        await self.parts.stop()
        await self._notices.stop()
        await self.manager.stop(end_groups=self._ends_groups)
