"""`join`."""

from __future__ import annotations

import argparse
import os
import sys

from jupyter_dist.cli.command import Command


class JoinCommand(Command):
    """Be a node of a group over several machines, until the group ends. It dials the head, and never listens."""

    needs_client = False

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the join file and the node."""
        parser.add_argument("file", help="the join file, as 'jupyter dist status' shows it, or - for standard input")
        parser.add_argument("--node-rank", type=int, help="which node this is; default: what the engine says, or next")

    def act(self) -> int:
        """Become the node agent."""
        node = [] if self.options.node_rank is None else ["--node-rank", str(self.options.node_rank)]
        sys.stdout.flush()
        command = [sys.executable, "-m", "jupyter_dist.agent.node", self.options.file, *node]
        os.execv(sys.executable, command)  # noqa: S606 - it has no shell
