"""Turns the body of `POST /groups` into a GroupSpec in which nothing is left open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.specs import GroupSpec
from jupyter_dist.server.launcher.environments import Environment

MAX_CPU_RANKS = 64

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}\Z")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# torchrun's variables are the agent's to set; a wrong one would keep the group from forming.
RESERVED_ENV = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES"}
    | {"GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE"}
    | {"JUPYTER_DIST_AGENT_PID", "JUPYTER_DIST_PRELOAD"}
)
# So are torchelastic's, which tell torch of a store and an agent that are not there.
RESERVED_PREFIX = "TORCHELASTIC_"
# gloo and NCCL authenticate nobody: a group of one machine is not to be reached from another one.
NETWORK_ENV = frozenset({"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_COMM_ID"})


@dataclass(frozen=True)
class GroupDefaults:
    """What a start uses where its body says nothing."""

    root_dir: str = "."
    world_size: int = 2
    start_timeout_seconds: float = 120.0
    lease_seconds: float = 3600.0
    preload: list[str] = field(default_factory=list)
    journal_bytes: int = 0
    user_journal_bytes: int = 0


@dataclass(frozen=True)
class StartRequest:
    """The body of `POST /groups`, its types checked."""

    name: str | None = None
    environment: str | None = None
    python: str | None = None
    accelerator: str = "auto"
    devices: list[int] | int | str | None = None
    num_ranks: int | None = None
    backend: str = "auto"
    cwd: str | None = None
    notebook: str | None = None
    env: dict[str, str] = field(default_factory=dict)


def resolve_spec(
    request: StartRequest,
    environment: Environment,
    device_indices: Sequence[int],
    defaults: GroupDefaults,
    taken_names: Sequence[str],
) -> dict[str, Any]:
    """Return the fields of a GroupSpec, all but `group_id`.

    Raises:
        JupyterDistError: naming the one field that is wrong.
    """
    accelerator = _accelerator(request, environment, device_indices)
    devices = _devices(request, device_indices) if accelerator == "cuda" else []
    return {
        "name": _name(request.name, taken_names),
        "world_size": len(devices) or _num_ranks(request, defaults),
        "accelerator": accelerator,
        "backend": _backend(request.backend, accelerator),
        "cwd": _cwd(request, defaults.root_dir),
        "devices": devices,
        "env": _env(request.env),
        "preload": defaults.preload,
        "start_timeout_seconds": defaults.start_timeout_seconds,
        "lease_seconds": defaults.lease_seconds,
        "journal_bytes": defaults.journal_bytes,
        "user_journal_bytes": defaults.user_journal_bytes,
    }


def build_spec(group_id: str, fields: dict[str, Any]) -> GroupSpec:
    """The GroupSpec of the group that lives in that directory."""
    return GroupSpec(group_id=group_id, **fields)


def _accelerator(request: StartRequest, environment: Environment, device_indices: Sequence[int]) -> str:
    wanted = request.accelerator
    if wanted == "auto":
        if request.devices is None and request.num_ranks is not None and request.num_ranks > len(device_indices):
            return "cpu"
        wanted = "cuda" if environment.cuda and device_indices else "cpu"
        if wanted == "cpu" and request.devices is None:
            return wanted
    if wanted == "cpu":
        if request.devices is not None:
            message = "'devices' was given, but this group would run on CPU."
            raise JupyterDistError("bad_devices", message, _why_no_cuda(environment, device_indices))
        return wanted
    if not environment.cuda:
        message = f"The torch of {environment.python} has no CUDA."
        raise JupyterDistError("bad_environment", message, "Choose another environment, or accelerator 'cpu'.")
    if not device_indices:
        raise JupyterDistError("bad_devices", "This machine has no CUDA device.", "Choose accelerator 'cpu'.")
    return wanted


def _why_no_cuda(environment: Environment, device_indices: Sequence[int]) -> str:
    if not device_indices:
        return "This machine has no CUDA device; use 'num_ranks'."
    if not environment.cuda:
        return f"The torch of {environment.python} has no CUDA; use 'num_ranks' or another environment."
    return "Leave 'devices' out, or choose accelerator 'cuda'."


def _devices(request: StartRequest, available: Sequence[int]) -> list[int]:
    devices = _named_devices(request, list(available))
    if request.num_ranks is not None and request.num_ranks != len(devices):
        if request.devices is not None:
            message = f"'num_ranks' is {request.num_ranks}, but {len(devices)} devices are named."
            raise JupyterDistError("bad_devices", message, "Give one of the two: there is one rank per device.")
        return _first(request.num_ranks, list(available))
    return devices


def _named_devices(request: StartRequest, available: list[int]) -> list[int]:
    devices = request.devices
    if devices is None or devices in ("all", -1):
        return available
    if isinstance(devices, str):
        raise _bad_devices(f"'devices' is '{devices[:40]}'.", available)
    if isinstance(devices, int):
        return _first(devices, available)
    if not devices:
        raise _bad_devices("'devices' is an empty list.", available)
    unknown = [device for device in devices if device not in available]
    if unknown:
        raise _bad_devices(f"There is no device {unknown[0]}.", available)
    if len(set(devices)) < len(devices):
        raise _bad_devices("'devices' names a device twice.", available)
    return list(devices)


def _first(count: int, available: list[int]) -> list[int]:
    if not 1 <= count <= len(available):
        raise _bad_devices(f"{count} devices were asked for; there are {len(available)}.", available)
    return available[:count]


def _bad_devices(message: str, available: list[int]) -> JupyterDistError:
    indices = ", ".join(map(str, available))
    return JupyterDistError("bad_devices", message, f'Devices: {indices}. Give a list, a count, or "all".')


def _num_ranks(request: StartRequest, defaults: GroupDefaults) -> int:
    count = defaults.world_size if request.num_ranks is None else request.num_ranks
    if not 1 <= count <= MAX_CPU_RANKS:
        raise bad_request(f"'num_ranks' is {count}.", f"It is from 1 to {MAX_CPU_RANKS}.")
    return count


def _backend(wanted: str, accelerator: str) -> str:
    if wanted == "auto":
        return "nccl" if accelerator == "cuda" else "gloo"
    if wanted == "nccl" and accelerator != "cuda":
        raise bad_request("'backend' is 'nccl', but this group runs on CPU.", "Use 'gloo' or 'auto'.")
    return wanted


def _name(wanted: str | None, taken: Sequence[str]) -> str:
    if wanted is None:
        number = 1
        while f"group-{number}" in taken:
            number += 1
        return f"group-{number}"
    if not _NAME.match(wanted):
        hint = "Up to 40 letters, digits, '_', '.' and '-', the first a letter or a digit."
        raise bad_request(f"'name' cannot be '{wanted[:60]}'.", hint)
    if wanted in taken:
        message = f"There is a group '{wanted}' already."
        raise JupyterDistError("name_taken", message, "Shut it down first, or choose another name.")
    return wanted


def _cwd(request: StartRequest, root_dir: str) -> str:
    root = Path(root_dir)
    path = root / Path(request.notebook).parent if request.notebook is not None else root
    if request.cwd is not None:
        path = root / Path(request.cwd).expanduser()
    try:
        resolved = path.resolve()
        exists = resolved.is_dir()
    except (OSError, ValueError, RuntimeError):
        resolved, exists = path, False
    if not exists:
        where = "'cwd'" if request.cwd is not None else "The notebook's folder"
        message = f"{where} is not a directory: {str(resolved)[:300]!r}."
        raise JupyterDistError("bad_directory", message, "Name a directory that exists on the server.")
    return str(resolved)


def _env(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not _ENV_NAME.match(name) or "\0" in value:
            raise bad_request(f"'env' has a bad variable: '{name[:60]}'.", "Letters, digits and '_' only.")
        if name in RESERVED_ENV or name.startswith(RESERVED_PREFIX):
            raise bad_request(f"'env' cannot set {name}.", "It is set for every rank by the group.")
        if name in NETWORK_ENV:
            hint = "A group is on one machine, where its ranks talk on loopback; beyond it anybody could take part."
            raise bad_request(f"'env' cannot set {name}.", hint)
    return dict(env)
