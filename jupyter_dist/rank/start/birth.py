"""The first steps of a rank process, forked or fresh: its own session, its descriptors, its folder."""

from __future__ import annotations

import os

from jupyter_dist.protocol.specs import RankSpec


def become_rank(spec: RankSpec, channel: int, stdout: int, stderr: int) -> int:
    """Turn this process into a rank and run it; return its exit code."""
    os.setsid()
    os.umask(int(os.environ.pop("JUPYTER_DIST_UMASK", "77"), 8))  # the user's, not the agent's
    _take_descriptors(stdout, stderr)
    os.chdir(spec.cwd)
    from jupyter_dist.rank.main import run

    return run(spec, channel)


def _take_descriptors(stdout: int, stderr: int) -> None:
    devnull = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((devnull, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
        if source != target:
            os.close(source)
