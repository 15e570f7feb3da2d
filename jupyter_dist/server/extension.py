"""The extension of a Jupyter server: its settings, and the setup of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jupyter_core.utils import ensure_async
from jupyter_server.extension.application import ExtensionApp

from jupyter_dist.protocol.field import rows
from jupyter_dist.protocol.schemas import group_options
from jupyter_dist.server.groups.manager import GroupManager
from jupyter_dist.server.http.jupyter import JUPYTER
from jupyter_dist.server.http.routes import tornado_routes
from jupyter_dist.server.service import Service, Settings, configured_spawner
from jupyter_dist.server.traits import setting_trait

SETTINGS = [row for kind in (Settings, *group_options()[1:]) for row in rows(kind) if row.option.setting]


class DistApp(ExtensionApp):
    """Groups of torch.distributed ranks for notebooks."""

    name = "jupyter_dist"
    version = Service.version
    load_other_extensions = True
    extension_url = "/"

    # A trait for each row of a setting. Jupyter reads them from the class itself, under its name.
    locals().update({row.name: setting_trait(row) for row in SETTINGS})

    service: Service

    static_paths: ClassVar[list[str]] = []
    template_paths: ClassVar[list[str]] = []

    @property
    def manager(self) -> GroupManager:
        """Return the group manager of this server."""
        return self.service.manager

    def initialize_settings(self) -> None:
        """Create the parts."""
        configured = {row.name: _frozen(getattr(self, row.name)) for row in SETTINGS}
        own = {row.name: configured.pop(row.name) for row in rows(Settings)}
        settings = Settings(**own, of_parts=configured)
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


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


main = launch_new_instance = DistApp.launch_instance
