"""Adds the metrics of groups to the Jupyter server's own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jupyter_dist.server.part import ServerPart

if TYPE_CHECKING:
    from .collector import GroupCollector


class MetricsPart(ServerPart):
    """Registers a collector with Prometheus' client, which the handler of `/metrics` asks."""

    _collector: GroupCollector | None = None

    def start(self) -> None:
        """Register; a private server has no `/metrics`, and does not import the client for nothing."""
        if "jupyter_server.serverapp" not in sys.modules:
            return
        from prometheus_client import REGISTRY  # noqa: PLC0415 - see above

        from .collector import GroupCollector  # noqa: PLC0415

        self._collector = GroupCollector(self.manager)
        REGISTRY.register(self._collector)

    async def stop(self) -> None:
        """Take the collector away."""
        if (collector := self._collector) is not None:
            from prometheus_client import REGISTRY  # noqa: PLC0415

            self._collector = None
            collector.stop()
            REGISTRY.unregister(collector)
