"""All torch internals that ranks use. If a version lacks a part, ranks work without it and report it.

`tests/compat` checks every name against the installed version; docs/compatibility.md lists the tested versions.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as bindings
from torch.autograd import profiler as autograd_profiler
from torch.distributed import distributed_c10d as c10d
from torch.nn.parallel import DistributedDataParallel
from torch.utils import _python_dispatch

from jupyter_dist.protocol.accelerators import DEVICE_TYPES

# Torch's own exceptions, below RuntimeError.
ERRORS: tuple[type[BaseException], ...] = tuple(
    kind
    for name in ("DistError", "DistBackendError", "DistNetworkError", "DistStoreError")
    if (kind := getattr(dist, name, None)) is not None
)
# Torch's exceptions of devices since 2.8; before, a RuntimeError.
DEVICE_ERRORS: tuple[type[BaseException], ...] = tuple(
    filter(None, (getattr(torch, "AcceleratorError", None), *ERRORS))
)
Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]

_TIMEOUT = timedelta(minutes=30)  # of collectives, if torch has no name for its default
DEVICE_TIMEOUT = timedelta(weeks=4)  # see set_timeout
# Backends that abort their communicators. The other two names of NCCL's are of torch 2.15.
ON_DEVICES = frozenset({"nccl", "nccl-legacy", "nccl2", "xccl"})
_FUNCTIONS = {
    "SEND": "send",
    "RECV": "recv",
    "RECVANYSOURCE": "recv",
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "BROADCAST": "broadcast",
    "REDUCE": "reduce",
    "GATHER": "gather",
    "SCATTER": "scatter",
    "BARRIER": "barrier",
}


class TorchPart(NamedTuple):
    """Alternative names, of which ranks need one, and the feature that users lose if there is none."""

    owner: Any
    names: tuple[str, ...]
    lost: str


PARTS = [
    TorchPart(torch._C, ("DisableTorchFunction",), "variables listed while a mode of torch functions is on"),
    TorchPart(c10d, ("_get_default_timeout",), "torch's own default timeout of collectives (it is 30 minutes)"),
    TorchPart(c10d, ("_set_pg_timeout",), "a timeout of collectives apart from the one of the start"),
    TorchPart(c10d._world, ("group_count",), "a second try after init_process_group() failed"),
    TorchPart(c10d._world, ("pg_map",), "process groups that are left because gloo lost a collective's end"),
    TorchPart(c10d._world, ("pg_names",), "ending a collective that hangs on a device"),
    TorchPart(c10d._world, ("pg_backend_config",), "which backends a process group has"),
    TorchPart(c10d._world, ("pg_group_ranks",), "the ranks of the process group that a rank waits in"),
    TorchPart(dist.ProcessGroup, ("_get_sequence_number_for_group",), "the number of a rank's collectives"),
    TorchPart(dist.ProcessGroup, ("_get_backend",), "ending a collective that hangs on a device"),
    TorchPart(DistributedDataParallel, ("_update_process_group",), "DDP models whose backward() was interrupted"),
    TorchPart(dist.ProcessGroup, ("_register_backend",), "subgroups and meshes after the process group was re-created"),
    TorchPart(c10d, ("_update_default_pg",), "subgroups and meshes after the process group was re-created"),
    TorchPart(c10d, ("_process_group_name",), "subgroups and meshes after the process group was re-created"),
    TorchPart(bindings, ("_register_process_group",), "subgroups and meshes after the process group was re-created"),
    TorchPart(
        bindings, ("_unregister_all_process_groups",), "subgroups and meshes after the process group was re-created"
    ),
    TorchPart(dist.ProcessGroup, ("_id",), "the threads of gloo's connections that were replaced"),
    TorchPart(bindings.Work, ("_get_duration",), "interrupts of gloo's collectives in a group that has NCCL, too"),
    TorchPart(bindings.Work, ("_get_op_type",), "the end of a collective whose end gloo lost"),
    TorchPart(bindings, ("OpType",), "the end of a collective whose end gloo lost"),
    TorchPart(
        autograd_profiler, ("_enable_profiler",), "a whole process where a cell with %%profile uses torch's profiler"
    ),
    TorchPart(
        torch.autograd, ("_profiler_enabled",), "a whole process where a cell with %%profile uses torch's profiler"
    ),
    TorchPart(torch._logging, ("_init_logs",), "TORCH_LOGS that a cell sets"),
    TorchPart(
        bindings, ("_dump_fr_trace_json", "_dump_nccl_trace_json"), "the name of the collective that a rank waits in"
    ),
]


def missing() -> list[str]:
    """Return a sentence for each part that this torch lacks."""
    return [
        f"torch {torch.__version__} has no {' or '.join(part.names)}: ranks lack {part.lost}."
        for part in PARTS
        if not any(hasattr(part.owner, name) for name in part.names)
    ]


def _version() -> tuple[int, ...]:
    return tuple(map(int, torch.__version__.split(".")[:2]))


def keep_records() -> None:
    """Enable the flight recorder in torch before 2.7, where it is off by default.

    Later versions use TORCH_FR_BUFFER_SIZE, which the agent sets, and warn about the old name in every rank's log.
    """
    if _version() < (2, 7):
        os.environ.setdefault("TORCH_NCCL_TRACE_BUFFER_SIZE", os.environ.get("TORCH_FR_BUFFER_SIZE", "256"))


# -- the profiler -------------------------------------------------------------------------------------


def wrap_profiler(beginning: Wrap, ending: Wrap) -> None:
    """Wrap the functions that begin a session of torch's profiler with `beginning`, and the others with `ending`."""
    for name, wrap in (
        ("_prepare_profiler", beginning),
        ("_enable_profiler", beginning),
        ("_disable_profiler", ending),
    ):
        if hasattr(autograd_profiler, name):
            setattr(autograd_profiler, name, wrap(getattr(autograd_profiler, name)))


def is_profiling() -> bool:
    """Whether a session of torch's profiler is on in this thread; True if this torch cannot report it."""
    find: Callable[[], bool] = getattr(torch.autograd, "_profiler_enabled", lambda: True)
    return find()


# -- process groups -----------------------------------------------------------------------------------


def set_group_timeout(timeout: timedelta, group: Any) -> None:
    """Set the timeout of the collectives of a process group.

    Around backends of TORCH_DISTRIBUTED_DEBUG=DETAIL torch finds none to set, and warns of it.
    """
    if hasattr(c10d, "_set_pg_timeout"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            c10d._set_pg_timeout(timeout, group)


def set_timeout(timeout: timedelta, store: dist.Store | None = None) -> None:
    """Set the timeout of the default process group and its store; on devices, none that counts.

    When a collective on a device exceeds the timeout, torch forgets it, although the device still waits: then no record
    names the collective. The agent watches instead.
    """
    (store or c10d._get_default_store()).set_timeout(timeout)
    set_group_timeout(timeout, dist.group.WORLD)
    of_device = _device_backend(dist.group.WORLD)
    if of_device is not None and hasattr(of_device, "_set_default_timeout"):
        of_device._set_default_timeout(DEVICE_TIMEOUT)
    if isinstance(getattr(c10d, "default_pg_nccl_timeout", None), timedelta):  # of groups that cells create
        c10d.default_pg_nccl_timeout = DEVICE_TIMEOUT


def name_ranks_of_default() -> None:
    """Set the list of ranks in the backends of the default process group, as torch does for a process's first group.

    torch takes an empty list for all ranks only where it is the first process group that the process has ever made.
    Dividing a later one, as meshes on devices do, reads beyond the end of that list (seen on an H100: SIGSEGV).
    """
    world = dist.group.WORLD
    for backend in backends_of(world).values():
        options: Any = getattr(backend, "options", None)
        if getattr(options, "global_ranks_in_group", None) == []:
            options.global_ranks_in_group = list(range(dist.get_world_size(world)))


def gives_up_on_devices() -> bool:
    """Whether torch gives up collectives on devices at a time limit: one of user code's, or of its process groups."""
    options = [getattr(_device_backend(group), "options", None) for group in process_groups()]
    limits = [getattr(option, "_timeout", None) for option in options]
    return any(isinstance(limit, timedelta) and limit < DEVICE_TIMEOUT for limit in limits)


def default_timeout(backend: str) -> timedelta:
    """Return torch's default timeout of collectives."""
    find: Callable[[Any], timedelta] = getattr(c10d, "_get_default_timeout", lambda _: _TIMEOUT)
    return find(dist.Backend(backend))


def can_change_timeout(backend: str) -> bool:
    """Whether a timeout that is set later counts; gloo before torch 2.9 keeps its first timeout.

    Seen with 2.5.1, 2.7.1 and 2.8.0 (kept) and 2.9.1 (changed).
    """
    return "gloo" not in backend or _version() >= (2, 9)


def asks_backends_for_place() -> bool:
    """Whether a process group asks the backend of its default type for its rank and its size, as from torch 2.15 on."""
    return _version() >= (2, 15)


def timeout_of(group: Any) -> timedelta:
    """Return the timeout of a process group over gloo; of the default one, if `group` is none."""
    group = group if isinstance(group, dist.ProcessGroup) else dist.group.WORLD
    try:
        timeout = group._get_backend(torch.device("cpu")).options._timeout
    except (AttributeError, RuntimeError):
        return default_timeout("gloo")
    return timeout if isinstance(timeout, timedelta) else default_timeout("gloo")


_left_behind: list[Any] = []


def leave_groups_behind(close: Callable[[], None]) -> None:
    """Forget all process groups, and keep them: freeing them in a forked child would act on the parent's connections.

    Args:
        close: torch's destroy_process_group.
    """
    groups = process_groups()
    _left_behind.extend((groups, [_backends(group) for group in groups]))
    c10d._world.pg_names.clear()  # the groups that `close` would shut down
    close()


class _Held(NamedTuple):
    group: Any
    backends: list[Any]
    models: Sequence[Callable[[], Any]]  # weak references


_held: list[_Held] = []


def hold_backends_of_models(group: Any) -> None:
    """Keep the backends of process groups that are destroyed until no DDP model has one any more.

    Freeing such a model would join gloo's threads with the GIL held, which these may wait for (pytorch#56297); objects
    that Python holds are freed without the GIL.
    """
    groups = process_groups() if group in (None, dist.group.WORLD) else [group]
    users = [each for each in gc.get_objects() if issubclass(type(each), DistributedDataParallel)]
    for each in groups:
        models = [weakref.ref(model) for model in users if vars(model).get("process_group") is each]
        if models:
            _held.append(_Held(each, _backends(each), models))


def release_backends() -> None:
    """Free the backends whose models are gone, or were moved to another process group."""
    _held[:] = [held for held in _held if any(_uses(reference(), held.group) for reference in held.models)]


def _uses(model: Any, group: Any) -> bool:
    return model is not None and vars(model).get("process_group") is group


def _backends(group: dist.ProcessGroup) -> list[Any]:
    found = []
    for kind in ("cpu", *DEVICE_TYPES):
        with suppress(RuntimeError, AttributeError):  # it has no backend for this device type
            found.append(group._get_backend(torch.device(kind)))
    return found


def read_log_settings() -> str:
    """Make torch read TORCH_LOGS and similar variables again; return torch's error message about them."""
    init_logs = getattr(getattr(torch, "_logging", None), "_init_logs", None)
    if init_logs is None:
        return "this version of torch reads it when it is imported. Set it when the group starts (--env)."
    try:
        init_logs()
    except Exception as err:  # an unknown name, a file that cannot be written
        return str(err).strip()
    return ""


def forget_failed_init() -> None:
    """Reset torch's counter: after a failed `init_process_group`, ranks disagree on the next group's name and hang."""
    if hasattr(c10d, "_world"):
        c10d._world.group_count = 0


def names_of_groups() -> dict[Any, str]:
    """Return torch's name of each process group, which is the same on its ranks."""
    return dict(getattr(c10d._world, "pg_names", {}))


def process_groups() -> list[dist.ProcessGroup]:
    """Return all process groups of this process, newest first."""
    names = names_of_groups()
    return sorted(names, key=names.__getitem__, reverse=True)


def backends() -> list[Any]:
    """Return the backends of all process groups."""
    return [backend for group in process_groups() for backend in backends_of(group).values()]


class GroupOf(NamedTuple):
    """A process group: how to call it, and the ranks in it."""

    description: str
    members: list[int]


def group_given(group: Any) -> Any:
    """Return the process group of an argument of torch: None means the default one; return None for other values."""
    group = getattr(dist.group, "WORLD", None) if group is None else group
    return group if isinstance(group, dist.ProcessGroup) else None


def describe_group(group: Any) -> GroupOf:
    """Describe a process group, given by itself, by torch's number of it, or None for the default one."""
    group = group_of(group)
    if group is getattr(dist.group, "WORLD", None):
        return GroupOf("default", list(range(dist.get_world_size())) if dist.is_initialized() else [])
    ranks: dict[int, int] = getattr(c10d._world, "pg_group_ranks", {}).get(group, {})
    described = str(getattr(group, "group_desc", "") or "").replace("undefined", "")
    return GroupOf(described or f"number {names_of_groups().get(group, '')}", sorted(ranks))


def group_of(group: Any) -> Any:
    """Return the process group that is given by itself, by its name, or by None for the default one."""
    if isinstance(group, str):
        group = next((known for known, name in names_of_groups().items() if name == group), None)
    return group if isinstance(group, dist.ProcessGroup) else getattr(dist.group, "WORLD", None)


def number_of(counting: Any) -> int | None:
    """Return how many collectives a process group, or one of its backends, has begun; None if torch does not count."""
    with suppress(RuntimeError, AttributeError):  # a backend without a counter
        return int(counting._get_sequence_number_for_group())
    return None


def backends_of(group: Any) -> dict[str, Any]:
    """Return the backends of a process group by name."""
    with suppress(RuntimeError, AttributeError):
        return {name: group._get_backend(torch.device(device)) for name, device in _configured(group).items()}
    return {}


def _configured(group: Any) -> dict[str, str]:
    """Return the backends of a process group, each with one of its device types: {"gloo": "cpu", "nccl": "cuda"}."""
    return _parsed(str(_configs().get(group, "")))


def _configs() -> dict[Any, Any]:
    found: dict[Any, Any] = getattr(c10d._world, "pg_backend_config", {})
    return found


@cache
def _parsed(config: str) -> dict[str, str]:
    pairs = [pair.rpartition(":") for pair in config.split(",") if pair]
    return {backend: device for device, _, backend in pairs}


def keeps_records(backend: str) -> bool:
    """Whether this torch is known to record the collectives of a backend (docs/compatibility.md)."""
    return backend == "nccl" or (backend == "gloo" and _version() >= (2, 12))


def gloo_class() -> Any:
    """Return the class of process groups over gloo; None if torch was built without it."""
    return getattr(bindings, "ProcessGroupGloo", None)


def tcp_store_class() -> Any:
    """Return the class of stores over TCP."""
    return bindings.TCPStore


# -- one collective -----------------------------------------------------------------------------------


def operations(*names: str) -> set[int] | None:
    """Return the numbers of these operations, as `operation_of` returns them; None if torch does not have them."""
    types = getattr(bindings, "OpType", None)
    if types is None or not hasattr(bindings.Work, "_get_op_type"):
        return None
    return {int(getattr(types, name)) for name in names if hasattr(types, name)}


def operation_of(work: Any) -> int:
    """Return the operation of a work; only if `operations` returned numbers."""
    return int(work._get_op_type())


def operation_name(work: Any) -> str | None:
    """Return the function that made a work, for example `recv`; None if it is no work, or torch does not report it."""
    types = getattr(bindings, "OpType", None)
    if types is None or not hasattr(work, "_get_op_type"):
        return None
    number = operation_of(work)
    return next((function for name, function in _FUNCTIONS.items() if number == int(getattr(types, name, -1))), None)


def is_of_host(work: Any) -> bool:
    """Whether a work is gloo's. torch ends the communicator of NCCL's when a wait for it has a timeout that passes.

    Works of both have one class in Python, but gloo's has no duration.
    """
    names = backend_names()
    if names <= {"gloo"}:
        return True
    if not names <= {"gloo", "nccl"} or hasattr(bindings, "ProcessGroupNCCL2") or not hasattr(work, "_get_duration"):
        return False
    try:
        work._get_duration()
    except RuntimeError as err:
        return "doesn't support getDuration" in str(err)
    return False


def replace_store_waits(wait: Wrap, get: Wrap) -> None:
    """Replace `wait` and `get` of all stores by the results of these wrappers for the original methods."""
    store_class: Any = bindings.Store
    store_class.wait, store_class.get = wait(store_class.wait), get(store_class.get)


def replace_init(kind: Any, make: Wrap) -> None:
    """Replace the constructor of a torch class by the result of `make` for the original constructor."""
    kind.__init__ = make(kind.__init__)


def replace_wait(make: Callable[[Callable[..., bool]], Callable[..., bool]]) -> None:
    """Replace `Work.wait` by the result of `make` for the original method."""
    work_class: Any = bindings.Work
    work_class.wait = make(work_class.wait)


def backend_names() -> set[str]:
    """Return the backends of this process's groups, such as gloo and nccl."""
    return {name for config in list(_configs().values()) for name in _parsed(str(config))}


# -- abort --------------------------------------------------------------------------------------------


def device_groups() -> list[dist.ProcessGroup]:
    """Return the process groups that have communicators on devices, newest first; groups over gloo may lie between.

    By the names of their backends: torch has two classes for NCCL, and a third that wraps either.
    """
    return [group for group in process_groups() if _device_backend(group) is not None]


def _device_backend(group: Any) -> Any:
    configured = _configured(group)
    for name in ON_DEVICES & configured.keys():
        with suppress(RuntimeError):  # it has none for this device type
            return group._get_backend(torch.device(configured[name]))
    return None


def abort(group: dist.ProcessGroup) -> None:
    """Abort the communicators of one of the `device_groups`. Errors of torch pass through, and AttributeError."""
    if hasattr(group, "abort") and len(_configured(group)) < 2:  # since torch 2.7
        group.abort()
    else:  # gloo beside it is not to be asked. `_shutdown` is of torch 2.5
        backend = _device_backend(group)
        (getattr(backend, "abort", None) or backend._shutdown)()


def drop_process_groups() -> None:
    """Drop all process groups after an abort: closing them would wait for collectives that never complete."""
    if hasattr(c10d, "_abort_process_group"):  # since torch 2.6
        c10d._abort_process_group()
    else:
        dist.destroy_process_group()


# -- devices ------------------------------------------------------------------------------------------


def use_device(device: str) -> None:
    """Make a device the current one of this thread; a rank on CPU has none to choose."""
    chosen = torch.device(device)
    if chosen.type in DEVICE_TYPES:
        getattr(torch, chosen.type).set_device(chosen)


def initialised_devices() -> list[str]:
    """Return the device types that were initialized in the parent of this forked process."""
    modules = {kind: getattr(torch, kind) for kind in DEVICE_TYPES if hasattr(torch, kind)}
    return [kind for kind, module in modules.items() if getattr(module, "_is_in_bad_fork", module.is_initialized)()]


def has_device(device: torch.device) -> bool:
    """Whether this process can use a device; torch has all devices that it does not count, such as the CPU."""
    module = getattr(torch, device.type, None)
    if device.type not in DEVICE_TYPES or module is None:
        return device.type not in DEVICE_TYPES
    return bool(module.is_available()) and (device.index or 0) < module.device_count()


def devices_in_use() -> list[str]:
    """Return the device types that this process has initialized."""
    modules = {kind: getattr(torch, kind) for kind in DEVICE_TYPES if hasattr(torch, kind)}
    return [kind for kind, module in modules.items() if module.is_initialized()]


def wrapper_parts(tensor: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """Return the function and arguments that make a tensor which wraps others, without them; None for plain tensors."""
    make = getattr(torch._utils, "_rebuild_wrapper_subclass", None)
    kind = type(tensor)
    if make is None or kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
        return None
    shape = (tuple(tensor.size()), tensor.stride(), tensor.storage_offset())
    return make, (kind, tensor.dtype, *shape, tensor.layout, tensor.device, tensor.requires_grad)


_SIMPLE = frozenset(
    (
        *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
)


def is_simple(tensor: Any) -> bool:
    """Whether a tensor is no more than its place in a storage, as most are."""
    is_plain = type(tensor) is torch.Tensor and tensor.dtype in _SIMPLE and not tensor.__dict__
    is_dense = tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_conj() or tensor.is_neg())
    return is_plain and is_dense and (tensor.is_cpu or tensor.is_cuda)


def simply_reduced(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Reduce a simple tensor without hooks as torch does, in a third of the time: models have thousands."""
    storage = torch.storage.TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype, _internal=True)
    place = (tensor.storage_offset(), tuple(tensor.size()), tensor.stride())
    return torch._utils._rebuild_tensor_v2, (storage, *place, tensor.requires_grad, None)


def rebuilt_tensor(storage: Any, *place: Any) -> Any:
    """Return a tensor as torch does for pickle, which looks for modes of fake tensors once for each of thousands."""
    offset, size, stride, needs_grad, hooks, *more = place
    if hooks or more or torch._C._len_torch_dispatch_stack():
        return torch._utils._rebuild_tensor_v2(storage, *place)
    tensor = torch._utils._rebuild_tensor(storage, offset, size, stride)
    return tensor.requires_grad_() if needs_grad else tensor


def has_hooks(tensor: Any) -> bool:
    """Whether a tensor calls functions in its backward pass."""
    return bool(getattr(tensor, "_backward_hooks", None) or getattr(tensor, "_post_accumulate_grad_hooks", None))


# Of devices; on CPU torch raises a RuntimeError.
OutOfMemoryError: type[BaseException] = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)


def local_tensor(value: Any) -> Any:
    """Return this rank's part of a DTensor; None for anything else."""
    module = sys.modules.get("torch.distributed.tensor")
    if module is None or type(value) is not getattr(module, "DTensor", None):
        return None
    return object.__getattribute__(value, "_local_tensor")


def is_sharded(kind: type) -> bool:
    """Whether FSDP2 (`fully_shard`) has made a class of modules from the user's class."""
    places = ("torch.distributed.fsdp", "torch.distributed._composable.fsdp")  # the latter before torch 2.6
    known = [getattr(sys.modules.get(place), "FSDPModule", None) for place in places]
    return any(sharded is not None and issubclass(kind, sharded) for sharded in known)


def is_compiled(module: torch.nn.Module) -> bool:
    """Whether a module was compiled in place, by its method `compile`."""
    return getattr(module, "_compiled_call_impl", None) is not None


def has_compiled() -> bool:
    """Whether torch has compiled any function in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return bool(dynamo is not None and dynamo.counters.get("frames"))


def has_comm_hook(model: Any) -> bool:
    """Whether a DDP model averages its gradients by a hook of the user."""
    return bool(getattr(model, "_comm_hooks", ()))


def without_functions() -> AbstractContextManager[Any]:
    """Return a context in which no `__torch_function__` of users runs: of a class, or a mode that is on."""
    disable = getattr(torch._C, "DisableTorchFunction", None)
    return nullcontext() if disable is None else disable()


def without_dispatch_modes() -> AbstractContextManager[Any]:
    """Return a context in which no `__torch_dispatch__` mode is on."""
    context: AbstractContextManager[Any] = _python_dispatch._disable_current_modes()
    return context


def dispatch_modes() -> list[Any]:
    """Return the `__torch_dispatch__` modes that are on, outermost first."""
    return list(_python_dispatch._get_current_dispatch_mode_stack())


def leave_dispatch_modes(before: list[Any]) -> None:
    """Turn off the modes that were turned on since `before` was returned by `dispatch_modes`."""
    now = dispatch_modes()
    if now[: len(before)] == before:
        for _ in now[len(before) :]:
            _python_dispatch._pop_mode()


def print_options() -> dict[str, Any]:
    """Return the options with which tensors are printed; a change takes effect."""
    return vars(torch._tensor_str.PRINT_OPTS)


def storage_id(storage: torch.UntypedStorage) -> int:
    """Return the identity of a storage, which all tensors that share it have in common."""
    return int(storage._cdata)


def is_view(tensor: torch.Tensor) -> bool:
    """Return whether autograd takes a tensor for a view of another one."""
    with without_functions():
        return bool(tensor._is_view())


def base_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the tensor that a tensor is a view of; None if it is none."""
    with without_functions():
        return tensor._base


def version_of(tensor: torch.Tensor) -> int | None:
    """Return the number of changes in place that autograd has counted; None of an inference tensor."""
    with without_functions(), suppress(RuntimeError):
        return int(tensor._version)
    return None


def set_version(tensor: torch.Tensor, version: int) -> None:
    """Set the number of changes in place, where this torch can: graphs compare it with the number that they saved."""
    write = getattr(torch._C._autograd, "_unsafe_set_version_counter", None)
    for arguments in (((tensor,), (version,)), (tensor, version)):  # the latter before torch 2.6
        with suppress(TypeError, RuntimeError):
            if write is not None:
                write(*arguments)
                return


def attention_kernels() -> tuple[bool, ...]:
    """Return which kernels of scaled_dot_product_attention are on: flash, memory-efficient, plain."""
    cuda = torch.backends.cuda
    return cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled()


def set_attention_kernels(enabled: tuple[bool, ...]) -> None:
    """Turn kernels of scaled_dot_product_attention on or off, as `attention_kernels` returns them."""
    cuda = torch.backends.cuda
    cuda.enable_flash_sdp(enabled[0])
    cuda.enable_mem_efficient_sdp(enabled[1])
    cuda.enable_math_sdp(enabled[2])
