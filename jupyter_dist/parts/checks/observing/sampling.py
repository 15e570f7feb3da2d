"""Digests of tensors: of all bytes of small ones, of evenly spaced elements of large ones. One copy to the host each.

Equal digests of two ranks are evidence where values are as many and as different as gradients and batches are.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from jupyter_dist.parts.checks.reports import Value
from jupyter_dist.rank.cells.values.opening import attributes_of
from jupyter_dist.rank.collectives import torch_compat
from jupyter_dist.rank.state.store.hashing import Hasher

MAX_DIGEST = 16
MAX_TENSORS = 16  # of a batch
MAX_DEPTH = 4  # of the containers in it
MAX_ITEMS = 32
MAX_BATCH = 65_536  # elements of a tensor of a batch
NUM_ELEMENTS = 64  # of a parameter
LEAST_RICH = 8  # numbers
LEAST_MASK = 32  # zeros and ones

_hasher = Hasher()


def part_of(tensor: Any) -> Any:
    """Return this rank's part of a DTensor, and any other tensor as it is."""
    part = torch_compat.local_tensor(tensor)
    return tensor if part is None else part


def local(tensor: Any) -> torch.Tensor | None:
    """Return this rank's part of a tensor, detached; None for what has no plain elements."""
    tensor = part_of(tensor)
    if not isinstance(tensor, torch.Tensor) or tensor.is_meta or tensor.layout is not torch.strided:
        return None
    return tensor.detach() if not tensor.is_quantized and not tensor.is_complex() else None


def sample(tensors: Sequence[torch.Tensor | None], most: int = NUM_ELEMENTS) -> list[Value | None]:
    """Return a sample of each tensor; tensors of one device and type are copied together."""
    found: list[Value | None] = [None] * len(tensors)
    together: dict[tuple[torch.device, torch.dtype], list[tuple[int, torch.Tensor]]] = {}
    for index, tensor in enumerate(tensors):
        if tensor is not None and tensor.numel() and (spread := _spread(tensor, most)) is not None:
            together.setdefault((tensor.device, tensor.dtype), []).append((index, spread))
    for parts in together.values():
        joined = torch.cat([part for _, part in parts]).cpu() if len(parts) > 1 else parts[0][1].contiguous().cpu()
        data = memoryview(joined.view(torch.uint8).numpy())
        size, start = joined.element_size(), 0
        for index, part in parts:
            end = start + part.numel()
            found[index] = _value_of(data[start * size : end * size], joined[start:end])
            start = end
    return found


def _spread(tensor: torch.Tensor, most: int) -> torch.Tensor | None:
    """Return at most so many elements of a tensor, as a view where it is dense."""
    count = tensor.numel()
    if count <= most:
        return tensor.reshape(-1)
    if not (tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last)):
        return tensor.reshape(-1)[:: count // most][:most] if count <= MAX_BATCH else None
    return tensor.as_strided((most,), (count // most,), tensor.storage_offset())


def _value_of(data: memoryview, values: torch.Tensor) -> Value:
    low, high = (float(value) for value in torch.aminmax(values.float() if values.dtype != torch.double else values))
    first = float(values[0])
    name = _hasher.name_of(data)[:MAX_DIGEST]
    return Value(name, first if math.isfinite(first) else None, low != high, _is_rich(values[:NUM_ELEMENTS].tolist()))


def _is_rich(values: list[Any]) -> bool:
    """Whether values go up and down as random ones do: masks and places are in order, or nearly."""
    is_ordered = values in (sorted(values), sorted(values, reverse=True))
    changes = sum(value != after for value, after in itertools.pairwise(values))
    is_mask = len(values) >= LEAST_MASK and changes > len(values) / 3
    return not is_ordered and (len(set(values)) >= LEAST_RICH or is_mask)


def tensors_in(value: Any, depth: int = MAX_DEPTH) -> list[torch.Tensor]:
    """Return the tensors in the arguments of a model. No code of the user runs."""
    if isinstance(value, torch.Tensor):
        return [value]
    if depth == 0:
        return []
    # An output of Transformers is an OrderedDict, a batch of PyTorch Geometric is neither: its tensors are not found.
    items: Iterable[Any] = ()
    if isinstance(value, dict):
        items = list(dict.values(value))[:MAX_ITEMS]
    elif isinstance(value, (list, tuple)) and not isinstance(next(iter(value), None), (int, float, str)):
        items = value[:MAX_ITEMS]
    elif hasattr(type(value), "__dataclass_fields__"):
        items = list((attributes_of(value) or {}).values())[:MAX_ITEMS]
    return [tensor for item in items for tensor in tensors_in(item, depth - 1)][:MAX_TENSORS]


def digest_of(texts: Iterable[str]) -> str:
    """Return the digest of several texts."""
    return _hasher.name_of(memoryview("\n".join(texts).encode()))[:MAX_DIGEST]


def random_states() -> dict[str, str]:
    """Return a digest of each state from which random numbers are drawn, by its library."""
    numpy = sys.modules.get("numpy")
    _, words, place, *_ = numpy.random.get_state() if numpy is not None else ("", torch.empty(0), 0)
    states = {"torch": torch.get_rng_state().tolist(), "random": random.getstate(), "numpy": (words.tolist(), place)}
    return {name: digest_of([str(state)]) for name, state in states.items()}


def largest(tensors: Sequence[torch.Tensor]) -> list[float]:
    """Return the largest absolute value of each tensor; not a number, or infinite, where one element is."""
    if not tensors:
        return []
    found = [0.0] * len(tensors)
    places: dict[torch.device, list[int]] = {}
    for index, tensor in enumerate(tensors):
        if tensor.numel() and tensor.is_floating_point():
            places.setdefault(tensor.device, []).append(index)
    for indices in places.values():
        norms = torch._foreach_norm([tensors[index] for index in indices], math.inf)
        values = torch.stack([norm.float() for norm in norms]).tolist()
        for index, value in zip(indices, values, strict=True):
            found[index] = value
    return found
