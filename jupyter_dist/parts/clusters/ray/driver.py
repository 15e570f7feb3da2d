"""The driver of one job on Ray: reserves the nodes, starts the command on each, and writes the events to files.

    python driver.py job FOLDER        reads FOLDER/job.json, writes FOLDER/status.json and what node.sh would write
    python driver.py probe ADDRESS     prints what is free, as JSON

It runs in an interpreter that has ray, which need not have this package: it imports the standard library and ray alone.
For Ray it is a driver, whose actors and placement group end with it, even if it is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PIPE_BYTES = 64 << 10  # that a pipe holds: many times a join file
ANSWER_SECONDS = 2.0
SILENT_SECONDS = 3.0  # then the head of the cluster is named
POLL_SECONDS = 1.0
MAX_CHARS = 600
# Variables in which Ray names the devices of an actor.
_DEVICES = ("_VISIBLE_DEVICES", "_VISIBLE_CHIPS", "_VISIBLE_CORES", "_RT_VISIBLE_CORES")
# Ends the command with the actor's process, and prints why the command cannot be started. The actor has threads, so
# Python must not run between fork and exec.
_START = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit(143)
try:
    os.chdir(sys.argv[2])
except OSError:
    os.chdir("/")
try:
    os.execvp(sys.argv[3], sys.argv[3:])
except OSError as err:
    sys.exit(sys.stderr.write(f"{sys.argv[3]}: {err.strerror}\\n") and 127)
"""


class NoNodesError(Exception):
    """Ray cannot provide the nodes: why, by a name of words.py, and its values."""


# -- on a node --------------------------------------------------------------------------------------------------


class Node:
    """The actor of one node: runs the command, and passes its output on."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = time.monotonic()
        self._printed: list[bytes] = []
        self._is_stopped = False
        self._reader: threading.Lock = threading.Lock()
        self._follower: object = None

    def start(
        self, command: list[str], secrets: dict[str, bytes], env: dict[str, str], cwd: str, lease_seconds: float
    ) -> str:
        """Start the command, with its files as descriptors, a secret one as a pipe that can be read once.

        Returns the host's name.

        Ray sends arguments of a method to the actor only, but stores the arguments of `__init__`. The command is ended
        when the driver has not called for the length of the lease: without its head, Ray ends no actors.
        """
        if self._is_stopped or self._process is not None:
            return socket.gethostname()
        pipes = {name: _file_with(content) for name, content in secrets.items()}
        own = {name: value for name, value in os.environ.items() if name.endswith(_DEVICES)}
        if paths := [path for path in (env.get("PYTHONPATH"), os.environ.get("PYTHONPATH")) if path]:
            own["PYTHONPATH"] = os.pathsep.join(paths)  # with the modules of a runtime environment
        words = [f"/dev/fd/{pipes[word]}" if word in pipes else word for word in command]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, str(os.getpid()), cwd, *words],
                env={**env, **own},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=list(pipes.values()),
                start_new_session=True,
            )
        finally:
            for fd in pipes.values():
                os.close(fd)
        threading.Thread(target=self._watch, args=(self._process, lease_seconds), daemon=True).start()
        return socket.gethostname()

    def hear(self) -> None:
        """Renew the lease, because the driver is alive."""
        self._heard = time.monotonic()

    def _watch(self, process: subprocess.Popen[bytes], lease_seconds: float) -> None:
        while process.poll() is None:
            if time.monotonic() - self._heard > lease_seconds:
                process.terminate()
            time.sleep(min(POLL_SECONDS, lease_seconds))

    def follow(self, position: int) -> Iterator[bytes | int]:
        """Yield the output of the command from `position`, and its exit code. Ends when there is a newer follower."""
        self._follower = mine = object()
        while self._follower is mine:
            for chunk in self._printed[position:]:
                yield chunk  # not `yield from`: Ray calls send()
                position += 1
            if not self._read():
                yield self._process.wait() if self._process is not None else -signal.SIGTERM
                break

    def _read(self) -> bool:
        """Wait for more output; return False if none will come."""
        process = self._process
        if process is None or process.stdout is None:
            return False
        with self._reader:
            ready, _, _ = select.select([process.stdout], [], [], POLL_SECONDS)
            if not ready:
                return process.poll() is None  # a process that the command started may keep the pipe open
            chunk = os.read(process.stdout.fileno(), 65536)
            self._printed += [chunk] if chunk else []
            return bool(chunk)

    def stop(self) -> None:
        """Have the command end."""
        self._is_stopped = True
        if self._process is not None:
            self._process.terminate()


def _file_with(content: bytes) -> int:
    if len(content) > PIPE_BYTES:  # the code of the group, which is no secret
        fd = os.memfd_create("code.zip", 0)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(content)
        return fd
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, content)
    finally:
        os.close(write_end)
    return read_end


# -- the driver -------------------------------------------------------------------------------------------------


class Driver:
    """One job: from connecting to the cluster until the command has ended on all nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.job: dict[str, Any] = json.loads((folder / "job.json").read_text())
        (folder / "job.json").unlink()  # it has the environment of the nodes
        self.num_nodes: int = self.job["num_nodes"]
        self.is_asked_to_end = False
        self.hosts: list[str] = []
        self.node_ids: list[str] = []
        self.ends_at: float | None = None  # when Ray ends the first node that it drains
        self.unreachable: set[int] = set()
        self.actors: list[Any] = []
        self._status: dict[str, Any] = {}
        self._lock = threading.Lock()

    def say(self, state: str, *why: Any, **fields: Any) -> None:
        """Write the state to a file, for this server and the next one; `why` is a name of words.py and its values."""
        status = {"pid": os.getpid(), "started": _started(), "state": state, "why": why, **fields}
        with self._lock:
            if status == self._status:
                return
            self._status = status
            unready = self.folder / "status.new"
            unready.write_text(json.dumps(status))
            unready.replace(self.folder / "status.json")

    def listen(self) -> None:
        """Take SIGTERM as the request to end the command on all nodes."""

        def end(*_: object) -> None:
            self.is_asked_to_end = True

        signal.signal(signal.SIGTERM, end)

    def run(self) -> None:
        """Do the job. Raises NoNodesError before the cluster has accepted it."""
        import ray  # noqa: PLC0415 - its ImportError goes into the status

        connect(ray, self.job["address"], self.job["runtime_env"])
        self.listen()  # again: ray has replaced the handler
        group = ray.util.placement_group(self.job["bundles"], strategy="STRICT_SPREAD", name=self.job["name"])
        try:
            if self._wait_for_nodes(ray, group):
                self._run_nodes(ray, group)
        finally:
            with contextlib.suppress(Exception):
                ray.util.remove_placement_group(group)
        self.say("ended", "released")

    def _wait_for_nodes(self, ray: Any, group: Any) -> bool:
        """Wait until Ray has reserved the nodes; return False if the job was cancelled meanwhile."""
        self.say("queued", "begins")
        while not self.is_asked_to_end:
            if group.wait(timeout_seconds=POLL_SECONDS):
                return True
            self.say("queued", "waits", *amounts(self.job["bundles"], living(ray), ray.available_resources()))
        return False

    def _run_nodes(self, ray: Any, group: Any) -> None:
        by_id = {node["NodeID"]: node["NodeManagerHostname"] for node in living(ray)}
        placed = ray.util.placement_group_table(group)["bundles_to_node_id"]
        self.node_ids = [placed[node] for node in range(self.num_nodes)]
        self.hosts = [by_id.get(node_id, "?") for node_id in self.node_ids]
        self._say_runs(ray)
        self.actors = [self._actor(ray, group, node) for node in range(self.num_nodes)]
        nodes = range(self.num_nodes)
        followers = [threading.Thread(target=self._follow, args=(ray, node), daemon=True) for node in nodes]
        # In a thread: without the head, the call blocks for a minute, and leases would not be renewed.
        drains = threading.Thread(target=self._watch_drains, args=(ray,), daemon=True)
        for thread in (*followers, drains):
            thread.start()
        head = ray.get_runtime_context().gcs_address
        was_told, heard = False, time.monotonic()
        while any(follower.is_alive() for follower in followers):
            if self.is_asked_to_end and not was_told:
                was_told = True
                for actor in self.actors:
                    actor.stop.remote()
            for actor in self.actors:
                actor.hear.remote()
            heard = time.monotonic() if answers(head) else heard
            self._say_runs(ray, "" if time.monotonic() - heard < SILENT_SECONDS else head)
            followers[-1].join(0.1 if was_told else POLL_SECONDS)

    def _actor(self, ray: Any, group: Any, node: int) -> Any:
        strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
            placement_group=group, placement_group_bundle_index=node
        )
        bundle = self.job["bundles"][node]
        others = {name: amount for name, amount in bundle.items() if name not in ("CPU", "GPU")}
        actor = ray.remote(Node).options(
            num_cpus=bundle.get("CPU", 0),
            num_gpus=bundle.get("GPU", 0),
            resources=others,
            scheduling_strategy=strategy,
            max_concurrency=8,  # a disconnected follower ends within a second of the new one; `hear` and `stop`
        )
        return actor.remote()

    def _say_runs(self, ray: Any, silent_head: str = "") -> None:
        job_id = ray.get_runtime_context().get_job_id()
        missing = ", ".join(self.hosts[node] for node in sorted(self.unreachable))
        if missing or silent_head:
            self.say("not_known", "silent", missing, silent_head, hosts=self.hosts, job_id=job_id)
        else:
            self.say("allocated", hosts=self.hosts, job_id=job_id, ends_at=self.ends_at)

    def _watch_drains(self, ray: Any) -> None:
        """Ask Ray which nodes it drains, until this process ends; a drain without a deadline does not count."""
        while True:
            with contextlib.suppress(Exception):  # Ray has no public function for it, and versions differ
                draining = ray._private.state.state.get_draining_nodes()
                deadlines = [draining[node_id] for node_id in self.node_ids if draining.get(node_id)]
                self.ends_at = min(deadlines) / 1000 if deadlines else None
            time.sleep(POLL_SECONDS)

    def _follow(self, ray: Any, node: int) -> None:
        """Start the command on a node, and write its output and its end to files."""
        base = self.folder / f"node-{node}-0"
        env = {**self.job["env"], "JUPYTER_DIST_NODE_RANK": str(node), **self.job["runtime_env"].get("env_vars", {})}
        secrets = {name: Path(name).read_bytes() for name in self.job["files"]}
        actor, position, lease, has_started = self.actors[node], 0, self.job["lease_seconds"], False
        while True:
            try:
                if not has_started:
                    host = ray.get(actor.start.remote(self.job["command"], secrets, env, self.job["cwd"], lease))
                    has_started = True
                    _write(base.with_suffix(".started"), host)
                for found in map(ray.get, actor.follow.remote(position)):
                    self.unreachable.discard(node)
                    if isinstance(found, int):
                        _write(base.with_suffix(".ended"), f"{found if found >= 0 else 128 - found} {self.hosts[node]}")
                        return
                    with open(base.with_suffix(".log"), "ab") as log:
                        log.write(found)
                    position += 1
                message = "Ray has ended its actor."
            except ray.exceptions.ActorUnavailableError:  # Ray does not know yet whether it is dead
                self.unreachable.add(node)
                time.sleep(POLL_SECONDS)
                continue
            except Exception as err:  # whatever the error of Ray, the node is lost for this job
                message = _first_line(err)
            self.unreachable.discard(node)
            if not has_started:
                _write(base.with_suffix(".started"), self.hosts[node])
            _write(base.with_suffix(".ended"), f"lost {self.hosts[node]} {message}")
            return


def connect(ray: Any, address: str, runtime_env: dict[str, Any]) -> None:
    """Connect to the cluster. Raises NoNodesError with the reason."""
    if address != "auto" and not answers(address):
        raise NoNodesError("no_cluster", address)
    try:
        ray.init(address=address, runtime_env=runtime_env or None, log_to_driver=False, logging_level="error")
    except Exception as err:
        raise NoNodesError("unusable", _first_line(err)) from err


def answers(address: str) -> bool:
    """Return whether something listens there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def living(ray: Any) -> list[dict[str, Any]]:
    """Return the nodes of the cluster that are alive."""
    return [node for node in ray.nodes() if node["Alive"]]


def amounts(bundles: list[dict[str, float]], nodes: list[dict[str, Any]], free: dict[str, float]) -> list[Any]:
    """Return the resources for each node, and of these the amounts of each node of the cluster and the free ones."""
    names = {name for bundle in bundles for name in bundle}
    has = [{name: node["Resources"].get(name, 0) for name in names} for node in nodes]
    return [bundles, has, {name: free.get(name, 0) for name in names}]


def _first_line(err: BaseException) -> str:
    return (" ".join(str(err).split()) or type(err).__name__)[:MAX_CHARS]


def _started() -> int:
    """Return when this process was started, as /proc has it: with its pid it names the process."""
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])


def _write(path: Path, text: str) -> None:
    unready = path.with_suffix(".new")
    unready.write_text(text + "\n")
    unready.replace(path)


# -- the command line -------------------------------------------------------------------------------------------


def do_job(folder: Path) -> int:
    """Do a job; every end is written down."""
    driver = Driver(folder)
    driver.listen()
    driver.say("connecting")
    try:
        driver.run()
    except Exception as err:
        driver.say("failed", *explain(err))
        return 1
    return 0


def explain(err: Exception) -> tuple[Any, ...]:
    """Return why there are no nodes."""
    if isinstance(err, ImportError):
        return ("no_ray", sys.executable, _first_line(err))
    return err.args if isinstance(err, NoNodesError) else ("failed", _first_line(err))


def probe(address: str) -> int:
    """Print whether there is a cluster, and what is free."""
    try:
        import ray  # noqa: PLC0415 - its ImportError is printed

        connect(ray, address, {})
        found = {"usable": True, "why": _described(ray)}
    except Exception as err:
        found = {"usable": False, "why": explain(err)}
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


def _described(ray: Any) -> tuple[Any, ...]:
    total, free = ray.cluster_resources(), ray.available_resources()
    what = ", ".join(f"{free.get(name, 0):g}/{total[name]:g} {name}" for name in ("CPU", "GPU") if name in total)
    return "free", ray.__version__, ray.get_runtime_context().gcs_address, len(living(ray)), what


if __name__ == "__main__":
    what, given = sys.argv[1:]
    sys.exit(probe(given) if what == "probe" else do_job(Path(given)))
