"""One machine of two is not as it should be: another Python or torch, a full disk, the other's name, too few devices."""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_dist.agent.nodes.head import Nodes
from jupyter_dist.agent.nodes.link.given import given_bytes, given_cpus, shortage
from jupyter_dist.agent.nodes.remote import lost_link
from jupyter_dist.agent.processes.starting.environment import node_devices, rank_spec
from jupyter_dist.protocol import accelerators
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.specs import GroupSpec

from .twonodes import NODE_VARIABLES, TwoNodes

ALL = (0, 1, 2, 3)
SUM = "t = torch.ones(1) * (rank + 1); dist.all_reduce(t); print(t.item())"
HOST = socket.gethostname()
FIRST, SECOND = "GPU-6f3c4d1e-8a1b-2f6e-9d7a-0c5b3e2a1f00", "GPU-6f3c4d1e-8a1b-2f6e-9d7a-0c5b3e2a1f01"
PART = "MIG-c7384736-a75d-5afc-978f-d2f1294409fd"

# What libnvidia-ml.so.1 answers on a machine with two H100, written by hand after NVIDIA's reference.
DRIVER = r"""
#include <stdio.h>
#include <stdint.h>
typedef struct { unsigned long long total, free, used; } memory;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(uintptr_t)(index + 1); return 0; }
int nvmlDeviceGetMemoryInfo(void *device, memory *m) { m->total = 85520809984ULL; return 0; }
int nvmlDeviceGetName(void *device, char *text, unsigned n) { return snprintf(text, n, "NVIDIA H100 80GB HBM3") < 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned n) {
    return snprintf(text, n, "GPU-6f3c4d1e-8a1b-2f6e-9d7a-0c5b3e2a1f0%d", (int)(uintptr_t)device - 1) < 0;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Variables with which a node has the driver above; none without a C compiler."""
    if (compiler := shutil.which("cc") or shutil.which("gcc")) is None:
        return {}
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(DRIVER)
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, folder / "driver.c"], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}


@pytest.fixture(scope="module")
def disk():
    """A small disk; None where none can be mounted."""
    path = Path(tempfile.mkdtemp(prefix="jd-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", str(path)]
    is_mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    yield path if is_mounted else None
    if is_mounted:
        subprocess.run(["umount", "-l", path], check=True)
    path.rmdir()


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    """A group of which node 0 has joined."""
    nodes = TwoNodes(tmp_path_factory.mktemp("odd") / "g")
    nodes.begin()
    nodes.join("--node-rank", "0")
    nodes.client.wait(lambda: [n["state"] for n in nodes.client.group.get("nodes", [])][:1] == ["joined"])
    yield nodes
    nodes.end()


@pytest.fixture(scope="module")
def group(waiting, driver, disk):
    """Node 1 has its temporary files on the small disk, and a driver that knows two devices, of which it has some."""
    variables = {**driver, "CUDA_VISIBLE_DEVICES": f"{PART},{FIRST},1,-1,0"}
    waiting.join("--node-rank", "1", **variables, **({"TMPDIR": str(disk)} if disk else {}))
    waiting.ready()
    return waiting


def torch_of_another_version(folder):
    (folder / "torch-9.9.1.dist-info").mkdir()
    (folder / "torch-9.9.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9.1\n")


def python_of_another_version(folder):
    code = "import platform\nplatform.python_version_tuple = lambda: ('3', '99', '0')\n"
    (folder / "sitecustomize.py").write_text(code)


@pytest.mark.parametrize(
    ("make", "name", "theirs"),
    [(torch_of_another_version, "torch", "9.9.1"), (python_of_another_version, "Python", "3.99")],
)
def test_another_version_is_named_with_both_nodes_before_any_rank_starts(waiting, tmp_path, make, name, theirs):
    make(tmp_path)
    odd = waiting.join("--node-rank", "1", PYTHONPATH=f"{tmp_path}{os.pathsep}{NODE_VARIABLES['PYTHONPATH']}")
    assert odd.code() == 1
    assert f"all nodes need the same {name}: {name} {theirs} here, " in odd.text()
    assert odd.text().strip().endswith(f"on node 0 ({HOST}).")
    said = f"{HOST} cannot join: it has {name} {theirs}, and node 0 ({HOST}) has "
    waiting.client.wait(lambda: str(waiting.client.group["nodes"][1]["message"]).startswith(said))
    assert waiting.client.group["nodes"][1]["state"] == "waiting"
    assert [rank["pid"] for rank in waiting.client.group["ranks"]] == [None] * 4


def test_two_nodes_may_have_the_same_host_name(group):
    client = group.client
    assert [(node["node"], node["host"]) for node in client.group["nodes"]] == [(0, HOST), (1, HOST)]
    client.request("kill", rank=2)
    client.wait_group("degraded")
    client.request("replace")
    client.wait_group("ready")
    execution = client.run("import os; print(os.environ['GROUP_RANK'])\n" + SUM, ALL)
    assert [client.text(rank, execution["id"]).split() for rank in ALL] == [[str(r // 2), "10.0"] for r in ALL]


def test_a_full_disk_on_one_node_stops_no_rank_and_costs_no_line(group, disk):
    if disk is None:
        pytest.skip("needs the right to mount a tmpfs")
    client = group.client
    said = (
        f"the copy of its code is in /tmp/jupyter_dist-{os.getuid()}-code, because of {disk}: No space left on device."
    )
    assert said in group.nodes[-1].text()
    with contextlib.suppress(OSError), (disk / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(b"x" * 512)
    code = """
import tempfile
try:
    with tempfile.NamedTemporaryFile(dir=os.environ.get("TMPDIR")) as file: file.write(b"x" * 100_000)
    print("there is space")
except OSError as err:
    print(err.strerror)
"""
    lines = "for i in range(20_000): print('line', i)\n"
    execution = client.run("import os" + code + lines + SUM, ALL)
    assert execution["state"] == "ok", client.text(2, execution["id"], "stderr")
    rest = "".join(f"line {i}\n" for i in range(20_000)) + "10.0\n"
    said = {rank: client.text(rank, execution["id"]) for rank in ALL}
    assert said == {r: ("there is space\n" if r < 2 else "No space left on device\n") + rest for r in ALL}
    sleeping = client.submit("import time; time.sleep(1000)", ALL)
    client.wait(lambda: client.executions[sleeping]["state"] == "running")
    client.request("interrupt", ranks=None)
    assert client.ended(sleeping)["state"] == "interrupted"
    generation = client.group["generation"] + 1
    client.request("restart")
    client.wait(lambda: (client.group["generation"], client.group["state"]) == (generation, "ready"))
    assert client.run(SUM, ALL)["state"] == "ok"


# This checkout stays where it is, even if that is in a temporary folder.
WITHOUT_PLACES = """
mount -t tmpfs none /mnt && mkdir /mnt/kept && mount --bind "$1" /mnt/kept || exit 77
for folder in /tmp /var/tmp /dev/shm; do mount -t tmpfs none $folder || exit 77; done
mkdir -p "$1" && mount --bind /mnt/kept "$1" || exit 77
for folder in /tmp /var/tmp /dev/shm; do mount -o remount,ro $folder || exit 77; done
cd /proc && exec "$0" -m jupyter_dist.agent.node join.json
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs the right to mount a tmpfs")
def test_a_node_without_a_temporary_folder_ends_with_a_sentence():
    command = ["unshare", "--mount", "sh", "-c", WITHOUT_PLACES, sys.executable, str(Path(__file__).parents[2])]
    variables = {"PATH": os.environ["PATH"], **NODE_VARIABLES}
    ended = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    if ended.returncode == 77:
        pytest.skip("needs the right to mount a tmpfs")
    assert ended.returncode == 1
    reasons = "; ".join(f"{place}: Read-only file system" for place in ("/tmp", "/var/tmp", "/dev/shm"))
    assert f"so do not upgrade jupyter_dist while this node runs: {reasons}." in ended.stderr
    assert "the node agent cannot run without a temporary folder: [Errno 30] Read-only file system" in ended.stderr


def test_the_devices_that_a_node_was_given_are_shown(group, driver):
    first, second = group.client.group["nodes"]
    assert second["memory_bytes"] == first["memory_bytes"] > 1 << 28
    if not driver:
        pytest.skip("needs a C compiler")
    whole = {"name": "NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984}
    assert second["devices"] == [
        {"index": None, "name": PART, "uuid": PART, "memory_bytes": None},
        {"index": 0, "uuid": FIRST, **whole},
        {"index": 1, "uuid": SECOND, **whole},
    ]


def test_too_few_devices_on_a_node_are_named_with_it(tmp_path):
    nodes = TwoNodes(tmp_path / "g")
    try:
        shape = {"accelerator": "cuda", "devices": [0, 1], "ranks_per_node": [2], "launcher": "external"}
        nodes.client.start(2, wait=False, **shape)
        nodes.join(CUDA_VISIBLE_DEVICES="5")
        nodes.client.wait_group("dead")
        message = f"on node 0 ({HOST}): its ranks need 2 devices, and it has 1 (CUDA_VISIBLE_DEVICES=5)."
        assert message in nodes.client.group["error"]["message"]
    finally:
        nodes.end()


def spec_of(devices, accelerator="cuda", num_nodes=2):
    counts = [len(devices)] * num_nodes
    group = GroupSpec("g", "g", sum(counts), accelerator, "nccl", "/", devices, launcher="slurm", ranks_per_node=counts)
    return [rank_spec(group, rank, "link:0", 0, None) for rank in range(sum(counts))]


@pytest.mark.parametrize(
    ("environment", "num_seen", "devices", "expected"),
    [
        ({}, 8, [0, 1], None),  # a machine of one's own: as the group says
        ({}, 8, [2, 5], None),
        ({"CUDA_VISIBLE_DEVICES": "4,5,6,7"}, 8, [0, 1], "4,5"),  # Slurm without device cgroups, and Ray
        ({"CUDA_VISIBLE_DEVICES": "4,5,6,7"}, 8, [3, 1], "7,5"),
        ({"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_STEP_GPUS": "6,7"}, 2, [0, 1], "0,1"),  # with them: numbered from 0
        ({"SLURM_STEP_GPUS": "6,7"}, 8, [0, 1], "6,7"),  # a cluster that sets no variable of the vendor
        ({"SLURM_STEP_GPUS": "6,7"}, 2, [0, 1], None),  # and has device cgroups
        ({"SLURM_JOB_GPUS": "6,7"}, 8, [0, 1], "6,7"),
        ({"CUDA_VISIBLE_DEVICES": f"{SECOND},{PART}"}, 2, [0, 1], f"{SECOND},{PART}"),
    ],
)
def test_ranks_use_the_devices_that_their_engine_has_given_the_node(environment, num_seen, devices, expected):
    for rank in spec_of(devices):
        own = node_devices(rank, environment, num_seen)
        assert own == ({} if expected is None else {"CUDA_VISIBLE_DEVICES": expected})
        assert rank.device == f"cuda:{rank.local_rank}"  # an index in that list


@pytest.mark.parametrize(
    ("environment", "num_seen", "there"),
    [
        ({"CUDA_VISIBLE_DEVICES": ""}, 8, "it has 0 (CUDA_VISIBLE_DEVICES=)."),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, 8, "it has 0 (CUDA_VISIBLE_DEVICES=NoDevFiles)."),  # Slurm's for none
        ({"CUDA_VISIBLE_DEVICES": "3,-1,2"}, 8, "it has 1 (CUDA_VISIBLE_DEVICES=3,-1,2)."),
        ({"SLURM_STEP_GPUS": "3"}, 8, "it has 1."),
        ({}, 1, "it has 1."),
    ],
)
def test_too_few_devices_are_said(environment, num_seen, there):
    with pytest.raises(JupyterDistError) as refused:
        node_devices(spec_of([0, 1])[0], environment, num_seen)
    assert refused.value.code == "bad_devices"
    assert refused.value.message == f"its ranks need 2 devices, and {there}"
    with pytest.raises(JupyterDistError, match=r"^its ranks need device 9, counted from 0, and it has"):
        node_devices(spec_of([9, 0])[0], environment, num_seen)


def test_other_vendors_have_variables_of_their_own():
    assert node_devices(spec_of([0, 1], "rocm")[0], {"HIP_VISIBLE_DEVICES": "2,3"}, 0) == {"HIP_VISIBLE_DEVICES": "2,3"}
    assert accelerators.given_devices("xpu", {"ZE_AFFINITY_MASK": "0.0,0.1"}) == ["0.0", "0.1"]
    assert accelerators.given_devices("cpu", {"CUDA_VISIBLE_DEVICES": "1"}) is None


def test_what_a_node_was_given_is_compared_with_what_its_ranks_need():
    enough = {"cpus": 4, "machine_cpus": 8, "given_bytes": 4 << 30}
    assert shortage(enough, 4) == ""
    assert shortage({**enough, "cpus": 1}, 4) == "1 of its machine's 8 CPUs for 4 ranks"
    assert shortage({"cpus": 2, "machine_cpus": 2, "given_bytes": None}, 8) == ""  # no engine has taken any
    less = {"cpus": 1, "machine_cpus": 8, "given_bytes": 500 << 20}
    assert shortage(less, 4) == "1 of its machine's 8 CPUs, 500 MiB of memory for 4 ranks"
    assert given_cpus({"SLURM_CPUS_PER_TASK": "1"}) == 1
    assert given_cpus({}) == len(os.sched_getaffinity(0))
    assert given_bytes({"SLURM_MEM_PER_NODE": "100"}) == 100 << 20


@pytest.mark.parametrize(
    ("launcher", "words"),
    [
        ("external", "Start a node agent on that machine or another one: "),
        ("slurm", "The launcher 'slurm' started it. If it does not start it again, as Slurm does with a job"),
    ],
)
def test_a_missing_node_is_named_with_what_its_launcher_needs(tmp_path, launcher, words):
    async def check():
        spec = GroupSpec("g", "g", 2, "cpu", "gloo", "/", launcher=launcher, ranks_per_node=[2])
        nodes = Nodes(spec, tmp_path, lambda *_: None, SimpleNamespace(running_calls=list, nodes_end=list))
        with pytest.raises(JupyterDistError) as refused:
            nodes.check_complete()
        assert refused.value.message == "Node 0 is missing."
        assert refused.value.hint.startswith(words)
        await nodes.stop()

    asyncio.run(check())


def test_a_link_that_is_lost_again_and_again_may_lose_large_packets_alone():
    assert lost_link([10.0]) == lost_link([10.0, 50.0, 110.0]) == "The link is lost; its ranks may still run."
    assert "the MTU of an interface is larger than that of the network" in lost_link([10.0, 20.0, 30.0])
