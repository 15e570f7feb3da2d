"""The process of a private server: `python -m jupyter_dist.server.main`; client/servers/private.py starts it.

Its client mostly starts a group next, and torch takes longer to import than all of this server. So that begins first,
with few modules imported here, and the server (headless.py) is imported meanwhile, on another core.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from jupyter_dist.server.launcher.directories import groups_directory
from jupyter_dist.server.launcher.launcher import Launcher
from jupyter_dist.server.launcher.local import LocalLauncher, client_environment

FORKSERVER_SECONDS = 60.0


def main() -> None:
    """Serve until no client is left."""
    wanted = json.loads(sys.stdin.buffer.readline())
    os.set_inheritable(wanted["lock"], False)  # groups outlive this server, and must not keep its lock
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    launcher = _begun(wanted)
    from jupyter_dist.server import headless  # noqa: PLC0415 - it takes as long as what has begun now

    headless.run(wanted, answer, launcher)


def _begun(wanted: Mapping[str, Any]) -> Launcher:
    """Return the launcher, which has begun to import torch if the client says that a group comes next."""
    launcher = LocalLauncher(groups_directory(wanted["runtime_dir"]), [])
    launcher.share_imports(FORKSERVER_SECONDS, keep=False)
    if (told := wanted.get("prepare")) is not None:
        launcher.begin(told["python"], client_environment(told["environ"]))
    return launcher


if __name__ == "__main__":
    main()
