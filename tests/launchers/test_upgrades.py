"""Groups on the nodes of an engine that the server of 0.2 has started, under the server of this version."""

import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from faults.server import JupyterServer
from launchers.test_groups import ALL_REDUCE
from waits import PATIENCE, until

EARLIER = Path(__file__).parents[1] / "faults" / "earlier" / "jupyter_dist-0.2.0.tar.xz"
SHAPE = {"name": "wide", "num_nodes": 2, "ranks_per_node": 2, "python": sys.executable}


class EarlierServer(JupyterServer):
    """A server of 0.2, whose answers are those of its own version."""

    is_of_this_version = False


class Upgraded:
    """The servers, one after the other, and the group `wide` that the first has started."""

    def __init__(self, home, launcher, variables):
        self.home, self.variables = home, variables
        (home / "config").mkdir()
        lines = (
            f"c.SlurmLauncher.shared_dir = {str(home / 'shared')!r}",
            "c.SlurmLauncher.poll_seconds = 0.2",
            f"c.RayLauncher.python = {sys.executable!r}",
        )
        (home / "config" / "jupyter_server_config.py").write_text("\n".join(lines))
        with tarfile.open(EARLIER) as archive:
            archive.extractall(home / "earlier", filter="data")
        self.server = EarlierServer(home, env={**variables, "PYTHONPATH": str(home / "earlier")})
        self.server.ask("POST", "groups", {**SHAPE, "cwd": str(home), "launcher": launcher})
        group = self.server.ask("GET", f"groups/wide?wait={PATIENCE}&not_state=starting")
        assert (group["state"], group["protocol"]) == ("ready", 1), (group, self.server.log())

    def upgrade(self):
        self.server.end(signal.SIGKILL)
        self.server = JupyterServer(self.home, env=self.variables)

    def group(self):
        return self.server.ask("GET", "groups/wide")

    def said(self, code):
        view = self.server.run("wide", code)
        return [(item["ranks"], item["output"].get("text")) for item in view["items"]], view["execution"]["state"]

    def close(self):
        if self.server.process.poll() is None:
            for group in self.server.ask("GET", "groups")["groups"]:
                self.server.ask("DELETE", f"groups/{group['id']}")
        self.server.end()


@pytest.fixture(params=["slurm", pytest.param("ray", marks=pytest.mark.ray)])
def upgraded(request, tmp_path):
    engine = request.getfixturevalue(request.param)
    names = ("PATH", "SLURM_CONF") if request.param == "slurm" else engine.env
    place = Upgraded(tmp_path, request.param, {name: engine.env[name] for name in names})
    yield place
    place.close()


@pytest.mark.timeout(300)
def test_a_group_on_nodes_goes_on_after_an_upgrade_and_its_job_is_followed_to_its_end(upgraded):
    assert upgraded.said(f"import os\nkept = 7\n{ALL_REDUCE}")[1] == "ok"
    before = upgraded.group()["allocation"]
    code = "import time\nfor i in range(30): print('line', i); time.sleep(0.1)"
    execution = upgraded.server.submit("wide", code)
    until(lambda: upgraded.server.view("wide", execution, wait=0)["items"])
    upgraded.upgrade()
    view = upgraded.server.view("wide", execution)
    text = "".join(item["output"]["text"] for item in view["items"] if item["ranks"] == "0-3")
    assert text == "".join(f"line {i}\n" for i in range(30)), json.dumps(view)[:2000]
    until(lambda: upgraded.group()["allocation"]["state"] == "allocated", upgraded.group)
    after = upgraded.group()["allocation"]
    assert {name: after[name] for name in before} == before
    for act in ("restart", "replace"):
        assert upgraded.said(f"import os\n{ALL_REDUCE}") == ([("0-3", "10.0\n"), ("0-1", "0\n"), ("2-3", "1\n")], "ok")
        if act == "replace":
            upgraded.server.ask("POST", "groups/wide/ranks/3/kill")
            until(lambda: upgraded.group()["state"] == "degraded", upgraded.group)
        upgraded.server.ask("POST", f"groups/wide/{act}")
        until(lambda: upgraded.group()["state"] == "ready", upgraded.group)
    error = upgraded.server.refused("POST", "groups/wide/saves", {"name": "x"})[1]
    assert error["code"] == "incompatible"
    assert "jupyter_dist 0.2.0 has started it" in error["message"]
    assert upgraded.said("dist.all_reduce(torch.ones(1)); print('again')") == ([("0-3", "again\n")], "ok")
    if after["launcher"] == "slurm":
        subprocess.run(["scancel", after["job_id"]], check=True)
        until(lambda: upgraded.group()["state"] == "dead", upgraded.group)
        until(lambda: upgraded.group()["allocation"]["state"] == "ended", upgraded.group)
        error = upgraded.server.refused("POST", "groups/wide/start_again")[1]
        assert error["message"] == "The options of group 'wide' are not known: an earlier version has started it."
    upgraded.server.ask("DELETE", "groups/wide")
    assert not (upgraded.home / "shared").exists() or not os.listdir(upgraded.home / "shared")
