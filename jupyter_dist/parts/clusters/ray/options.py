"""The options of Ray, and the bundles of nodes for them."""

from __future__ import annotations

import json
import re
from typing import Any

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.launchers.allocation import Wanted
from jupyter_dist.server.launchers.options import Option, fault_in, fault_of

AUTO = "auto"
MAX_JSON_CHARS = 20_000
_ADDRESS = re.compile(r"auto|([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}")
_RESOURCE = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,99}")


def _wrong_address(value: str) -> str | None:
    if value.startswith("ray://"):
        return say("is an address of Ray Client; write the one that 'ray start' takes, such as 10.0.0.1:6379.")
    if value.startswith(("http://", "https://")):
        return say("is the address of Ray's dashboard; write the one that 'ray start' takes, such as 10.0.0.1:6379.")
    return None if _ADDRESS.fullmatch(value) else fault_of(value, "an address looks like 10.0.0.1:6379, or auto.")


def _wrong_resources(value: dict[str, Any]) -> str | None:
    for name, amount in value.items():
        if name in ("CPU", "GPU"):
            return say("has '%1'; use '%2' for it.", name, f"{name.lower()}s_per_node")
        if not _RESOURCE.fullmatch(name):
            return fault_in(name, "a resource looks like special_hardware or accelerator_type:A100.")
        if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not 0 < amount < 1e9:
            given = repr(str(amount)[:60])
            return say("has %1 with %2; how much of it must be a number above 0.", repr(name[:60]), given)
    return None


def _wrong_runtime_env(value: dict[str, Any]) -> str | None:
    variables = value.get("env_vars", {})
    if not isinstance(variables, dict) or not all(isinstance(text, str) for text in variables.values()):
        return say("has 'env_vars', which must be an object of texts.")
    if len(json.dumps(value)) > MAX_JSON_CHARS:
        return say("must be at most %1 characters as JSON.", MAX_JSON_CHARS)
    return None


OPTIONS = (
    Option("address", "Address", "Of the cluster, as 'ray start' takes it. Empty: RAY_ADDRESS, else the cluster that"
           " the server's machine is a node of.", is_common=True, check=_wrong_address),
    Option("gpus_per_node", "GPUs per node", "GPUs of each node; a node with fewer ranks than another has fewer."
           " Empty: none, and ranks see none.", kind="integer", is_common=True),
    Option("cpus_per_node", "CPUs per node", "CPUs of each node; a node with fewer ranks than another has fewer."
           " Empty: one for each rank.", kind="integer", minimum=1, is_common=True),
    Option("resources", "Resources", 'More that each node must have: {"accelerator_type:A100": 0.001}.',
           kind="object", check=_wrong_resources),
    Option("runtime_env", "Runtime environment", 'What Ray prepares on each node: {"env_vars": {"A": "1"}}.',
           kind="object", check=_wrong_runtime_env),
)  # fmt: skip


def bundles(wanted: Wanted) -> list[dict[str, float]]:
    """Return the bundle of resources that Ray reserves on each node: CPUs and GPUs by its ranks."""
    amounts = zip(wanted.by_ranks("cpus_per_node"), wanted.by_ranks("gpus_per_node"), strict=True)
    asked = [{"CPU": cpus, "GPU": gpus, **wanted.options.get("resources", {})} for cpus, gpus in amounts]
    return [{name: amount for name, amount in bundle.items() if amount} for bundle in asked]
