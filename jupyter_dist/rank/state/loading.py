"""Reads streams: memory, definitions and what belongs to the process take the places of their names."""

from __future__ import annotations

import io
import pickle
import platform
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from jupyter_dist.rank.collectives.torch_compat import devices_in_use, has_device, rebuilt_tensor
from jupyter_dist.system.memory import available_bytes, shortage

from .graph import marks
from .graph.memory import bytes_at
from .process import groups
from .process.modules import sources
from .store.blobs import BlobReader, check_on_device
from .store.chunks import SMALL_BYTES, in_threads
from .store.manifest import Manifest

CALLS_USER_CODE = True
INTERRUPTIBLE = True


_SMALL_BYTES = 32 << 20  # for which the free memory is not asked for
_OTHER_PYTHON = "functions and classes of Python {} cannot be read by Python {}: run their cells again"


class Loader:
    """Reads the values of one rank. Its methods take the places of the functions in marks.py."""

    def __init__(self, shell: Any, device: str, saved: Manifest, blobs: BlobReader) -> None:
        self._namespace: dict[str, Any] = shell.user_ns
        self._module: types.ModuleType = shell.user_module
        self._here = device
        self._saved = saved
        self._blobs = blobs
        self._arrays: dict[int, Any] = {}  # the bytes, by number of the memory
        self._owners: dict[int, Any] = {}  # the arrays that own the bytes
        self._storages: dict[int, Any] = {}  # by number of the memory, and then of the block
        self._of_blocks: dict[int, Any] = {}
        self._definitions: dict[int, Any] = {}
        self._files: dict[str, str] = saved.get("sources", {}).get("files", {})
        python = str(saved["versions"]["python"]).split(".")[:2]
        self._reads_code = python == platform.python_version().split(".")[:2]
        self._marks = {name: getattr(self, f"_{name}") for name in marks.__all__}

    def close(self) -> None:
        """Forget the values at once: the methods in `_marks` refer to this object."""
        self._marks.clear()

    def read_memories(self, progress: Callable[[int, int], None] | None) -> None:
        """Read the bytes of all tensors and arrays."""
        memories = list(enumerate(self._saved["memories"]))
        self._check_room()
        total, done = sum(memory["num_bytes"] for _, memory in memories), [0]

        def read(job: tuple[int, dict[str, Any]]) -> None:
            number, memory = job
            self._read_memory(number, memory)
            done[0] += memory["num_bytes"]
            if progress is not None:
                progress(min(done[0], total), total)

        # Many small ones are in one chunk, which two threads would read twice.
        for job in memories:
            if job[1]["num_bytes"] < SMALL_BYTES:
                read(job)
        in_threads((job for job in memories if job[1]["num_bytes"] >= SMALL_BYTES), read)

    def _check_room(self) -> None:
        """Raise an error if the memory of the machine, as it is now, is too small for this rank."""
        on_host = sum(memory["num_bytes"] for memory in self._saved["memories"] if self._map(memory["device"]) == "cpu")
        if on_host > _SMALL_BYTES and (problem := shortage(on_host, available_bytes())) is not None:
            raise problem

    def covariables(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """Yield each co-variable of the manifest with its content, by kind and key; or with the error.

        A value may need names when it is read, whose co-variables come later: so failed ones are tried again.
        """
        waiting = dict(enumerate(self._saved["covariables"]))
        errors: dict[int, BaseException] = {}
        while waiting:
            before = len(waiting)
            errors.clear()
            for number, one in list(waiting.items()):
                content = self._try(one, errors)
                if isinstance(content, BaseException):
                    errors[number] = content
                    continue
                del waiting[number]
                yield one, content
            if len(waiting) == before:
                break
        yield from ((one, errors[number]) for number, one in waiting.items())

    def _try(self, one: dict[str, Any], errors: dict[int, BaseException]) -> Any:
        """Return the content of a co-variable, or the error, also of a definition which it needs."""
        missing = next((errors[number] for number in one["needs"] if number in errors), None)
        if missing is not None:
            return missing
        if one["definitions"] and not self._reads_code:
            return ImportError(_OTHER_PYTHON.format(self._saved["versions"]["python"], platform.python_version()))
        try:
            content = self._read_stream(one["pieces"])
        except KeyboardInterrupt:
            raise
        except BaseException as err:  # from the user's methods, which may raise anything
            return err
        for number, value in content["definition"].items():
            sources.name_file(value, self._files.get(str(number)))
            if groups.is_mesh(type(value)):
                groups.settle(value)
        self._definitions.update(content["definition"])
        return content

    def _read_stream(self, pieces: list[Any]) -> Any:
        data = bytearray(sum(piece[2] for piece in pieces))
        self._blobs.read(pieces, memoryview(data))
        return _StreamUnpickler(io.BytesIO(data), self._marks).load()

    def _read_memory(self, number: int, memory: dict[str, Any]) -> None:
        size = memory["num_bytes"]
        if memory["is_array"]:
            import numpy

            layout = memory["layout"] or {"dtype": "u1", "shape": [size], "order": "C"}
            array = numpy.empty(layout["shape"], layout["dtype"], layout["order"])
            self._owners[number] = array
            self._arrays[number] = _bytes_of(array)
            self._blobs.read(memory["pieces"], memoryview(self._arrays[number]))
            return
        device = self._map(memory["device"])
        is_on_device = device != "cpu"
        host = torch.empty(size, dtype=torch.uint8)
        target = bytes_at(host.data_ptr(), size)
        self._blobs.read(memory["pieces"], target, checks_device_hashes=not is_on_device)
        if is_on_device:
            host = host.to(device)
            if device != "meta":
                check_on_device(host, memory["pieces"])
        elif memory["is_pinned"] and devices_in_use():
            host = host.pin_memory()
        elif memory["is_shared"]:
            host.share_memory_()
        self._storages[number] = host.untyped_storage()

    def _map(self, device: str) -> str:
        """Return the device for tensors of a device of then: this rank's for its own and for missing ones."""
        if device == self._saved["device"] != "cpu":
            return self._here
        return device if has_device(torch.device(device)) else self._here

    # -- marks --------------------------------------------------------------------------------------

    def _storage(self, block: int, dtype: torch.dtype | None = None) -> Any:
        if block not in self._of_blocks:
            number, start, size = self._saved["blocks"][str(block)]
            if number in self._arrays:
                part = torch.from_numpy(self._arrays[number][start : start + size])
                self._of_blocks[block] = part.untyped_storage()
            elif size == self._saved["memories"][number]["num_bytes"]:
                self._of_blocks[block] = self._storages[number]
            else:  # a storage inside another one, as `torch.from_numpy(view.numpy())` makes it
                whole = self._storages[number]
                part = torch.empty(0, dtype=torch.uint8, device=whole.device).set_(whole)[start : start + size]
                self._of_blocks[block] = torch.from_dlpack(part).untyped_storage()
        storage = self._of_blocks[block]
        if dtype is None:
            return storage
        return torch.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)

    def _array(self, block: int, is_owner: bool, *place: Any) -> Any:
        number, start, size = self._saved["blocks"][str(block)]
        if is_owner and self._saved["memories"][number]["layout"] is not None:
            owner = self._owners[number]
            owner.flags.writeable = place[-1]
            return owner
        if number not in self._arrays:
            self._arrays[number] = torch.empty(0, dtype=torch.uint8).set_(self._storages[number]).numpy()
        return _view(self._arrays[number][start : start + size], place)

    def _array_view(self, base: Any, *place: Any) -> Any:
        return _view(_bytes_of(base), place)

    def _device(self, name: str) -> torch.device:
        return torch.device(self._map(name))

    def _definition(self, number: int) -> Any:
        return self._definitions[number]

    def _function(self, module: str, code: types.CodeType, name: str, cells: tuple[types.CellType, ...]) -> Any:
        return types.FunctionType(code, self._namespace_of(module), name, None, cells or None)

    def _set_function(self, function: types.FunctionType, state: dict[str, Any]) -> None:
        function.__dict__.update(state["attributes"])
        for name, value in state["fields"].items():
            setattr(function, name, value)
        for cell, value in state["cells"]:
            self._set_cell(cell, value)

    def _set_cell(self, cell: types.CellType, value: Any) -> None:
        if not (type(value) is str and value == marks.EMPTY):
            cell.cell_contents = value

    def _set_tensor(self, tensor: torch.Tensor, state: dict[str, Any]) -> None:
        if "grad" in state:
            tensor.grad = state["grad"]
        if "is_empty" in state:
            tensor.untyped_storage().resize_(0)

    def _namespace_of(self, module: str) -> dict[str, Any]:
        if module == marks.CELLS:
            return self._namespace
        __import__(module)
        return vars(sys.modules[module])

    def _main_module(self) -> types.ModuleType:
        return self._module

    def _process_group(self, name: str) -> Any:
        return groups.named(name)

    def _generator(self, device: str, state: torch.Tensor) -> torch.Generator:
        generator = torch.Generator(self._map(device))
        generator.set_state(state)
        return generator


class _StreamUnpickler(pickle.Unpickler):
    """Reads a stream with the loader's methods in the places of the functions in marks.py."""

    def __init__(self, data: io.BytesIO, of_marks: dict[str, Any]) -> None:
        super().__init__(data)
        self._marks = of_marks

    def find_class(self, module: str, name: str) -> Any:
        """Return the object of this name."""
        if module == marks.__name__:
            return self._marks[name]
        if name == "_rebuild_tensor_v2" and module == "torch._utils":
            return rebuilt_tensor
        if module == "__main__":
            raise AttributeError(f"'{name}' is a name of cells, not of a module")
        return super().find_class(module, name)


def _bytes_of(array: Any) -> Any:
    """Return the bytes of an array in one piece, as an array."""
    return array.reshape(-1, order="A").view("u1") if array.size and array.itemsize else array


def _view(of: Any, place: tuple[Any, ...]) -> Any:
    """Return an array over the bytes of another array, as graph/tensors.py describes its place."""
    offset, dtype, shape, strides, writeable = place
    import numpy

    if dtype.itemsize == 0 or 0 in shape:
        array = numpy.empty(shape, dtype)
    else:
        array = numpy.ndarray(shape, dtype, of, offset, strides)[...]
    if not writeable:
        array.flags.writeable = False
    return array
