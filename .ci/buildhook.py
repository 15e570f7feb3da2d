"""Write the page's catalogues when the package is built or installed. Its place in the build: pyproject.toml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

from catalogues import write_json


class Catalogues(BuildHookInterface):
    """Writes the JSON of the page's catalogues, which git does not have."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write what is missing or out of date."""
        write_json()
