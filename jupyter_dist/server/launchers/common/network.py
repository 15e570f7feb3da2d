"""Options about the way between machines, and about the libraries on ranks: all launchers of nodes have them."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jupyter_dist.protocol import accelerators
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.launchers.options import Option, fault_in, fault_of, matches

MAX_PORT = 65_535
_FAMILIES = {"4": "AF_INET", "6": "AF_INET6"}
CPU_BINDINGS = ("none", "rank", "numa")
_INTERFACES = r"[=^]{0,2}[A-Za-z0-9_.@:-]{1,32}(,[A-Za-z0-9_.@:-]{1,32})*"
_HOST = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)


def _wrong_ports(value: str) -> str | None:
    found = _PORTS.fullmatch(value)
    if found is None or not 0 < int(found[1]) <= int(found[2] or found[1]) <= MAX_PORT:
        return fault_of(value, "ports look like 5000 or 5000-5100.")
    return None


def _wrong_addresses(value: str) -> str | None:
    wrong = next((word for word in value.split(",") if not _is_address(word.strip())), None)
    like = say("an address looks like login1.example.org, 10.0.0.1:5000 or ::1.")
    return None if wrong is None else fault_in(wrong, like)


def _is_address(word: str) -> bool:
    host, port = split_address(word)
    if port is not None and not 0 < port <= MAX_PORT:
        return False
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return re.fullmatch(_HOST, host, re.ASCII) is not None


def split_address(word: str) -> tuple[str, int | None]:
    """Return host and port of `host`, `host:port`, `::1` or `[::1]:port`; without a port, None stands for it."""
    if found := re.fullmatch(r"\[([^\]]*)\](?::(\d{1,5}))?|([^:]*):(\d{1,5})", word, re.ASCII):
        port = found[2] or found[4]
        return found[1] or found[3] or "", int(port) if port else None
    return word, None


def _wrong_settings(backend: accelerators.Backend) -> Callable[[dict[str, Any]], str | None]:
    example = f"{backend.setting_prefixes[0]}DEBUG"

    def check(value: dict[str, Any]) -> str | None:
        for name, setting in value.items():
            if not re.fullmatch("[A-Z0-9_]{1,80}", name, re.ASCII) or not name.startswith(backend.setting_prefixes):
                return fault_in(name, say("a setting of %1 looks like %2.", backend.label, example))
            if isinstance(setting, (dict, list)) or setting is None or not str(setting).isprintable():
                return say("has %1 with something that is no text.", repr(name))
        return None

    return check


def _of_backends() -> Iterator[Option]:
    """Yield the options of each backend of torch.distributed."""
    for backend in accelerators.BACKENDS.values():
        of = backend.label
        yield Option(f"{backend.name}_interface", say("Interface of %1", of),
                     say("For this library alone, by %1: eth1, ib0.", backend.interface_variable), is_advanced=True,
                     check=matches(_INTERFACES, "interfaces look like eth1, or ib0,ib1."))  # fmt: skip
        if variable := backend.adapters_variable:
            yield Option(f"{backend.name}_adapters", say("InfiniBand of %1", of),
                         say("Adapters that %1 uses (%2): mlx5_0:1,mlx5_1:1.", of, variable), is_advanced=True,
                         check=matches(_INTERFACES, "adapters look like mlx5 or mlx5_0:1,mlx5_1:1."))  # fmt: skip
        if backend.setting_prefixes:
            example = json.dumps({f"{backend.setting_prefixes[0]}DEBUG": "INFO"})
            yield Option(backend.name, say("Settings of %1", of), say("Variables of %1: %2.", of, example),
                         kind="object", is_advanced=True, check=_wrong_settings(backend))  # fmt: skip


NODE_OPTIONS = (
    Option("head_port", "Port of the head", "Port, or range of ports, on which nodes connect to the head of the group,"
           " on the server's machine: 5000-5100. Empty: any.", is_advanced=True, check=_wrong_ports),
    Option("head_address", "Address of the head", "Names or addresses of the server's machine as nodes reach it,"
           " separated by commas; with :PORT where NAT has another one. Empty: all addresses of the machine.",
           is_advanced=True, check=_wrong_addresses),
    Option("ip_version", "IP version", "Nodes use addresses of this version alone, 4 or 6, to reach the head, for"
           " env:// and for libraries that can be told. gloo uses the first address of its interface. Empty: both.",
           is_advanced=True, choices=("4", "6"), check=matches("[46]", "it is 4 or 6.")),
    Option("interface", "Network interface", "The interface of each node for its ranks: eth1."
           " Empty: the one that leads to the head.", is_advanced=True,
           check=matches(r"[A-Za-z0-9_.@:-]{1,32}", "an interface looks like eth1.")),
    *_of_backends(),
    Option("omp_threads", "Threads of each rank", "OMP_NUM_THREADS, which torch's operators on the CPU use. Empty: the"
           " variable as nodes have it, else 1, as under torchrun.", kind="integer", minimum=1, is_advanced=True),
    Option("cpu_binding", "CPUs of each rank", "Which CPUs of its node a rank may use: none (all of them), rank (an"
           " equal share for each) or numa (those of one NUMA node; ranks are spread over them).", is_advanced=True,
           choices=CPU_BINDINGS, check=matches("|".join(CPU_BINDINGS), say("it is %1.", ", ".join(CPU_BINDINGS)))),
)  # fmt: skip


def group_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a GroupSpec that these options set."""
    ports = _PORTS.fullmatch(str(options.get("head_port", "")))
    addresses = [word.strip() for word in str(options.get("head_address", "")).split(",")]
    return {
        "head_ports": [int(ports[1]), int(ports[2] or ports[1])] if ports else [],
        "head_addresses": [list(split_address(word)) for word in addresses if word],
        "ip_version": str(options.get("ip_version", "")),
        "interface": str(options.get("interface", "")),
        "cpu_binding": str(options.get("cpu_binding", "none")),
    }


def variables(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables of ranks that these options set; a group's own variables take precedence."""
    interface, family = options.get("interface"), _FAMILIES.get(str(options.get("ip_version")))
    found: dict[str, Any] = dict(accelerators.on_interface(str(interface))) if interface else {}
    for backend in accelerators.BACKENDS.values():
        found |= options.get(backend.name, {})
        for variable, value in (
            (backend.interface_variable, options.get(f"{backend.name}_interface")),
            (backend.adapters_variable, options.get(f"{backend.name}_adapters")),
            (backend.family_variable, family),
        ):
            if variable is not None and value is not None:
                found[variable] = value
    if "omp_threads" in options:
        found["OMP_NUM_THREADS"] = options["omp_threads"]
    return {name: str(value) for name, value in found.items()}
