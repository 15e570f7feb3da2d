"""The saves that a group makes by itself: their names and limits, and which of them are kept."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path

from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import ExecutionSpec, GroupSpec, TransferSpec
from jupyter_dist.saves.layout import SavesFolder
from jupyter_dist.saves.removal import delete_automatic

log = logging.getLogger(__name__)


def automatic_save(group: GroupSpec, execution_id: str, seconds: float) -> tuple[ExecutionSpec, str]:
    """Return a save of all ranks which may take that long from its beginning, and its name."""
    name = re.sub("[^A-Za-z0-9_.-]", "-", group.name).lstrip("_.-")[:60] or "group"
    wanted = TransferSpec(
        "save",
        group.saves_folder,
        f"{name}-auto-{time.strftime('%Y%m%d-%H%M%S')}",
        timeout_seconds=seconds,
        max_bytes=group.saves_bytes,
        is_automatic=True,
    )
    ranks = RankSet(range(group.world_size))
    return ExecutionSpec(execution_id, ranks, silent=True, transfer=wanted.to_dict(), expression="all"), wanted.name


def drop_older(group: GroupSpec) -> None:
    """Delete the automatic saves of a group that are more than it keeps. Blocking."""
    try:
        delete_automatic(SavesFolder(Path(group.saves_folder)), group.group_id, group.saves_kept)
    except OSError as err:  # the next save tries again
        log.warning("Older saves cannot be deleted: %s", err)
