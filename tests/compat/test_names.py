"""The canary: every private name of torch, IPython and Python that ranks use is there, or is left alone by design."""

import _posixsubprocess
import asyncio
import atexit
import importlib
import inspect
import io
import multiprocessing
import multiprocessing.pool
import multiprocessing.queues
import os
import pdb
import subprocess
import sys
import threading

import pytest
from waits import PATIENCE

from jupyter_dist.rank.ipython import ipython_compat
from jupyter_dist.rank.start import preload


@pytest.fixture
def torch_compat():
    """Imported by tests, not by all who collect this file: it imports torch."""
    return importlib.import_module("jupyter_dist.rank.collectives.torch_compat")


@pytest.fixture
def nccl():
    return importlib.import_module("jupyter_dist.rank.collectives.aborting.nccl")


def test_this_ipython_has_all_that_ranks_use():
    assert ipython_compat.missing() == []


def test_this_torch_has_all_that_ranks_use(torch_compat):
    assert torch_compat.missing() == []


@pytest.mark.parametrize("name", ["ipython", "torch"])
def test_what_is_missing_is_named_with_what_it_costs(name, torch_compat, monkeypatch):
    compat = torch_compat if name == "torch" else ipython_compat
    part = compat.PARTS[0]
    renamed = part._replace(names=("_renamed_in_a_later_version",))
    monkeypatch.setattr(compat, "PARTS", [renamed])
    (sentence,) = compat.missing()
    assert "_renamed_in_a_later_version" in sentence
    assert part.lost in sentence


def test_a_cell_that_never_awaits_needs_no_loop():
    async def value():
        return 7

    async def waits():
        await asyncio.sleep(0)

    assert ipython_compat.run_to_end(value()) == 7
    with pytest.raises(SyntaxError):
        ipython_compat.run_to_end(waits())


def test_an_ipython_with_other_transforms_of_cells_transforms_them_all(monkeypatch):
    manager = ipython_compat.TransformerManager()
    assert ipython_compat.transforms_as_it_comes(manager)
    manager.line_transforms = [*manager.line_transforms, lambda lines: lines]
    assert not ipython_compat.transforms_as_it_comes(manager)
    del manager.line_transforms
    assert not ipython_compat.transforms_as_it_comes(manager)
    monkeypatch.setattr(ipython_compat, "_OWN_TRANSFORMS", None)
    assert not ipython_compat.transforms_as_it_comes(manager)


def test_a_torch_without_a_name_does_without(monkeypatch, torch_compat):
    monkeypatch.delattr(torch_compat.bindings.Work, "_get_op_type")
    assert torch_compat.operations("SEND") is None
    monkeypatch.delattr(torch_compat.c10d, "_get_default_timeout")
    monkeypatch.delattr(torch_compat.c10d, "_set_pg_timeout")
    store = torch_compat.dist.HashStore()
    torch_compat.set_timeout(torch_compat.default_timeout("gloo"), store)
    assert store.timeout == torch_compat._TIMEOUT


def test_python_has_the_names_that_ranks_use():
    assert callable(_posixsubprocess.fork_exec)
    assert callable(atexit._run_exitfuncs)
    assert sys._current_frames()
    assert io.TextIOWrapper(io.BytesIO())._CHUNK_SIZE
    assert hasattr(subprocess, "_fork_exec") == (sys.version_info >= (3, 11))
    assert callable(os.register_at_fork)
    assert hasattr(multiprocessing.get_context.__self__, "_default_context")
    assert hasattr(multiprocessing.queues.Queue, "_feed")
    assert hasattr(multiprocessing.pool.Pool, "_handle_tasks")
    assert multiprocessing.SimpleQueue()._wlock
    assert hasattr(pdb.Pdb, "_last_pdb_instance") == (sys.version_info >= (3, 14))
    loop = asyncio.new_event_loop()
    assert hasattr(loop, "_scheduled")
    assert hasattr(loop, "_selector")
    loop.close()


def test_cloudpickle_has_the_functions_that_saves_know():
    """rank/state/graph/definitions.py leaves out the number by which cloudpickle finds a living class again."""
    definitions = importlib.import_module("jupyter_dist.rank.state.graph.definitions")
    functions = vars(importlib.import_module("cloudpickle.cloudpickle"))
    for name, place in definitions._TRACKERS.items():
        assert list(inspect.signature(functions[name]).parameters)[place] == "class_tracker_id"


def test_an_nccl_abort_that_fails_or_hangs_is_no_success(monkeypatch, nccl, torch_compat):
    def refuses(_):
        raise AttributeError("no attribute 'abort'")

    monkeypatch.setattr(nccl, "ABORT_SECONDS", 60)
    monkeypatch.setattr(nccl, "_attempts", [])
    monkeypatch.setattr(torch_compat, "device_groups", lambda: ["world", "tensor-parallel"])
    monkeypatch.setattr(torch_compat, "abort", lambda _: None)
    assert nccl.abort() is None
    monkeypatch.setattr(torch_compat, "abort", refuses)
    assert nccl.abort() == "torch raised AttributeError: no attribute 'abort'"
    may_end = threading.Event()
    monkeypatch.setattr(torch_compat, "abort", lambda _: may_end.wait())
    monkeypatch.setattr(nccl, "ABORT_SECONDS", 0.01)
    assert "has not ended" in nccl.abort()
    assert "has not ended" in nccl.abort()  # the same attempts: no others beside them
    assert [thread.name for thread in threading.enumerate()].count("abort communicators") == 2
    may_end.set()
    monkeypatch.setattr(nccl, "ABORT_SECONDS", 60)
    for attempt in nccl._attempts:
        attempt.join(PATIENCE)
    assert nccl.abort() is None


def test_communicators_that_wait_for_each_other_are_aborted_at_the_same_time(monkeypatch, nccl, torch_compat):
    """Two that hang on one device: an abort returns when the other one's kernel has ended (seen on an H200)."""
    both = threading.Barrier(2)
    monkeypatch.setattr(nccl, "ABORT_SECONDS", PATIENCE)
    monkeypatch.setattr(nccl, "_attempts", [])
    monkeypatch.setattr(torch_compat, "device_groups", lambda: ["world", "tensor-parallel"])
    monkeypatch.setattr(torch_compat, "abort", lambda _: both.wait(PATIENCE))
    assert nccl.abort() is None


class _OldBackend:
    """What a process group over NCCL has in torch 2.5."""

    def __init__(self, calls):
        self._shutdown = lambda: calls.append("shutdown")


def test_nccl_groups_of_torch_without_abort_are_aborted_by_their_backend(monkeypatch, torch_compat):
    calls = []
    monkeypatch.setattr(torch_compat, "_device_backend", lambda group: _OldBackend(calls))
    torch_compat.abort(object())
    assert calls == ["shutdown"]


@pytest.mark.parametrize(
    ("config", "is_on_device"),
    [
        ("cpu:gloo,cuda:gloo", False), ("cpu:gloo,cuda:nccl", True), ("cpu:nccl,cuda:nccl", True),
        ("cuda:nccl-legacy", True), ("cuda:nccl2", True), ("xpu:xccl", True),
    ],
)  # fmt: skip
def test_groups_on_devices_are_known_by_the_names_of_their_backends(config, is_on_device, monkeypatch, torch_compat):
    """Not by their class, of which torch 2.15 has two; gloo groups may lie between."""

    class Group:
        def _get_backend(self, device):
            return device.type

    group = Group()
    monkeypatch.setattr(torch_compat, "process_groups", lambda: [group])
    monkeypatch.setattr(torch_compat, "_configs", lambda: {group: config})
    assert torch_compat.device_groups() == ([group] if is_on_device else [])


def test_only_waits_for_gloo_are_cut_into_slices(monkeypatch, torch_compat):
    """torch ends the communicator of NCCL's when a wait for it has a timeout that passes (seen on an H200)."""
    gloo, other = "This Backend doesn't support getDuration.", "getDuration only works if timing was enabled."

    class Work:
        def __init__(self, says):
            self.says = says

        def _get_duration(self):
            raise RuntimeError(self.says)

    def is_of_host(says, *configs):
        monkeypatch.setattr(torch_compat, "_configs", lambda: dict(enumerate(configs)))
        return torch_compat.is_of_host(Work(says))

    monkeypatch.delattr(torch_compat.bindings, "ProcessGroupNCCL2", raising=False)
    assert is_of_host("", "cpu:gloo,cuda:gloo")
    assert is_of_host(gloo, "cpu:gloo,cuda:nccl")
    assert is_of_host(gloo, "cpu:gloo", "cuda:nccl")
    assert not is_of_host(other, "cpu:gloo,cuda:nccl")
    assert not is_of_host(gloo, "cpu:gloo,xpu:xccl")  # what its works say is not known
    dist = torch_compat.dist
    monkeypatch.undo()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        work = dist.all_reduce(torch_compat.torch.ones(1), async_op=True)
        with pytest.raises(RuntimeError, match="doesn't support getDuration"):
            work._get_duration()
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize(
    ("version", "has_old_name"), [("2.5.1+cu124", True), ("2.6.0", True), ("2.7.0", False), ("2.13.0+cpu", False)]
)
def test_the_recorder_is_on_where_torch_has_it_off(version, has_old_name, monkeypatch, torch_compat):
    monkeypatch.setattr(torch_compat.torch, "__version__", version)
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "300")
    monkeypatch.setenv("TORCH_NCCL_TRACE_BUFFER_SIZE", "")
    monkeypatch.delenv("TORCH_NCCL_TRACE_BUFFER_SIZE")  # what the call sets is taken back after the test
    torch_compat.keep_records()
    assert os.environ.get("TORCH_NCCL_TRACE_BUFFER_SIZE") == ("300" if has_old_name else None)


@pytest.mark.parametrize("without", ["", "delattr(c10d, '_abort_process_group')"])
def test_process_groups_are_dropped_with_and_without_the_abort_of_torch(without):
    """Torch before 2.6 has none: their communicators were aborted before, so that destroying does not wait."""
    code = (
        "import torch.distributed as dist, torch.distributed.distributed_c10d as c10d\n"
        "from jupyter_dist.rank.collectives import torch_compat\n"
        "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
        f"hasattr(c10d, '_abort_process_group') and {without or None}\n"
        "dist.new_group([0])\n"
        "torch_compat.drop_process_groups()\n"
        "assert not dist.is_initialized()"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=PATIENCE).returncode == 0


def test_torch_has_the_names_that_tensors_of_clients_travel_by(torch_compat):
    """Of jupyter_dist/objects/pickling.py, which ranks and kernels have in common."""
    storage = torch_compat.torch.ones(2)._typed_storage()
    assert storage._untyped_storage.nbytes() == 8
    again = torch_compat.torch.storage.TypedStorage(
        wrap_storage=storage._untyped_storage, dtype=storage.dtype, _internal=True
    )
    assert again.dtype == storage.dtype
    sparse = torch_compat.torch.eye(2).to_sparse()  # for objects/data/tensors.py
    assert (sparse._indices().shape, sparse._values().shape) == ((2, 2), (2,))


def test_a_module_of_ipython_that_is_not_there_ends_no_start():
    code = (
        "from jupyter_dist.rank.start import preload\n"
        "preload._NEEDED, preload._EARLY, preload._optional = (), ('IPython.core.not_in_this_version',), list\n"
        "preload.preload([])"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_modules_that_are_imported_before_ranks_are_forked_are_there():
    for name in preload._EARLY:
        importlib.import_module(name)
