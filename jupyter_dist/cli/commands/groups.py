"""`start`, `start-again`, `list`, `status`, `samples`, `replace`, `stop`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from jupyter_dist.cli.command import Command, add_group_argument, shown
from jupyter_dist.client import Group, JupyterDistError
from jupyter_dist.client.blocking.report import ending_text, replaced_text, sample_if_any, status_text
from jupyter_dist.client.startoptions import (
    add_replace_options,
    add_replace_state,
    add_start_options,
    given_options,
    given_replace_options,
)
from jupyter_dist.protocol.schemas import path_fields
from jupyter_dist.protocol.wire.requests import StartOptions

HERE = {
    "python": "interpreter of the ranks (default: this one)",
    "environment": "name of the environment of the ranks, instead of --python",
    "cwd": "working directory of the ranks (default: this one)",
}


def start_fields(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a start; by default ranks use this interpreter and folder."""
    fields = given_options(options)
    if "notebook" not in fields:
        fields.setdefault("cwd", os.getcwd())
    fields.update({name: os.path.abspath(fields[name]) for name in path_fields(StartOptions) if name in fields})
    if "environment" not in fields:
        fields.setdefault("python", sys.executable)
    return fields


class StartCommand(Command):
    """Start a group."""

    starts_group = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the name of the group, and its options."""
        parser.add_argument("name", nargs="?")
        add_start_options(parser, texts=HERE)

    def act(self) -> int:
        """Start the group and wait until its ranks are ready."""
        group = self.client.start(self.options.name, wait=False, **start_fields(self.options))
        if join := group.model.get("join"):
            print(f"Run this on each of the machines, by whatever starts commands there:\n  {join}", file=sys.stderr)
        group.ready(show=lambda text: print(text, file=sys.stderr))
        text = f"Group '{group.name}': {group.world_size} ranks ready after {group.model['ready_seconds']:.1f} s."
        if self.client.is_private:
            text += f" {ending_text(group.model, is_private=True)}"
        self.tell(group.model, text)
        return 0


class StartAgainCommand(Command):
    """Start a group that has ended, with the options of its start."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the group, and variables whose values are not known any more."""
        add_group_argument(parser)
        add_start_options(parser, ("env",))

    def act(self) -> int:
        """Start the group, and print it while its ranks start."""
        group = self.client.attach(self.options.group).start_again(wait=False, **given_options(self.options))
        self.tell(group.model, status_text(group.model, None, ""))
        return 0


class ListCommand(Command):
    """List all groups, and what ends each of them."""

    needs_groups = True

    def act(self) -> int:
        """Print a line for each group."""
        return self._tell(self.client.groups())

    def without_groups(self, error: JupyterDistError) -> int:
        """Print the message that no group is running."""
        return self._tell([])

    def _tell(self, groups: list[Group]) -> int:
        lines = [
            f"{shown(group)}, {group.model['accelerator']}, in {group.model['cwd']}\n"
            f"  {ending_text(group.model, is_private=group.client.is_private)}"
            for group in groups
        ]
        self.tell([group.model for group in groups], "\n".join(lines) or "No group is running.")
        return 0


class StatusCommand(Command):
    """Show a group's ranks: state, process, device, memory."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The group."""
        add_group_argument(parser)

    def act(self) -> int:
        """Print the status once."""
        group = self.client.attach(self.options.group)
        sample = sample_if_any(group)
        self.tell({**group.model, "memory": sample.model if sample else None}, status_text(group.model, sample, ""))
        return 0


class SamplesCommand(Command):
    """Show the memory and processor of each rank in the last hour, as far as a page followed them; with --json all."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """The group, and how far back."""
        add_group_argument(parser)
        parser.add_argument("--minutes", type=float, default=60.0, help="how far back, 60 at most")

    def act(self) -> int:
        """Print the figures once."""
        samples = self.client.attach(self.options.group).samples(60 * self.options.minutes)
        self.tell(samples.model, repr(samples))
        return 0


class ReplaceCommand(Command):
    """Start new processes for a group's dead ranks; the others keep their processes and variables."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options for the variables of new ranks, and the group."""
        add_replace_state(parser, "what they begin with")
        parser.add_argument("--others", choices=("leave", "copy"), default="leave", help="names that ranks differ in")
        add_replace_options(parser)
        add_group_argument(parser)

    def act(self) -> int:
        """Replace the ranks, and print the names that they were given."""
        chosen = self.options
        group = self.client.attach(chosen.group)
        group.replace(chosen.state, others=chosen.others, **given_replace_options(chosen))
        text = replaced_text(group.model) if chosen.state != "empty" else group.model["note"] or ""
        self.tell(group.model, text)
        return 0


class StopCommand(Command):
    """End a group and all of its processes."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the group, or all."""
        add_group_argument(parser)
        parser.add_argument("--all", action="store_true", help="end all groups")

    def act(self) -> int:
        """End the groups one after the other."""
        return self._end(self.client.groups() if self.options.all else [self.client.attach(self.options.group)])

    def without_groups(self, error: JupyterDistError) -> int:
        """End no group, if all groups were to end."""
        return self._end([]) if self.options.all else super().without_groups(error)

    def _end(self, groups: list[Group]) -> int:
        killed = {group.name: group.shutdown() for group in groups}
        lines = [line for name, said in killed.items() for line in (*said, f"Group '{name}' has ended.")]
        self.tell({"killed": killed}, "\n".join(lines) or "No group is running.")
        return 0
