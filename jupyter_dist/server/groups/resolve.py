"""Turns the body of `POST /groups` into a fully resolved GroupSpec."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jupyter_dist.protocol.accelerators import ACCELERATORS, BACKENDS, CPU, WITH_DEVICES, Accelerator, labels
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.field import OptionField, rows
from jupyter_dist.protocol.models.sentences import join, say, say_n
from jupyter_dist.protocol.ranks import divided, in_words
from jupyter_dist.protocol.schemas import group_options, start_rows
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.protocol.wire.requests import MAX_CPU_RANKS, MAX_GROUP_RANKS, StartRequest
from jupyter_dist.protocol.wire.specs import HEAD_VARIABLE, LOCAL, GroupOptions, GroupSpec
from jupyter_dist.server.environments.environments import Environment
from jupyter_dist.server.spawner.local import client_environment
from jupyter_dist.system.inherited import without_credentials
from jupyter_dist.system.processes import read_process

if TYPE_CHECKING:
    from typing_extensions import Self

Devices = Mapping[str, Mapping[int, str]]  # by accelerator, the names of devices by their index

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}\Z")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# The agent sets torchrun's variables; a wrong value would keep the group from starting.
RESERVED_ENV = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"}
    | {row.visible_devices for row in WITH_DEVICES if row.visible_devices}
    | {"GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE"}
    | {"JUPYTER_DIST_AGENT_PID", "JUPYTER_DIST_PRELOAD", HEAD_VARIABLE}
)
# torchelastic's other variables would point torch to a store and an agent that do not exist.
RESERVED_PREFIX = "TORCHELASTIC_"
FREE_OF_PREFIX = frozenset({"TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID"})  # torchrun's options set them
EXTERNAL = "external"  # the user starts the node agents
MAX_LISTED = 8  # of nodes, in a sentence
# Backends have no authentication, so a group on one machine must not be reachable from others.
NETWORK_ENV = frozenset(
    name for backend in BACKENDS.values() for name in (backend.interface_variable, *backend.address_variables)
)


@dataclass(frozen=True)
class GroupDefaults(GroupOptions):
    """The settings of a server that are about its groups, a row each. A start may have another value of some."""

    root_dir: str = "."  # of the server
    default_world_size: Annotated[
        int, OptionField("Default number of ranks of a CPU group.", minimum=1, maximum=MAX_CPU_RANKS)
    ] = 2
    max_ranks: Annotated[
        int,
        OptionField(
            "The most ranks that a group may have, whatever its launcher; `limits` of a launcher are for its groups."
            " 0: no limit.",
            minimum=0,
        ),
    ] = 0
    preload_modules: Annotated[
        tuple[str, ...], OptionField("Modules to import once and share between all ranks, besides torch and IPython.")
    ] = ()
    of_parts: Mapping[str, Any] = field(default_factory=dict)  # options of parts, by name, that are configured

    def chosen(self, request: WantedGroup) -> dict[str, Any]:
        """Return the fields of a GroupSpec that are options, each as the request has it, else as the server."""
        own, *of_parts = group_options()
        core = {row.name: request.options.get(row.name, getattr(self, row.name)) for row in rows(own)}
        given = {**self.of_parts, **request.options}
        kept = (row for of in of_parts for row in rows(of) if not row.option.is_once)
        return {**core, "options": {row.name: given.get(row.name, row.default) for row in kept}}


@dataclass(frozen=True, kw_only=True)
class WantedGroup(StartRequest):
    """The group that a body of `POST /groups` asks for, with the defaults."""

    gpus_per_node: int = 0  # that its launcher's options reserve; the launcher knows
    options: dict[str, Any] = field(default_factory=dict)  # the others that the request has: rows of `start_rows`

    def __post_init__(self) -> None:
        """Close the variables of a body, as soon as it is parsed."""
        object.__setattr__(self, "env", Secrets.parsed(self.env))
        if isinstance(self.environ, str):
            object.__setattr__(self, "environ", client_environment(self.environ))

    @classmethod
    def of(cls, wanted: Mapping[str, Any]) -> Self:
        """Return the group that the fields of a request ask for."""
        options = {row.name: wanted[row.name] for row in start_rows() if wanted.get(row.name) is not None}
        others = {row.name for row in start_rows()}
        return cls(**{name: value for name, value in wanted.items() if name not in others}, options=options)

    @classmethod
    def names(cls) -> set[str]:
        """Return the names of the fields of requests."""
        return {each.name for each in fields(cls)} - {"options"} | {row.name for row in start_rows()}

    def fields(self) -> dict[str, Any]:
        """Return the fields by name, as a request has them."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "options"}
        return {**own, **self.options}

    def with_fields(self, changes: Mapping[str, Any]) -> Self:
        """Return the group with other values of these fields."""
        return self.of({**self.fields(), **changes})


@dataclass(frozen=True)
class Again:
    """The variables that a request to start a group again gives, for values that nothing has kept."""

    env: Secrets = field(default_factory=Secrets)
    environ: Secrets | None = None

    def completed(self, options: Mapping[str, Any]) -> WantedGroup:
        """Return the group of an earlier start. Raises JupyterDistError `group_not_ready` if variables are missing."""
        options = {**options, **{row.name: None for row in start_rows() if row.option.is_once}}
        env, environ = Secrets.parsed(options.get("env")).under(self.env), options.get("environ")
        if isinstance(environ, Secrets):  # an earlier version has kept credentials in it
            environ = self.environ if environ.unknown else Secrets(without_credentials(environ.for_exec()))
        if env.unknown or (options.get("environ") is not None and environ is None):
            what = (
                say("the values of %1", ", ".join(env.unknown))
                if env.unknown
                else say("the environment of its program")
            )
            message = say(
                "Group '%1' cannot be started again without %2: they are not stored on disk.", options["name"], what
            )
            hint = say("Start a new group with them, or give them: group.start_again(env={...}) in a Python program.")
            raise JupyterDistError("group_not_ready", message, hint)
        return WantedGroup.of({**options, "env": env, "environ": environ})


def resolve_spec(
    request: WantedGroup,
    environment: Environment,
    usable: Devices,
    defaults: GroupDefaults,
    taken_names: Sequence[str],
) -> dict[str, Any]:
    """Return the fields of a GroupSpec, except `group_id`.

    Args:
        request: the request.
        environment: where the group is to run.
        usable: the devices of this machine that ranks may use.
        defaults: the defaults for missing fields.
        taken_names: names that other groups have.

    Raises:
        JupyterDistError: naming the field that is wrong.
    """
    on_nodes = _is_on_nodes(request)
    if on_nodes:
        accelerator = _accelerator_of_nodes(request, environment)
        counts, devices = _nodes(request, accelerator, defaults)
    else:
        accelerator = _accelerator(request, environment, usable)
        devices = _devices(request, usable[accelerator.name], accelerator) if accelerator.has_devices else []
        counts = [len(devices) or _num_ranks(request, defaults)]
    if defaults.max_ranks and sum(counts) > defaults.max_ranks:
        message = say("%1 ranks were requested; this server allows at most %2.", sum(counts), defaults.max_ranks)
        raise bad_request(message, say("Ask for less. An administrator has set DistApp.max_ranks."))
    return {
        **defaults.chosen(request),
        "name": _name(request.name, taken_names),
        "world_size": sum(counts),
        "launcher": request.launcher,
        "ranks_per_node": counts if on_nodes else [],
        "accelerator": accelerator.name,
        "backend": _backend(request.backend, accelerator),
        "cwd": _cwd(request, defaults.root_dir),
        "devices": devices,
        "device_names": [] if on_nodes else names_of(usable.get(accelerator.name, {}), devices),
        "env": _env(request.env, on_nodes=on_nodes),
        "preload": list(defaults.preload_modules),
        "owner": request.owner and checked_owner(request.owner),
    }


def check_reserved(fields: Mapping[str, Any], reserved: Sequence[int]) -> None:
    """Raise JupyterDistError `bad_devices` if `devices` names GPUs of a node that its launcher does not reserve there.

    The launcher would give the node, perhaps hours later, and its ranks could not start.

    Args:
        fields: the GroupSpec of the new group.
        reserved: how many GPUs its launcher reserves on each node; 0: that is not known.
    """
    for node, (num_ranks, num_gpus) in enumerate(zip(fields["ranks_per_node"], reserved, strict=True)):
        most = max(fields["devices"][:num_ranks], default=-1)
        if num_gpus and most >= num_gpus:
            gpus = f"{num_gpus} GPU{'s' if num_gpus > 1 else ''}"
            message = say("'devices' names device %1, but node %2 is to have %3, which count from 0.", most, node, gpus)
            hint = say(
                "Leave out 'devices', or choose among the GPUs of each node: a node uses the first of 'devices'."
            )
            raise JupyterDistError("bad_devices", message, hint)


def idle_gpus_note(fields: Mapping[str, Any], reserved: Sequence[int]) -> str | None:
    """Return a note about reserved GPUs that the ranks of a new group do not use; None if there are none.

    Args:
        fields: the GroupSpec of the new group.
        reserved: how many GPUs its launcher reserves on each node.
    """
    used = fields["ranks_per_node"] if fields["devices"] else [0] * len(reserved)
    unused = [given - taken for given, taken in zip(reserved, used, strict=True)]
    if max(unused, default=0) <= 0:
        return None
    if len(set(reserved)) > 1 or len(set(used)) > 1:
        has = f"nodes have {_listed(reserved)}" if len(set(reserved)) > 1 else f"each node has {reserved[0]}"
        uses = f"their ranks use {_listed(used)}" if fields["devices"] else "their ranks run on the CPU"
        which = "GPU is" if sum(unused) == 1 else "GPUs are"
        return f"{sum(unused)} {which} reserved that no rank uses: {has}, and {uses}."
    which = "GPU is" if unused[0] == 1 else "GPUs are"
    uses = f"use {used[0]} of them" if fields["devices"] else "run on the CPU"
    return f"{unused[0]} {which} reserved on each node that no rank uses: the ranks {uses}."


def _listed(counts: Sequence[int]) -> str:
    """Return the number of each node, `4, 8`, of the first nodes."""
    return ", ".join([*map(str, counts[:MAX_LISTED]), *(["..."] if len(counts) > MAX_LISTED else [])])


def build_spec(group_id: str, fields: dict[str, Any]) -> GroupSpec:
    """Return the GroupSpec of the group in that directory."""
    return GroupSpec(group_id=group_id, **fields)


def checked_owner(owner: dict[str, Any]) -> dict[str, Any]:
    """Return the process that a group is to end with. Raises JupyterDistError `bad_request` if it does not run here."""
    found = read_process(int(owner["pid"]))
    if found is None or found.started != owner["started"]:
        message = say("The owner, process %1, is not running on the server's machine.", owner["pid"])
        raise bad_request(message, say("Omit 'owner', and shut the group down yourself."))
    return owner


def _accelerator(request: WantedGroup, environment: Environment, usable: Devices) -> Accelerator:
    possible = [row for row in WITH_DEVICES if row.name in environment.accelerators and usable.get(row.name)]
    wanted = CPU if request.accelerator == "auto" else ACCELERATORS[request.accelerator]
    if request.accelerator == "auto" and possible:
        wanted = possible[0]
        too_many = request.num_ranks is not None and request.num_ranks > len(usable[wanted.name])
        if request.devices is None and too_many:
            return CPU  # a rehearsal
    if wanted is CPU and request.devices is not None:
        message = say("'devices' was given, but this group would run on CPU.")
        raise JupyterDistError("bad_devices", message, _why_on_cpu(environment, usable))
    if wanted.has_devices and wanted.name not in environment.accelerators:
        message = say("The torch of %1 has no %2.", environment.python, wanted.label)
        raise JupyterDistError("bad_environment", message, say("Choose another environment, or accelerator 'cpu'."))
    if wanted.has_devices and not usable.get(wanted.name):
        message = say("This machine has no %1 device that the server may use.", wanted.label)
        raise JupyterDistError("bad_devices", message, join(how_given(wanted), say("Choose accelerator 'cpu'.")))
    return wanted


def _is_on_nodes(request: WantedGroup) -> bool:
    """Whether the group has node agents. Raises JupyterDistError `bad_request` if the fields do not fit together."""
    if request.launcher_options and request.launcher == LOCAL:
        message = say("The launcher '%1' has no options.", request.launcher)
        raise bad_request(message, say("Leave out 'launcher_options', or choose another launcher."))
    if request.launcher != LOCAL:
        return True
    if (request.num_nodes or 1) > 1:
        message = say(
            "'num_nodes' is %1, but the launcher 'local' starts ranks on one machine only.", request.num_nodes
        )
        raise bad_request(
            message, say("Choose another launcher, such as 'slurm', or 'external' to start the node agents yourself.")
        )
    if request.ranks_per_node is not None:
        raise bad_request(
            say("'ranks_per_node' is for groups on nodes."), say("Use 'num_ranks', or another 'launcher'.")
        )
    return False


def _accelerator_of_nodes(request: WantedGroup, environment: Environment) -> Accelerator:
    """Return the accelerator of the nodes: `auto` is reserved GPUs, else the CPU: the server sees no devices.

    Raises:
        JupyterDistError: `bad_environment` or `bad_devices`.
    """
    automatic = _accelerator_of_gpus(environment) if request.gpus_per_node else CPU
    wanted = automatic if request.accelerator == "auto" else ACCELERATORS[request.accelerator]
    if wanted is CPU and request.devices is not None:
        hint = say("Set 'accelerator' to %1 by its name, or leave out 'devices'.", labels())
        raise JupyterDistError(
            "bad_devices", say("'devices' was given, but the ranks would run on the CPU of nodes."), hint
        )
    if wanted.has_devices and wanted.name not in environment.accelerators:
        message = say("The torch of %1 has no %2.", environment.python, wanted.label)
        raise JupyterDistError("bad_environment", message, say("Choose another environment, or accelerator 'cpu'."))
    return wanted


def _accelerator_of_gpus(environment: Environment) -> Accelerator:
    """Return the accelerator that the environment's torch uses. Raises JupyterDistError if it has none."""
    found = next((row for row in WITH_DEVICES if row.name in environment.accelerators), None)
    if found is None:
        message = say("GPUs of nodes were requested, but the torch of %1 has no %2.", environment.python, labels())
        hint = say("Choose another environment, or accelerator 'cpu' to reserve GPUs that the ranks do not use.")
        raise JupyterDistError("bad_environment", message, hint)
    return found


def _nodes(request: WantedGroup, accelerator: Accelerator, defaults: GroupDefaults) -> tuple[list[int], list[int]]:
    """Return how many ranks each node has, and the devices, of which each node uses the first: one per rank."""
    devices = request.devices if isinstance(request.devices, list) else []
    if isinstance(request.devices, str) or request.devices == -1:
        message = say("The server does not know how many devices the nodes have.")
        raise JupyterDistError(
            "bad_devices", message, say("Give 'devices' as a list or a count, the same on each node.")
        )
    on_gpus = request.gpus_per_node if accelerator.has_devices else 0
    counts = _ranks_of_nodes(request, on_gpus or defaults.default_world_size)
    most, which = max(counts), say("each node") if len(set(counts)) == 1 else say("a node")
    if on_gpus and most > on_gpus:
        gpus = say_n("%1 GPU", "%1 GPUs", on_gpus)
        message = say("%1 ranks on %2 were requested, with %3.", most, which, gpus)
        raise JupyterDistError("bad_devices", message, say("There is one rank per device: change 'gpus_per_node'."))
    if request.num_ranks is not None and request.num_ranks != sum(counts):
        message = say(
            "'num_ranks' is %1, but %2 nodes with %3 have others.", request.num_ranks, len(counts), in_words(counts)
        )
        raise bad_request(message, say("Give only 'num_nodes' and 'ranks_per_node'."))
    if not 1 <= min(counts) <= most <= MAX_CPU_RANKS or sum(counts) > MAX_GROUP_RANKS:
        limits = say("At most %1 ranks on a node and %2 in a group are possible.", MAX_CPU_RANKS, MAX_GROUP_RANKS)
        raise bad_request(say("%1 nodes with %2 were requested.", len(counts), in_words(counts)), limits)
    if accelerator.has_devices and devices and len(devices) != most:
        message = say("'devices' names %1 devices of %2, which has %3 ranks.", len(devices), which, most)
        raise JupyterDistError("bad_devices", message, say("There is one rank per device."))
    if len(set(devices)) < len(devices):
        message = say("'devices' lists a device of the nodes twice.")
        raise JupyterDistError(
            "bad_devices", message, say("Only groups on one machine can have several ranks on a device.")
        )
    return counts, (devices or list(range(most))) if accelerator.has_devices else []


def _ranks_of_nodes(request: WantedGroup, default: int) -> list[int]:
    """Return how many ranks each node has. Raises JupyterDistError `bad_request` if fields do not fit together."""
    wanted, num_nodes = request.ranks_per_node, request.num_nodes or 1
    if isinstance(wanted, list):
        if request.num_nodes not in (None, len(wanted)):
            message = say("'ranks_per_node' lists %1 nodes, but 'num_nodes' is %2.", len(wanted), num_nodes)
            raise bad_request(message, say("Give only the list."))
        return wanted
    if wanted is None and request.devices is not None:
        wanted = request.devices if isinstance(request.devices, int) else len(request.devices)
    if wanted is None and request.num_ranks is not None:
        wanted, rest = divmod(request.num_ranks, num_nodes)
        if not wanted:
            message = say_n(
                "%1 rank was requested on %2 nodes.",
                "%1 ranks were requested on %2 nodes.",
                request.num_ranks,
                num_nodes,
            )
            raise bad_request(message, say("Each node has at least one rank: choose fewer nodes."))
        if rest:
            message = say("%1 ranks cannot be divided evenly among %2 nodes.", request.num_ranks, num_nodes)
            example = divided(request.num_ranks, [wanted + 1] * rest + [wanted] * (num_nodes - rest))
            hint = say("Give the number of each node as a list in 'ranks_per_node'.")
            if num_nodes <= MAX_LISTED:
                hint = say("Give the number of each node as a list in 'ranks_per_node', such as %1.", example)
            raise bad_request(message, hint)
    return [default if wanted is None else wanted] * num_nodes


def _why_on_cpu(environment: Environment, usable: Devices) -> str:
    present = [row for row in WITH_DEVICES if usable.get(row.name)]
    if not present:
        return say("This machine has no %1 device; use 'num_ranks'.", labels())
    if not any(row.name in environment.accelerators for row in present):
        return say(
            "The torch of %1 has no %2; use 'num_ranks' or another environment.", environment.python, labels(present)
        )
    return say("Omit 'devices', or choose accelerator '%1'.", present[0].name)


def _devices(request: WantedGroup, usable: Mapping[int, str], accelerator: Accelerator) -> list[int]:
    available, given = list(usable), how_given(accelerator)
    try:
        return _numbered_devices(request, available)
    except JupyterDistError as err:
        raise JupyterDistError(err.code, err.message, join(given, err.hint)) from None


def how_given(accelerator: Accelerator) -> str:
    """Return the sentence for a server whose environment limits its devices; empty if it does not."""
    value = os.environ.get(str(accelerator.visible_devices))
    variable = accelerator.visible_devices
    return "" if value is None else say("The server was started with %1=%2.", variable, f"{value[:80]!r}")


def _numbered_devices(request: WantedGroup, available: list[int]) -> list[int]:
    devices = _named_devices(request, available)
    if request.num_ranks is not None and request.num_ranks != len(devices):
        if request.devices is not None:
            message = say("'num_ranks' is %1, but %2 devices are named.", request.num_ranks, len(devices))
            raise JupyterDistError("bad_devices", message, say("Give only one of them: there is one rank per device."))
        return _first(request.num_ranks, available)
    return devices


def _named_devices(request: WantedGroup, available: list[int]) -> list[int]:
    devices = request.devices
    if devices is None or devices in ("all", -1):
        return available
    if isinstance(devices, str):
        raise _bad_devices(say("'devices' is '%1'.", devices[:40]), available)
    if isinstance(devices, int):
        return _first(devices, available)
    if not devices:
        raise _bad_devices(say("'devices' is an empty list."), available)
    unknown = [device for device in devices if device not in available]
    if unknown:
        raise _bad_devices(say("There is no device %1.", unknown[0]), available)
    return list(devices)  # a device that is listed twice gets two ranks


def names_of(usable: Mapping[int, str], devices: list[int]) -> list[str]:
    """Return the names of devices; none if they have only their indices."""
    names = [usable[index] for index in devices]
    return [] if names == list(map(str, devices)) else names


def _first(count: int, available: list[int]) -> list[int]:
    if not 1 <= count <= len(available):
        raise _bad_devices(say("%1 devices were requested; there are %2.", count, len(available)), available)
    return available[:count]


def _bad_devices(message: str, available: list[int]) -> JupyterDistError:
    indices = ", ".join(map(str, available))
    return JupyterDistError("bad_devices", message, say('Devices: %1. Give a list, a count, or "all".', indices))


def _num_ranks(request: WantedGroup, defaults: GroupDefaults) -> int:
    count = defaults.default_world_size if request.num_ranks is None else request.num_ranks
    if not 1 <= count <= MAX_CPU_RANKS:
        raise bad_request(say("'num_ranks' is %1.", count), say("It must be from 1 to %1.", MAX_CPU_RANKS))
    return count


def _backend(wanted: str, accelerator: Accelerator) -> str:
    if wanted == "auto":
        return accelerator.backends[0]
    if wanted not in accelerator.backends:
        hint = say("Use 'auto', or one of: %1.", ", ".join(accelerator.backends))
        raise bad_request(say("'backend' is '%1', but this group runs on %2.", wanted, accelerator.label), hint)
    return wanted


def _name(wanted: str | None, taken: Sequence[str]) -> str:
    if wanted is None:
        number = 1
        while f"group-{number}" in taken:
            number += 1
        return f"group-{number}"
    if not _NAME.match(wanted):
        hint = say("Use up to 40 letters, digits, '_', '.' and '-', starting with a letter or a digit.")
        raise bad_request(say("'name' cannot be '%1'.", wanted[:60]), hint)
    if wanted in taken:
        message = say("Group '%1' already exists.", wanted)
        raise JupyterDistError("name_taken", message, say("Shut it down first, or choose another name."))
    return wanted


def _cwd(request: WantedGroup, root_dir: str) -> str:
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
        where = "'cwd'" if request.cwd is not None else say("The notebook's folder")
        message = say("%1 is not a directory: %2.", where, f"{str(resolved)[:300]!r}")
        raise JupyterDistError("bad_directory", message, say("Choose a directory that exists on the server."))
    return str(resolved)


def _env(env: Secrets, *, on_nodes: bool) -> Secrets:
    for name, value in env.for_exec().items():
        if not _ENV_NAME.match(name) or "\0" in value:
            raise bad_request(
                say("'env' has an invalid name: '%1'.", name[:60]), say("Use only letters, digits and '_'.")
            )
        if name in RESERVED_ENV or (name.startswith(RESERVED_PREFIX) and name not in FREE_OF_PREFIX):
            raise bad_request(say("'env' cannot set %1.", name), say("The group sets it for every rank."))
        if name in NETWORK_ENV and not on_nodes:
            hint = say("A group runs on one machine and uses loopback; other interfaces would be open to anyone.")
            raise bad_request(say("'env' cannot set %1.", name), hint)
    return env
