"""Its tools for language-model agents."""

from __future__ import annotations

from jupyter_dist.client.asynchronous.client import AsyncClient
from jupyter_dist.parts.mcp.tools import GROUP, Arguments, Tool

from .text import save_text, saves_text


async def save(client: AsyncClient, arguments: Arguments, _: int) -> str:
    """Save all ranks of a group."""
    group = await client.attach(arguments.get("group"))
    return save_text((await group.save(arguments.get("name"))).model)


async def restore(client: AsyncClient, arguments: Arguments, _: int) -> str:
    """Restore all ranks of a group; without a name, list the saves."""
    group = await client.attach(arguments.get("group"))
    if "name" not in arguments:
        return saves_text(await group.ask("saves"))
    return repr(await group.restore(arguments["name"]))


_SAVE = {"type": "string", "maxLength": 100, "description": "The name of the save: letters, digits, '_', '.', '-'."}

TOOLS = (
    Tool(
        "save_group",
        "Save the variables of all ranks, when no cell runs; an earlier save of the group with this name is replaced.",
        {"name": _SAVE, "group": GROUP},
        save,
    ),
    Tool(
        "restore_group",
        "Give all ranks the variables of a save; their present ones are lost. Without a name, list the saves.",
        {"name": _SAVE, "group": GROUP},
        restore,
        destroys=True,
    ),
)
