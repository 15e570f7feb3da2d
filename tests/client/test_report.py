"""Status as people read it. The GPU's values are written by hand: no GPU is needed, and none is seen here."""

from jupyter_dist.client.answers.infos import MemorySampleInfo
from jupyter_dist.client.blocking.report import devices_line, status_text

RANK = {"rank": 1, "local_rank": 1, "pid": 7, "device": "cuda:1", "state": "idle", "message": None, "exit": None}
GROUP = {
    "name": "train",
    "state": "ready",
    "world_size": 2,
    "backend": "nccl",
    "accelerator": "cuda",
    "devices": [3, 4],
    "ranks": [RANK],
    "note": None,
    "error": None,
}
GIB = 1 << 30


def test_a_rank_on_a_gpu():
    sample = MemorySampleInfo(
        {"ranks": [{"rank": 1, "allocated_bytes": 8 * GIB, "reserved_bytes": 10 * GIB, "resident_bytes": 3 * GIB}]}
    )
    devices = [{"index": 4, "name": "NVIDIA H100", "memory_total_bytes": 80 * GIB}]
    assert status_text(GROUP, sample, "", devices).splitlines()[1] == (
        "  rank 1: idle, pid 7, on cuda:1 (GPU 4, NVIDIA H100), "
        "8.00 of 80.00 GiB allocated (10%), 10.00 reserved, 3.00 GiB of host memory"
    )
    assert "8.00 GiB allocated, 10.00 reserved" in status_text(GROUP, sample, "")
    assert devices_line(GROUP) == "Devices: rank 1 on cuda:1 (GPU 4)"


def test_a_dead_rank_says_why():
    dead = {**RANK, "state": "dead", "exit": {"reason": "was killed by SIGKILL"}}
    assert status_text({**GROUP, "ranks": [dead]}, None, "").endswith("(GPU 4): was killed by SIGKILL")
