"""Its commands."""

from jupyter_dist.cli.listed import Listed

_COMMAND = "jupyter_dist.parts.drift.command"
COMMANDS = {
    "drift": Listed(f"{_COMMAND}.DriftCommand", "Show which version of which cell ran on which ranks."),
    "catch-up": Listed(f"{_COMMAND}.CatchUpCommand", "Run on replaced ranks the cells that they have missed."),
}
