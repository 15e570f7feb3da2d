"""The extension of a Jupyter server: its settings, and the setup of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

from jupyter_core.utils import ensure_async
from jupyter_server.extension.application import ExtensionApp
from traitlets import Bool, Dict, Enum, Int, List, Unicode

from jupyter_dist.protocol.wire.requests import MAX_CPU_RANKS
from jupyter_dist.server.groups.manager import GroupManager
from jupyter_dist.server.http.jupyter import JUPYTER
from jupyter_dist.server.http.routes import tornado_routes
from jupyter_dist.server.service import Service, Settings, configured_spawner
from jupyter_dist.server.traits import Seconds


class DistApp(ExtensionApp):
    """Groups of torch.distributed ranks for notebooks."""

    name = "jupyter_dist"
    version = Service.version
    load_other_extensions = True
    extension_url = "/"

    default_world_size = Int(
        Settings.default_world_size, min=1, max=MAX_CPU_RANKS, help="Default number of ranks of a CPU group."
    ).tag(config=True)
    max_ranks = Int(
        Settings.max_ranks,
        min=0,
        help="The most ranks that a group may have, whatever its launcher; `limits` of a launcher are for its groups."
        " 0: no limit.",
    ).tag(config=True)
    start_timeout_seconds = Seconds(
        Settings.start_timeout_seconds,
        min=1.0,
        help="Maximum time from the start of a group until every rank is ready, in seconds.",
    ).tag(config=True)
    lease_seconds = Seconds(
        Settings.lease_seconds, min=10.0, help="How long a group keeps running without a Jupyter server, in seconds."
    ).tag(config=True)
    node_lease_seconds = Seconds(
        Settings.node_lease_seconds,
        min=4.0,
        help="How long a node agent keeps its ranks while the link to the group's head is lost, in seconds.",
    ).tag(config=True)
    park_after_seconds = Seconds(
        Settings.park_after_seconds,
        min=0.0,
        help="How long a group on devices may be without use before it is parked, in seconds: it gives its devices"
        " back, keeps all variables, and the next cell resumes it. 0: groups are parked on request alone.",
    ).tag(config=True)
    warm_environment = Bool(
        Settings.warm_environment,
        help="Whether to keep an agent with torch imported ready for the next start; each takes about 300 MB.",
    ).tag(config=True)
    forkserver_seconds = Seconds(
        Settings.forkserver_seconds,
        min=0.0,
        help="How long a process that has imported torch, from which groups are forked, stays after the last server"
        " that uses it. 0: every group imports torch itself.",
    ).tag(config=True)
    on_server_stop = Enum(
        ["keep", "end"],
        default_value=Settings.on_server_stop,
        help="What happens to groups when the server shuts down: they keep running for the next server, or they end.",
    ).tag(config=True)
    journal_bytes = Int(
        Settings.journal_bytes,
        min=0,
        help="How much output of each group to keep on disk, in bytes; the oldest goes first. 0: a tenth of the file"
        " system, at most 16 GiB, or 1 GiB where it is in memory (a tmpfs).",
    ).tag(config=True)
    user_journal_bytes = Int(
        Settings.user_journal_bytes,
        min=0,
        help="The limit for all groups of this user together. 0: a quarter of the file system, at most 64 GiB, or 2 GiB"
        " in memory.",
    ).tag(config=True)
    undo_cells = Int(
        Settings.undo_cells,
        min=1,
        help="How many cells a rank can undo, of those that were run with keep_undo; the oldest goes first.",
    ).tag(config=True)
    undo_bytes = Int(
        Settings.undo_bytes,
        min=0,
        help="How much host memory each rank may take to undo cells, in bytes. A cell whose state takes more runs"
        " without, and says so.",
    ).tag(config=True)
    checks = Bool(
        Settings.checks,
        help="Whether the training in the cells of new groups is checked: ranks compare batches, gradients and"
        " parameters in some steps, within 0.5 % of the time.",
    ).tag(config=True)
    spawner = Unicode(
        Settings.spawner,
        help="What starts the agents of groups: 'local', or a spawner of another package (entry points"
        " 'jupyter_dist.spawners').",
    ).tag(config=True)
    preload_modules = List(
        Unicode(),
        help="Modules to import once and share between all ranks, besides torch and IPython.",
    ).tag(config=True)

    max_pages_per_user = Int(
        Settings.max_pages_per_user,
        min=1,
        help="How many pages and programs of one user may follow groups at once, with one WebSocket each.",
    ).tag(config=True)
    max_downloads_per_user = Int(
        Settings.max_downloads_per_user,
        min=1,
        help="How many logs one user may download at once; each takes some megabytes of server memory.",
    ).tag(config=True)

    presets = Dict(
        help="Presets: options of a start by the name of the preset, which users choose in place of them."
    ).tag(config=True)
    presets_file = Unicode(
        Settings.presets_file,
        help="A YAML file with more presets. Empty: jupyter_dist_presets.yaml in each folder of Jupyter's config path"
        " ('jupyter --paths').",
    ).tag(config=True)

    notice_command = List(
        Unicode(),
        help="A command to run on this server when a cell that ran for notice_seconds has ended, failed, or cannot end:"
        " a program and its arguments, run without a shell, with what happened as JSON on its standard input. Empty:"
        " none.",
    ).tag(config=True)
    notice_seconds = Seconds(
        Settings.notice_seconds,
        min=0.0,
        help="How long a cell must have run before notice_command is run for it, in seconds.",
    ).tag(config=True)

    saves_folder = Unicode(
        Settings.saves_folder,
        help="Where groups are saved, if the user names no folder: only the user may write there. Empty: a folder in"
        " Jupyter's data folder. Groups on several machines need one that all of them share.",
    ).tag(config=True)
    save_every_seconds = Seconds(
        Settings.save_every_seconds,
        min=0.0,
        help="How often a group saves all variables by itself, in seconds, if cells have run since. 0: never.",
    ).tag(config=True)
    save_before_end_seconds = Seconds(
        Settings.save_before_end_seconds,
        min=0.0,
        help="How long before the time limit of its allocation a group saves all variables by itself, in seconds; cells"
        " that run then are interrupted. 0: never.",
    ).tag(config=True)
    saves_kept = Int(
        Settings.saves_kept,
        min=1,
        max=100,
        help="How many of the saves that a group makes by itself are kept. Saves on request are not deleted.",
    ).tag(config=True)
    saves_bytes = Int(
        Settings.saves_bytes,
        min=0,
        help="How large a folder of saves may become, in bytes; a save that would exceed it fails. 0: no limit.",
    ).tag(config=True)
    saves_days = Seconds(
        Settings.saves_days,
        min=0.0,
        help="After how many days a save in saves_folder is deleted, when the next one is made. 0: never.",
    ).tag(config=True)

    service: Service

    static_paths: ClassVar[list[str]] = []
    template_paths: ClassVar[list[str]] = []

    @property
    def manager(self) -> GroupManager:
        """Return the group manager of this server."""
        return self.service.manager

    def initialize_settings(self) -> None:
        """Create the parts."""
        configured = {field.name: getattr(self, field.name) for field in fields(Settings) if field.name != "root_dir"}
        lists = {name: tuple(getattr(self, name)) for name in ("preload_modules", "notice_command")}
        settings = Settings(**{**configured, **lists})
        server = self.serverapp
        spawner = configured_spawner(settings, server.runtime_dir)
        self.service = Service(settings, spawner, server.root_dir, self._kernel_specs, self.config)
        self.settings["jupyter_dist_service"] = self.service

    def initialize_handlers(self) -> None:
        """Register the routes."""
        self.handlers.extend(tornado_routes(JUPYTER))

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        """Called by jupyter_server once its event loop runs."""
        await self.service.start()

    async def stop_extension(self) -> None:
        """Called by jupyter_server when it shuts down."""
        await self.service.stop()

    def current_activity(self) -> Any:
        """Return activity while groups are running, so that an idle server is not culled."""
        return [group.name for group in self.service.manager.all() if not group.status.is_gone] or None

    async def _kernel_specs(self) -> Mapping[str, Any]:
        specs: Mapping[str, Any] = await ensure_async(self.serverapp.kernel_spec_manager.get_all_specs())
        return specs


main = launch_new_instance = DistApp.launch_instance
