"""Which errors are of a collective, what they break, and that all others are reported as they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rankclient import RankClient, Result

MakeGroup = Callable[..., list[RankClient]]

MODEL = """
import time
from datetime import timedelta
from torch.distributed.fsdp import fully_shard
world = dist.group.WORLD
model = torch.nn.Linear(4, 4)
fully_shard(model)
pair = dist.new_group([0, 1])
"""
STEP = """
model(torch.ones(1, 4)).sum().backward()
dist.all_reduce(torch.ones(1), group=pair)
print(dist.group.WORLD is world)
"""
PHRASES = (
    "cannot fetch the weights from [::1]:5432: Connection reset by peer",
    "cannot open shard: Too many levels of symbolic links",
    "third_party/gloo could not be built",
    "the tracker said: NCCL communicator was aborted",
    "simulator: out of memory, cell 5",
)
WORKER = """
import torch.utils.data as data
class Remote(data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, i): raise RuntimeError("Connection reset by peer")
list(data.DataLoader(Remote(), num_workers=1))
"""
PICKLED = """
class Remote:
    def __reduce__(self): raise RuntimeError("Connection closed by peer")
dist.all_gather_object([None, None], Remote())
"""
CHILD = "import concurrent.futures as cf\ncf.ThreadPoolExecutor(1).submit(exec, \"raise RuntimeError('Connection reset by peer')\").result()"


def run_all(group: list[RankClient], code: str) -> list[Result]:
    started = [rank.start(code) for rank in group]
    return [rank.result(execution_id) for rank, execution_id in zip(group, started)]


def rejoin(group: list[RankClient], tmp_path: Path) -> None:
    numbers = [rank.post_rejoin(tmp_path / "again") for rank in group]
    assert all(rank.answer(number)["ok"] for rank, number in zip(group, numbers))


def test_errors_of_users_are_reported_word_for_word_and_break_nothing(make_group: MakeGroup) -> None:
    group = make_group(2)
    run_all(group, MODEL)
    for phrase in PHRASES:
        result = group[0].run(f"raise RuntimeError({phrase!r})")
        assert result.error["evalue"] == result.reply["evalue"] == phrase
        assert (result.reply["process_group"], result.text("stderr")) == ("ok", "")
    for code in (WORKER, CHILD, PICKLED):
        result = group[0].run(code)
        assert "Connection" in result.error["evalue"]
        assert "Another rank" not in result.traceback
        assert (result.status, result.reply["process_group"], result.text("stderr")) == ("error", "ok", "")
    assert [result.text() for result in run_all(group, STEP)] == ["True\n"] * 2


LATE = {
    "all_reduce": "dist.all_reduce(torch.ones(1), group=short)",
    "recv": "dist.recv(torch.ones(1), src=1, group=short) if rank == 0 else dist.send(torch.ones(1), dst=0, group=short)",
    "monitored_barrier": "dist.monitored_barrier(short, timeout=timedelta(seconds=0.5))",
}


def test_a_timeout_in_a_subgroup_is_a_timeout_and_breaks_only_that(make_group: MakeGroup) -> None:
    group = make_group(2)
    run_all(group, MODEL)
    for call in LATE.values():
        run_all(group, "short = dist.new_group([0, 1], timeout=timedelta(seconds=0.5), group_desc='short')")
        first = group[0].run(call)
        assert (first.status, first.reply["process_group"]) == ("error", "ok")
        assert re.search(r"Timed out waiting \d{1,3}ms", first.error["evalue"])  # what is left of the 500 ms
        assert "After a timeout a process group is unusable (short). Create it again" in first.text("stderr")
        late = group[1].run(call)
        assert (late.status, late.reply["process_group"]) == ("error", "ok")
        assert "Connection closed by peer" in late.error["evalue"]
        assert "Another rank closed its connections" in late.text("stderr")
        again = group[0].run(call)
        assert "unusable" in again.text("stderr")
        assert [result.text() for result in run_all(group, STEP)] == ["True\n"] * 2


def test_a_timeout_in_the_default_process_group_breaks_it(make_group: MakeGroup, tmp_path: Path) -> None:
    group = make_group(2)
    run_all(group, "from datetime import timedelta")
    for _ in range(2):
        first = group[0].run("dist.monitored_barrier(timeout=timedelta(seconds=0.5))")
        assert first.error["evalue"].startswith("[Rank 0]: Rank 1 failed to pass monitoredBarrier in 500 ms")
        assert first.reply["process_group"] == "broken"
        assert "The process group is re-created before the next cell; variables are kept." in first.text("stderr")
        rejoin(group, tmp_path)
        # A limit of one wait breaks nothing.
        code = "w = dist.all_reduce(torch.ones(1), async_op=True)\nif rank == 0: w.wait(timedelta(seconds=0.2))"
        limited = group[0].run(code)
        assert limited.error["evalue"] == "Operation timed out!"
        assert (limited.reply["process_group"], limited.text("stderr")) == ("ok", "")
        assert group[1].run(f"{code}\nw.wait()").status == "ok"
        assert [result.status for result in run_all(group, "dist.barrier()")] == ["ok"] * 2
        tmp_path /= "next"
        tmp_path.mkdir()


LEAVES = "if rank == 1: dist.destroy_process_group()\n"
WRAPPED = """
kept = None
if rank == 0:
    try: dist.recv(torch.ones(1), src=1)
    except RuntimeError as err:
        kept = err
        raise {raised}
"""


@pytest.mark.parametrize("raised", ["ValueError('training failed') from err", "RuntimeError(f'mine: {err}')"])
def test_an_error_that_a_lost_rank_caused_keeps_its_text(make_group: MakeGroup, tmp_path: Path, raised: str) -> None:
    group = make_group(2)
    result = run_all(group, LEAVES + WRAPPED.replace("{raised}", raised))[0]
    assert result.error["evalue"].startswith(("training failed", "mine: [/"))
    assert result.reply["process_group"] == "broken"
    assert "Another rank closed its connections" in result.text("stderr")
    rejoin(group, tmp_path)
    # Raised later, it says nothing about the new process group.
    later = group[0].run("raise kept")
    assert (later.status, later.reply["process_group"]) == ("error", "ok")
    assert [result.status for result in run_all(group, "dist.barrier()")] == ["ok"] * 2


CALLS = {
    "backward": "net(torch.ones(1, 2)).sum().backward()",
    "work": "dist.all_reduce(torch.ones(1), async_op=True).wait()",
    "future": "dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()",
    "method": "dist.group.WORLD.allreduce([torch.ones(1)]).wait()",
    "functional": "print(fc.all_reduce(torch.ones(1), 'sum', dist.group.WORLD) + 1)",
    "object": "dist.all_gather_object([None, None], 1)",
    "sharded": "print(part.full_tensor())",
}
SETUP = """
import torch.distributed._functional_collectives as fc
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel as DDP
net = DDP(torch.nn.Linear(2, 2))
part = distribute_tensor(torch.ones(4), dist.init_device_mesh("cpu", (2,)), [Shard(0)])
"""


def test_a_lost_rank_is_recognized_wherever_the_collective_was_called(make_group: MakeGroup) -> None:
    group = make_group(2)
    run_all(group, SETUP)
    group[1].start("import os\nos._exit(1)")
    for call in CALLS.values():
        result = group[0].run(call)
        assert "Another rank closed its connections" in result.error["evalue"], call
        assert result.reply["process_group"] == "broken", call
