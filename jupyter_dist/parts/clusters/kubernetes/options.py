"""The options of Kubernetes, and the objects that are created for them. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.launchers.allocation import Wanted
from jupyter_dist.server.launchers.common.limits import size, zero_is_all
from jupyter_dist.server.launchers.options import Option, matches

MANAGED_BY = {"app.kubernetes.io/managed-by": "jupyter-dist"}
GROUP_LABEL = "jupyter-dist/group"
FOLDER = "/run/jupyter-dist"
MESSAGE = "/dev/termination-log"
SCRIPT_NAME = "node.sh"
ENVIRONMENT_NAME = "environment.sh"
END_SECONDS = 30  # between SIGTERM and SIGKILL
KEPT_SECONDS = 3600  # of a Job that has ended, if no server comes back
_NAME = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"

# The first process of a pod. It passes SIGTERM on, and leaves the exit code and the last lines as the message of its
# end, which outlives the pod's log. It returns 0, because a Job ends all pods when one fails too often.
SCRIPT = f"""\
. {FOLDER}/{ENVIRONMENT_NAME}
JUPYTER_DIST_NODE_RANK=$JOB_COMPLETION_INDEX
export JUPYTER_DIST_NODE_RANK
place=$(mktemp -d)
mkfifo "$place/out"
tee "$place/log" < "$place/out" &
tee=$!
cd "$1" 2> /dev/null || cd /
shift
"$@" < /dev/null > "$place/out" 2>&1 &
child=$!
trap 'signalled=1; kill -TERM $child' TERM INT
code=
signalled=1
while [ -n "$signalled" ]; do  # a signal ends the wait with its own code
  signalled=
  wait $child 2> /dev/null
  found=$?
  [ $found -eq 127 ] && [ -n "$code" ] || code=$found  # 127: the code was returned before
done
tries=0
while kill -0 $tee 2> /dev/null && [ $tries -lt 20 ]; do sleep 0.1; tries=$((tries + 1)); done
{{ echo $code; tail -c 2000 "$place/log"; }} > {MESSAGE}
rm -rf "$place"
"""


def _wrong_pod(value: dict[str, Any]) -> str | None:
    ours = sorted({"containers", "restartPolicy"}.intersection(value))
    return say("has '%1', which the launcher sets itself.", ours[0]) if ours else None


OPTIONS = (
    Option("image", "Image", "The container image of the pods, with torch and the same jupyter_dist.", is_common=True,
           check=matches(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*", "an image looks like registry.example.com/torch:2.9.")),
    Option("gpus_per_node", "GPUs per node", "GPUs of each pod. Empty: none.", kind="integer", is_common=True),
    Option("cpus_per_node", "CPUs per node", "CPUs of each pod. Empty: one for each rank.", kind="integer", minimum=1),
    Option("memory", "Memory per node", "As Kubernetes takes it: 64Gi. Empty: the namespace's default.",
           measure=zero_is_all(size), check=matches(r"\d+(Ki|Mi|Gi|Ti|K|M|G|T)?", "memory looks like 64Gi.")),
    Option("namespace", "Namespace", "Where the pods are created. Empty: the server's own.",
           check=matches(_NAME, "a namespace looks like team-a.")),
    Option("python", "Python", "The interpreter in the image. Empty: the path of the group's.",
           check=matches(r"[A-Za-z0-9_./+-]+", "a Python looks like /opt/conda/bin/python.")),
    Option("service_account", "Service account", "That of the pods. Empty: the namespace's default.",
           check=matches(_NAME, "a service account looks like training.")),
    Option("node_selector", "Node selector", 'Labels that nodes must have: {"gpu": "a100"}.', kind="object"),
    Option("pod", "Pod", 'More of the pods: {"tolerations": [{"key": "gpu", "operator": "Exists"}]}.', kind="object",
           check=_wrong_pod),
)  # fmt: skip


def secret_mode(pod: Mapping[str, Any]) -> int:
    """Return the mode of the files of a Secret, as closed as the user of the pod can read them: root owns them."""
    context = pod.get("securityContext") or {}
    if "fsGroup" in context:  # they get this group
        return 0o440
    return 0o400 if context.get("runAsUser") == 0 else 0o444


def job_manifest(name: str, wanted: Wanted, gpu: str) -> dict[str, Any]:
    """Return the Job: as many pods as nodes, each with an index, of which none ends the others."""
    options, num_nodes = wanted.options, wanted.num_nodes
    labels = {**MANAGED_BY, GROUP_LABEL: wanted.group_id}
    amounts = {"cpu": options.get("cpus_per_node"), "memory": options.get("memory"), gpu: options.get("gpus_per_node")}
    limits = {resource: str(amount) for resource, amount in amounts.items() if amount}
    container = {
        "name": "node",
        "image": options.get("image", ""),
        "command": ["/bin/sh", f"{FOLDER}/{SCRIPT_NAME}", wanted.cwd, *wanted.command],
        "resources": {"limits": limits, "requests": limits},
        "terminationMessagePath": MESSAGE,
        "volumeMounts": [{"name": "job", "mountPath": FOLDER, "readOnly": True}],
    }
    more = dict(options.get("pod", {}))
    own = {"name": "job", "secret": {"secretName": name, "defaultMode": secret_mode(more)}}
    volumes = [own, *more.pop("volumes", [])]
    pod = {
        **({"nodeSelector": options["node_selector"]} if "node_selector" in options else {}),
        **({"serviceAccountName": options["service_account"]} if "service_account" in options else {}),
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": END_SECONDS,
        **more,
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": volumes,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "completions": num_nodes,
            "parallelism": num_nodes,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": 0,
            "maxFailedIndexes": num_nodes,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def secret_manifest(job: Mapping[str, Any], files: Sequence[Path], environment: str) -> dict[str, Any]:
    """Return the Secret with the files of a Job, which Kubernetes deletes with it. Pods wait until it is there."""
    content = {SCRIPT_NAME: SCRIPT.encode(), ENVIRONMENT_NAME: environment.encode()}
    content |= {file.name: file.read_bytes() for file in files}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["name"], "uid": job["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": job["name"], "labels": job["labels"], "ownerReferences": [owner]},
        "data": {name: base64.b64encode(text).decode() for name, text in content.items()},
    }
