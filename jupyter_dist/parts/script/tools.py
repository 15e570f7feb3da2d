"""Its tool for language-model agents."""

from __future__ import annotations

from jupyter_dist.client.asynchronous.client import AsyncClient
from jupyter_dist.parts.mcp.tools import GROUP, OFFSET, Arguments, Tool, part_of

_NOTEBOOK = {"type": "string", "maxLength": 4096, "description": "The notebook's path; the only one that ran cells."}


async def export_script(client: AsyncClient, arguments: Arguments, max_chars: int) -> str:
    """Return the cells of a notebook as a script."""
    group = await client.attach(arguments.get("group"))
    script = (await group.script(arguments.get("notebook"))).script
    return part_of(script, arguments, max_chars, "export_script with offset={offset} continues there.")


TOOLS = (
    Tool(
        "export_script",
        "Return the cells of a notebook that ran on ranks as a script for torchrun.",
        {"group": GROUP, "notebook": _NOTEBOOK, "offset": OFFSET},
        export_script,
        changes=False,
    ),
)
