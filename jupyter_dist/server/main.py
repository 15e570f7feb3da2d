"""The process of a private server: `python -m jupyter_dist.server.main`; client/servers/private.py starts it.

Its client mostly starts a group next, and importing torch takes longer than starting this server. So the import begins
first, with few modules imported here, and the server (headless.py) is imported meanwhile, on another core.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from jupyter_dist.server.spawner.directories import groups_directory
from jupyter_dist.server.spawner.local import LocalSpawner, client_environment
from jupyter_dist.server.spawner.spawner import Spawner

FORKSERVER_SECONDS = 60.0


def main() -> None:
    """Serve until no client is left."""
    wanted = json.loads(sys.stdin.buffer.readline())
    os.set_inheritable(wanted["lock"], False)  # groups outlive this server, and must not keep its lock
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spawner = _begun(wanted)
    from jupyter_dist.server import headless  # noqa: PLC0415 - it takes as long as what has begun now

    headless.run(wanted, answer, spawner)


def _begun(wanted: Mapping[str, Any]) -> Spawner:
    """Return the spawner, which has begun to import torch if the client announced a group."""
    spawner = LocalSpawner(groups_directory(wanted["runtime_dir"]), [])
    spawner.share_imports(FORKSERVER_SECONDS, keep=False)
    if (told := wanted.get("prepare")) is not None:
        spawner.begin(told["python"], client_environment(told["environ"]).for_exec())
    return spawner


if __name__ == "__main__":
    main()
