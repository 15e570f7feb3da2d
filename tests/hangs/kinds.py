"""The hang bench: cells that can never end, and innocent ones that look like it, with the verdict expected of each.

Four ranks. A kind is a cell (and the ranks that it goes to); docs/how-to/hangs.md prints this table.
"""

from __future__ import annotations

from dataclasses import dataclass

EVERYONE = "0-3"


@dataclass(frozen=True)
class Hang:
    """A cell that cannot end: why, who waits, and who is waited for."""

    name: str
    code: str
    reason: str
    waiting: str
    needed: str
    says: str
    ranks: str = EVERYONE
    first: str = ""  # a cell on all ranks before it


@dataclass(frozen=True)
class Innocent:
    """A cell that ends by itself, and must never get the verdict of a hang."""

    name: str
    code: str
    ranks: str = EVERYONE
    first: str = ""


ONES = "torch.ones(4)"
PAIRS = "low, high = dist.new_group([0, 1]), dist.new_group([2, 3])\nboth = dist.new_group([0, 1])"
DDP = (
    "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))\nmodel(torch.ones(1, 2)).sum().backward()"
)

HANGS = [
    # A rank does not come.
    Hang("a collective in a cell for one rank", f"dist.all_reduce({ONES})", "missing", "0", "1-3", "all_reduce", "0"),
    Hang("a collective in a cell for some ranks", f"dist.all_reduce({ONES})", "missing", "0-1", "2-3", "idle", "0-1"),
    Hang("a barrier only on rank 0", "if rank == 0: dist.barrier()", "missing", "0", "1-3", "barrier"),
    Hang("all but one", f"if rank != 2: dist.all_reduce({ONES})", "missing", "0-1,3", "2", "not called it"),
    Hang(
        "a broadcast that the root does not call",
        f"if rank: dist.broadcast({ONES}, 0)",
        "missing",
        "1-3",
        "0",
        "root 0",
    ),
    Hang("gather without its root", "if rank: dist.gather(torch.ones(1), None, 0)", "missing", "1-3", "0", "gather"),
    Hang("scatter without its root", "if rank: dist.scatter(torch.ones(1), None, 0)", "missing", "1-3", "0", "scatter"),
    Hang("all_gather", f"if rank < 2: dist.all_gather([{ONES}] * 4, {ONES})", "missing", "0-1", "2-3", "all_gather"),
    Hang(
        "all_gather_object",
        "if rank < 2: dist.all_gather_object([None] * 4, rank)",
        "missing",
        "0-1",
        "2-3",
        "all_gather_object",
    ),
    Hang(
        "reduce_scatter",
        "if rank < 3: dist.reduce_scatter_tensor(torch.ones(1), torch.ones(4))",
        "missing",
        "0-2",
        "3",
        "reduce_scatter",
    ),
    Hang(
        "all_to_all",
        f"if rank: dist.all_to_all_single({ONES}, {ONES})",
        "missing",
        "1-3",
        "0",
        "all_to_all",
    ),
    Hang(
        "one batch more", f"for _ in range(3 + (rank == 3)): dist.all_reduce({ONES})", "missing", "3", "0-2", "against"
    ),
    Hang(
        "a return before the end",
        f"if rank != 1:\n    dist.all_reduce({ONES})",
        "missing",
        "0,2-3",
        "1",
        "line 2 of cell",
    ),
    Hang(
        "an exception that was caught",
        f"try:\n    assert rank != 1\n    dist.all_reduce({ONES})\nexcept AssertionError: pass",
        "missing",
        "0,2-3",
        "1",
        "all_reduce",
    ),
    Hang("an exception", f"assert rank != 1\ndist.all_reduce({ONES})", "missing", "0,2-3", "1", "all_reduce"),
    Hang(
        "a wait for an asynchronous one",
        f"if rank == 0: dist.all_reduce({ONES}, async_op=True).wait()",
        "missing",
        "0",
        "1-3",
        "all_reduce",
    ),
    Hang(
        "a subgroup's member",
        f"if rank == 2: dist.all_reduce({ONES}, group=high)",
        "missing",
        "2",
        "3",
        "group",
        first=PAIRS,
    ),
    Hang("a new process group by one rank", "if rank == 0: dist.new_group([0, 1])", "missing", "0", "1-3", "new_group"),
    Hang("a monitored barrier", "if rank == 0: dist.monitored_barrier()", "missing", "0", "1-3", "monitored_barrier"),
    Hang(
        "backward of DDP on one rank",
        "model(torch.ones(1, 2)).sum().backward()",
        "missing",
        "0",
        "1-3",
        "backward",
        "0",
        DDP,
    ),
    Hang(
        "a module's function",
        "import hanging\nif rank == 0: hanging.reduce(torch.ones(3))",
        "missing",
        "0",
        "1-3",
        "line 4 of hanging.py",
    ),
    Hang("recv from a rank that sends nothing", f"if rank == 0: dist.recv({ONES}, 3)", "missing", "0", "3", "peer 3"),
    Hang("irecv", f"if rank == 0: dist.irecv({ONES}, 1).wait()", "missing", "0", "1-3", "recv"),
    # All come, to different places.
    Hang(
        "another collective",
        f"(dist.all_reduce if rank else dist.broadcast)({ONES}, 0) if not rank else dist.all_reduce({ONES})",
        "mismatch",
        "0-3",
        "",
        "do not match",
    ),
    Hang(
        "another root",
        f"dist.broadcast({ONES}, (rank + 1) % 4)",
        "mismatch",
        "0-3",
        "",
        "root",
    ),
    Hang(
        "process groups in another order",
        f"one, two = (low, both) if rank else (both, low)\nif rank < 2:\n    dist.all_reduce({ONES}, group=one)\n    dist.all_reduce({ONES}, group=two)",
        "order",
        "0-1",
        "",
        "order",
        first=PAIRS,
    ),
    Hang("both receive first", f"if rank < 2: dist.recv({ONES}, 1 - rank)", "mismatch", "0-1", "", "recv"),
    Hang(
        "a rank at a barrier, the others in all_reduce",
        f"dist.barrier() if rank == 3 else dist.all_reduce({ONES})",
        "mismatch",
        "0-3",
        "",
        "barrier",
    ),
]

INNOCENT = [
    Innocent("computes", "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass"),
    Innocent("sleeps", "import time; time.sleep(3)"),
    Innocent(
        "rank 0 prepares, the others wait at a barrier",
        "if rank == 0:\n    import time; time.sleep(3)\ndist.barrier()",
    ),
    Innocent("one slow rank", f"import time; time.sleep(3 * (rank == 2)); dist.all_reduce({ONES})"),
    Innocent(
        "many collectives",
        "import time\nend = time.time() + 3\nt = torch.ones(1)\nwhile t.item() > 0:\n    t.fill_(float(time.time() < end)); dist.broadcast(t, 0)",
    ),
    Innocent("one rank computes alone", "import time; time.sleep(3)", "1"),
    Innocent(
        "collectives in a subgroup",
        f"import time\nif rank < 2:\n    time.sleep(3 * rank); dist.all_reduce({ONES}, group=low)",
        first=PAIRS,
    ),
    Innocent(
        "a ring of send and recv",
        f"import time\nif rank == 0: time.sleep(3)\nif rank: dist.recv({ONES}, rank - 1)\nif rank < 3: dist.send({ONES}, rank + 1)",
    ),
    Innocent("a slow import", "import slow_import\ndist.barrier()"),
    Innocent(
        "a DataLoader that starts",
        "import torch.utils.data as data, time\nclass Slow(data.Dataset):\n    def __len__(self): return 2\n    def __getitem__(self, i):\n        time.sleep(2); return i\nlist(data.DataLoader(Slow(), num_workers=1))\ndist.barrier()",
    ),
    Innocent("a child process", "import subprocess; subprocess.run(['sleep', '3'])"),
    Innocent(
        "a lock that a thread releases",
        "import threading, time\nlock = threading.Lock(); lock.acquire()\nthreading.Timer(3, lock.release).start(); lock.acquire()\ndist.barrier()",
    ),
    Innocent(
        "a thread of an idle rank comes later",
        f"import threading, time\ndef later():\n    time.sleep(3); dist.all_reduce({ONES})\nif rank: threading.Thread(target=later).start()\nelse: dist.all_reduce({ONES})",
    ),
    Innocent(
        "an asynchronous collective beside other work",
        f"import time\nif rank == 0: time.sleep(3)\nwork = dist.all_reduce({ONES}, async_op=True)\nif rank: time.sleep(4)\nwork.wait()",
    ),
    Innocent(
        "a wait for a file",
        "import time, pathlib\nend = time.time() + 3\nwhile time.time() < end: time.sleep(0.1)\ndist.barrier()",
    ),
    Innocent("a large transfer", "big = torch.ones(30_000_000)\nfor _ in range(6): dist.all_reduce(big)"),
]
