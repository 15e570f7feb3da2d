"""`completion`: prints the script with which a shell completes commands, options and names of groups."""

from __future__ import annotations

import argparse

from argcomplete.shell_integration import shellcode

from jupyter_dist.cli.command import Command

SHELLS = ("bash", "zsh", "fish")


class CompletionCommand(Command):
    """Print a script for shell completion. For bash, add to ~/.bashrc: eval "$(jupyter dist completion bash)"."""

    needs_client = False

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the shell."""
        parser.add_argument("shell", choices=SHELLS)

    def act(self) -> int:
        """Print the script, also for `jupyter`, which completes its subcommands by argcomplete, too."""
        print(shellcode(["jupyter-dist", "jupyter"], shell=self.options.shell))
        return 0
