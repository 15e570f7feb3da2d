"""Counts the events of a server's groups, and reads their states for Prometheus."""

from __future__ import annotations

import asyncio
import getpass
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import machine, models
from jupyter_dist.protocol.operations import why_stopped
from jupyter_dist.protocol.states import FINAL_EXECUTION_STATES
from jupyter_dist.server.groups.manager import GroupManager

MAX_KNOWN = 10_000  # executions whose end is counted already
DEVICES_SECONDS = 120.0  # older readings of devices are not shown

# Of each device: the field of its reading, the metric, its help text, and by what the field is multiplied.
_DEVICE_METRICS = (
    ("memory_used_bytes", "memory_used_bytes", "Memory in use on the device, by all processes.", 1.0),
    ("memory_total_bytes", "memory_bytes", "Memory of the device.", 1.0),
    ("utilization_percent", "utilization_ratio", "Share of the time in which the device computed.", 0.01),
    ("power_watts", "power_watts", "Power that the device takes.", 1.0),
    ("temperature_celsius", "temperature_celsius", "Temperature of the device.", 1.0),
)


class GroupCollector(Collector):
    """The metrics of one server. Names follow Prometheus' conventions; no label names code, files or cells."""

    def __init__(self, manager: GroupManager) -> None:
        self._manager = manager
        self._user = os.environ.get("JUPYTERHUB_USER") or getpass.getuser()
        self._since = time.time()
        self._counted: dict[str, None] = {}  # executions that have ended, oldest first
        self._hanging: dict[str, None] = {}  # executions that cannot end, as far as is known
        self._cells: Counter[str] = Counter()
        self._saves: Counter[tuple[str, str]] = Counter()
        self._hangs_ended: Counter[str] = Counter()
        self._num_hangs = 0
        self._verdicts: dict[str, tuple[int, int]] = {}  # of each group: shown, refuted; of groups that ended, too
        self._busy_seconds = 0.0
        self._devices: list[machine.Device] = []
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._forget = manager.listen(self._on_topic)

    def stop(self) -> None:
        """Count nothing more. Idempotent."""
        self._forget()
        if self._reading is not None:
            self._reading.cancel()

    def describe(self) -> Iterator[Metric]:
        """Name no metrics in advance: the registry would ask for all of them when the server starts."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics. Called by the handler of `/metrics`, in the event loop: it waits for nothing."""
        groups = [group.model() for group in self._manager.all()]
        yield self._states("groups", "Groups by state.", Counter(group["state"] for group in groups))
        ranks: Counter[str] = Counter(rank["state"] for group in groups for rank in group["ranks"])
        yield self._states("ranks", "Ranks by state.", ranks)
        yield _counter(
            "cells", "Cells that have ended, by end.", ["end"], {(end,): n for end, n in self._cells.items()}
        )
        yield _counter("ranks_busy_seconds", "Time in which ranks ran cells.", [], {(): self._busy_seconds})
        yield _counter(
            "hangs", "Cells that could not end, because ranks waited for each other.", [], {(): self._num_hangs}
        )
        ended = {(end,): n for end, n in self._hangs_ended.items()}
        yield _counter("hangs_ended", "Cells that could not end and have ended all the same, by end.", ["end"], ended)
        yield from self._verdict_metrics(groups)
        yield _counter("saves", "Saves and restores of groups, by end.", ["operation", "end"], self._saves)
        yield from self._device_metrics()

    def _verdict_metrics(self, groups: list[models.GroupModel]) -> Iterator[Metric]:
        for group in groups:
            if counts := group.get("parts", {}).get("metrics"):  # an earlier version has none
                self._verdicts[group["id"]] = counts["verdicts_shown"], counts["verdicts_refuted"]
        shown, refuted = (sum(counts) for counts in zip((0, 0), *self._verdicts.values(), strict=True))
        text = "Verdicts on cells that cannot end, are slow, or train wrongly"
        yield _counter("verdicts", f"{text}.", [], {(): shown})
        yield _counter("verdicts_refuted", f"{text}, which what happened afterwards has refuted.", [], {(): refuted})

    # -- counting -----------------------------------------------------------------------------------

    def _on_topic(self, topic: tuple[Any, ...]) -> None:
        if topic[0] != "execution":
            return
        try:
            execution = self._manager.get(topic[1]).mirror.executions.get(topic[2])
        except JupyterDistError:  # the group was removed meanwhile
            return
        if execution["state"] in FINAL_EXECUTION_STATES:
            self._ended(execution)
        elif why_stopped(execution) is not None and execution["id"] not in self._hanging:
            self._hanging[execution["id"]] = None
            self._num_hangs += 1

    def _ended(self, execution: models.ExecutionModel) -> None:
        known, ended_at = execution["id"] in self._counted, execution["ended_at"]
        if known or ended_at is None or ended_at < self._since:  # earlier: another server counted it
            return
        if len(self._counted) == MAX_KNOWN:
            del self._counted[next(iter(self._counted))]
        self._counted[execution["id"]] = None
        end = execution["state"]
        if self._hanging.pop(execution["id"], 0) is None:
            self._hangs_ended[end] += 1
        self._busy_seconds += sum(execution["rank_seconds"].values())
        transfer: Any = execution.get("transfer")  # of a part
        if transfer:
            self._saves[transfer["action"], end] += 1
        elif not execution["silent"]:
            self._cells[end] += 1

    # -- reading ------------------------------------------------------------------------------------

    def _states(self, name: str, text: str, states: Mapping[str, int]) -> Metric:
        family = GaugeMetricFamily(f"jupyter_dist_{name}", text, labels=["state", "user"])
        for state, number in states.items():
            family.add_metric([state, self._user], number)
        return family

    def _device_metrics(self) -> Iterator[Metric]:
        """Yield the last readings, and have the devices read for the next time: a driver may take seconds."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read_devices())
        if time.monotonic() - self._read_at > DEVICES_SECONDS:
            return
        for field, name, text, unit in _DEVICE_METRICS:
            family = GaugeMetricFamily(f"jupyter_dist_device_{name}", text, labels=["accelerator", "device", "name"])
            for device in self._devices:
                value: float | None = device[field]  # type: ignore[literal-required]
                if value is not None:
                    labels = [device["accelerator"], str(device["index"]), device["name"] or ""]
                    family.add_metric(labels, value * unit)
            yield family

    async def _read_devices(self) -> None:
        self._devices = (await self._manager.devices.read(lambda _: None))["devices"]
        self._read_at = time.monotonic()


def _counter(name: str, text: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    family = CounterMetricFamily(f"jupyter_dist_{name}", text, labels=labels)
    for label_values, value in values.items():
        family.add_metric(label_values, value)
    return family
