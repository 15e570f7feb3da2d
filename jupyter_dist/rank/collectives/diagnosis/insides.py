"""Users' names of the parts of torch that call collectives for them: DistributedDataParallel, FSDP, DTensor."""

from __future__ import annotations

from jupyter_dist.rank.guard.own import os

# Folders and files of torch, with the part of torch in them. The first match counts.
_PARTS = [
    (os.path.join("torch", *path.split("/")), name)
    for path, name in (
        ("nn/parallel/distributed.py", "DistributedDataParallel"),
        ("distributed/fsdp/", "FSDP"),
        ("distributed/_composable/fsdp/", "FSDP"),
        ("distributed/checkpoint/", "torch.distributed.checkpoint"),
        ("distributed/pipelining/", "torch.distributed.pipelining"),
        ("distributed/optim/", "torch.distributed.optim"),
        ("distributed/algorithms/join.py", "Join"),
        ("distributed/device_mesh.py", "DeviceMesh"),
        ("distributed/tensor/", "DTensor"),
        ("distributed/_tensor/", "DTensor"),
        ("nn/modules/_functions.py", "SyncBatchNorm"),
    )
]


def name(filename: str, function: str) -> str | None:
    """Return the part of torch that a function belongs to, with the function if users call it; None for other code."""
    part = next((name for path, name in _PARTS if path in filename), None)
    if part is None or function.startswith(("_", "<", "wrapper")) or function == "decorate_context":
        return f"{part}()" if part is not None and function == "__init__" else part
    return f"{part}.{function}"
