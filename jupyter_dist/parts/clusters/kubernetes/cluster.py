"""The cluster by its API. Everything here blocks, and runs in threads.

The client is imported when it is first used: it takes longer to import than the rest of the server.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.launchers.tools import ToolError

from .options import MANAGED_BY

SELECTOR = ",".join(f"{name}={value}" for name, value in MANAGED_BY.items())
JOB_LABEL = "job-name"  # that Kubernetes gives the pods of a Job
INSTALL = say("The client of Kubernetes is not installed: %1.", "pip install 'jupyter_dist[kubernetes]'")
_GONE = 404
_REFUSED = (403, 404, 422)


class RefusedRequestError(ToolError):
    """The API refuses a request; the text has its reason."""


class Cluster:
    """The parts of the API that Jobs need, each with a time limit."""

    def __init__(self, kubeconfig: str, seconds: float) -> None:
        self._kubeconfig = kubeconfig
        self._seconds = seconds
        self._client: Any = None
        self._default_namespace = "default"

    def namespace(self, wanted: str | None) -> str:
        """Return the namespace of a group: the server's own, unless another is wanted. Raises ToolError."""
        self._connected()
        return wanted or self._default_namespace

    def check(self) -> None:
        """Ask for one Job. Raises ToolError with the reason if that fails."""
        self._call("BatchV1Api", "list_namespaced_job", self.namespace(None), limit=1)

    def create_job(self, namespace: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create a Job; return its metadata. Raises ToolError."""
        job = self._call("BatchV1Api", "create_namespaced_job", namespace, manifest)
        return {"name": job.metadata.name, "uid": job.metadata.uid, "labels": job.metadata.labels}

    def create_secret(self, namespace: str, manifest: Mapping[str, Any]) -> None:
        """Create a Secret. Raises ToolError."""
        self._call("CoreV1Api", "create_namespaced_secret", namespace, manifest)

    def delete_job(self, namespace: str, name: str) -> None:
        """Delete a Job and its pods; it may be gone. Raises ToolError."""
        with contextlib.suppress(_GoneError):
            self._call("BatchV1Api", "delete_namespaced_job", name, namespace, propagation_policy="Background")

    def jobs(self, namespace: str) -> dict[str, Any]:
        """Return the Jobs of groups by name. Raises ToolError."""
        found = self._call("BatchV1Api", "list_namespaced_job", namespace, label_selector=SELECTOR)
        return {job.metadata.name: job for job in found.items}

    def pods(self, namespace: str) -> list[Any]:
        """Return the pods of groups. Raises ToolError."""
        return list(self._call("CoreV1Api", "list_namespaced_pod", namespace, label_selector=SELECTOR).items)

    def log(self, namespace: str, pod: str, lines: int) -> str:
        """Return the last lines of a pod's log; empty if there is none. Raises ToolError."""
        with contextlib.suppress(RefusedRequestError):
            return str(self._call("CoreV1Api", "read_namespaced_pod_log", pod, namespace, tail_lines=lines))
        return ""

    def changes(self, namespace: str, job: str, seconds: float) -> Iterator[tuple[str, Any]]:
        """Yield the changes of a Job's pods, as (ADDED, MODIFIED or DELETED, the pod). Raises ToolError."""
        api = self._api("CoreV1Api")
        stream = (
            _module("watch")
            .Watch()
            .stream(
                api.list_namespaced_pod,
                namespace,
                label_selector=f"{JOB_LABEL}={job}",
                timeout_seconds=max(1, int(seconds)),
                _request_timeout=seconds + self._seconds,
            )
        )
        with _named_errors():
            for event in stream:
                yield event["type"], event["object"]

    def _call(self, api: str, method: str, *arguments: Any, **options: Any) -> Any:
        with _named_errors():
            return getattr(self._api(api), method)(*arguments, **options, _request_timeout=self._seconds)

    def _api(self, name: str) -> Any:
        return getattr(_module("client"), name)(self._connected())

    def _connected(self) -> Any:
        if self._client is None:
            if importlib.util.find_spec("kubernetes") is None:
                raise ToolError(INSTALL)
            if not self._has_access():  # without the import, which costs memory
                raise ToolError(
                    say("The server has no access to a cluster: it runs in no pod, and there is no kubeconfig.")
                )
            self._client = self._connect()
        return self._client

    def _has_access(self) -> bool:
        paths = (self._kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config").split(os.pathsep)
        return os.path.exists(_NAMESPACE_FILE) or any(os.path.exists(os.path.expanduser(path)) for path in paths)

    def _connect(self) -> Any:
        client, config = _module("client"), _module("config")
        settings = client.Configuration()
        settings.retries = False  # the next look is the next try
        path = self._kubeconfig or os.environ.get("KUBECONFIG")
        try:
            if not path and os.path.exists(_NAMESPACE_FILE):
                config.load_incluster_config(settings)
                self._default_namespace = _read(_NAMESPACE_FILE)
            else:
                _, active = config.list_kube_config_contexts(path)
                self._default_namespace = active["context"].get("namespace", "default")
                config.load_kube_config(path, client_configuration=settings)
            return client.ApiClient(settings)
        except (config.ConfigException, OSError) as err:
            raise ToolError(say("The server has no access to a cluster: %1.", str(err).rstrip("."))) from err


_NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


class _GoneError(RefusedRequestError):
    """There is no such object."""


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    """Raise ToolError for whatever the client raises: it lets the errors of its HTTP library through."""
    urllib3 = _module("client.rest").urllib3
    client = _module("client")
    try:
        yield
    except client.ApiException as err:
        kind = _GoneError if err.status == _GONE else RefusedRequestError if err.status in _REFUSED else ToolError
        raise kind(_reason(err)) from err
    except (urllib3.exceptions.HTTPError, OSError) as err:
        raise ToolError(say("The API of the cluster cannot be reached: %1.", type(err).__name__)) from err


def _reason(err: Any) -> str:
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return str(json.loads(err.body)["message"]).rstrip(".") + "."
    return f"{err.status} {err.reason}."


def _module(name: str) -> Any:
    """Return a module of the client, which has no types, and which servers without Kubernetes do not have."""
    return importlib.import_module(f"kubernetes.{name}")


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read().strip()
