"""What a rank measures of its pace: real cells, sampled by the side thread."""

from __future__ import annotations

import gc
import linecache
import sys
import time
from collections.abc import Iterator

import pytest
from rankclient import RankClient
from waits import PATIENCE, until

pytestmark = pytest.mark.part("slow")

CODE = """import time, gc
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self): return 1000000
    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.zeros(1)
grown, numbers, steady = [], [], [1, 2, 3]
class Strategy: pass
class Trainer:
    def __init__(self):
        self.strategies = [Strategy()]
        self.strategies[0].model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
trainer = Trainer()
from torch.distributed.fsdp import fully_shard
def build():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Sequential(torch.nn.Linear(8, 2), torch.nn.Linear(2, 2)))
    return fully_shard(model[1]), fully_shard(model)
part, sharded = build()  # the part has a name of its own
adam = torch.optim.AdamW(sharded.parameters())
sgd = torch.optim.SGD(trainer.strategies[0].model.parameters(), lr=1e-3)
for number, batch in enumerate(DataLoader(Slow(), batch_size=2)):
    track(loss=1.0, step=number)
    grown.append((number,)); numbers.append(number)
    dist.all_reduce(batch)
    gc.collect(0)
    trainer.strategies[0].model(torch.ones(1, 3)).sum().backward()
    sharded(torch.ones(1, 4)).sum().backward()
    if number % 4 == 3:
        sgd.step()
        adam.step()
"""


def gather(rank: RankClient, wanted: int) -> list[dict]:
    """Return the answers until so many samples found the loader, and enough steps were taken and counted.

    On a busy machine other lines take as long as the loader, and there may be fewer steps than samples.
    """
    answers = [rank.ask("pace", max_arrivals=256)]

    def enough() -> bool:
        answers.append(rank.ask("pace", max_arrivals=256))
        num_loading = sum(row[1] for answer in answers for row in answer["samples"] if row[4] is not None)
        num_updates = sum(row[2] for answer in answers for row in answer["updates"])
        num_collections = sum(answer["collections"][0] for answer in answers)
        grown_by = sum(row[2] for row in answers[-1]["grown"])
        num_sharded = sum(row[3] for answer in answers for row in answer["sharded_updates"])
        return num_loading >= wanted and min(num_updates, num_sharded) > 0 and min(num_collections, grown_by) > 5

    until(enough, lambda: answers[-1])
    return answers


@pytest.fixture(scope="module")
def answers(shared: RankClient) -> Iterator[list[dict]]:
    assert shared.ask("pace", max_arrivals=256)["execution_id"] is None
    execution_id = shared.start(CODE)
    until(lambda: shared.ask("pace", max_arrivals=256)["execution_id"] == execution_id)
    try:
        yield gather(shared, 6)
    finally:
        shared.interrupt(execution_id)
        shared.result(execution_id)


def test_samples_name_the_users_line_and_what_it_does(answers: list[dict]) -> None:
    rows = [row for answer in answers for row in answer["samples"]]
    loading = [row for row in rows if row[4] is not None]
    assert {row[0] for row in loading} == {"input"}
    (line,) = {tuple(row[3][1:]) for row in loading}
    assert line == (22, "<module>", "for number, batch in enumerate(DataLoader(Slow(), batch_size=2)):")
    assert {tuple(row[4][1:]) for row in loading} == {(6, "__getitem__", "time.sleep(0.005)")}
    assert all(row[2] >= 0 for row in rows)


def test_each_collective_is_reported_once_with_its_begin(answers: list[dict]) -> None:
    seqs = [row[3] for answer in answers for row in answer["arrivals"]]
    if not seqs:
        pytest.skip("this torch keeps no records of gloo's collectives")
    assert len(set(seqs)) == len(seqs)
    assert seqs == sorted(seqs)
    kinds = {tuple(row[1:3]) for answer in answers for row in answer["arrivals"]}
    assert {("all_reduce", 8), ("all_reduce", 16)} <= kinds  # the batch, and the gradients
    row = next(answer["arrivals"][-1] for answer in reversed(answers) if answer["arrivals"])
    assert 0 <= time.monotonic() - row[4] / 1e6 < PATIENCE


def test_collectives_on_devices_are_reported_once_their_durations_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    from jupyter_dist.parts.slow.rank import arrivals  # imports torch

    def entry(number: int, duration: float | None) -> dict:
        """As torch 2.11 writes it on an H200, with TORCH_NCCL_ENABLE_TIMING=1."""
        return {
            "record_id": number, "process_group": ["0", "default_pg"], "collective_seq_id": number + 1, "is_p2p": False,
            "profiling_name": "nccl:all_reduce", "time_created_ns": time.time_ns(), "input_sizes": [[2, 3]],
            "input_dtypes": ["BFloat16"], "retired": duration is not None, "duration_ms": duration,
            "time_discovered_completed_ns": None if duration is None else time.time_ns(),
        }  # fmt: skip

    kept: list[dict] = []
    monkeypatch.setattr(arrivals.counters, "counts", lambda: {"0": 3})
    monkeypatch.setattr(arrivals.records, "entries_by_recorder", lambda: {"of the device": kept})
    reader = arrivals.Arrivals(0)
    kept += [entry(0, 1.5), entry(1, None), entry(2, None)]
    (first,) = reader.take(256)
    assert (first.name, first.num_bytes, first.seq, first.took, first.on_device) == ("all_reduce", 12, 1, 1500, True)
    kept[1:] = [entry(1, 2.0), entry(2, 3.0) | {"duration_ms": None}]  # torch marks it before it asks the device
    assert [arrival.took for arrival in reader.take(256)] == [2000]
    kept[2] = entry(2, 3.0)
    assert [arrival.took for arrival in reader.take(256)] == [3000]
    assert reader.take(256) == []
    kept.append(entry(3, None) | {"duration_ms": None})
    for one in kept:
        one["duration_ms"] = None
    monkeypatch.setattr(arrivals.counters, "counts", lambda: {"0": 4})
    (last,) = reader.take(256)  # torch measures none: it is reported when it begins
    assert (last.seq, last.took) == (4, None)


def test_looking_for_unused_parameters_is_an_activity_of_the_line_of_the_forward_pass() -> None:
    from torch.nn.parallel.distributed import _find_tensors

    from jupyter_dist.parts.slow.rank import stacks

    class Outputs(dict):
        def values(self):
            found.append(stacks.doing_in(sys._getframe(1), namespace))
            return super().values()

    found: list = []
    namespace = {"look": _find_tensors, "outputs": Outputs(a=1)}
    exec(compile("\nlook(outputs)", "<ipython-input-1-abc>", "exec"), namespace)
    ((activity, line, *_),) = found
    assert (activity, line.number) == ("unused", 2)


def test_stacks_that_torch_keeps_to_find_anomalies_are_python_code_of_the_line(monkeypatch) -> None:
    import torch
    from torch.fx import traceback

    from jupyter_dist.parts.slow.rank import stacks

    def look() -> list:
        found.append(stacks.doing_in(sys._getframe(1), namespace))
        return []

    found: list = []
    namespace = {"layer": torch.nn.Linear(2, 2), "ones": torch.ones(1, 2)}
    monkeypatch.setattr(traceback.traceback, "extract_stack", look)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        exec(compile("\nlayer(ones)", "<ipython-input-1-abc>", "exec"), namespace)
    assert {(doing.activity, doing.line.number, doing.runs) for doing in found} == {("run", 2, "python")}


def test_growth_steps_and_collections_are_counted(answers: list[dict]) -> None:
    ((name, kind, by, place),) = answers[-1]["grown"]
    assert (name, kind, place[1], place[3]) == ("grown", "list", 24, "grown.append((number,)); numbers.append(number)")
    assert by > 5
    steps = [step for answer in answers for _, step in answer["steps"]]
    assert steps == list(range(steps[0], steps[-1] + 1))
    assert sum(answer["collections"][0] for answer in answers) > 5


def test_changes_of_the_parameters_of_a_model_that_a_trainer_holds_are_counted(answers: list[dict]) -> None:
    rows = [row for answer in answers for row in answer["updates"]]
    assert {tuple(row[:2]) for row in rows} == {("0", 16)}
    steps = [step for answer in answers for _, step in answer["steps"]]
    sharded = [row for answer in answers for row in answer["sharded_updates"]]
    # Four bytes for each of 24 parameters, and of 40; decay of weights is another change.
    assert {tuple(row[:3]) for row in sharded} == {("0", 96, 2)}
    assert 0 < sum(row[3] for row in sharded) <= (steps[-1] - steps[0]) / 2 + 4
    # The parameters are looked at before the first and after the last of these steps: one more change at each end.
    assert 0 < sum(row[2] for row in rows) <= (steps[-1] - steps[0]) / 4 + 2


def test_nothing_is_measured_once_the_cell_has_ended(rank: RankClient) -> None:
    execution_id = rank.start(
        "import gc\ndef found(): return 'CollectorPauses' in str(gc.callbacks)\nwhile not found(): pass"
    )
    until(lambda: rank.ask("pace", max_arrivals=1)["execution_id"] == execution_id)
    assert rank.result(execution_id).status == "ok"
    assert rank.ask("pace", max_arrivals=1)["execution_id"] is None
    assert rank.run("print(found())").text() == "False\n"


def test_the_line_that_makes_the_objects_has_the_time_of_collecting_them() -> None:
    from jupyter_dist.parts.slow.rank.pauses import CollectorPauses  # imports torch

    pauses = CollectorPauses()
    pauses.begin()
    try:
        code = "kept = [[number] for number in range(100_000)]\nfor _ in range(30):\n    gc.collect()\n"
        exec(compile(code, "<ipython-input-1-0123456789ab>", "exec"), {"gc": gc})
    finally:
        pauses.end()
    number, seconds, line = pauses.take()
    assert number >= 30
    assert seconds > 0
    assert line is not None
    assert (line.file, line.number) == ("<ipython-input-1-0123456789ab>", 3)
    assert pauses.take() == (0, 0.0, None)


def test_collectives_keep_their_times_while_the_wall_clock_is_slowed_down() -> None:
    """Network time slows a clock down for minutes: nothing that needs collectives was named meanwhile."""
    from jupyter_dist.parts.slow.rank.arrivals import WallClock  # imports torch

    ahead, second = 1_700_000_000_000_000_000, 1_000_000_000
    drift = -0.0005  # of its offset: 6 ms in 12 s

    def wall(monotonic: int) -> int:
        return monotonic + ahead + round(drift * monotonic)

    clock = WallClock.between((wall(0), 0), (wall(12 * second) - 12 * second, 12 * second))
    assert clock is not None
    for at in (second, 5 * second, 11 * second):
        assert abs(clock.monotonic(wall(at)) - at) < 10_000
    assert WallClock.between((ahead, 0), (ahead + 5 * second, second)) is None  # it was set


@pytest.mark.parametrize(
    ("line", "is_named"),
    [
        ("total += loss", True),
        ("total = total + loss", True),
        ("total = loss + total", True),
        ("total = loss", False),
        ("total = total + loss.item()", False),
        ("total = loss; total = total + loss", False),
    ],
)
def test_a_sum_that_keeps_the_graph_of_each_step_is_named(line: str, is_named: bool) -> None:
    import torch

    from jupyter_dist.parts.slow.rank.growth import Growth

    loop = "\n    ".join(["total = 0.0\nfor _ in range(3):", "loss = weight.sum()", *line.split("; ")])
    linecache.cache["<sums>"] = (len(loop), None, loop.splitlines(keepends=True), "<sums>")
    namespace = {"weight": torch.ones(2, requires_grad=True)}
    exec(compile(loop, "<sums>", "exec"), namespace)
    found = Growth().look(namespace, "<sums>")
    assert [(name, kind, place[3]) for name, kind, _, place in found] == [("total", "tensor", line)] * is_named


def test_no_metaclass_of_users_is_asked_whether_its_classes_are_alike() -> None:
    """`type(value) in (list, tuple)` would: it compares by the metaclass, and looks up by its hash."""
    from jupyter_dist.parts.checks.observing.calls import loaders
    from jupyter_dist.parts.slow.rank import updates
    from jupyter_dist.parts.slow.rank.growth import Growth
    from jupyter_dist.parts.undo.rank import fingerprint

    class Trap(type):
        def __eq__(cls, other: object) -> bool:
            raise SystemExit("eq")

        def __hash__(cls) -> int:
            raise SystemExit("hash")

    class Trapped(metaclass=Trap):
        pass

    one, growth = Trapped(), Growth()
    for count in (1, 2):
        growth.look({"one": one, "many": [one] * count}, "<cell>")
    assert set(growth._lengths) == {"many"}
    assert updates._held_by(one) == []
    assert loaders._texts_in([one, 1], (int,)) == ["1"]
    assert loaders._generators([one]) == []
    assert fingerprint._items([one]) is not None
    assert fingerprint._plain([one], 1, set()) == ((),)
