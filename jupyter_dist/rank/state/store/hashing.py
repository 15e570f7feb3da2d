"""Names of chunks: a letter for the algorithm, and the hash of the contents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say

from . import devicehash

DEVICE = "d"  # the letter of the hash that devices compute

Hash = Callable[[memoryview], str]


def _blake2b(data: memoryview) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def fast_hash() -> Hash | None:
    """Return a hash of 128 bits that is as fast as memory; None if the package xxhash is not installed."""
    try:
        from xxhash import xxh3_128_hexdigest
    except ImportError:  # the environment of ranks is the user's
        return None
    return lambda data: str(xxh3_128_hexdigest(data))


def _on_device(data: memoryview) -> str:
    import torch

    return devicehash.digest(torch.frombuffer(data, dtype=torch.uint8)) if data.nbytes else ""


def _algorithms() -> dict[str, Hash | None]:
    return {"x": fast_hash(), "b": _blake2b, DEVICE: _on_device}


class Hasher:
    """Names chunks by the fastest hash that is installed, and checks the names that any of them gave."""

    def __init__(self) -> None:
        self._algorithms = _algorithms()
        self._letter = next(letter for letter, function in self._algorithms.items() if function is not None)

    def name_of(self, data: memoryview) -> str:
        """Return the name of a chunk with these contents."""
        function = self._algorithms[self._letter]
        assert function is not None
        return self._letter + function(data)

    def is_named(self, name: str, data: memoryview) -> bool:
        """Whether a chunk of this name has these contents.

        Raises:
            JupyterDistError: `cannot_restore`; the hash is not installed here, or is of another version.
        """
        letter = name[:1]
        if letter not in self._algorithms:
            message = say("The chunk %1 is named by a hash that this version does not know.", name)
            raise JupyterDistError("cannot_restore", message, say("Restore it with a newer version of jupyter_dist."))
        function = self._algorithms[letter]
        if function is None:
            message = say("The save was written with the package xxhash, which the Python of the ranks lacks.")
            raise JupyterDistError("cannot_restore", message, say("Run 'pip install xxhash' there."))
        return name[1:] == function(data)
