"""Every private name of torch that ranks use: what it means, in which builds, and how that was found.

    python tests/matrix/internals.py        with a torch: notes which names it has, and makes docs/torch-internals.md

The names are those of the files in `tests/test_architecture.py` (COMPAT); `tests/compat/test_internals.py` compares.
A build for the CPU cannot show what a name means in a build for CUDA, so the table says which one was asked.
"""

from __future__ import annotations

import ctypes
import importlib
import json
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parents[2] / "docs"
RECORD = DOCS / "torch-internals.json"
TABLE = DOCS / "torch-internals.md"
H200 = "seen on an H200 with torch 2.11 (2026-11-26)"
CPU = "seen on CPU"
UNSEEN = "not yet seen on a device"


class Name(NamedTuple):
    """One private name."""

    owner: str
    name: str
    means: str
    proof: str


C10D, BINDINGS = "torch.distributed.distributed_c10d", "torch._C._distributed_c10d"
GROUP, WORK = "torch.distributed.ProcessGroup", f"{BINDINGS}.Work"
DDP = "torch.nn.parallel.DistributedDataParallel"
FSDP1 = "torch.distributed.fsdp.FullyShardedDataParallel"
STATE = "torch.distributed.fsdp._fully_shard._fsdp_state.FSDPState"
PARAMS = "torch.distributed.fsdp._fully_shard._fsdp_param_group.FSDPParamGroup"
PARAM = "torch.distributed.fsdp._fully_shard._fsdp_param.FSDPParam"
LIBRARY = "libtorch_cpu.so"
RESIZE = f"tests/resizing/test_resizing.py: {CPU}; {UNSEEN}"
REVIVAL = f"tests/recovery/test_matrix.py: {CPU}; {UNSEEN}"

NAMES = [
    Name("torch.Tensor", "_base", "the tensor that a tensor is a view of", f"tests/undo: {CPU}; {UNSEEN}"),
    Name("torch.Tensor", "_is_view", "whether autograd takes a tensor for a view", f"tests/undo: {CPU}; {UNSEEN}"),
    Name("torch.Tensor", "_version", "the number of changes in place that autograd has counted", f"tests/undo: {CPU}; {UNSEEN}"),
    Name("torch.Tensor", "_backward_hooks", "the hooks of a tensor's gradient, by number", f"tests/undo: {CPU}; {UNSEEN}"),
    Name("torch.Tensor", "_post_accumulate_grad_hooks", "the hooks after a leaf's gradient was added, by number", f"tests/undo: {CPU}; {UNSEEN}"),
    Name("torch.nn.Module", "_compiled_call_impl", "what `compile()` has made of a module; None before", f"tests/checks: {CPU}; {UNSEEN}"),
    Name("torch", "_tensor_str", "the module whose `PRINT_OPTS` tensors are printed with", f"tests/state: {CPU}; {UNSEEN}"),
    Name("torch.utils._python_dispatch", "_disable_current_modes", "a context without `__torch_dispatch__` modes", f"tests/undo: {CPU}; {UNSEEN}"),
    Name("torch.utils._python_dispatch", "_get_current_dispatch_mode_stack", "the modes that are on", f"tests/undo: {CPU}; {UNSEEN}"),
    Name("torch.utils._python_dispatch", "_pop_mode", "turns the innermost mode off", f"tests/undo: {CPU}; {UNSEEN}"),
    Name("torch._utils", "_rebuild_tensor_v2", "makes a tensor of a storage and its place there, as torch.load does", f"tests/state: {CPU}; {UNSEEN}"),
    Name("torch._utils", "_rebuild_tensor", "the same, without gradients and hooks", f"tests/state: {CPU}; {UNSEEN}"),
    Name("torch._C", "_len_torch_dispatch_stack", "how many `__torch_dispatch__` modes are on", f"tests/state: {CPU}; {UNSEEN}"),
    Name("torch.distributed.device_mesh.DeviceMesh", "_dim_group_names", "the names of a mesh's process groups, one for each dimension; of each mesh, not of the class", f"tests/faults/test_losing.py: {CPU} with 2.13; {UNSEEN}"),
    Name("torch.distributed.device_mesh.DeviceMesh", "_root_mesh", "the mesh that a submesh was taken from", f"tests/faults/test_losing.py: {CPU} with 2.13; {UNSEEN}"),
    Name("torch.distributed.device_mesh.DeviceMesh", "_flatten_mapping", "the flattened meshes of a mesh, by name", f"tests/faults/test_losing.py: {CPU} with 2.13; {UNSEEN}"),
    Name("torch.distributed.device_mesh.DeviceMesh", "_pg_registry", "the process groups of a mesh, by name", f"tests/faults/test_losing.py: {CPU} with 2.13; {UNSEEN}"),
    Name("torch.UntypedStorage", "_cdata", "the address of a storage in C++, which its tensors have in common", f"tests/undo: {CPU}; {UNSEEN}"),
    Name("torch._C", "_autograd", "the module of autograd in C++", f"tests/undo: {CPU}; {UNSEEN}"),
    Name("torch._C._autograd", "_unsafe_set_version_counter", "sets the number of changes in place; before 2.6 of one tensor", f"tests/undo: {CPU}; {UNSEEN}"),
    Name(BINDINGS, "_dump_nccl_trace_json", "the flight recorder of NCCL, in builds for CUDA; up to torch 2.7 the only one", f"8 collectives over NCCL are in it, and none over gloo: {H200}"),
    Name(BINDINGS, "_dump_fr_trace_json", "the flight recorder of gloo; from 2.15 of each backend by its name", f"3 collectives over gloo are in it, and none over NCCL: {H200}"),
    Name(BINDINGS, "_dump_nccl_trace", "the same as `_dump_nccl_trace_json`, as pickle", f"in builds for CUDA: {UNSEEN}"),
    Name(BINDINGS, "_dump_fr_trace", "the same as `_dump_fr_trace_json`, as pickle: 0.9 ms for 256 collectives, and not 1.9", f"tests/rank/test_pace.py: {CPU}"),
    Name(C10D, "_world", "the register of process groups: pg_map, pg_names, pg_group_ranks, pg_backend_config, group_count, tags_to_pg", f"tests/compat: {CPU}; {H200}"),
    Name(C10D, "_abort_process_group", "forgets all process groups after an abort, without closing them; since 2.6", H200),
    Name(C10D, "_get_default_store", "the store of the default process group", f"tests/compat: {CPU}"),
    Name(C10D, "_get_default_timeout", "torch's own time limit of a backend", f"tests/compat: {CPU}"),
    Name(C10D, "_set_pg_timeout", "sets the time limit of a process group; gloo before 2.9 keeps the first", f"tests/rank/test_process_groups.py: {CPU}; {H200}"),
    Name(C10D, "_update_default_pg", "makes a process group the default one", REVIVAL),
    Name(C10D, "_process_group_name", "names the next process group; all ranks name one alike", REVIVAL),
    Name(BINDINGS, "_register_process_group", "the names by which functional collectives find groups", REVIVAL),
    Name(BINDINGS, "_unregister_all_process_groups", "forgets these names", REVIVAL),
    Name(GROUP, "_register_backend", "gives a process group another backend for a type of device; the first of a type of backend stays", REVIVAL),
    Name(GROUP, "_device_types", "the types of devices that a process group has backends for", REVIVAL),
    Name(GROUP, "_id", "the address of the object in C++, for `ProcessGroup::release_resources`, and for its rank and size, which a resize of the group changes", REVIVAL),
    Name(LIBRARY, "_ZN4c10d12ProcessGroup17release_resourcesEv", "makes a process group forget its backends, as torch does at its end", REVIVAL),
    Name(GROUP, "_get_backend", "the backend for a type of device", f"tests/compat: {CPU}; {H200}"),
    Name(GROUP, "_get_sequence_number_for_group", "how many collectives this rank has begun in a group", f"tests/hangs: {CPU}; {H200}"),
    Name(f"{BINDINGS}.Backend", "_set_default_timeout", "the time limit of one backend", f"tests/compat: {CPU}; {UNSEEN}"),
    Name(f"{BINDINGS}.Backend", "_shutdown", "aborts a backend in torch 2.5, which has no `abort`", f"by its source; {UNSEEN}"),
    Name(f"{BINDINGS}.Backend.Options", "_timeout", "the time limit that a backend was created with", f"tests/rank/test_process_groups.py: {CPU}"),
    Name(WORK, "_get_duration", "raises for gloo, and is there for NCCL: tells whose work it is without touching it", f"tests/compat: {CPU}; {UNSEEN}"),
    Name(WORK, "_get_op_type", "which operation a work is", f"tests/compat: {CPU}"),
    Name(DDP, "_update_process_group", "moves a DDP model to another process group, where groups cannot keep their objects", f"tests/compat: {CPU}; {H200}"),
    Name(DDP, "_build_params_for_reducer", "the parameters for a new reducer, after a step that was not completed", REVIVAL),
    Name(DDP, "_build_debug_param_to_name_mapping", "the same", REVIVAL),
    Name(DDP, "_ddp_init_helper", "makes a new reducer", REVIVAL),
    Name(DDP, "_comm_hooks", "the communication hooks that a new reducer needs", REVIVAL),
    Name(DDP, "_register_comm_hook", "registers them", REVIVAL),
    Name(DDP, "_set_static_graph", "the same for a static graph", REVIVAL),
    Name("torch.distributed.Reducer", "_remove_autograd_hooks", "takes the old reducer's hooks away", REVIVAL),
    Name(FSDP1, "_handle", "the flat parameter of an FSDP1 module", f"written; torch refuses FSDP1 on CPU; {UNSEEN}"),
    Name(FSDP1, "_is_root", "whether an FSDP1 module is the outermost", f"written; {UNSEEN}"),
    Name(FSDP1, "_exec_order_data", "the order of an FSDP1 step", f"written; {UNSEEN}"),
    Name("torch.nn.Parameter", "_local_shard", "this rank's part of a flat parameter", f"written; {UNSEEN}"),
    Name(STATE, "_fsdp_param_group", "the parameters of an FSDP2 module", REVIVAL),
    Name(STATE, "_fsdp_param_groups", "the same, in later versions", f"tests/compat; {UNSEEN}"),
    Name(STATE, "_state_ctx", "what an FSDP2 step has begun", REVIVAL),
    Name(STATE, "_comm_ctx", "streams and what is gathered ahead in FSDP2", REVIVAL),
    Name(STATE, "_modules_to_run_forward", "the same", REVIVAL),
    Name(STATE, "_training_state", "in which phase of a step an FSDP module is", REVIVAL),
    Name(PARAMS, "_post_forward_indices", "the order in which FSDP2 gathers parameters", REVIVAL),
    Name(PARAMS, "_post_backward_hook_state", "hooks of a step that was not completed", REVIVAL),
    Name(PARAMS, "_to_sharded", "gives up gathered parameters", REVIVAL),
    Name(PARAMS, "_unsharded_param", "a gathered parameter", REVIVAL),
    Name(PARAM, "_init_sharded_param", "divides a parameter of FSDP2 among the ranks of its mesh", RESIZE),
    Name(PARAM, "_init_sharded_post_forward_param_metadata", "the same for the parts that are kept after the forward pass", RESIZE),
    Name(PARAM, "_init_extensions", "finds the hooks of a parameter's own gathering", RESIZE),
    Name(PARAM, "_setattr_on_modules", "puts a parameter into its modules", RESIZE),
    Name("torch", "_utils", "how torch pickles tensors", f"tests/state: {CPU}"),
    Name("torch._utils", "_rebuild_wrapper_subclass", "makes a tensor subclass that holds others, such as a DTensor, again", f"tests/state: {CPU}; {UNSEEN}"),
    Name("torch.distributed.tensor.DTensor", "_local_tensor", "this rank's part of a DTensor", f"tests/variables/test_differences.py: {CPU}"),
    Name("torch.distributed.tensor.DTensor", "_op_dispatcher", "holds the cache of how operations are sharded", REVIVAL),
    Name("torch._C", "_clear_DTensor_sharding_propagator_cache", "forgets how operations were sharded on earlier meshes, where it is in C++", REVIVAL),
    Name("torch", "_C", "torch's part in C++", f"tests/compat: {CPU}"),
    Name("torch.cuda", "_is_in_bad_fork", "whether CUDA was initialized in the process that this one was forked from; the driver is asked as well", f"it does not tell of all that initializes the driver: {H200}"),
    Name("torch", "_logging", "settings of TORCH_LOGS", f"tests/rank: {CPU}"),
    Name("torch._logging", "_init_logs", "reads TORCH_LOGS again", f"tests/rank: {CPU}"),
    Name("torch.autograd", "_profiler_enabled", "whether a profiler is on", f"tests/profile/test_profiled_cells.py: {CPU}"),
    Name("torch.autograd.profiler", "_enable_profiler", "a profiler that user code starts ends ours first", f"tests/profile/test_profiled_cells.py: {CPU}"),
    Name("torch.autograd.profiler", "_prepare_profiler", "the same", f"tests/profile/test_profiled_cells.py: {CPU}"),
    Name("torch.autograd.profiler", "_disable_profiler", "the same", f"tests/profile/test_profiled_cells.py: {CPU}"),
]  # fmt: skip

HEAD = """# Private names of torch

Generated by `python tests/matrix/internals.py` from its table and from [torch-internals.json](torch-internals.json): which versions have a
name. Ranks work without a name that a version lacks, and say so. What a name *means* cannot be seen from its presence: both
flight recorders are in every build for CUDA, and the wrong one was read until a GPU showed it. So each line says how its
meaning was found, and where.

| name | where | means | has it | found by |
|---|---|---|---|---|
"""


def here() -> dict[str, Any]:
    """Return the torch of this process, its build, and which names it has; None where that shows on objects alone."""
    import torch

    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    found = {f"{row.owner}.{row.name}": _has(row) for row in NAMES}
    return {"torch": torch.__version__.partition("+")[0], "build": build, "names": found}


def _has(row: Name) -> bool | None:
    if row.owner == LIBRARY:
        torch = importlib.import_module("torch")
        return hasattr(ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / LIBRARY)), row.name)
    parts = row.owner.split(".")
    for number in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:number]))
        except ImportError:
            continue
        for part in parts[number:]:
            found = getattr(found, part, None)
        if found is None:
            return False
        # Attributes of objects are not those of their class.
        return True if hasattr(found, row.name) else (None if isinstance(found, type) else False)
    return None


def page(record: list[dict[str, Any]]) -> str:
    """Return docs/torch-internals.md."""
    lines = []
    for row in NAMES:
        key = f"{row.owner}.{row.name}"
        having = [f"{one['torch']} ({one['build']})" for one in record if one["names"].get(key)]
        on_objects = any(key in one["names"] and one["names"][key] is None for one in record)
        has = ", ".join(having) or ("objects of it, when they are made" if on_objects else "none of those asked")
        lines.append(f"| `{row.name}` | `{row.owner}` | {row.means} | {has} | {row.proof} |\n")
    return HEAD + "".join(lines)


def main() -> None:
    """Note this torch, and make the page."""
    now = here()
    record = json.loads(RECORD.read_text()) if RECORD.exists() else []
    record = [one for one in record if (one["torch"], one["build"]) != (now["torch"], now["build"])] + [now]
    record.sort(key=lambda one: [int(part) for part in one["torch"].split(".")])
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    TABLE.write_text(page(record))


if __name__ == "__main__":
    main()
