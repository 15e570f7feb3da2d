"""The join file: all that a node agent needs to reach the head of its group, and the secret that lets it in."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import re
import shlex
import socket
import struct
import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from jupyter_dist.agent import boot
from jupyter_dist.agent.boot import ROLES
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.wire.specs import PROTOCOL_VERSION, Spec
from jupyter_dist.system.files.private import write_private
from jupyter_dist.version import __version__

NAME = "join.json"
_SIOCGIFCONF = 0x8912  # all addresses; SIOCGIFADDR gives the first of an interface only
_ENTRY_BYTES = 40 if sys.maxsize > 1 << 32 else 32  # struct ifreq
_MAX_ADDRESSES = 1024
_IPV6_ADDRESSES = Path("/proc/net/if_inet6")
_LINK_LOCAL = 0x20


@dataclass(frozen=True)
class JoinFile(Spec):
    """Written by the head (0600), read by node agents; nothing of it may be in an argument or a variable."""

    group_id: str
    name: str
    endpoints: list[str]  # ADDRESS:PORT of the head, the preferred one first
    server_key: str  # the head's CURVE public key, in Z85
    client_secret: str  # the CURVE secret key of this group's node agents
    num_nodes: int
    lease_seconds: float
    preload: list[str] = field(default_factory=list)  # modules that node agents import besides torch and IPython
    end_grace_seconds: float = 0.0  # how long a node agent keeps running after it was asked to end
    interface: str = ""  # of the node, for its ranks; empty: as the way to the head
    ip_version: str = ""  # 4 or 6: only such addresses
    is_tunnelled: bool = False  # the head starts a program on each node, to which its agent connects
    protocol: int = PROTOCOL_VERSION
    version: str = __version__

    def write(self, path: Path) -> None:
        """Write the join file, readable by this user alone. Raises OSError."""
        write_private(path, json.dumps(self.to_dict(), indent=1))

    @classmethod
    def parse(cls, text: str) -> JoinFile:
        """Return the join file with this content.

        Raises:
            JupyterDistError: `bad_request`, if it is none; `incompatible`, if another version wrote it.
        """
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict) or "server_key" not in content:
            hint = "The head writes it as join.json into the folder of its group; 'jupyter dist status' shows its path."
            raise JupyterDistError("bad_request", "This is not a join file.", hint)
        version, protocol = content.get("version"), content.get("protocol")
        if version != __version__ or protocol != PROTOCOL_VERSION:
            theirs, ours = f"{version} (protocol {protocol})", f"{__version__} (protocol {PROTOCOL_VERSION})"
            message = f"The group runs jupyter_dist {theirs}, this machine has {ours}."
            hint = "Install the same version on every machine; after an upgrade, start the group again."
            raise JupyterDistError("incompatible", message, hint)
        found = cls.from_dict(content)
        wrong = next((name for name, check in _CHECKS.items() if not check(getattr(found, name))), None)
        if wrong is not None:
            message = f"The field '{wrong}' of the join file is {getattr(found, wrong)!r:.40}."
            raise JupyterDistError("bad_request", message, "Take the file that the head of the group has written.")
        return found


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf  # type: ignore[operator]  # a number


# Written by the head, and brought here by people: `group_id` becomes a part of a path.
_CHECKS: dict[str, Callable[[object], bool]] = {
    **dict.fromkeys(("name", "server_key", "client_secret", "interface"), _is_text),
    **dict.fromkeys(("endpoints", "preload"), _is_texts),
    **dict.fromkeys(("lease_seconds", "end_grace_seconds"), _is_time),
    "group_id": lambda value: isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,100}", value) is not None,
    "num_nodes": lambda value: type(value) is int and value > 0,
    "ip_version": lambda value: value in ("", "4", "6"),
    "is_tunnelled": lambda value: isinstance(value, bool),
}


def join_command(path: Path) -> str:
    """Return the command that starts a node agent, for a shell."""
    return shlex.join([*python_words("node"), str(path)])


def python_words(role: str) -> list[str]:
    """Return the words that start a process of jupyter_dist in this Python on a node, by its role in boot.py."""
    try:
        is_installed = metadata.version("jupyter_dist") == __version__
    except metadata.PackageNotFoundError:
        is_installed = False
    start = ["-m", ROLES[role]] if is_installed else [str(Path(boot.__file__)), role]
    return [sys.executable, *start]


def own_addresses(ip_version: str = "") -> list[str]:
    """Return this machine's addresses, of one version of IP or of both: IPv4 before IPv6, loopback last."""
    found = dict.fromkeys(address for _, address in interfaces(ip_version))
    return sorted(found, key=lambda address: (address.startswith("127.") or address == "::1", ":" in address))


def address_of_ranks(link: str, interface: str, ip_version: str) -> str | None:
    """Return this machine's address for its ranks; None if it does not have that interface, or no address there.

    Args:
        link: its address on the way to the head; empty, or loopback, if that goes through a tunnel.
        interface: the interface for ranks; empty: the one of the way to the head, or the first.
        ip_version: 4 or 6; empty: both.
    """
    if interface:
        return address_on(interface, ip_version)
    if not link or link.startswith("127.") or link == "::1":
        return next(iter(own_addresses(ip_version)), link or None)
    return link


def interface_of(address: str) -> str | None:
    """Return the network interface that has this address."""
    label = label_of(address)
    return None if label is None else label.partition(":")[0]


def label_of(address: str) -> str | None:
    """Return the name by which gloo and NCCL find this address: of its interface, or a label such as eth0:1.

    Of an interface with several addresses of one name, they use the first.
    """
    return next((label for label, other in interfaces() if other == address), None)


def address_on(interface: str, ip_version: str = "") -> str | None:
    """Return the first address of a network interface, as gloo and NCCL use it."""
    return next((address for name, address in interfaces(ip_version) if name == interface), None)


def endpoint_of(address: str, port: int) -> str:
    """Return ADDRESS:PORT, with an IPv6 address in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def interfaces(ip_version: str = "") -> list[tuple[str, str]]:
    """Return the network interfaces and their addresses; second addresses may have a label as name, such as eth0:1."""
    found = {"4": _ipv4, "6": _ipv6}
    return [each for version, read in found.items() if ip_version in ("", version) for each in read()]


def _ipv4() -> list[tuple[str, str]]:
    size = _MAX_ADDRESSES * _ENTRY_BYTES
    entries = array("B", bytes(size))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            filled = fcntl.ioctl(sock, _SIOCGIFCONF, struct.pack("iP", size, entries.buffer_info()[0]))
        except OSError:
            return []
    (size,) = struct.unpack_from("i", filled)
    found = []
    for start in range(0, size, _ENTRY_BYTES):
        label = bytes(entries[start : start + 16]).partition(b"\0")[0].decode(errors="replace")
        found.append((label, socket.inet_ntoa(bytes(entries[start + 20 : start + 24]))))
    return found


def _ipv6() -> list[tuple[str, str]]:
    found = []
    with contextlib.suppress(OSError, ValueError):  # a kernel without IPv6
        for line in _IPV6_ADDRESSES.read_text().splitlines():
            digits, _, _, scope, _, interface = line.split()
            if int(scope, 16) != _LINK_LOCAL:  # these need the name of the interface on the other side
                found.append((interface, socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))))
    return found
