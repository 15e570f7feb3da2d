"""Groups on the nodes of an engine that the server of 0.2 has started, under the server of this version."""

import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from clusters.test_groups import ALL_REDUCE
from faults.server import EARLIER, EarlierServer, JupyterServer
from waits import PATIENCE, until

ROOT = Path(__file__).parents[2]
SHAPE = {"name": "wide", "num_nodes": 2, "ranks_per_node": 2, "python": sys.executable}


def configure(home):
    (home / "config").mkdir()
    lines = (
        f"c.SlurmLauncher.shared_dir = {str(home / 'shared')!r}",
        "c.SlurmLauncher.poll_seconds = 0.2",
        f"c.RayLauncher.python = {sys.executable!r}",
    )
    (home / "config" / "jupyter_server_config.py").write_text("\n".join(lines))


class Upgraded:
    """The servers, one after the other, and the group `wide` that the first has started."""

    def __init__(self, home, launcher, variables):
        self.home, self.variables = home, variables
        configure(home)
        self.server = EarlierServer(home, variables)
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


class Waiting:
    """A server of an installed package, and its group `wide`, whose job is held in the queue."""

    def __init__(self, home, engine):
        self.home, self.engine = home, engine
        self.package = home / "installed" / "jupyter_dist"
        configure(home)
        shutil.copytree(ROOT / "jupyter_dist", self.package, ignore=shutil.ignore_patterns("labextension"))
        version = importlib.metadata.version("jupyter_dist")  # nodes are started with `-m`, as of an installed package
        (self.package / "_version.py").write_text(f"__version__ = {version!r}\n")
        self.variables = self.variables_of(engine)
        self.server = JupyterServer(home, env={**self.variables, "PYTHONPATH": str(self.package.parent)})

    def variables_of(self, slurm):
        return {name: slurm.env[name] for name in ("PATH", "SLURM_CONF")}

    def submit(self, **options):
        options = {"extra_arguments": ["--hold"], **options}
        shape = {**SHAPE, "cwd": str(self.home), "launcher": "slurm", "launcher_options": options}
        self.id = self.server.ask("POST", "groups", shape)["id"]
        (self.job,) = self.engine.jobs()

    def group(self):
        return self.server.ask("GET", "groups/wide")

    def upgrade(self):
        """Another version in place of the installed one, and a server of a third that follows the first."""
        shutil.rmtree(self.package)
        with tarfile.open(EARLIER) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 has it
            archive.extractall(self.package.parent)
        self.server.end(signal.SIGKILL)
        self.server = JupyterServer(self.home, env=self.variables)

    def start(self):
        """Have Slurm start the job; return the group when it is no longer starting."""
        subprocess.run(["scontrol", "release", self.job], check=True)
        return self.server.ask("GET", f"groups/wide?wait={PATIENCE}&not_state=starting")

    def said(self, code):
        view = self.server.run("wide", code)
        return [(item["ranks"], item["output"].get("text")) for item in view["items"]], view["execution"]["state"]

    def node_log(self):
        return "".join(path.read_text() for path in (self.home / "shared" / self.id).glob("node-*.log"))

    def close(self):
        if self.server.process.poll() is None:
            for group in self.server.ask("GET", "groups")["groups"]:
                self.server.ask("DELETE", f"groups/{group['id']}")
        self.server.end()


class WaitingOnRay(Waiting):
    """Another group of the server has all CPUs of the cluster, so that `wide` waits."""

    def variables_of(self, ray):
        return {**ray.env, "RAY_ADDRESS": ray.address}

    def submit(self):
        shape = {**SHAPE, "cwd": str(self.home), "launcher": "ray", "launcher_options": {"cpus_per_node": 4}}
        self.server.ask("POST", "groups", {**shape, "name": "first"})
        until(lambda: self.server.ask("GET", "groups/first")["state"] == "ready", self.server.log)
        self.id = self.server.ask("POST", "groups", shape)["id"]
        until(lambda: "until others release them" in (self.group()["allocation"]["text"] or ""), self.group)

    def start(self):
        self.server.ask("DELETE", "groups/first")
        return self.server.ask("GET", f"groups/wide?wait={PATIENCE}&not_state=starting")


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_a_job_that_waits_on_ray_over_an_upgrade_starts_with_the_version_that_submitted_it(ray, tmp_path):
    place = WaitingOnRay(tmp_path, ray)
    try:
        place.submit()
        place.upgrade()
        group = place.start()
        assert group["state"] == "ready", group
        code = f"import os, jupyter_dist\n{ALL_REDUCE}\nprint(jupyter_dist.__version__)"
        assert place.said(code)[1] == "ok"
        assert importlib.metadata.version("jupyter_dist") in str(place.said(code)[0])
    finally:
        place.close()


@pytest.fixture
def waiting(slurm, tmp_path, request):
    place = Waiting(tmp_path, slurm)
    try:
        place.submit(**getattr(request, "param", {}))
        yield place
    finally:
        place.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("waiting", [{"tunnel": "srun"}], indirect=True)  # whose programs on nodes are of that version
def test_a_job_that_waits_over_an_upgrade_starts_with_the_version_that_submitted_it(waiting):
    sizes = {path.name: path.stat().st_size for path in (waiting.home / "shared" / waiting.id).iterdir()}
    assert 0 < sizes["code.zip"] < 2_000_000, sizes
    waiting.upgrade()
    group = waiting.start()
    assert group["state"] == "ready", (group, waiting.node_log())
    summed = ([("0-3", "10.0\n"), ("0-1", "0\n"), ("2-3", "1\n")], "ok")
    assert waiting.said(f"import os\n{ALL_REDUCE}") == summed
    code = "import jupyter_dist; print(jupyter_dist.__version__, jupyter_dist.__file__.split('/copy-')[0])"
    copies = f"/tmp/jupyter_dist-{os.getuid()}-code"
    assert waiting.said(code) == ([("0-3", f"{importlib.metadata.version('jupyter_dist')} {copies}\n")], "ok")
    waiting.server.ask("POST", "groups/wide/ranks/3/kill")
    until(lambda: waiting.group()["state"] == "degraded", waiting.group)
    waiting.server.ask("POST", "groups/wide/replace")
    until(lambda: waiting.group()["state"] == "ready", waiting.group)
    assert waiting.said(f"import os\n{ALL_REDUCE}") == summed
    assert "installed package" not in waiting.node_log()


@pytest.mark.timeout(300)
def test_a_job_that_cannot_read_its_code_runs_the_installed_package_and_names_both_versions(waiting):
    waiting.upgrade()
    (waiting.home / "shared" / waiting.id / "code.zip").unlink()
    waiting.start()
    until(lambda: waiting.group()["state"] == "dead", waiting.group)
    group = waiting.group()
    assert "code.zip cannot be read here, so the installed package is used." in group["error"]["message"], group
    assert "The group runs jupyter_dist" in group["error"]["message"], group
