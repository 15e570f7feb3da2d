"""What a rank is told of itself: its spec, and in its environment what torchrun gives, and what NCCL needs here."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from jupyter_dist.protocol.specs import GroupSpec, RankSpec


def rank_environment(spec: GroupSpec, local_rank: int, master_port: int) -> dict[str, str]:
    """Return what a rank's environment has beyond the agent's own. What the user set in `spec.env` wins."""
    environment = {
        # torchrun's, which Fabric, Accelerate, fastai and plain scripts read. One node: rank == local_rank.
        "RANK": str(local_rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(spec.world_size),
        "LOCAL_WORLD_SIZE": str(spec.world_size),
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_RANK": str(local_rank),
        "ROLE_WORLD_SIZE": str(spec.world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(master_port),
        "TORCHELASTIC_RUN_ID": spec.group_id,  # Fabric: "launched by torchrun, do not fork"
        "FORK_LAUNCHED": "1",  # Accelerate: end_training() must not destroy the process group
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),  # torchrun's default
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        # One machine: nothing of gloo or NCCL listens beyond loopback.
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        # A ring of this size dumps in a few milliseconds; the default 2000 entries take up to 0.2 s.
        # The second name is that of torch 2.5 and 2.6, where nothing is recorded unless it is set.
        "TORCH_FR_BUFFER_SIZE": "256",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "256",
        **_device_environment(spec),
    }
    return {**environment, **spec.env}


def _device_environment(spec: GroupSpec) -> dict[str, str]:
    if spec.accelerator == "cpu":
        # Accelerator() on CPU is one process unless told; no GPU may be picked by `auto` in a CPU group.
        return {"ACCELERATE_USE_CPU": "1", "CUDA_VISIBLE_DEVICES": ""}
    return {
        # The whole list on every rank: Fabric indexes it by LOCAL_RANK.
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, spec.devices)),
        # torch's own watchdog ends the process, and with it the variables; the agent watches instead.
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
        "TORCH_NCCL_ENABLE_MONITORING": "0",
        "TORCH_NCCL_RETHROW_CUDA_ERRORS": "0",
        "TORCH_NCCL_PROPAGATE_ERROR": "0",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    }


def rank_spec(spec: GroupSpec, rank: int, store_path: Path, generation: int, master_port: int) -> RankSpec:
    """Return what a rank's process is told of itself. One node: rank == local_rank."""
    return RankSpec(
        group_id=spec.group_id,
        group_name=spec.name,
        rank=rank,
        local_rank=rank,
        world_size=spec.world_size,
        local_world_size=spec.world_size,
        accelerator=spec.accelerator,
        backend=spec.backend,
        device=f"cuda:{rank}" if spec.accelerator == "cuda" else "cpu",
        cwd=spec.cwd,
        store_path=str(store_path),
        generation=generation,
        env=rank_environment(spec, rank, master_port),
        join_timeout_seconds=spec.start_timeout_seconds,
    )


def free_port() -> int:
    """Return a loopback port that is free now, for scripts that call init_process_group("env://") themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
