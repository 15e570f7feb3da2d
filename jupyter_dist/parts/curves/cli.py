"""Its command."""

from jupyter_dist.cli.listed import Listed

_TEXT = "Show curves such as the loss of a cell, or write them as CSV."
COMMANDS = {"curves": Listed("jupyter_dist.parts.curves.command.CurvesCommand", _TEXT)}
