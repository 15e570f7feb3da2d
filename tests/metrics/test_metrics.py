"""The server's own /metrics has what happened to groups, and names neither code nor files."""

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from faults.server import TOKEN, JupyterServer
from prometheus_client.parser import text_string_to_metric_families
from waits import until

DASHBOARD = Path(__file__).parents[2] / "docs" / "_static" / "grafana.json"
NAME = re.compile(r"jupyter_dist_[a-z_]+")


def text(server: JupyterServer) -> str:
    request = urllib.request.Request(f"{server.info['url']}metrics", headers={"Authorization": f"token {TOKEN}"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return str(response.read().decode())


def metrics(server: JupyterServer) -> dict[tuple[str, ...], float]:
    """Our samples, by name and labels; the user is checked and left out."""
    found = {}
    for family in text_string_to_metric_families(text(server)):
        for sample in family.samples:
            if sample.name.startswith("jupyter_dist_"):
                assert sample.labels.pop("user", "somebody")
                key = (sample.name, *(sample.labels[label] for label in sorted(sample.labels)))
                found[key] = sample.value
    return found


class Counted:
    """What is counted from now on."""

    def __init__(self, server: JupyterServer) -> None:
        self._server, self._before = server, metrics(server)

    def more(self, *key: str) -> float:
        return metrics(self._server).get(key, 0) - self._before.get(key, 0)

    def ends(self, *key: str) -> None:
        """Wait until there is one more."""
        until(lambda: self.more(*key) == 1, lambda: metrics(self._server))


@pytest.mark.timeout(180)
def test_cells_and_states_are_counted(group_server: JupyterServer) -> None:
    server, counted = group_server, Counted(group_server)
    assert metrics(server)["jupyter_dist_groups", "ready"] >= 1
    assert metrics(server)["jupyter_dist_ranks", "idle"] >= 2
    server.run("g", "import time; time.sleep(0.3); secret_name = 'a secret text'")
    server.run("g", "1 / 0", "0")
    counted.ends("jupyter_dist_cells_total", "ok")
    counted.ends("jupyter_dist_cells_total", "error")
    assert counted.more("jupyter_dist_ranks_busy_seconds_total") >= 0.6  # of two ranks
    assert "secret" not in text(server)


@pytest.mark.timeout(180)
def test_saves_are_counted(group_server: JupyterServer, tmp_path: Path) -> None:
    pytest.importorskip("jupyter_dist.parts.saves")
    server, counted = group_server, Counted(group_server)
    saved = server.view(
        "g", server.ask("POST", "groups/g/saves", {"name": "of-metrics", "folder": str(tmp_path)})["id"]
    )
    assert saved["execution"]["state"] == "ok", saved
    counted.ends("jupyter_dist_saves_total", "ok", "save")  # labels in the order of their names


@pytest.mark.timeout(180)
def test_hangs_are_counted(group_server: JupyterServer) -> None:
    pytest.importorskip("jupyter_dist.parts.hangs")
    server, counted = group_server, Counted(group_server)
    hung = server.submit("g", "import torch.distributed as dist\nif rank == 0:\n    dist.barrier()")
    counted.ends("jupyter_dist_hangs_total")
    assert counted.more("jupyter_dist_hangs_ended_total", "interrupted") == 0
    server.ask("POST", "groups/g/interrupt", {"ranks": "all"})
    server.view("g", hung)
    counted.ends("jupyter_dist_hangs_ended_total", "interrupted")
    assert counted.more("jupyter_dist_hangs_total") == 1
    assert counted.more("jupyter_dist_verdicts_total") == 1
    assert counted.more("jupyter_dist_verdicts_refuted_total") == 0  # the user interrupted the cell


def test_the_dashboard_asks_for_metrics_that_there_are(group_server: JupyterServer) -> None:
    asked = set(NAME.findall(DASHBOARD.read_text()))
    families = {family.name for family in text_string_to_metric_families(text(group_server))}
    of_devices = {name for name in asked if name.startswith("jupyter_dist_device_")}  # there may be none here
    known = {name.removesuffix("_total") for name in families}
    assert {name.removesuffix("_total") for name in asked - of_devices} <= known
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    assert all(panel["targets"] for panel in panels if panel["type"] != "row")
