"""Its command."""

from jupyter_dist.cli.listed import Listed

COMMANDS = {"mcp": Listed("jupyter_dist.parts.mcp.command.McpCommand", "Serve groups to language-model agents.")}
