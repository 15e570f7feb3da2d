"""What all commands share: arguments, connection and error handling."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from jupyter_core.application import JupyterApp
from traitlets import Unicode

from jupyter_dist.cli.listing import word_of
from jupyter_dist.cli.words import complete
from jupyter_dist.client import Client, Group, JupyterDistError
from jupyter_dist.protocol.ranks import EXAMPLES
from jupyter_dist.system.terminal import guarded_terminal

INTERRUPTED = 130


class Command(JupyterApp):
    """One command. Uses argparse, because a script's own arguments may follow; settings come from the config file."""

    name = "jupyter-dist"
    needs_client = True
    starts_group = False
    needs_groups = False  # the command does nothing without a group, so no server is started for it

    url = Unicode(help="URL of the Jupyter server; empty: your running one, else a new one for this command.").tag(
        config=True
    )

    options: argparse.Namespace
    client: Client

    @property
    def word(self) -> str:
        """Return the name that the command is run by."""
        return word_of(type(self))

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command to the parser."""

    def act(self) -> int:
        """Run the command; return the exit status."""
        raise NotImplementedError

    def parse_command_line(self, argv: Any = None) -> None:
        """Called by JupyterApp."""
        parser = self.parser()
        complete(parser)
        self.options = parser.parse_args(sys.argv[1:] if argv is None else argv)

    def parser(self) -> argparse.ArgumentParser:
        """Return the parser of all arguments."""
        parser = argparse.ArgumentParser(f"jupyter dist {self.word}", description=self.__doc__)
        parser.add_argument("--url", help="URL of the server (your running one); token from JUPYTER_TOKEN")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--raw", action="store_true", help="pass control sequences of ranks to the terminal")
        self.arguments(parser)
        return parser

    def start(self) -> None:
        """Called by JupyterApp: connect, run the command, exit with its status."""
        super().start()
        with guarded_terminal(is_raw=self.options.raw):
            self._act()

    def _act(self) -> None:
        try:
            self.exit(self._connected() if self.needs_client else self.act())
        except JupyterDistError as err:
            self.fail(err)
        except KeyboardInterrupt:
            self.exit(INTERRUPTED)
        except BrokenPipeError:  # for example `| head`
            sys.stderr.close()
            self.exit(0)

    def fail(self, error: JupyterDistError) -> None:
        """Print the error and its hint."""
        if self.options.json:
            print(json.dumps({"error": error.to_dict()}))
        else:
            print(f"jupyter dist {self.word}: {error}", file=sys.stderr)
        self.exit(1)

    def tell(self, content: Any, text: str) -> None:
        """Print a result, as JSON or as text."""
        print(json.dumps(content) if self.options.json else text)

    def connect(self) -> Client:
        """Return a client of the server."""
        url = self.options.url or self.url or None
        return Client.connect(url, start=not self.needs_groups, prepare=self.starts_group)

    def without_groups(self, error: JupyterDistError) -> int:
        """Run a command that needs groups where there is no server and no group; return the exit status."""
        raise error

    def _connected(self) -> int:
        try:
            client = self.connect()
        except JupyterDistError as err:
            if self.needs_groups and err.code == "unknown_group":
                return self.without_groups(err)
            raise
        with client as self.client:
            return self.act()


def add_group_argument(
    parser: argparse.ArgumentParser, *, positional: bool = True, text: str = "name or id (the only one that lives)"
) -> None:
    """Add the option for the group; `positional`: it can also be the first argument, because no other is required."""
    if positional:
        # A missing argument must not replace the value of the option.
        parser.add_argument("group", nargs="?", default=argparse.SUPPRESS, help=text)
    parser.add_argument("-g", "--group", help=argparse.SUPPRESS if positional else text)


def add_ranks_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option for the ranks."""
    parser.add_argument("-r", "--ranks", default="all", help=f"{EXAMPLES} (all)")


def shown(group: Group) -> str:
    """Return a line about a group."""
    return f"Group '{group.name}': {group.world_size} ranks, {group.model['state']}"
