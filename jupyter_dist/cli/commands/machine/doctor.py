"""`doctor`: checks this machine, and prints how to fix problems."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import socket
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jupyter_dist.cli.command import Command
from jupyter_dist.client import Client, JupyterDistError
from jupyter_dist.protocol.models.machine import Devices, Prepared
from jupyter_dist.protocol.models.models import EnvironmentsModel, Verdicts

MIN_FILES = 4096
MIN_SHARED_BYTES = 1 << 30
GIB = 1 << 30


class Finding(NamedTuple):
    """The result of one check; `advice` if it failed."""

    subject: str
    is_ok: bool
    text: str
    advice: str = ""


class DoctorCommand(Command):
    """Check the server, Python environments, devices, network, shared memory and limits."""

    needs_client = False

    def act(self) -> int:
        """Print the findings; return 1 if a check failed."""
        findings = [*local_findings(), *self._server_findings()]
        self.tell([finding._asdict() for finding in findings], "\n".join(map(_line, findings)))
        return 0 if all(finding.is_ok for finding in findings) else 1

    def _server_findings(self) -> Iterator[Finding]:
        try:
            client = self.connect()
        except JupyterDistError as err:
            yield Finding("server", False, err.message, err.hint)
            return
        with client:
            yield server_finding(client)
            environments = client.ask("GET", "environments")
            yield from environment_findings(environments)
            yield devices_finding(client.ask("GET", "devices"), environments)
            yield prepared_finding(client.ask("GET", "prepared"))
            yield verdicts_finding(_verdicts(client))


def _verdicts(client: Client) -> dict[str, Verdicts]:
    """Return the verdicts of each group that answers, by its name."""
    found: dict[str, Verdicts] = {}
    for group in client.ask("GET", "groups")["groups"]:
        with contextlib.suppress(JupyterDistError):  # it has ended, or is not reachable now
            found[group["name"]] = client.ask("GET", "groups", group["id"], "verdicts")
    return found


def local_findings() -> Iterator[Finding]:
    """Return the findings that need no server."""
    free = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0  # noqa: S108
    advice = "DataLoader workers and collectives need it. In Docker: --shm-size=8g or --ipc=host."
    yield Finding("shared memory", free >= MIN_SHARED_BYTES, f"{free / GIB:.1f} GiB free in /dev/shm", advice)
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    advice = f"Run 'ulimit -n {most}' before the Jupyter server starts."
    yield Finding("open files", files >= min(MIN_FILES, most), f"{files} at once", advice)
    interfaces = [name for _, name in socket.if_nameindex()]
    advice = "Ranks on one machine connect over 'lo': bring it up with 'ip link set lo up'."
    yield Finding("network", "lo" in interfaces, f"interfaces {', '.join(interfaces)}", advice)


def server_finding(client: Client) -> Finding:
    """Return the finding about the server."""
    versions = client.ask("GET")
    kind = "you have no running server; using a private one" if client.is_private else f"running at {client.url}"
    return Finding("server", True, f"{kind}, jupyter_dist {versions['jupyter_dist']}")


def environment_findings(answer: EnvironmentsModel) -> Iterator[Finding]:
    """Return the findings about environments."""
    usable = [found for found in answer["environments"] if found["problem"] is None]
    for found in answer["environments"]:
        where = f"{found['display_name']} ({found['python']})"
        if found["problem"] is None:
            torch, ipython, python = (found["torch_version"], found["ipython_version"], found["python_version"])
            what = f"torch {torch}, IPython {ipython}, Python {python}"
            yield Finding("environment", True, f"{where}: {what}")
        else:  # a problem only if there is no other environment
            yield Finding("environment", bool(usable), f"{where}: {found['problem']}")


def devices_finding(answer: Devices, environments: EnvironmentsModel) -> Finding:
    """Return the finding about devices, and about a torch that can use them."""
    devices = answer["devices"]
    if not devices:
        problems = " ".join(answer["problems"])
        return Finding(
            "devices", not problems, problems or "no device: groups run on CPU", "See the vendor's own tool."
        )
    names = ", ".join(f"{device['index']} {device['name']}" for device in devices)
    kinds = {device["accelerator"] for device in devices}
    working = [found for found in environments["environments"] if found["problem"] is None]
    usable = any(each["name"] in kinds for found in working for each in found["accelerators"])
    advice = "No environment has a torch for these devices: install one from pytorch.org."
    return Finding("devices", usable, names, advice)


def prepared_finding(answer: Prepared) -> Finding:
    """Return the finding about processes that only make starts faster."""
    kept = answer["processes"]
    used = sum(process["memory_bytes"] for process in kept) / (1 << 20)
    names = ", ".join(f"{process['what']} {process['pid']}" for process in kept)
    text = f"{used:.0f} MiB ({names}), until memory is short" if kept else "nothing"
    return Finding("kept for fast starts", True, text)


def verdicts_finding(answers: Mapping[str, Verdicts]) -> Finding:
    """Return the finding about cells that were reported as hanging or slow, and were not."""
    shown, refuted = (sum(answer[name] for answer in answers.values()) for name in ("shown", "refuted"))
    wrong = ", ".join(name for name, answer in answers.items() if answer["refuted"])
    advice = f"Please report it with the output of 'jupyter dist verdicts --json' of group {wrong}."
    return Finding("verdicts on cells", not refuted, f"{shown} shown, {refuted} refuted by what happened then", advice)


def _line(finding: Finding) -> str:
    advice = "" if finding.is_ok or not finding.advice else f"\n       {finding.advice}"
    return f"{'ok    ' if finding.is_ok else 'WRONG '} {finding.subject}: {finding.text}{advice}"
