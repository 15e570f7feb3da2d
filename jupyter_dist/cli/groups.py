"""`start`, `list`, `status`, `stop`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from jupyter_dist.client.blocking.report import status_text
from jupyter_dist.protocol.states import GONE_GROUP_STATES, UNREACHABLE_GROUP_STATES

from .command import Command, add_group_argument, add_start_arguments, shown


def start_fields(options: argparse.Namespace) -> dict[str, Any]:
    """The body of `POST /groups` (docs/api.md): ranks run in this interpreter and folder unless told otherwise."""
    names = ("num_ranks", "devices", "accelerator", "backend", "environment", "python", "cwd")
    fields = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    fields["cwd"] = os.path.abspath(fields.get("cwd", os.getcwd()))
    if "environment" not in fields:
        fields.setdefault("python", sys.executable)
    return fields | ({"env": dict(options.env)} if options.env else {})


class Start(Command):
    """Start a group."""

    word = "start"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """A name, and what it is started with."""
        parser.add_argument("name", nargs="?")
        add_start_arguments(parser)

    def act(self) -> int:
        """Start it and wait until its ranks have answered."""
        group = self.client.start(self.options.name, **start_fields(self.options))
        text = f"Group '{group.name}': {group.world_size} ranks ready after {group.model['ready_seconds']:.1f} s."
        if self.client.is_private:
            hours = group.model["lease_seconds"] / 3600
            text += f"\nNo Jupyter server of yours runs: the group lives {hours:g} h by itself, or until the next one."
        self.tell(group.model, text)
        return 0


class List(Command):
    """List all groups."""

    word = "list"

    def act(self) -> int:
        """A line each."""
        groups = self.client.groups()
        lines = [f"{shown(group)}, {group.model['accelerator']}, in {group.model['cwd']}" for group in groups]
        self.tell([group.model for group in groups], "\n".join(lines) or "No group is running.")
        return 0


class Status(Command):
    """Show a group's ranks: state, process, device, memory."""

    word = "status"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The group."""
        add_group_argument(parser)

    def act(self) -> int:
        """Read it once."""
        group = self.client.attach(self.options.group)
        sample = group.memory() if group.model["state"] not in GONE_GROUP_STATES | UNREACHABLE_GROUP_STATES else None
        self.tell({**group.model, "memory": sample}, status_text(group.model, sample, ""))
        return 0


class Stop(Command):
    """End a group; when this returns, nothing of it is left."""

    word = "stop"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """One group, or all."""
        add_group_argument(parser)
        parser.add_argument("--all", action="store_true", help="end all groups")

    def act(self) -> int:
        """End them one after the other."""
        groups = self.client.groups() if self.options.all else [self.client.attach(self.options.group)]
        killed = {group.name: group.shutdown() for group in groups}
        lines = [line for name, said in killed.items() for line in (*said, f"Group '{name}' has ended.")]
        self.tell({"killed": killed}, "\n".join(lines) or "No group is running.")
        return 0
