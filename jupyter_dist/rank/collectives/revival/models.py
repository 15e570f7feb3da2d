"""Ends the half-done step of all models whose forward or backward was interrupted.

Process groups are the same objects as before, but a model that was left in the middle of a step is still in it: DDP
waits for gradients, FSDP computes with parameters that it had gathered. All private names here are torch's own; parts
that a version lacks are left alone.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

# Where a class has been in the versions since 2.5.
_FSDP2_STATES = ("torch.distributed.fsdp._fully_shard._fsdp_state", "torch.distributed._composable.fsdp._fsdp_state")
_FSDP1 = ("torch.distributed.fsdp.fully_sharded_data_parallel",)


def end_half_done_steps(before: Any = None) -> list[str]:
    """Make the next step of every model of this process begin from its parameters.

    Args:
        before: the earlier default process group; its DDP models are moved to the present one, if it is another object.

    Returns:
        A sentence for each model for which that failed.
    """
    _forget_meshes()
    failed: list[str] = []
    kinds: list[tuple[type, Callable[[Any], None]]] = [(DistributedDataParallel, _end_of_ddp)]
    kinds += [(state, _end_of_fsdp2) for state in _classes(_FSDP2_STATES, "FSDPState")]
    kinds += [(module, _end_of_fsdp1) for module in _classes(_FSDP1, "FullyShardedDataParallel")]
    # Not by variables: models are in trainers, closures and lists. Not isinstance(), which would run code of the
    # user's classes: it asks a value for its __class__.
    for value in gc.get_objects():
        for kind, end in kinds:
            if issubclass(type(value), kind):
                try:
                    _move(value, before)
                    end(value)
                except Exception as err:  # of another version: the process group is whole, and users must know
                    why = f"{type(err).__name__}: {err}"
                    failed.append(
                        f"A {kind.__name__} may be in the middle of a step. Wrap its model again. ({why:.200})"
                    )
    return failed


def release_buckets() -> None:
    """Release the memory that DDP models keep for their gradients on the way; `end_half_done_steps` makes it again."""
    for value in gc.get_objects():
        if issubclass(type(value), DistributedDataParallel):
            _release_reducer(value)


def _classes(modules: tuple[str, ...], name: str) -> list[type]:
    """Return a class that has been imported, if it is in one of these modules."""
    found = [getattr(sys.modules.get(module), name, None) for module in modules]
    return list({kind for kind in found if isinstance(kind, type)})


def _forget_meshes() -> None:
    """Clear DTensor's caches of operations: it looks them up by equal meshes, and would use an earlier mesh.

    A replaced rank has no earlier mesh: when all ranks make their mesh again, it would use other groups than they do.
    """
    tensor = sys.modules.get("torch.distributed.tensor")
    if tensor is None:
        return
    with contextlib.suppress(AttributeError):  # another version
        tensor.DTensor._op_dispatcher.sharding_propagator.propagate_op_sharding.cache_clear()
    with contextlib.suppress(AttributeError):  # torch before 2.10 has no such cache
        torch._C._clear_DTensor_sharding_propagator_cache()
    with contextlib.suppress(AttributeError):
        sys.modules["torch.distributed.tensor._redistribute"].clear_redistribute_planner_cache()


def _move(model: Any, before: Any) -> None:
    world = dist.group.WORLD
    if before is not None and before is not world and vars(model).get("process_group") is before:
        model.process_group = world


def make_reducer(model: Any) -> None:
    """Give a DDP model another reducer, over the process group that it has."""
    _end_of_ddp(model)


def _end_of_ddp(model: Any) -> None:
    # Its reducer waits for the rest of a backward() that has raised, and nothing resets that: it gets another one, as
    # when a model is loaded by pickle. A compiled model keeps the earlier one alive, so its hooks are removed.
    parameters, sparse = model._build_params_for_reducer()
    names = model._build_debug_param_to_name_mapping(parameters)
    _release_reducer(model)
    model._ddp_init_helper(parameters, sparse, names, model.static_graph)
    if model.static_graph:
        model.reducer._set_static_graph()
        model.logger._set_static_graph()
    for hook, state in getattr(model, "_comm_hooks", []):
        dist._register_comm_hook(model.reducer, state, hook)


def _release_reducer(model: Any) -> None:
    remove = getattr(model.reducer, "_remove_autograd_hooks", None)
    if remove is not None:
        remove()
    model.reducer = model.logger = None


def _end_of_fsdp2(state: Any) -> None:
    _set(state, _training_state=_idle(state))
    _set(state._state_ctx, iter_forward_root=None, post_backward_final_callback_queued=False)
    _set(state._comm_ctx, all_gather_state=None, reduce_scatter_state=None)
    for waiting in ("reduce_scatter_states", "post_forward_order"):
        getattr(state._comm_ctx, waiting, []).clear()
    getattr(state, "_modules_to_run_forward", set()).clear()
    groups = getattr(state, "_fsdp_param_groups", None)
    for group in [state._fsdp_param_group] if groups is None else groups:
        if group is not None:
            _end_of_param_group(group)


def _end_of_param_group(group: Any) -> None:
    was_idle = group._training_state == _idle(group)
    _set(
        group,
        _training_state=_idle(group),
        _all_gather_result=None,  # its work will never complete
        _post_reduce_event=None,
        _reshard_after_forward_event=None,
        _partial_reduce_output=None,
        _all_reduce_state=None,
    )
    group._post_forward_indices.clear()
    for parameter in group.fsdp_params:
        unsharded = getattr(parameter, "_unsharded_param", None)
        if unsharded is not None:
            unsharded.grad = None  # of a backward() that did not reach the reduction
        if not was_idle:
            _set(parameter, unsharded_accumulated_grad=None)
    group._to_sharded()


def _end_of_fsdp1(module: Any) -> None:
    _set(module, training_state=_idle(module, "training_state"), _post_backward_callback_queued=False)
    if module._is_root:
        module._exec_order_data.next_iter()
    handle = module._handle
    if handle is None:
        return
    _set(handle, _training_state=_idle(handle), _prefetched=False, _ran_pre_backward_hook=False)
    _set(handle, _needs_pre_forward_unshard=False, _needs_pre_backward_unshard=False, _post_forward_index=None)
    parameter = handle.flat_param
    hook = vars(parameter).pop("_post_backward_hook_state", None)
    if hook is not None:
        hook[-1].remove()
    _set(parameter, _post_backward_called=False)
    if not handle.uses_sharded_strategy:
        return
    if parameter.data_ptr() != parameter._local_shard.data_ptr():
        parameter.grad = None  # of all ranks' parameters; `_saved_grad_shard` is the gradient of this rank's part
    # In any case: the memory for all ranks' parameters may be there, and taken for them, before they have arrived.
    handle.reshard(True)
    handle.post_reshard()


def _idle(value: Any, name: str = "_training_state") -> Any:
    """Return `IDLE` of the enumeration that an attribute has its value from."""
    return type(getattr(value, name)).IDLE


def _set(value: Any, **attributes: Any) -> None:
    """Set the attributes that this version has."""
    for name, new in attributes.items():
        if hasattr(value, name):
            setattr(value, name, new)
