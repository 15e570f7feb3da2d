"""Runs in a candidate interpreter (any Python 3, standard library only) and prints its versions as JSON.

Its source is passed with -c, never imported. It does not import torch, so it takes 0.1 s.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys


def version(name: str) -> str | None:
    """Return the version of a distribution."""
    try:
        from importlib import metadata  # noqa: PLC0415 - not in Python 3.7, for which an error is shown

        return metadata.version(name)
    except Exception:  # the environment is broken: the version is unknown
        return None


def torch_built_for(names: list[str]) -> dict[str, str]:
    """Return the versions that torch was built for, of these names in its version.py."""
    try:
        spec = importlib.util.find_spec("torch")
        assert spec is not None
        assert spec.origin is not None
        with open(os.path.join(os.path.dirname(spec.origin), "version.py")) as file:
            text = file.read()
    except Exception:
        return {}
    matches = {name: re.search(rf"^{name}\b[^=\n]*=\s*['\"]([^'\"]+)['\"]", text, re.M) for name in names}
    return {name: match.group(1) for name, match in matches.items() if match}


found = {
    "python_version": ".".join(map(str, sys.version_info[:3])),
    "torch_version": version("torch"),
    "ipython_version": version("ipython"),
    "built_for": torch_built_for(sys.argv[1:]),
    "paths": [path for path in sys.path if os.path.isdir(path)],
}
sys.stdout.write(json.dumps(found) + "\n")
