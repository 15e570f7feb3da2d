"""A real Ray cluster of this user on this machine: a head without CPUs, and two nodes of 4 CPUs, each with its raylet.

It takes 15 to 25 seconds and as many of CPU time to start, so there is one for a test run. It runs in a process of its
own, so that the tests do not import ray; this file is also that process:

    python raycluster.py FOLDER
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NODE = {"num_cpus": 4, "num_gpus": 2, "object_store_memory": 80_000_000}
START_SECONDS = 240.0
STARTS = 4  # Ray gives itself 30 s for a node, however busy the machine is
TOO_SLOW = "timed out during startup"
DRAIN_SECONDS = 100.0


def missing() -> str | None:
    """What this Python lacks; None if a cluster can be started."""
    lacks = importlib.util.find_spec("ray") is None
    return f"{sys.executable} has no ray: pip install ray" if lacks else None


class RayCluster:
    """The cluster, and the variables with which its user finds it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # sockets lie below it: their paths are short
        (self.folder / "token").write_text("0123456789abcdef" * 4)
        (self.folder / "token").chmod(0o600)
        self.env = {
            "RAY_TMPDIR": str(self.folder),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.folder / "token"),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_enable_worker_prestart": "0",
        }
        self.address = ""
        self._process: subprocess.Popen[str] | None = None
        self._is_whole = True

    def mend(self) -> None:
        """Start again what a test has ended permanently: the head."""
        if not self._is_whole:
            self._end()
            self.start()

    def start(self) -> None:
        for _ in range(STARTS - 1):
            with contextlib.suppress(TimeoutError):
                return self._start()
        return self._start()

    def _start(self) -> None:
        """Start it once. Raises TimeoutError if the machine is too busy for Ray."""
        command = [sys.executable, __file__, str(self.folder)]
        variables = {
            **os.environ,
            **self.env,
            "RAY_health_check_period_ms": "1000",
            "RAY_health_check_timeout_ms": "1000",
            "RAY_health_check_failure_threshold": "3",
            "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
        }
        with (self.folder / "log").open("w") as log:
            self._process = subprocess.Popen(
                command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                start_new_session=True,
            )  # fmt: skip
        self.address, self._is_whole = self._read()["address"], True

    def ask(self, *words: str) -> dict:
        """Have it do something: `kill NAME`, where `gcs` is the head, `replace NAME`, or `drain NAME`."""
        assert self._process is not None
        self._is_whole &= words != ("kill", "gcs")
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return self._read()

    def end(self) -> None:
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        if self._process is not None:
            try:
                self._process.communicate(timeout=START_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.communicate()

    def _read(self) -> dict:
        line = self._process.stdout.readline()  # its program has limits of its own, and ends
        if not line:
            text = (self.folder / "log").read_text()[-3000:]
            self._end()
            assert TOO_SLOW in text, text
            raise TimeoutError(text)
        return json.loads(line)


def drain(address: str, node_id: str) -> None:
    """Announce that a node ends soon, as an autoscaler does before its machine is preempted."""
    from ray._raylet import GcsClient
    from ray.core.generated import autoscaler_pb2

    deadline_ms = int((time.time() + DRAIN_SECONDS) * 1000)
    why = autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
    accepted, message = GcsClient(address=address).drain_node(node_id, why, "test", deadline_ms)
    assert accepted, message


def serve() -> None:
    """Start the cluster, and do what is asked for on standard input until that ends."""
    import faulthandler

    faulthandler.dump_traceback_later(START_SECONDS, exit=True)  # a start that hangs
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "num_gpus": 0, "include_dashboard": False, "object_store_memory": 80_000_000}
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # ray prints
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = {name: cluster.add_node(**NODE) for name in ("n1", "n2")}
    faulthandler.cancel_dump_traceback_later()
    nodes["head"] = cluster.head_node
    print(json.dumps({"address": cluster.address}), file=said, flush=True)
    for line in sys.stdin:
        what, name = json.loads(line)
        if what == "kill" and name == "gcs":
            cluster.head_node.kill_gcs_server()
        elif what == "kill":
            nodes[name].kill_raylet()
        elif what == "replace":
            cluster.remove_node(nodes.pop(name), allow_graceful=False)
            nodes[name] = cluster.add_node(**NODE)
        elif what == "drain":
            drain(cluster.address, nodes[name].node_id)
        print(json.dumps({"done": what}), file=said, flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    serve()
