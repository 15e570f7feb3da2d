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


def large(num_nodes=128, per_node=8):
    """A group of 1024 ranks: one dead, one node that is not reached, others alike but for their memory."""
    ranks = [
        {**RANK, "rank": rank, "local_rank": rank % 8, "device": f"cuda:{rank % 8}"}
        for rank in range(num_nodes * per_node)
    ]
    ranks[17] = {**ranks[17], "state": "dead", "exit": {"reason": "was killed by SIGKILL"}}
    devices = [{"index": 0, "name": "NVIDIA H100", "uuid": None, "memory_bytes": 80 * GIB}] * per_node
    nodes = [
        {"node": node, "host": f"n{node}", "state": "joined", "message": None, "ranks": [], "address": "10.0.0.1",
         "interface": "ib0", "devices": devices}
        for node in range(num_nodes)
    ]  # fmt: skip
    nodes[5] = {**nodes[5], "state": "unreachable", "message": "Its link is lost."}
    return {**GROUP, "world_size": len(ranks), "ranks": ranks, "nodes": nodes, "devices": list(range(8))}


def test_the_status_of_1024_ranks_is_one_screen_and_what_differs_is_first():
    entries = [
        {"rank": rank, "allocated_bytes": (8 + rank % 3) * GIB, "reserved_bytes": 10 * GIB, "resident_bytes": GIB}
        for rank in range(1024)
    ]
    lines = status_text(large(), MemorySampleInfo({"ranks": entries}), "").splitlines()
    assert lines[1:] == [
        "  rank 17: dead, on cuda, 10.00 GiB allocated, 1.00 GiB of host memory: was killed by SIGKILL",
        "  ranks 0-16,18-1023: idle, on cuda, 8.00 to 10.00 GiB allocated each, 9205.0 in all,"
        " 1.00 GiB of host memory each, 1023.0 in all",
        "Node 5: n5 unreachable, 8 x NVIDIA H100 (80 GiB). Its link is lost.",
        "Nodes 0-4,6-127: n0 ... n127 joined, 8 x NVIDIA H100 (80 GiB) each.",
    ]


def test_however_many_ranks_differ_the_status_stays_one_screen():
    group = large()
    group["ranks"] = [{**rank, "message": f"stopped in step {rank['rank']}"} for rank in group["ranks"]]
    lines = status_text(group, None, "").splitlines()
    assert len(lines) < 24
    assert any("more kinds of ranks: --json lists each" in line for line in lines)
