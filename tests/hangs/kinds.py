"""The hang bench: cells that can never end, and innocent ones that look like it, with the verdict expected of each.

Four ranks. A kind is a cell (and the ranks that it goes to); docs/how-to/find-a-hang.md prints this table.
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
    verdict: str = "cannot_end"


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
    Hang(
        "an exception",
        f"assert rank != 1, 'no data'\ndist.all_reduce({ONES})",
        "missing",
        "0,2-3",
        "1",
        "AssertionError: no data",
    ),
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
    Hang("a new process group by one rank", "if rank == 0: dist.new_group([0, 1])", "missing", "0", "1", "new_group"),
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
    Hang(
        "recv from a rank that is at a barrier",
        f"dist.recv({ONES}, 0) if rank == 1 else dist.barrier()",
        "mismatch",
        "0-3",
        "",
        "recv",
    ),
    Hang(
        "a barrier that a rank skips which has sent messages",
        "if rank: dist.barrier()",
        "missing",
        "1-3",
        "0",
        "barrier",
        first=f"for other in range(1, 4):\n    if rank == 0: dist.send({ONES}, other)\n    if rank == other: dist.recv({ONES}, 0)",
    ),
    Hang("irecv", f"if rank == 0: dist.irecv({ONES}, 1).wait()", "missing", "0", "1", "recv (peer 1)"),
    # A rank does not come, and something else hides it.
    Hang(
        "an asynchronous collective that one rank skips, then a barrier",
        f"if rank != 1: work = dist.all_reduce({ONES}, async_op=True)\ndist.barrier()",
        "mismatch",
        "0-3",
        "",
        "all_reduce, float [4] on ranks 0,2-3; barrier on rank 1",
    ),
    Hang(
        "an asynchronous broadcast that one rank skips, then all_reduce",
        f"if rank != 1: work = dist.broadcast(torch.ones(5), 0, async_op=True)\ndist.all_reduce({ONES})",
        "mismatch",
        "0-3",
        "",
        "broadcast, float [5] on ranks 0,2-3; all_reduce, float [4] on rank 1",
    ),
    Hang(
        "one all_gather less, then another",
        f"for _ in range(2 - (rank == 2)): work = dist.all_gather([{ONES}] * 4, {ONES}, async_op=True)\nwork.wait(); dist.barrier()",
        "mismatch",
        "0-3",
        "",
        "Rank 2 waits in barrier",
    ),
    Hang(
        "tensors of other sizes",
        "dist.all_reduce(torch.ones(4 if rank else 8))",
        "shapes",
        "0",
        "1-3",
        "float [8] on rank 0",
    ),
    Hang("a barrier of a subgroup", "if rank == 1: dist.barrier(low)", "missing", "1", "0", "group", first=PAIRS),
    Hang(
        "another dimension of a mesh",
        "dist.all_reduce(torch.ones(1), group=mesh.get_group('tp' if rank == 2 else 'dp'))",
        "missing",
        "0,2",
        "3",
        "Rank 0 waits for rank 2, which is in process group",
        first="mesh = dist.init_device_mesh('cpu', (2, 2), mesh_dim_names=('dp', 'tp'))",
    ),
    Hang(
        "a thread that the cell joins",
        "import threading\nif rank == 0:\n    thread = threading.Thread(target=dist.barrier); thread.start(); thread.join()",
        "missing",
        "0",
        "1-3",
        "barrier",
    ),
    Hang(
        "the result of an executor's thread",
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\nif rank == 0: pool.submit(dist.barrier).result()",
        "missing",
        "0",
        "1-3",
        "barrier",
    ),
    Hang(
        "DDP is made on some ranks",
        "if rank < 2: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))",
        "missing",
        "0-1",
        "2-3",
        "DistributedDataParallel",
    ),
    Hang(
        "one batch more with DDP",
        "for _ in range(1 + (rank == 0)): model(torch.ones(1, 2)).sum().backward()",
        "missing",
        "0",
        "1-3",
        "against",
        first=DDP,
    ),
    Hang(
        "a DTensor is made full on rank 0",
        "if rank == 0: sharded.full_tensor()",
        "missing",
        "0",
        "1-3",
        "DTensor.full_tensor",
        first="from torch.distributed.tensor import distribute_tensor, Shard\nsharded = distribute_tensor(torch.ones(4), dist.init_device_mesh('cpu', (4,)), [Shard(0)])",
    ),
    Hang(
        "gather_object without its root",
        "if rank: dist.gather_object(rank, None, 0)",
        "missing",
        "1-3",
        "0",
        "gather_object",
    ),
    Hang(
        "broadcast_object_list that the root does not call",
        "if rank: dist.broadcast_object_list([rank], 0)",
        "missing",
        "1-3",
        "0",
        "broadcast_object_list (root 0)",
    ),
    Hang(
        "a barrier where an exception is handled",
        "try:\n    assert rank != 2\nexcept AssertionError:\n    dist.barrier()",
        "missing",
        "2",
        "0-1,3",
        "line 4 of cell",
    ),
    Hang("an exit", "if rank == 1: raise SystemExit\ndist.barrier()", "missing", "0,2-3", "1", "SystemExit"),
    # All come, to different places.
    Hang(
        "a ring in which all send first",
        f"dist.send({ONES}, (rank + 1) % 4); dist.recv({ONES}, (rank - 1) % 4)",
        "mismatch",
        "0-3",
        "",
        "send",
    ),
    Hang(
        "isend and irecv with the wrong neighbour",
        f"ops = [dist.P2POp(dist.irecv, {ONES}, (rank + 1) % 4), dist.P2POp(dist.isend, {ONES}, (rank + 1) % 4)]\nfor work in dist.batch_isend_irecv(ops): work.wait()",
        "mismatch",
        "0-3",
        "",
        "peer",
    ),
    Hang(
        "another tag",
        f"if rank < 2: dist.send({ONES}, 1, tag=1) if rank == 0 else dist.recv({ONES}, 0, tag=2)",
        "mismatch",
        "0-1",
        "",
        "tag 2",
    ),
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
    Hang(
        "a collective in a thread that the cell awaits",
        "import asyncio\nif rank == 0:\n    await asyncio.to_thread(dist.barrier)",
        "missing",
        "0",
        "1-3",
        "barrier in a thread, number",
    ),
    Hang(
        "a collective in a thread that the cell looks after",
        "import threading, time\nif rank < 2:\n    thread = threading.Thread(target=dist.barrier); thread.start()\n"
        "    while thread.is_alive(): time.sleep(0.2)",
        "busy",
        "0-1",
        "2-3",
        "rank 2 is idle since cell",
        verdict="waits",
    ),
    # Nothing shows that it cannot end.
    Hang(
        "most ranks wait in a store",
        "if rank: dist.distributed_c10d._get_default_store().wait(['never'])",
        "still",
        "1-3",
        "",
        "ranks 1-3 are at line 1 of cell",
        verdict="waits",
    ),
    Hang(
        "all ranks in one lock",
        "import threading\nlock = threading.Lock(); lock.acquire()\nlock.acquire()",
        "still",
        "0-3",
        "",
        "ranks 0-3 are at line 3 of cell",
        verdict="waits",
    ),
]

# A cell is looked at after 0.6 s, again 0.7 s later, and then every 3 s (parts/hangs/agent/hangwatch.py). What computes meanwhile takes no
# longer than the first two looks need.
INNOCENT = [
    Innocent("computes", "import time\nend = time.monotonic() + 2.2\nwhile time.monotonic() < end: pass"),
    Innocent("sleeps", "import time; time.sleep(2.5)"),
    Innocent(
        "rank 0 prepares, the others wait at a barrier",
        "if rank == 0:\n    import time; time.sleep(3)\ndist.barrier()",
    ),
    Innocent("one slow rank", f"import time; time.sleep(3 * (rank == 2)); dist.all_reduce({ONES})"),
    Innocent(
        "many collectives",
        "import time\nend = time.time() + 2.2\nt = torch.ones(1)\nwhile t.item() > 0:\n    t.fill_(float(time.time() < end)); dist.broadcast(t, 0)",
    ),
    Innocent("one rank computes alone", "import time; time.sleep(2.5)", "1"),
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
    Innocent(
        "the handler of a signal, on idle ranks",
        "import os, signal, subprocess\n"
        "def stop(*_):\n    signal.signal(signal.SIGUSR1, signal.SIG_DFL); dist.barrier()\n"
        "signal.signal(signal.SIGUSR1, stop)\n"
        "if rank: subprocess.Popen(['sh', '-c', f'sleep 3; kill -USR1 {os.getpid()}'])\nelse: stop()",
    ),
    Innocent(
        "a callback of a pool of processes, on idle ranks",
        "import multiprocessing as mp, time\nif rank == 0: dist.barrier()\nelse:\n"
        "    pool = mp.get_context('fork').Pool(1)\n"
        "    pool.apply_async(time.sleep, (3,), callback=lambda _: dist.barrier())",
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
    # Something of an idle rank comes by itself.
    Innocent(
        "a timer of an idle rank",
        f"import threading\nif rank: threading.Timer(2.5, dist.all_reduce, [{ONES}]).start()\nelse: dist.all_reduce({ONES})",
    ),
    Innocent(
        "a thread in a module of an idle rank",
        f"import hanging, threading\nif rank: threading.Thread(target=hanging.later, args=[{ONES}]).start()\nelse: dist.all_reduce({ONES})",
    ),
    Innocent(
        "an executor of an idle rank",
        "import time\nfrom concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\nif rank: pool.submit(time.sleep, 2.5); pool.submit(dist.barrier)\nelse: dist.barrier()",
    ),
    Innocent(
        "a call of an idle rank's event loop",
        "import asyncio\nif rank: asyncio.get_event_loop().call_later(2.5, dist.barrier)\nelse: dist.barrier()",
    ),
    Innocent(
        "a task of an idle rank's event loop",
        "import asyncio\nasync def later():\n    await asyncio.sleep(2.5); dist.barrier()\nif rank: task = asyncio.get_event_loop().create_task(later())\nelse: dist.barrier()",
    ),
    # The wait has a limit of its own.
    Innocent(
        "a wait with a time limit",
        f"from datetime import timedelta\nif rank == 0:\n    try: dist.all_reduce({ONES}, group=low, async_op=True).wait(timedelta(seconds=2.5))\n    except RuntimeError: print('late')",
        first=PAIRS,
    ),
    Innocent(
        "a monitored barrier with a time limit",
        "from datetime import timedelta\nif rank == 0:\n    try: dist.monitored_barrier(low, timeout=timedelta(seconds=2.5))\n    except RuntimeError: print('late')",
        first=PAIRS,
    ),
    Innocent(
        "a process group with a time limit",
        f"if rank == 2:\n    try: dist.all_reduce({ONES}, group=short)\n    except RuntimeError: print('late')",
        first="from datetime import timedelta\nshort = dist.new_group([2, 3], timeout=timedelta(seconds=2.5))",
    ),
    Innocent(
        "an alarm that ends the wait",
        "import signal\ndef late(*_): raise TimeoutError\nif rank == 0:\n    before = signal.signal(signal.SIGALRM, late); signal.alarm(3)\n    try: dist.barrier(low)\n    except TimeoutError: print('late')\n    signal.signal(signal.SIGALRM, before)",
        first=PAIRS,
    ),
    # Ranks are in the same call by other ways, or at other moments.
    Innocent(
        "a wait on one rank, the call on another",
        f"import time\nif rank == 3: time.sleep(2.5)\ndist.all_reduce({ONES}, async_op=True).wait() if rank == 1 else dist.all_reduce({ONES})",
    ),
    Innocent(
        "the root of a broadcast has left", f"import time\nif rank == 3: time.sleep(2.5)\ndist.broadcast({ONES}, 0)"
    ),
    Innocent(
        "gather, whose root is late",
        "import time\nif rank == 0: time.sleep(2.5)\ndist.gather(torch.ones(1), [torch.ones(1) for _ in range(4)] if rank == 0 else None, 0)",
    ),
    Innocent(
        "objects from a slow rank",
        "import time\nif rank == 2: time.sleep(2.5)\ndist.all_gather_object([None] * 4, rank)",
    ),
    Innocent(
        "a new process group that one rank makes late",
        "import time\nif rank == 1: time.sleep(2.5)\nlate = dist.new_group([0, 1])",
    ),
    Innocent("DDP that one rank makes late", f"import time\nif rank == 1: time.sleep(2.5)\n{DDP}"),
    Innocent(
        "isend and irecv, one rank late",
        f"import time\nif rank == 1: time.sleep(2.5)\nops = [dist.P2POp(dist.irecv, {ONES}, (rank - 1) % 4, tag=3), dist.P2POp(dist.isend, {ONES}, (rank + 1) % 4, tag=3)]\nfor work in dist.batch_isend_irecv(ops): work.wait()",
    ),
    Innocent("a cell that awaits before it comes", "import asyncio\nif rank: await asyncio.sleep(2.5)\ndist.barrier()"),
    Innocent(
        "Python code while a collective is under way",
        f"import time\nwork = dist.all_reduce({ONES}, async_op=True) if rank == 0 else None\nend = time.monotonic() + 2.2\nwhile time.monotonic() < end: sum(range(100))\nif rank: dist.all_reduce({ONES})\nelse: work.wait()",
    ),
]
