"""A rank's spec and environment variables: the variables of torchrun, and the variables for its backend."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
from collections.abc import Mapping

from jupyter_dist.protocol import accelerators
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import place_of
from jupyter_dist.protocol.wire.specs import GroupSpec, RankSpec

USUAL_FILES = 1024
HEAD_FILES = 1 << 16  # it listens where strangers can connect, and its ranks are processes of others
RANK_FILES = 160  # our own descriptors start at 100, away from the user's (rank/main.py)
AGENT_FILES, FILES_PER_RANK = 40, 8


def rank_environment(spec: GroupSpec, rank: int, master: tuple[str, int] | None, generation: int = 0) -> dict[str, str]:
    """Return the variables to add to the environment of a rank's agent, besides those of `spec.env`.

    `master` is None for ranks on nodes: these know their network (nodes/head.py, nodes/member.py).
    """
    node, local_rank = place_of(rank, spec.node_counts)
    environment = {
        # Variables of torchrun, which Fabric, Accelerate, fastai and plain scripts read.
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(spec.world_size),
        "LOCAL_WORLD_SIZE": str(spec.node_counts[node]),
        "GROUP_RANK": str(node),
        "GROUP_WORLD_SIZE": str(spec.num_nodes),
        "NODE_RANK": str(node),  # torchrun does not set it, but PyTorch Lightning reads it
        "ROLE_NAME": "default",
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(spec.world_size),
        "TORCHELASTIC_RUN_ID": spec.group_id,  # Fabric: "launched by torchrun, do not fork"
        "TORCHELASTIC_RESTART_COUNT": str(generation),
        "TORCHELASTIC_MAX_RESTARTS": "0",  # nothing restarts ranks by itself; `jupyter dist run` sets it
        "TORCHELASTIC_USE_AGENT_STORE": "False",  # rank 0 serves the store of env://
        "FORK_LAUNCHED": "1",  # Accelerate: end_training() must not destroy the process group
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),  # torchrun's default
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        # A buffer of this size is dumped in a few milliseconds; the default of 2000 entries takes up to 0.2 s.
        "TORCH_FR_BUFFER_SIZE": "256",
        **_device_environment(spec, spec.node_counts[node]),
    }
    if master is not None:  # one machine: no backend listens beyond it
        own = {"MASTER_ADDR": master[0], "MASTER_PORT": str(master[1]), **accelerators.on_interface("lo")}
        environment.update(own)
    return environment


def _device_environment(spec: GroupSpec, num_ranks: int) -> dict[str, str]:
    """Return the variables about devices on a machine with so many ranks."""
    visible = accelerators.ACCELERATORS[spec.accelerator].visible_devices
    if visible is None:
        # Accelerator() on CPU defaults to one process; and `auto` must not pick a GPU in a CPU group.
        return {"ACCELERATE_USE_CPU": "1", **accelerators.without_devices()}
    # The full list on every rank: Fabric indexes it by LOCAL_RANK. A group with devices may use gloo, and user code
    # may create another process group: the default backend's variables are set in both cases.
    row = accelerators.ACCELERATORS[spec.accelerator]
    names = spec.device_names or list(map(str, spec.devices))
    return {visible: ",".join(names[:num_ranks]), **row.order, **accelerators.BACKENDS[row.backends[0]].environment}


def shared_device_environment(spec: GroupSpec, rank: int) -> dict[str, str]:
    """Return the variables of a rank whose device other ranks of the group use, too.

    It sees only its device, and counts as a separate host as far as its backend and torchrun's variables are concerned.
    Seen with NCCL 2.28 on one H200 (docs/gpu.md).
    """
    row = accelerators.ACCELERATORS[spec.accelerator]
    names = spec.device_names or list(map(str, spec.devices))
    alone = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": str(rank), "NODE_RANK": str(rank)}
    environment = {**alone, "GROUP_WORLD_SIZE": str(spec.world_size), str(row.visible_devices): names[rank]}
    for backend in map(accelerators.BACKENDS.__getitem__, row.backends):
        if backend.host_variable is not None:
            environment |= {backend.host_variable: f"{spec.group_id}-{rank}", **backend.shared_environment}
    return environment


def node_devices(spec: RankSpec, environment: Mapping[str, str], num_seen: int) -> dict[str, str]:
    """Return the variable with the devices of a rank on a node, out of the devices that its engine or user gave it.

    The group's `devices` count from 0 in these. Raises JupyterDistError `bad_devices` if they are too few.
    """
    variable = accelerators.ACCELERATORS[spec.accelerator].visible_devices
    if variable is None:
        return {}
    given = accelerators.given_devices(spec.accelerator, environment, num_seen)
    wanted = [int(index) for index in spec.env[variable].split(",")]
    there = num_seen if given is None else len(given)
    if max(wanted) >= there and (there or given is not None):
        shown = f" ({variable}={environment[variable]})" if variable in environment else ""
        count = len(wanted)
        needs = f"{count} devices" if max(wanted) < count else f"device {max(wanted)}, counted from 0"
        message = f"its ranks need {needs}, and it has {there}{shown}."
        hint = "Reserve a device for each rank of a node, or start fewer ranks."
        raise JupyterDistError("bad_devices", message, hint)
    return {} if given is None else {variable: ",".join(given[index] for index in wanted)}


def rank_spec(spec: GroupSpec, rank: int, store_path: str, generation: int, master: tuple[str, int] | None) -> RankSpec:
    """Return the spec of a rank's process."""
    node, local_rank = place_of(rank, spec.node_counts)
    environment = rank_environment(spec, rank, master, generation)
    device_index = spec.devices[local_rank] if spec.device_names else None
    local_world_size = spec.node_counts[node]
    given = spec.env
    if spec.shares_devices:
        shared = shared_device_environment(spec, rank)
        environment, given = environment | shared, given.without(shared)
        local_rank, local_world_size = 0, 1
    return RankSpec(
        group_id=spec.group_id,
        group_name=spec.name,
        rank=rank,
        local_rank=local_rank,
        world_size=spec.world_size,
        local_world_size=local_world_size,
        accelerator=spec.accelerator,
        backend=spec.backend,
        device=accelerators.device_of(spec.accelerator, local_rank),
        cwd=spec.cwd,
        store_path=store_path,
        generation=generation,
        env=environment,
        given=given,
        join_timeout_seconds=spec.start_timeout_seconds,
        node=node if spec.is_on_nodes else None,
        device_index=device_index,
        cpu_binding=spec.cpu_binding,
    )


def free_port() -> tuple[str, int]:
    """Return the loopback address and a free port, for scripts that call init_process_group("env://").

    Raises:
        JupyterDistError: `bad_environment`, if this machine has no loopback interface.
    """
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with (
            contextlib.suppress(OSError),
            socket.socket(family) as probe,
            socket.socket(family, socket.SOCK_DGRAM) as route,
        ):
            route.connect((address, 9))  # sends nothing; fails if the interface is down
            probe.bind((address, 0))
            return address, int(probe.getsockname()[1])
    message = say("This machine has no loopback network (127.0.0.1 or ::1), which ranks need to connect to each other.")
    raise JupyterDistError("bad_environment", message, say("Bring it up, for example with 'ip link set lo up'."))


def check_open_files(world_size: int) -> None:
    """Raise JupyterDistError `bad_environment` if that many ranks need more open files than this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = max(RANK_FILES, AGENT_FILES + FILES_PER_RANK * world_size)
    if soft != resource.RLIM_INFINITY and soft < needed:
        message = say("A process may only open %1 files here (ulimit -n); %2 ranks need %3.", soft, world_size, needed)
        raise JupyterDistError("bad_environment", message, say("Raise the limit and start the server again."))


def widen_open_files(number: int = USUAL_FILES) -> None:
    """Raise a lower soft limit on open files to this number, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(hard, number)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
