"""The server extension: its settings and the setup of its parts."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from jupyter_core.utils import ensure_async
from jupyter_server.extension.application import ExtensionApp
from traitlets import Bool, Enum, Float, Int, List, Unicode

from jupyter_dist import __version__
from jupyter_dist.protocol.requests import MAX_CPU_RANKS
from jupyter_dist.server.devices.reader import DeviceReader
from jupyter_dist.server.groups.manager import GroupManager
from jupyter_dist.server.groups.resolve import GroupDefaults
from jupyter_dist.server.http.caps import Cap
from jupyter_dist.server.http.routes import tornado_routes
from jupyter_dist.server.launcher.directories import groups_directory
from jupyter_dist.server.launcher.environments import Environments
from jupyter_dist.server.launcher.launcher import find as find_launcher

# Groups of a server that was killed are looked for at most this often.
ADOPT_SECONDS = 1.0


class DistApp(ExtensionApp):
    """Groups of torch.distributed ranks for notebooks."""

    name = "jupyter_dist"
    version = __version__
    load_other_extensions = True
    extension_url = "/"

    default_world_size = Int(2, min=1, max=MAX_CPU_RANKS, help="Default number of ranks of a CPU group.").tag(
        config=True
    )
    start_timeout_seconds = Float(
        120.0, min=1.0, help="Maximum time from the start of a group until every rank is ready, in seconds."
    ).tag(config=True)
    lease_seconds = Float(
        3600.0, min=10.0, help="How long a group keeps running without a Jupyter server, in seconds."
    ).tag(config=True)
    warm_environment = Bool(
        True,
        help="Whether to keep an agent with torch imported ready for the next start; each takes about 300 MB.",
    ).tag(config=True)
    on_server_stop = Enum(
        ["keep", "end"],
        default_value="keep",
        help="What happens to groups when the server shuts down: they keep running for the next server, or they end.",
    ).tag(config=True)
    journal_bytes = Int(
        0,
        min=0,
        help="How much output of each group to keep on disk, in bytes; the oldest goes first. 0: a tenth of the file"
        " system, at most 16 GiB, or 1 GiB where it is in memory (a tmpfs).",
    ).tag(config=True)
    user_journal_bytes = Int(
        0,
        min=0,
        help="The limit for all groups of this user together. 0: a quarter of the file system, at most 64 GiB, or 2 GiB"
        " in memory.",
    ).tag(config=True)
    launcher = Unicode(
        "local",
        help="What starts the agents of groups: 'local', or a launcher of another package (entry points"
        " 'jupyter_dist.launchers').",
    ).tag(config=True)
    preload_modules = List(
        Unicode(),
        help="Modules to import once and share between all ranks, besides torch and IPython.",
    ).tag(config=True)

    max_pages_per_user = Int(
        100, min=1, help="How many pages and programs of one user may follow groups at once, with one WebSocket each."
    ).tag(config=True)
    max_downloads_per_user = Int(
        8, min=1, help="How many logs one user may download at once; each takes some megabytes of server memory."
    ).tag(config=True)

    manager: GroupManager
    pages: Cap
    downloads: Cap
    _adoption: asyncio.Task[None] | None = None
    _adopted_at = 0.0
    _was_adopted = False

    static_paths: ClassVar[list[str]] = []
    template_paths: ClassVar[list[str]] = []

    def initialize_settings(self) -> None:
        """Create the parts."""
        self.pages = Cap("pages", self.max_pages_per_user, "DistApp.max_pages_per_user")
        self.downloads = Cap("downloads", self.max_downloads_per_user, "DistApp.max_downloads_per_user")
        launcher = find_launcher(self.launcher)(
            groups_directory(self.serverapp.runtime_dir), list(self.preload_modules)
        )
        self.manager = GroupManager(
            launcher,
            Environments(self._kernel_specs),
            DeviceReader(),
            GroupDefaults(
                root_dir=self.serverapp.root_dir,
                world_size=self.default_world_size,
                start_timeout_seconds=self.start_timeout_seconds,
                lease_seconds=self.lease_seconds,
                preload=list(self.preload_modules),
                journal_bytes=self.journal_bytes,
                user_journal_bytes=self.user_journal_bytes,
            ),
            keep_warm=self.warm_environment,
        )

    def initialize_handlers(self) -> None:
        """Register the routes."""
        self.handlers.extend(tornado_routes())

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        """Called by jupyter_server once its event loop runs."""
        await self.adopted()
        # The objects of a server live as long as it does. Scanning them for garbage blocks the event loop for 60 ms,
        # repeatedly while ranks write much output.
        gc.collect()
        gc.freeze()

    async def adopted(self) -> None:
        """Wait until the groups that an earlier server left have been adopted.

        Later calls check again without waiting, because that server may have ended after this one started.
        """
        first = self._adoption is None
        if self._adoption is None or (self._adoption.done() and time.monotonic() - self._adopted_at > ADOPT_SECONDS):
            self._adopted_at = time.monotonic()
            self._adoption = asyncio.ensure_future(self.manager.adopt())
        if first or not self._was_adopted:
            await asyncio.shield(self._adoption)
            self._was_adopted = True

    async def stop_extension(self) -> None:
        """Called by jupyter_server when it shuts down."""
        if self._adoption is not None:
            await asyncio.wait([self._adoption])
        gc.unfreeze()
        await self.manager.stop(end_groups=self.on_server_stop == "end")

    def current_activity(self) -> Any:
        """Return activity while groups are running, so that an idle server is not culled."""
        return [group.name for group in self.manager.all() if not group.status.is_gone] or None

    async def _kernel_specs(self) -> Mapping[str, Any]:
        specs: Mapping[str, Any] = await ensure_async(self.serverapp.kernel_spec_manager.get_all_specs())
        return specs


main = launch_new_instance = DistApp.launch_instance
