"""What another package may add to the server: docs/extending.md shows these classes, and a test runs them."""

import json
import os
from pathlib import Path

from jupyter_dist.server.devices.source import DeviceSource, device
from jupyter_dist.server.spawner.local import LocalSpawner


class NiceSpawner(LocalSpawner):
    """Groups that leave the machine to others: their processes have a lower priority."""

    def command(self, arguments):
        return ["nice", "-n", "5", *arguments]


class BoardReader(DeviceSource):
    """Boards whose driver writes what they do into a file."""

    def read(self):
        path = Path(os.environ["BOARDS"])
        boards = json.loads(path.read_text()) if path.exists() else []
        return [device(i, name=board["name"], temperature_celsius=board["celsius"]) for i, board in enumerate(boards)]
