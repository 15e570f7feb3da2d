"""`launchers`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from jupyter_dist.cli.command import Command
from jupyter_dist.protocol.models import machine


class LaunchersCommand(Command):
    """List the launchers, which start the nodes of a group: free resources, or why one cannot be used, and options."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the launcher."""
        parser.add_argument("name", nargs="?", help="this launcher alone, with its options")

    def act(self) -> int:
        """Print a line for each launcher, or one with its options."""
        found = self.client.ask("GET", "launchers")["launchers"]
        wanted = [one for one in found if self.options.name in (None, one["name"])]
        with_options = self.options.name is not None
        lines = [line for launcher in wanted for line in _lines(launcher, with_options=with_options)]
        names = ", ".join(one["name"] for one in found)
        self.tell(wanted, "\n".join(lines) or f"There is no launcher '{self.options.name}'. Launchers: {names}.")
        return 0 if wanted else 1


def _lines(launcher: machine.LauncherStatus, *, with_options: bool) -> Iterator[str]:
    usable = "" if launcher["usable"] else " (cannot be used)"
    yield f"{launcher['name']}{usable}: {launcher['text']}"
    for option in launcher["options"] if with_options else ():
        known = f" Known: {', '.join(option['choices'])}." if option["choices"] else ""
        yield f"  {option['name']}: {option['help']}{known}"
