"""A scripted Kubernetes: the part of the API that Jobs need, over HTTP, with pods that are processes of this machine.

A pod runs the container's command. Paths of its volumes and of its message are replaced by folders of this machine; that,
images and scheduling (a cluster of two nodes) are what is not real.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

NODES = ("k1", "k2")
LOOK_SECONDS = 0.05
BAD_IMAGE = "no/such:image"


class KubernetesApi:
    """The API server, its controllers and the kubelets, as long as a test needs them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs: dict[str, dict] = {}
        self.secrets: dict[str, dict] = {}
        self.pods: dict[str, dict] = {}
        self.is_silent = False
        self.is_forbidden = False
        self._processes: dict[str, subprocess.Popen] = {}
        self._watchers: list[queue.Queue] = []
        self._lock = threading.RLock()
        self._versions = itertools.count(1)
        self._is_ended = threading.Event()
        api = self

        class Handler(_Handler):
            cluster = api

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = False
        self._threads = [threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})]
        self._threads.append(threading.Thread(target=self._control))
        for thread in self._threads:
            thread.start()

    def kubeconfig(self) -> str:
        path = self.folder / "kubeconfig.json"
        address = f"http://127.0.0.1:{self.server.server_address[1]}"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "team"}}],
        }
        path.write_text(json.dumps(config))
        return str(path)

    def end(self) -> None:
        self._is_ended.set()
        for watcher in self._watchers:
            watcher.put(None)
        self.server.shutdown()
        self.server.server_close()
        for thread in self._threads:
            thread.join()
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    # -- controllers ------------------------------------------------------------------------------------------

    def _control(self) -> None:
        while not self._is_ended.wait(LOOK_SECONDS):
            with self._lock:
                for job in list(self.jobs.values()):
                    self._make_pods(job)
                for pod in list(self.pods.values()):
                    self._run(pod)
                for job in self.jobs.values():
                    self._finish(job)

    def _make_pods(self, job: dict) -> None:
        name, wanted = job["metadata"]["name"], job["spec"]["completions"]
        present = {pod["metadata"]["labels"]["job-name"] for pod in self.pods.values()}
        if name in present or job["status"].get("conditions"):
            return
        for index in range(wanted):
            pod_name = f"{name}-{index}-abcde"
            notes = {"batch.kubernetes.io/job-completion-index": str(index)}
            labels = {**job["spec"]["template"]["metadata"]["labels"], "job-name": name}
            metadata = self._metadata(pod_name, labels=labels, annotations=notes)
            status = {"phase": "Pending"}
            spec = json.loads(json.dumps(job["spec"]["template"]["spec"]))
            if index < len(NODES):
                spec["nodeName"] = NODES[index]
            else:
                text = "0/2 nodes are available: 2 Insufficient cpu."
                status["conditions"] = [{"type": "PodScheduled", "status": "False", "message": text}]
            self.pods[pod_name] = {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": metadata,
                "spec": spec,
                "status": status,
            }
            self._changed("ADDED", self.pods[pod_name])

    def _run(self, pod: dict) -> None:
        name = pod["metadata"]["name"]
        process = self._processes.get(name)
        secret = self.secrets.get(pod["spec"]["volumes"][0]["secret"]["secretName"])
        if process is None:
            if "deletionTimestamp" in pod["metadata"]:
                self._remove(pod)
            elif pod["spec"]["containers"][0]["image"] == BAD_IMAGE:
                waiting = {"reason": "ErrImagePull", "message": "not found"}
                pod["status"]["containerStatuses"] = [_status({"waiting": waiting})]
            elif secret is not None and "nodeName" in pod["spec"]:
                self._processes[name] = self._start(pod, secret)
                pod["status"].update(phase="Running", containerStatuses=[_status({"running": {"startedAt": _now()}})])
                self._changed("MODIFIED", pod)
            return
        if pod["status"]["phase"] == "Running" and process.poll() is not None:
            message = (self.folder / name / "message").read_text()
            code = process.returncode if process.returncode >= 0 else 128 - process.returncode
            ended = {"exitCode": code, "message": message, "reason": "Completed" if code == 0 else "Error"}
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the first process of a container ends all others
            pod["status"].update(
                phase="Succeeded" if code == 0 else "Failed", containerStatuses=[_status({"terminated": ended})]
            )
            self._changed("MODIFIED", pod)
        if "deletionTimestamp" in pod["metadata"] and process.poll() is not None:
            self._remove(pod)

    def _start(self, pod: dict, secret: dict) -> subprocess.Popen:
        name, container = pod["metadata"]["name"], pod["spec"]["containers"][0]
        place = self.folder / name
        (place / "volume").mkdir(parents=True)
        (place / "message").touch()
        paths = {container["volumeMounts"][0]["mountPath"]: str(place / "volume"),
                 container["terminationMessagePath"]: str(place / "message")}  # fmt: skip

        def here(text: str) -> str:
            for path, own in paths.items():
                text = text.replace(path, own)
            return text

        for file, content in secret["data"].items():
            path = place / "volume" / file
            text = base64.b64decode(content)
            path.write_bytes(here(text.decode()).encode() if file.endswith(".sh") else text)
            path.chmod(0o600)
        index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        env = {"PATH": os.environ["PATH"], "HOME": str(place), "JOB_COMPLETION_INDEX": index}
        with open(place / "log", "wb") as log:
            return subprocess.Popen(
                [here(word) for word in container["command"]],
                env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _remove(self, pod: dict) -> None:
        self.pods.pop(pod["metadata"]["name"])
        self._processes.pop(pod["metadata"]["name"], None)
        self._changed("DELETED", pod)

    def _finish(self, job: dict) -> None:
        own = [pod for pod in self.pods.values() if pod["metadata"]["labels"]["job-name"] == job["metadata"]["name"]]
        phases = [pod["status"]["phase"] for pod in own]
        if phases and all(phase in ("Succeeded", "Failed") for phase in phases):
            kind = "Complete" if "Failed" not in phases else "Failed"
            message = "Job has failed indexes"
            job["status"]["conditions"] = [{"type": kind, "status": "True", "message": message}]

    def kill_pod(self, index: int) -> None:
        """The node takes the memory back: its kernel kills all processes of the container."""
        name = next(name for name in self.pods if name.endswith(f"-{index}-abcde"))
        os.killpg(self._processes[name].pid, signal.SIGKILL)

    def _changed(self, kind: str, thing: dict) -> None:
        thing["metadata"]["resourceVersion"] = str(next(self._versions))
        for watcher in self._watchers:
            watcher.put((kind, json.loads(json.dumps(thing))))

    def _metadata(self, name: str, **fields: object) -> dict:
        number = next(self._versions)
        return {"name": name, "namespace": "team", "uid": f"uid-{number}", "creationTimestamp": _now(), **fields}

    # -- requests ---------------------------------------------------------------------------------------------

    def create(self, kind: str, body: dict) -> tuple[int, dict]:
        store = {"jobs": self.jobs, "secrets": self.secrets}[kind]
        name = body["metadata"]["name"]
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name), name
        if kind == "jobs":
            spec = body["spec"]
            assert spec["completionMode"] == "Indexed"
            assert spec["template"]["spec"]["restartPolicy"] == "Never"
            assert "the secret" not in json.dumps(body)
        else:
            (owner,) = body["metadata"]["ownerReferences"]
            assert owner["uid"] == self.jobs[owner["name"]]["metadata"]["uid"]
        with self._lock:
            body["metadata"] = {**self._metadata(name), **body["metadata"]}
            store[name] = {**body, "status": {}} if kind == "jobs" else body
            return 201, store[name]

    def delete_job(self, name: str) -> tuple[int, dict]:
        with self._lock:
            if self.jobs.pop(name, None) is None:
                return 404, _failure(404, f'jobs.batch "{name}" not found')
            self.secrets.pop(name, None)  # its owner is gone
            for pod in self.pods.values():
                if pod["metadata"]["labels"]["job-name"] == name:
                    pod["metadata"]["deletionTimestamp"] = _now()
                    process = self._processes.get(pod["metadata"]["name"])
                    if process is not None and process.poll() is None:
                        process.send_signal(signal.SIGTERM)  # the first process of the container alone
            return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def list(self, kind: str, selector: str) -> dict:
        store = {"jobs": self.jobs, "pods": self.pods}[kind]
        with self._lock:
            items = [thing for thing in store.values() if _matches(thing, selector)]
            version = str(next(self._versions))
            return json.loads(json.dumps({"kind": "List", "metadata": {"resourceVersion": version}, "items": items}))

    def watch(self, selector: str, seconds: float):
        events: queue.Queue = queue.Queue()
        with self._lock:
            for pod in self.list("pods", selector)["items"]:
                events.put(("ADDED", pod))
            self._watchers.append(events)
        deadline = time.monotonic() + seconds
        try:
            while (left := deadline - time.monotonic()) > 0:
                try:
                    event = events.get(timeout=left)
                except queue.Empty:
                    return
                if event is None:
                    return
                if _matches(event[1], selector):
                    yield {"type": event[0], "object": event[1]}
        finally:
            self._watchers.remove(events)


class _Handler(BaseHTTPRequestHandler):
    cluster: KubernetesApi
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, code: int, body: object) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        data = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True

    def _is_refused(self) -> bool:
        if self.cluster.is_silent:
            self._answer(503, _failure(503, "the server is currently unable to handle the request"))
        elif self.cluster.is_forbidden:
            self._answer(403, _failure(403, 'jobs.batch is forbidden: User "u" cannot list resource "jobs"'))
        return self.cluster.is_silent or self.cluster.is_forbidden

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        if not self._is_refused():
            self._answer(*self.cluster.create(self.path.partition("?")[0].rpartition("/")[2], body))

    def do_DELETE(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self._is_refused():
            self._answer(*self.cluster.delete_job(urlsplit(self.path).path.rpartition("/")[2]))

    def do_GET(self) -> None:
        if self._is_refused():
            return
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        selector = asked.get("labelSelector", "")
        if asked.get("watch") in ("True", "true"):
            self._stream(selector, float(asked["timeoutSeconds"]))
        elif parts.path.endswith("/log"):
            path = self.cluster.folder / parts.path.split("/")[-2] / "log"
            self._answer(200, path.read_text()) if path.exists() else self._answer(404, _failure(404, "no log"))
        else:
            self._answer(200, self.cluster.list(parts.path.rpartition("/")[2], selector))

    def _stream(self, selector: str, seconds: float) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(OSError):
            for event in self.cluster.watch(selector, seconds):
                data = json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")


def _matches(thing: dict, selector: str) -> bool:
    labels = thing["metadata"].get("labels", {})
    return all(
        labels.get(name) == value for name, _, value in (each.partition("=") for each in selector.split(",") if each)
    )


def _status(state: dict) -> dict:
    return {"name": "node", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": state}


def _failure(code: int, message: str) -> dict:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
