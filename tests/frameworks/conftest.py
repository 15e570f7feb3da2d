"""One group for the rows of one framework; its first cells import that framework, as a user's would."""

from __future__ import annotations

import pytest

from .ranks import two_ranks


@pytest.fixture(scope="module")
def ranks(request, tmp_path_factory):
    """Two ranks, whose zygote imports what the module's PRELOAD names, and LIBRARIES if they are installed."""
    preload, libraries = (getattr(request.module, name, []) for name in ("PRELOAD", "LIBRARIES"))
    with two_ranks(tmp_path_factory.mktemp("group"), preload, libraries) as group:
        yield group


@pytest.fixture(scope="module")
def cuda_ranks(tmp_path_factory):
    """Two ranks on the first two GPUs."""
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("NCCL needs a GPU per rank, and there are fewer than two")
    cuda = {"accelerator": "cuda", "backend": "nccl", "devices": [0, 1]}
    with two_ranks(tmp_path_factory.mktemp("cuda"), **cuda) as group:
        yield group
