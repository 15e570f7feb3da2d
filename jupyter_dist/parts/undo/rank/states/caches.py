"""What functions and contexts remember: results of `functools.lru_cache`, and context variables."""

from __future__ import annotations

from typing import Any

from .mementos import Memento

_UNSET: Any = object()


class CacheState(Memento):
    """The cache of a function. It cannot be written back, so it is emptied if it has new results."""

    __slots__ = ("saved",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.saved = value.cache_info()

    def differs(self) -> bool:
        """Whether the function was called since."""
        return bool(self.value.cache_info() != self.saved)

    def restore(self) -> None:
        """Empty the cache: the next calls compute again."""
        self.value.cache_clear()


class ContextState(Memento):
    """The value of a context variable in the context of cells."""

    __slots__ = ("saved",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.saved = value.get(_UNSET)

    def differs(self) -> bool:
        """Whether the variable has another value now."""
        return self.value.get(_UNSET) is not self.saved

    def obstacle(self) -> str | None:
        """Return why it cannot be written back: a variable cannot lose its value."""
        if self.saved is _UNSET and self.differs():
            return f"the context variable {self.value.name} had no value before"
        return None

    def restore(self) -> None:
        """Set the variable."""
        self.value.set(self.saved)
