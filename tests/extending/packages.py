"""A package with parts, as it is installed beside ours."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from agent.harness import AgentClient, AgentProcess
from leaks import nothing_left

FAULTY = Path(__file__).parent / "faulty"


def installed(folder: Path, parts: dict[str, str]) -> dict[str, str]:
    """Make the metadata of a package with these parts; return the variables with which Python finds it."""
    info = folder / "example-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1\n")
    points = "".join(f"{name} = {package}\n" for name, package in parts.items())
    (info / "entry_points.txt").write_text(f"[jupyter_dist.parts]\n{points}")
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


@contextlib.contextmanager
def agent_with_faults(home: Path, world_size: int = 2) -> Iterator[AgentClient]:
    """A group, and a part of another package that can put faults into its agent (`break` and `mend`)."""
    shutil.copytree(FAULTY, home / "faulty")
    with nothing_left(), AgentProcess(home / "g", env=installed(home, {"faulty": "faulty"})) as client:
        client.start(world_size)
        yield client
