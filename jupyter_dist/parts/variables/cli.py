"""Its commands."""

from jupyter_dist.cli.listed import Listed

_COMMAND = "jupyter_dist.parts.variables.command"
COMMANDS = {
    "variables": Listed(
        "jupyter_dist.cli.commands.operation.variables", "List the variables of ranks, with what differs between them."
    ),
    "memory": Listed(f"{_COMMAND}.MemoryCommand", "Show what holds the memory of ranks."),
    "compare": Listed(f"{_COMMAND}.CompareCommand", "Show which tensors of a variable differ between ranks."),
}
