"""group.json in a group's folder: what a server shows of the group until its agent answers."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_dist.protocol.wire.specs import PROTOCOL_VERSION, GroupSpec
from jupyter_dist.version import __version__

if TYPE_CHECKING:
    from jupyter_dist.protocol.models import models


def write_group_json(
    directory: Path,
    spec: GroupSpec | None,
    environment: models.GroupEnvironment,
    created_at: float,
    most_ranks: int = 0,
) -> None:
    """Write group.json for the agent of this process; `spec` is None while it waits for a group.

    `most_ranks` is the highest number of ranks that the group has had: the journal has their records. Raises OSError.
    """
    shown = spec.to_store() if spec is not None else None
    content = {
        "protocol": PROTOCOL_VERSION,
        "version": __version__,
        "group_id": shown["group_id"] if shown else None,
        "name": shown["name"] if shown else None,
        "agent_pid": os.getpid(),
        "python": sys.executable,
        "created_at": created_at,
        "environment": environment,
        "spec": shown,
        "most_ranks": most_ranks,
    }
    temporary = directory / "group.json.new"
    temporary.write_text(json.dumps(content, indent=1))
    temporary.replace(directory / "group.json")
