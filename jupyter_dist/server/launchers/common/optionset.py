"""The options of groups with one launcher, with an administrator's defaults and limits for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from traitlets import Dict, List, Unicode
from traitlets.config import Configurable

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import in_proportion
from jupyter_dist.server.launchers.options import Option, checked

from .limits import check_fixed, check_limits
from .network import NODE_OPTIONS


class LauncherOptions(Configurable):
    """The options that groups with one launcher can have. A subclass has a `name`, a `label` and its `options`."""

    name: ClassVar[str]
    label: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = ()
    common_options: ClassVar[tuple[Option, ...]] = NODE_OPTIONS
    reserves_by_ranks: ClassVar[bool] = False  # whether a node with fewer ranks than another gets less

    defaults = Dict(help="Values of options for groups that do not set them.").tag(config=True)
    limits = Dict(
        help="The most that a group may ask for: num_nodes, ranks_per_node, num_ranks, and options by name, such as"
        " time_limit, memory or gpus_per_node. More is refused. A group that gives no time_limit has this one."
    ).tag(config=True)
    fixed = List(Unicode(), help="Options that users cannot set: they have the value in `defaults`, or none.").tag(
        config=True
    )

    @classmethod
    def all_options(cls) -> tuple[Option, ...]:
        """Return the options of the launcher, then those in common that it does not declare otherwise."""
        own = {option.name for option in cls.options}
        return (*cls.options, *(option for option in cls.common_options if option.name not in own))

    def check(self, options: Mapping[str, Any], num_nodes: int) -> dict[str, Any]:
        """Return the options with defaults.

        Raises:
            JupyterDistError: `bad_request`, with a sentence for each mistake. Nothing was submitted then.
        """
        check_fixed(f"{type(self).__name__}.fixed", self.fixed, self.defaults, options)
        limited = {"time_limit": self.limits["time_limit"]} if "time_limit" in self.limits else {}
        return checked(self.name, self.all_options(), {**limited, **self.defaults, **options})

    def fitted(self, options: Mapping[str, Any], ranks_per_node: int) -> Mapping[str, Any]:
        """Return the options and the needs of a node's ranks that they leave out, such as a CPU for each rank.

        `ranks_per_node` is the most that a node has: an option is what this node gets.
        """
        return options

    def check_limits(self, options: Mapping[str, Any], ranks_per_node: Sequence[int]) -> None:
        """Raise JupyterDistError `bad_request` if a group asks for more than the limits.

        Args:
            options: as `check` returned them.
            ranks_per_node: how many ranks each node of the group has.
        """
        counts = ranks_per_node
        shape = {"num_nodes": len(counts), "num_ranks": sum(counts), "ranks_per_node": max(counts)}
        gpus = {"gpus_per_node": found} if (found := self.gpus_per_node(options)) else {}
        asked = {**self.fitted(options, max(counts)), **gpus, **shape}
        check_limits(f"{type(self).__name__}.limits", self.limits, self.all_options(), asked)

    def reserved_gpus(self, options: Mapping[str, Any], ranks_per_node: Sequence[int]) -> list[int]:
        """Return how many GPUs are reserved on each node: most engines give all nodes of a job the same."""
        gpus = self.gpus_per_node(options)
        return in_proportion(gpus, ranks_per_node if self.reserves_by_ranks else [1] * len(ranks_per_node))

    def gpus_per_node(self, options: Mapping[str, Any]) -> int:
        """Return how many GPUs the options, with the defaults, reserve on each node; 0 if they name none."""
        found = re.fullmatch(r"(?:.*:)?(\d{1,4})", str({**self.defaults, **options}.get("gpus_per_node", "")))
        return int(found[1]) if found else 0


class ExternalLauncher(LauncherOptions):
    """Node agents that users start themselves."""

    name: ClassVar[str] = "external"
    label: ClassVar[str] = say("Hosts of your own")
