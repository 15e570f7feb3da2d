"""torch's flight recorders, all that there are: what a build for CUDA has beside a CPU build is as it was seen on an H200."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

import pytest
from rankclient import RankClient
from waits import PATIENCE


@pytest.fixture
def records():
    """Imported by tests, not by all who collect this file: it imports torch."""
    from jupyter_dist.rank.collectives.diagnosis import records

    return records


def entry(
    record_id: int, name: str, group: list[str], seq: int, *, retired: bool = False, pg_id: int = 0
) -> dict[str, Any]:
    """As torch 2.11 writes it."""
    return {
        "record_id": record_id, "pg_id": pg_id, "process_group": group, "collective_seq_id": seq, "p2p_seq_id": 0,
        "op_id": seq, "profiling_name": name, "time_created_ns": 1795676513042116316 + seq, "input_sizes": [[2]],
        "input_dtypes": ["Float"], "output_sizes": [[2]], "output_dtypes": ["Float"], "state": "scheduled",
        "is_p2p": False, "retired": retired, "timeout_ms": 600000,
    }  # fmt: skip


def status(begun: int, completed: int) -> dict[str, str]:
    return {"last_enqueued_collective": str(begun), "last_completed_collective": str(completed)}


def dumps(monkeypatch, torch_recorders, **names):
    """Give torch these recorders, and take its own away."""
    for name in ("_dump_fr_trace_json", "_dump_nccl_trace_json", "_dump_fr_trace", "_dump_nccl_trace"):
        monkeypatch.delattr(torch_recorders.bindings, name, raising=False)
    for name, dump in names.items():
        monkeypatch.setattr(torch_recorders.bindings, name, dump, raising=False)


# On the H200: eight collectives over NCCL and three over gloo, one of each not complete; both recorders count from 0.
OF_NCCL = {
    "pg_status": {"0": status(8, 7)},
    "entries": [entry(7, "nccl:all_reduce", ["0", "default_pg"], 8)],
}
OF_GLOO = {
    "pg_status": {"1": status(3, 3)},
    "entries": [entry(7, "gloo:all_reduce", ["1", "undefined"], 3, retired=True, pg_id=1)],
}


def test_a_build_for_devices_has_two_recorders_and_both_are_read(monkeypatch, records):
    dumps(
        monkeypatch, records.torch_recorders,
        _dump_nccl_trace_json=lambda *_: json.dumps(OF_NCCL), _dump_fr_trace_json=lambda *_: json.dumps(OF_GLOO),
    )  # fmt: skip
    assert records.are_unfinished()
    (found,) = records.unfinished_collectives()
    assert (found["backend"], found["name"], found["group"], found["seq"]) == ("nccl", "all_reduce", "0", 8)
    assert records.backends_seen() == {"nccl", "gloo"}
    since = records.collectives_since(0)
    assert [one[:2] for one in since] == [("gloo:all_reduce", "1"), ("nccl:all_reduce", "0")]
    assert [(one.operation, one.elements, one.is_p2p) for one in since] == [("all_reduce", 2, False)] * 2


def test_what_is_forgotten_in_one_recorder_is_not_in_another(monkeypatch, records):
    """Both count their records from 0; and torch's name of a group, not its number of all that ever were, tells which it is."""
    from jupyter_dist.rank.collectives.diagnosis import flight

    monkeypatch.setattr(flight, "_forgotten", set())
    first = {**OF_NCCL, "entries": [entry(0, "nccl:broadcast", ["0", "default_pg"], 1)]}
    second = {"pg_status": {"2": status(1, 0)}, "entries": [entry(0, "gloo:barrier", ["0", "default_pg"], 1, pg_id=2)]}
    dumps(monkeypatch, records.torch_recorders, _dump_nccl_trace_json=lambda *_: json.dumps(first))
    flight.forget()
    assert flight.outstanding() is None
    dumps(
        monkeypatch, records.torch_recorders,
        _dump_nccl_trace_json=lambda *_: json.dumps(first), _dump_fr_trace_json=lambda *_: json.dumps(second),
    )  # fmt: skip
    found = flight.outstanding()
    assert found is not None
    assert (found["name"], found["group"]) == ("barrier", "0")
    assert flight.outstanding("nccl") is None


def test_from_torch_2_15_each_backend_has_its_recorder(monkeypatch, records):
    asked = []

    def dump(_collectives, _active, backend="gloo"):
        asked.append(backend)
        return json.dumps(
            {"pg_status": {"0": status(1, 0)}, "entries": [entry(0, f"{backend}:all_reduce", ["0", ""], 1)]}
        )

    dump.__doc__ = "_dump_fr_trace_json(includeCollectives: bool, onlyActive: bool, backend: str = 'gloo') -> bytes"
    dumps(monkeypatch, records.torch_recorders, _dump_fr_trace_json=dump)
    assert {found["backend"] for found in records.unfinished_collectives()} >= {"gloo", "nccl2"}
    assert len(asked) == len(set(asked))


def test_a_recorder_that_fails_hides_no_other(monkeypatch, records):
    def fails(*_):
        raise RuntimeError("CUDA error: device-side assert triggered")

    dumps(
        monkeypatch,
        records.torch_recorders,
        _dump_nccl_trace_json=fails,
        _dump_fr_trace_json=lambda *_: json.dumps(OF_GLOO),
    )
    assert records.backends_seen() == {"gloo"}


def one(name: str, record_id: int, seq: int, p2p_seq: int, state: str, *, retired: bool) -> dict[str, Any]:
    """With the fields and values of torch 2.11 on an H100 (the experiment facts:stale)."""
    found = entry(record_id, f"nccl:{name}", ["0", "default_pg"], seq, retired=retired)
    return {**found, "p2p_seq_id": p2p_seq, "is_p2p": name.startswith(("send", "recv")), "state": state}


def of_nccl(monkeypatch, records, *entries):
    """As torch: the active ones are those whose end it has not seen."""

    def dump(_collectives, only_active):
        shown = [one for one in entries if not (only_active and one["state"] == "completed")]
        return json.dumps({"pg_status": {"0": status(9, 8)}, "entries": shown})

    dumps(monkeypatch, records.torch_recorders, _dump_nccl_trace_json=dump)


def test_parts_of_a_batch_end_with_it(monkeypatch, records):
    """torch never retires a send or recv of batch_isend_irecv, as stages of a pipeline call it."""
    parts = [
        one("send 0->1", 1, 1, 1, "scheduled", retired=False),
        one("recv 0<-1", 2, 1, 1, "scheduled", retired=False),
    ]
    ended, under_way = (
        one("coalesced", 3, 1, 1, state, retired=retired)
        for state, retired in (("completed", True), ("started", False))
    )
    of_nccl(monkeypatch, records, *parts, ended)
    assert records.unfinished_collectives() == []
    of_nccl(monkeypatch, records, *parts, under_way)
    assert [found["name"] for found in records.unfinished_collectives()] == ["send 0->1", "recv 0<-1", "coalesced"]
    later = one("coalesced", 5, 2, 1, "started", retired=False)  # of collectives: it has the last number of a batch
    alone = one("send 0->1", 4, 1, 2, "scheduled", retired=False)  # of no batch
    of_nccl(monkeypatch, records, *parts, ended, alone, later)
    assert [found["record"][1] for found in records.unfinished_collectives()] == [4, 5]


def test_what_torch_gives_up_on_a_device_has_not_ended(monkeypatch, records):
    """Its watchdog retires what takes longer than the time limit; the device still waits for it."""
    given_up = one("all_reduce", 6, 3, 2, "scheduled", retired=True)
    of_nccl(monkeypatch, records, one("all_reduce", 5, 2, 2, "completed", retired=True), given_up)
    assert records.unfinished_collectives() == []
    assert [found["seq"] for found in records.abandoned_collectives()] == [3]
    of_nccl(monkeypatch, records, given_up, one("all_reduce", 7, 4, 2, "completed", retired=True))  # it was only late
    assert records.abandoned_collectives() == []


def test_fields_that_changed_are_no_error(monkeypatch, records):
    other = {"pg_status": {"0": {"another": 1}}, "entries": [{"retired": False, "id": 3}]}
    dumps(monkeypatch, records.torch_recorders, _dump_fr_trace_json=lambda *_: json.dumps(other))
    assert not records.are_unfinished()
    assert records.unfinished_collectives() == []
    assert records.collectives_since(0) == []


def test_a_recorder_that_asks_the_device_is_not_read_while_a_graph_is_captured(monkeypatch, records):
    """It would end the capture (seen on an H200)."""
    from jupyter_dist.rank.collectives import captures

    class Graph:
        def capture_begin(self, pool=None):
            if pool == "none":
                raise RuntimeError("no memory")

        def capture_end(self):
            pass

    captures.watch(Graph)
    dumps(
        monkeypatch, records.torch_recorders,
        _dump_nccl_trace_json=lambda *_: json.dumps(OF_NCCL), _dump_fr_trace_json=lambda *_: json.dumps(OF_GLOO),
    )  # fmt: skip
    graph = Graph()
    for _ in range(2):
        graph.capture_begin()
        assert records.backends_seen() == {"gloo"}
        graph.capture_end()
        assert records.backends_seen() == {"nccl", "gloo"}
        with pytest.raises(RuntimeError, match="no memory"):
            graph.capture_begin("none")
        assert records.backends_seen() == {"nccl", "gloo"}


def test_no_capture_begins_while_a_recorder_is_read(records):
    from jupyter_dist.rank.collectives import captures

    begun = threading.Event()
    counted = captures._counted(begun.set)
    with captures.none_meanwhile() as may_ask:
        assert may_ask
        thread = threading.Thread(target=counted)
        thread.start()
        assert not begun.is_set()
    thread.join(PATIENCE)
    assert begun.is_set()
    captures._count(-1)


@pytest.mark.gpu
def test_the_canary_of_nccl():
    """A collective is in the recorder that ranks read; the names of recorders alone do not tell."""
    code = (
        "import torch, torch.distributed as dist\n"
        "from jupyter_dist.rank.collectives.diagnosis import counters, records\n"
        "dist.init_process_group('cpu:gloo,cuda:nccl', store=dist.HashStore(), rank=0, world_size=1)\n"
        "dist.all_reduce(torch.ones(2, device='cuda:0'))\ndist.all_reduce(torch.ones(2))\n"
        "print(sorted(records.backends_seen()), counters.collective_seq())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE, capture_output=True, text=True)
    assert done.stdout == "['gloo', 'nccl'] 2\n"


def test_the_canary_of_gloo_and_a_rank_says_when_its_collectives_are_in_no_recorder_that_it_reads(
    rank: RankClient, records: Any
) -> None:
    from jupyter_dist.rank.collectives import torch_compat

    if not torch_compat.keeps_records("gloo"):
        pytest.skip("this torch does not record gloo")
    rank.run(
        "from jupyter_dist.rank.collectives.diagnosis import counters, records\nseen, records.backends_seen = records.backends_seen, set"
    )
    rank.run("dist.barrier()")
    rank.wait_text("keeps no record of this group's collectives", "stderr")
    assert rank.run("records.backends_seen = seen; print(seen())").text() == "{'gloo'}\n"
    assert rank.run("print(counters.collective_seq())").text() == "1\n"
