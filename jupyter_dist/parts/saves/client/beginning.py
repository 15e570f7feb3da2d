"""A group that begins with a save."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from jupyter_dist.client.answers.infos import LastSaveInfo, SaveInfo
from jupyter_dist.client.asynchronous.client import AsyncClient, Beginning
from jupyter_dist.client.asynchronous.group import AsyncGroup
from jupyter_dist.protocol.errors import JupyterDistError

_SHAPE = ("num_ranks", "devices", "ranks_per_node", "num_nodes")  # options that give the number of ranks


async def restore(client: AsyncClient, wanted: str, options: Mapping[str, Any]) -> Beginning:
    """Return how a group begins with this save. Raises JupyterDistError `not_found`."""
    save = await _found(client, wanted)
    size = {} if any(key in options for key in _SHAPE) else {"num_ranks": save.world_size}
    return Beginning(size, partial(_restored, save))


async def _restored(save: SaveInfo | LastSaveInfo, group: AsyncGroup) -> None:
    await group.restore(save.name, folder=save.folder)


async def _found(client: AsyncClient, wanted: str) -> SaveInfo | LastSaveInfo:
    """Return the save of that name; without a folder, in the server's, or among the last saves of groups."""
    folder, _, name = wanted.rpartition("/")  # a name has no slash
    saves: list[SaveInfo | LastSaveInfo] = list(await client.all_saves(folder or None))
    if not folder:
        saves += await client.last_saves()
    for save in saves:
        if save.name == name:
            return save
    place = folder or "the server's folder, and no group has it as its last save"
    known = ", ".join(dict.fromkeys(save.name for save in saves))
    hint = f"Saves: {known}." if known else "For a save in another folder write FOLDER/NAME."
    raise JupyterDistError("not_found", f"There is no save '{name}' in {place}.", hint)
