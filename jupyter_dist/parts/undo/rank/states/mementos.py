"""What mutable Python objects contained at one moment: shallow, with references to the same objects.

No code of users runs while a state is kept or compared: containers are read and written by the methods of Python's own
types, instances through their dictionary and slots. Items are compared by identity.
"""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import re
import sys
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from operator import is_
from types import CellType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any, ClassVar

from jupyter_dist.rank.cells.values.opening import attributes_of, is_kind_of, mro_of, name_of

_get_dict = type.__dict__["__dict__"].__get__
_contents = CellType.__dict__["cell_contents"]
_class = object.__dict__["__class__"]
_factory = defaultdict.__dict__["default_factory"]
_EMPTY: Any = object()  # a slot or a cell without a value
# What was run stays on record; see docs/how-to/undo-a-cell.md.
_INPUTS = re.compile(r"(In|_ih|_dh|_i{1,3}|_i\d+)\Z")
_RESULTS = re.compile(r"_+\d*\Z")
_OF_CLASS = frozenset({"__dict__", "__weakref__", "__abstractmethods__", "_abc_impl"})


class Memento:
    """The state of one object before a cell, and how to write it back into the same object."""

    phase: ClassVar[int] = 0  # states are written back in this order
    __slots__ = ("num_bytes", "num_holders", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.num_bytes = 100
        self.num_holders = 0  # the kept cells that need this state

    def differs(self) -> bool:
        """Whether the object has another state now."""
        raise NotImplementedError

    def has_changed(self) -> bool:
        """Whether the object has changed for a user."""
        return self.differs()

    def restore(self) -> None:
        """Write the state back."""
        raise NotImplementedError

    def obstacle(self) -> str | None:
        """Return why the state cannot be written back; None if it can."""
        return None

    def now(self) -> Memento:
        """Return the present state of the same object."""
        return type(self)(self.value)


class DictState(Memento):
    """The items of a dictionary, in order."""

    __slots__ = ("_factory", "saved")

    def __init__(self, value: dict[Any, Any]) -> None:
        super().__init__(value)
        self.saved: dict[Any, Any] = self._items()
        self._factory = _factory.__get__(value) if is_kind_of(value, defaultdict) else None
        self.num_bytes = sys.getsizeof(self.saved)

    def _items(self) -> dict[Any, Any]:
        if is_kind_of(self.value, OrderedDict) and dict.__len__(self.value):  # whose order is its own
            return {key: dict.__getitem__(self.value, key) for key in OrderedDict.__iter__(self.value)}
        return dict.copy(self.value)

    def differs(self) -> bool:
        """Whether keys, values, their order or the factory are others now."""
        value, saved = self.value, self.saved
        if dict.__len__(value) != len(saved):
            return True
        if self._factory is not None and _factory.__get__(value) is not self._factory:
            return True
        if not saved:
            return False
        now = value if type(value) is dict else self._items()
        return not (all(map(is_, now, saved)) and all(map(is_, dict.values(now), saved.values())))

    def restore(self) -> None:
        """Fill the dictionary again."""
        if is_kind_of(self.value, OrderedDict):
            OrderedDict.clear(self.value)
            for key, item in self.saved.items():
                OrderedDict.__setitem__(self.value, key, item)
        else:
            dict.clear(self.value)
            dict.update(self.value, self.saved)  # from a plain dictionary: without asking the keys for their hash
        if self._factory is not None:
            _factory.__set__(self.value, self._factory)


class NamesState(DictState):
    """The names of the user's namespace, or of a module: changed names are set one by one, as threads may read them."""

    __slots__ = ()

    def differs(self) -> bool:
        """Whether a name is bound to another object now."""
        return bool(self._changed() or self._added())

    def has_changed(self) -> bool:
        """Whether a name is bound to another object now, besides the names of results: `_`, `_5`."""
        return not all(map(is_result, [*self._changed(), *self._added()]))

    def restore(self) -> None:
        """Bind the names as before."""
        for name in self._added():
            del self.value[name]
        self.value.update(self._changed())

    def _changed(self) -> dict[Any, Any]:
        value = self.value
        return {
            name: item
            for name, item in self.saved.items()
            if value.get(name, _EMPTY) is not item and not _is_input(name)
        }

    def _added(self) -> list[Any]:
        return [name for name in list(self.value) if name not in self.saved and not _is_input(name)]


def is_result(name: Any) -> bool:
    """Whether a name has the result of a cell: `_`, `_5`."""
    return type(name) is str and _RESULTS.match(name) is not None


def _is_input(name: Any) -> bool:
    return type(name) is str and name[:1] in "I_" and _INPUTS.match(name) is not None


class ListState(Memento):
    """The items of a list."""

    __slots__ = ("saved",)

    def __init__(self, value: list[Any]) -> None:
        super().__init__(value)
        self.saved = list.copy(value)
        self.num_bytes = sys.getsizeof(self.saved)

    def differs(self) -> bool:
        """Whether an item is another object now."""
        return list.__len__(self.value) != len(self.saved) or not all(map(is_, list.__iter__(self.value), self.saved))

    def restore(self) -> None:
        """Fill the list again."""
        list.__setitem__(self.value, slice(None), self.saved)


class SetState(Memento):
    """The members of a set."""

    __slots__ = ("saved",)

    def __init__(self, value: set[Any]) -> None:
        super().__init__(value)
        self.saved = set.union(set(), value)
        self.num_bytes = sys.getsizeof(self.saved)

    def differs(self) -> bool:
        """Whether the set has other members now."""
        if set.__len__(self.value) != len(self.saved):
            return True
        return set(map(id, set.__iter__(self.value))) != set(map(id, self.saved))

    def restore(self) -> None:
        """Fill the set again."""
        set.clear(self.value)
        set.update(self.value, self.saved)


class DequeState(Memento):
    """The items of a deque."""

    __slots__ = ("saved",)

    def __init__(self, value: deque[Any]) -> None:
        super().__init__(value)
        self.saved = list(deque.__iter__(value))
        self.num_bytes = sys.getsizeof(self.saved)

    def differs(self) -> bool:
        """Whether an item is another object now."""
        return deque.__len__(self.value) != len(self.saved) or not all(map(is_, deque.__iter__(self.value), self.saved))

    def restore(self) -> None:
        """Fill the deque again."""
        deque.clear(self.value)
        deque.extend(self.value, self.saved)


class BytesState(Memento):
    """The bytes of a bytearray, or the items of an array of the standard library."""

    __slots__ = ("saved",)

    def __init__(self, value: bytearray | array[Any]) -> None:
        super().__init__(value)
        self.saved = bytes(memoryview(value))
        self.num_bytes = len(self.saved) + 50

    def differs(self) -> bool:
        """Whether the bytes are others now."""
        return bytes(memoryview(self.value)) != self.saved

    def obstacle(self) -> str | None:
        """Return why its size cannot be changed, if it has to be."""
        if memoryview(self.value).nbytes == len(self.saved):
            return None
        try:
            if is_kind_of(self.value, bytearray):
                bytearray.append(self.value, 0)
                bytearray.pop(self.value)
            else:
                array.frombytes(self.value, bytes(self.value.itemsize))
                array.pop(self.value)
        except BufferError:
            return f"a {name_of(type(self.value))} has another size now, and a view of it keeps that size"
        return None

    def restore(self) -> None:
        """Write the bytes back."""
        if memoryview(self.value).nbytes == len(self.saved):
            memoryview(self.value).cast("B")[:] = self.saved
        elif is_kind_of(self.value, bytearray):
            bytearray.__setitem__(self.value, slice(None), self.saved)
        else:
            array.__setitem__(self.value, slice(None), array(self.value.typecode, self.saved))


class InstanceState(Memento):
    """The class of an instance, its dictionary as an object, and its slots."""

    __slots__ = ("_attributes", "_kind", "saved")

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self._kind = type(value)
        self._attributes = attributes_of(value)
        self.saved = [(slot, slot_of(slot, value)) for slot in slots_of(value)]

    @property
    def attributes(self) -> dict[Any, Any] | None:
        """The dictionary of the instance, which has its own state."""
        return self._attributes

    def differs(self) -> bool:
        """Whether class, dictionary or the value of a slot is another object now."""
        value = self.value
        if type(value) is not self._kind or attributes_of(value) is not self._attributes:
            return True
        return any(slot_of(slot, value) is not item for slot, item in self.saved)

    def restore(self) -> None:
        """Write class, dictionary and slots back."""
        value = self.value
        if type(value) is not self._kind:
            _class.__set__(value, self._kind)
        if attributes_of(value) is not self._attributes:
            descriptor = next(found for base in mro_of(value) if (found := _get_dict(base).get("__dict__")) is not None)
            descriptor.__set__(value, self._attributes)
        for slot, item in self.saved:
            if slot_of(slot, value) is item:
                continue
            if item is _EMPTY:
                slot.__delete__(value)
            else:
                slot.__set__(value, item)


def slots_of(value: Any) -> list[Any]:
    """Return the descriptors of the slots of an instance."""
    return [
        descriptor
        for base in mro_of(value)
        if "__slots__" in _get_dict(base)
        for name, descriptor in list(_get_dict(base).items())
        if type(descriptor) is MemberDescriptorType
    ]


def slot_of(descriptor: Any, value: Any) -> Any:
    """Return the value of a slot."""
    try:
        return descriptor.__get__(value)
    except (AttributeError, TypeError):
        return _EMPTY


class CellState(Memento):
    """The variable of a closure."""

    __slots__ = ("saved",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.saved = self._now()

    def _now(self) -> Any:
        try:
            return _contents.__get__(self.value)
        except ValueError:
            return _EMPTY

    def differs(self) -> bool:
        """Whether the variable has another value now."""
        return self._now() is not self.saved

    def restore(self) -> None:
        """Set the variable."""
        if self.saved is _EMPTY:
            _contents.__delete__(self.value)
        else:
            _contents.__set__(self.value, self.saved)


class FieldsState(Memento):
    """Fields of a type of Python, which cells can set: read and written past properties of subclasses."""

    __slots__ = ("saved",)
    kind: ClassVar[type]
    names: ClassVar[tuple[str, ...]]

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.saved = [self.kind.__dict__[name].__get__(value) for name in self.names]

    def differs(self) -> bool:
        """Whether a field is another object now."""
        return any(
            self.kind.__dict__[name].__get__(self.value) is not item
            for name, item in zip(self.names, self.saved, strict=True)
        )

    def restore(self) -> None:
        """Write the fields."""
        for name, item in zip(self.names, self.saved, strict=True):
            self.kind.__dict__[name].__set__(self.value, item)


class FunctionState(FieldsState):
    """The code and the defaults of a function, which cells can replace in place."""

    __slots__ = ()
    kind = FunctionType
    names = ("__code__", "__defaults__", "__kwdefaults__", "__dict__", "__name__")


class ExceptionState(FieldsState):
    """The arguments, cause and context of an exception."""

    __slots__ = ()
    kind = BaseException
    names = ("args", "__cause__", "__context__", "__suppress_context__", "__traceback__")


class LibraryState(Memento):
    """The names of a library's module or class that code has: they may be replaced, or added."""

    __slots__ = ("_names", "saved")

    def __init__(self, value: Any, names: Iterable[str]) -> None:
        super().__init__(value)
        self._names = [name for name in names if name not in _OF_CLASS]
        self.saved = self._now()
        self.num_bytes = sys.getsizeof(self.saved)

    def parts(self, names: set[str]) -> list[Any]:
        """Return the modules and classes under these names."""
        found = _get_dict(self.value) if is_kind_of(self.value, type) else attributes_of(self.value) or {}
        return [found[name] for name in names if isinstance(found.get(name), type | ModuleType)]

    def now(self) -> Memento:
        """Return the present objects under these names."""
        return LibraryState(self.value, self._names)

    def _now(self) -> dict[str, Any]:
        is_class = is_kind_of(self.value, type)
        found = _get_dict(self.value) if is_class else attributes_of(self.value) or {}
        return {name: found[name] for name in self._names if name in found and type(found[name]) is not ModuleType}

    def differs(self) -> bool:
        """Whether a name has another object now."""
        now = self._now()
        return len(now) != len(self.saved) or any(now.get(name, _EMPTY) is not one for name, one in self.saved.items())

    def restore(self) -> None:
        """Set and delete the names."""
        now = self._now()
        place = type if is_kind_of(self.value, type) else object
        for name in now.keys() - self.saved.keys():
            place.__delattr__(self.value, name)
        for name, item in self.saved.items():
            if now.get(name, _EMPTY) is not item:
                place.__setattr__(self.value, name, item)


class ClassState(Memento):
    """The attributes of a class that users wrote."""

    __slots__ = ("_bases", "_names", "_registry", "saved")

    def __init__(self, value: type) -> None:
        super().__init__(value)
        self.saved = self._now()
        self._names = [type.__dict__[name].__get__(value) for name in ("__name__", "__qualname__")]
        self._registry = _virtual_subclasses(value)
        self._bases = type.__dict__["__bases__"].__get__(value)
        self.num_bytes = sys.getsizeof(self.saved)

    def _now(self) -> dict[str, Any]:
        found = _get_dict(self.value).items()
        return {name: item for name, item in list(found) if name not in _OF_CLASS}

    def differs(self) -> bool:
        """Whether an attribute is another object now."""
        now = self._now()
        if [type.__dict__[name].__get__(self.value) for name in ("__name__", "__qualname__")] != self._names:
            return True
        return (
            len(now) != len(self.saved)
            or any(now.get(name, _EMPTY) is not item for name, item in self.saved.items())
            or _virtual_subclasses(self.value) != self._registry
        )

    def obstacle(self) -> str | None:
        """Return why it cannot be written back: its bases are others now."""
        if type.__dict__["__bases__"].__get__(self.value) is not self._bases:
            return f"the class {name_of(self.value)} has other bases now"
        return None

    def restore(self) -> None:
        """Set and delete attributes, past the metaclass."""
        now = self._now()
        for name in now:
            if name not in self.saved:
                type.__delattr__(self.value, name)
        for name, item in self.saved.items():
            if now.get(name, _EMPTY) is not item:
                type.__setattr__(self.value, name, item)
        for name, item in zip(("__name__", "__qualname__"), self._names, strict=True):
            type.__dict__[name].__set__(self.value, item)
        if _virtual_subclasses(self.value) != self._registry:
            _abc._reset_registry(self.value)
            _abc._reset_caches(self.value)
            for weak in self._registry.values():
                if (kind := weak()) is not None:
                    _abc._abc_register(self.value, kind)


def _virtual_subclasses(kind: type) -> dict[int, Any]:
    """Return weak references to what was registered with an abstract class, by their ids: classes may define `==`."""
    if "_abc_impl" not in _get_dict(kind):
        return {}
    return {id(weak): weak for weak in _abc._get_dump(kind)[0]}
