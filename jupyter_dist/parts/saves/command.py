"""`save`, `restore`."""

from __future__ import annotations

import argparse
import os

from jupyter_dist.cli.command import Command, add_group_argument
from jupyter_dist.parts.saves.text import preview_text, save_text


def add_transfer_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder and the time limit."""
    parser.add_argument("--folder", type=_absolute, help="a folder of saves (default: the server's)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="how long it may take (3600)")


class SaveCommand(Command):
    """Save the variables of all ranks of a group, when no cell runs; an earlier save of the name is replaced."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the name, the group and the place."""
        parser.add_argument("name", nargs="?", help="of the save (default: the group's name and the time)")
        add_group_argument(parser, positional=False)
        add_transfer_arguments(parser)
        parser.add_argument("--overwrite", action="store_true", help="replace a save of another group, too")
        parser.add_argument("--preview", action="store_true", help="save nothing; list what cannot be saved")

    def act(self) -> int:
        """Save, and print what could not be saved."""
        options, group = self.options, self.client.attach(self.options.group)
        if options.preview:
            self.tell((found := group.preview_save()).model, preview_text(found.model))
            return 0
        save = group.save(
            options.name, folder=options.folder, overwrite=options.overwrite, timeout_seconds=options.timeout
        )
        self.tell(save.model, save_text(save.model))
        return 0


class RestoreCommand(Command):
    """Give all ranks of a group the variables of a save, when no cell runs."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the save, the group and the place."""
        parser.add_argument("name", help="of the save; 'jupyter dist saves' lists them")
        add_group_argument(parser, positional=False)
        add_transfer_arguments(parser)
        parser.add_argument("--rerun", action="store_true", help="run the cells again whose names could not be saved")
        parser.add_argument("--any-version", action="store_true", help="try a save of another version of Python")

    def act(self) -> int:
        """Restore, and print what was not restored."""
        options = self.options
        restored = self.client.attach(options.group).restore(
            options.name,
            folder=options.folder,
            rerun=options.rerun,
            any_version=options.any_version,
            timeout_seconds=options.timeout,
        )
        self.tell({"save": restored.save.model, "notes": restored.notes}, repr(restored))
        return 0


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))
