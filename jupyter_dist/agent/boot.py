"""Start a process of jupyter_dist in any Python, whether or not jupyter_dist is installed there.

Run as a script: `python boot.py ROLE ARGUMENT`. It loads the package from its own folder without changing sys.path, so
that nothing else from the server's site-packages leaks into the group's environment, and every process of a group runs
the same version.
"""

import importlib
import importlib.util
import sys
from pathlib import Path

ROLES = {
    "keeper": "jupyter_dist.agent.keeper",
    "agent": "jupyter_dist.agent.main",
    "node": "jupyter_dist.agent.node",
    "bridge": "jupyter_dist.agent.nodes.tunnel.bridge",
    "zygote": "jupyter_dist.rank.start.zygote",
    "rank": "jupyter_dist.rank.start.fresh",
    "forkserver": "jupyter_dist.rank.start.forkserver",
}


def _load_package() -> None:
    directory = Path(__file__).resolve().parent.parent
    # Python put this script's folder first on sys.path; modules named like ours must not shadow the user's.
    sys.path[:] = [entry for entry in sys.path if entry != str(directory / "agent")]
    spec = importlib.util.spec_from_file_location(
        "jupyter_dist", directory / "__init__.py", submodule_search_locations=[str(directory)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["jupyter_dist"] = package
    spec.loader.exec_module(package)


def main() -> int:
    """Run the role on the command line until its end; return the exit code."""
    _, role, argument = sys.argv
    return int(importlib.import_module(ROLES[role]).main(argument))


if __name__ == "__main__":
    _load_package()
    sys.exit(main())
