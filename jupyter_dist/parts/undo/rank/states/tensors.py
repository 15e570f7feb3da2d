"""Tensors before a cell: which storage they show and how, their gradients, hooks and flags."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from jupyter_dist.rank.collectives.torch_compat import is_view, set_version, storage_id, version_of, without_functions

from .mementos import Memento

_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


class TensorLayout(Memento):
    """The storage, shape, strides and type of a tensor, whether it needs a gradient, and its place in a graph."""

    phase: ClassVar[int] = 1
    __slots__ = ("_alias", "_function", "_needs_grad", "_version")

    def __init__(self, value: torch.Tensor, has_storage: bool) -> None:
        super().__init__(value)
        with without_functions(), torch.no_grad():
            # A second tensor with the same storage: it keeps the storage, and what `set_` or `data =` may replace.
            self._alias = value.detach() if has_storage else None
            self._needs_grad = value.requires_grad
            self._function = value.grad_fn
        self._version = version_of(value)
        self.num_bytes = 400

    @property
    def function(self) -> Any:
        """The node of the autograd graph that made the tensor; None of a leaf."""
        return self._function

    def now(self) -> Memento:
        """Return the present layout."""
        return TensorLayout(self.value, self._alias is not None)

    def differs(self) -> bool:
        """Whether the layout or the graph is another now."""
        value = self.value
        with without_functions():
            is_same = value.requires_grad is self._needs_grad and value.grad_fn is self._function
        return not is_same or self._shows_other() or version_of(value) != self._version

    def _shows_other(self) -> bool:
        value, alias = self.value, self._alias
        if alias is None:
            return False
        with without_functions():
            if value.dtype is not alias.dtype or value.device != alias.device or value.shape != alias.shape:
                return True
            if value.layout is not torch.strided:
                return False
            if value.stride() != alias.stride() or value.storage_offset() != alias.storage_offset():
                return True
            return storage_key(value) != storage_key(alias)

    def obstacle(self) -> str | None:
        """Return why its place in the graph cannot be written back."""
        with without_functions():
            now = self.value.grad_fn
        if now is self._function or (self._function is None and not is_view(self.value)):
            return None
        return "a tensor that was computed with gradients was changed in place, so its graph is another one now"

    def restore(self) -> None:
        """Write layout and flags back; the bytes of the storage have their own state."""
        value = self.value
        with without_functions(), torch.no_grad():
            if self._alias is not None and self._shows_other():
                value.data = self._alias
            if value.grad_fn is not self._function:
                value.detach_()
            if value.requires_grad is not self._needs_grad:
                value.requires_grad_(self._needs_grad)

    def restore_version(self) -> None:
        """Set the counter that autograd compares: a graph from before the cell has saved these bytes."""
        if self._version is not None and version_of(self.value) != self._version:
            set_version(self.value, self._version)


class TensorAttributes(Memento):
    """The gradient of a tensor and its hooks, as objects. Written back last: a gradient must fit its tensor."""

    phase: ClassVar[int] = 3
    __slots__ = ("saved",)

    def __init__(self, value: torch.Tensor) -> None:
        super().__init__(value)
        self.saved = self._now()

    def _now(self) -> tuple[Any, ...]:
        with without_functions():
            return (gradient_of(self.value), *(getattr(self.value, name, None) for name in _HOOKS))

    def differs(self) -> bool:
        """Whether the gradient or a hook is another object now."""
        return any(now is not before for now, before in zip(self._now(), self.saved, strict=True))

    def restore(self) -> None:
        """Set gradient and hooks."""
        gradient, *hooks = self.saved
        with without_functions(), torch.no_grad():
            if gradient_of(self.value) is not gradient:
                self.value.grad = gradient
            for name, hook in zip(_HOOKS, hooks, strict=True):
                if getattr(self.value, name, None) is not hook:
                    setattr(self.value, name, hook)


class TensorCopy(Memento):
    """The values of a tensor without an own storage (sparse, quantized): a copy, always written back."""

    phase: ClassVar[int] = 2
    __slots__ = ("saved",)

    def __init__(self, value: torch.Tensor) -> None:
        super().__init__(value)
        with without_functions(), torch.no_grad():
            self.saved = value.detach().clone()
        self.num_bytes = 1 << 12

    def differs(self) -> bool:
        """Return True: such tensors are not compared."""
        return True

    def restore(self) -> None:
        """Copy the values into the tensor."""
        with without_functions(), torch.no_grad():
            self.value.copy_(self.saved)


def gradient_of(value: torch.Tensor) -> torch.Tensor | None:
    """Return the gradient of a tensor, without torch's warning about tensors that have none."""
    return value.grad if value.is_leaf or value.retains_grad else None


def storage_key(value: torch.Tensor) -> int:
    """Return the identity of a tensor's storage, of which all its views have the same."""
    return storage_id(value.untyped_storage())
