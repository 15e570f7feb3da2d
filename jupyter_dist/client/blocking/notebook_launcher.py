"""Accelerate's `notebook_launcher`, on ranks: works even if the notebook has used CUDA before."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from jupyter_dist.client.asynchronous.launching import check_one_node

from .group import Client


def notebook_launcher(  # noqa: PLR0913, PLR0917  (the signature is Accelerate's)
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    num_processes: int | None = None,
    mixed_precision: str = "no",
    use_port: str = "29500",  # noqa: ARG001
    master_addr: str = "127.0.0.1",  # noqa: ARG001
    node_rank: int = 0,
    num_nodes: int = 1,
    rdzv_backend: str = "static",  # noqa: ARG001
    rdzv_endpoint: str = "",  # noqa: ARG001
    rdzv_conf: dict[str, Any] | None = None,  # noqa: ARG001
    rdzv_id: str = "none",  # noqa: ARG001
    max_restarts: int = 0,  # noqa: ARG001
    monitor_interval: float = 0.1,  # noqa: ARG001
    log_line_prefix_template: str | None = None,  # noqa: ARG001
) -> None:
    """Run a function on a new group, which ends with it.

    Args:
        function: Called with `args` on every rank; from the notebook or a module.
        args: Its arguments.
        num_processes: Number of ranks; default: all CUDA devices, or 2 on CPU.
        mixed_precision: The default precision of an Accelerator() on the ranks.
        use_port: Not needed: ranks use a file for rendezvous.
        master_addr: Not needed.
        node_rank: 0: a group runs on one machine.
        num_nodes: 1.
        rdzv_backend: Not needed, like the other torchelastic options below: ranks are never restarted automatically.
        rdzv_endpoint: Not needed.
        rdzv_conf: Not needed.
        rdzv_id: Not needed.
        max_restarts: Not needed.
        monitor_interval: Not needed.
        log_line_prefix_template: Not needed: the output of ranks is labelled.
    """
    check_one_node(num_nodes, node_rank)
    env = {"ACCELERATE_MIXED_PRECISION": mixed_precision.lower()}
    fields: dict[str, Any] = {} if num_processes is None else {"num_ranks": num_processes}
    with Client.connect() as client:
        group = client.start(grace_seconds=0, python=sys.executable, cwd=os.getcwd(), env=env, **fields)
        try:
            group.launch(function, *args)
        finally:
            group.shutdown()
