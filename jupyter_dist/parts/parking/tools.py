"""Its tool for language-model agents."""

from __future__ import annotations

from jupyter_dist.client.asynchronous.client import AsyncClient
from jupyter_dist.parts.mcp.answers import group_line
from jupyter_dist.parts.mcp.tools import NAMED, Arguments, Tool


async def park(client: AsyncClient, arguments: Arguments, _: int) -> str:
    """Give the devices of a group back."""
    group = await (await client.attach(arguments["group"])).park(arguments.get("to", "host"))
    return f"{group_line(group.model)} {group.model['note']}"


TOOLS = (
    Tool(
        "park_group",
        "Give the devices of an idle group back: its ranks keep all variables in host memory or files, and the next "
        "cell resumes it.",
        {"group": NAMED, "to": {"type": "string", "enum": ["host", "file"]}},
        park,
        required=("group",),
    ),
)
