"""Runs inside a candidate interpreter (any Python 3, standard library only) and prints what it has, as JSON.

It is read as text and passed with -c, never imported: torch is looked at, not imported, so it takes 0.1 s.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys


def version(name: str) -> str | None:
    """The version of a distribution."""
    try:
        from importlib import metadata  # noqa: PLC0415 - not in Python 3.7, which must be told that it is too old

        return metadata.version(name)
    except Exception:  # whatever is broken there, the answer is "not known"
        return None


def cuda_of_torch() -> str | None:
    """The CUDA that torch was built for."""
    try:
        spec = importlib.util.find_spec("torch")
        assert spec is not None
        assert spec.origin is not None
        with open(os.path.join(os.path.dirname(spec.origin), "version.py")) as file:
            match = re.search(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)['\"]", file.read(), re.M)
        return match.group(1) if match else None
    except Exception:
        return None


found = {
    "python_version": ".".join(map(str, sys.version_info[:3])),
    "torch_version": version("torch"),
    "ipython_version": version("ipython"),
    "cuda": cuda_of_torch(),
    "paths": [path for path in sys.path if os.path.isdir(path)],
}
sys.stdout.write(json.dumps(found) + "\n")
