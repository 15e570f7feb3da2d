"""Machines as far as network and shared memory are concerned: a namespace for each node, and a bridge on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

import pytest
from waits import PATIENCE


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=PATIENCE)


class Network:
    """A bridge on this machine, and a namespace for each node, with a host name that nothing resolves."""

    bits = 28
    options: tuple[str, ...] = ()

    def __init__(self):
        self.tag = f"jd{os.getpid() % 100_000}"
        self.bridge = f"{self.tag}b"
        # TEST-NET-2, which no network uses.
        self.prefix = f"198.51.100.{16 * (os.getpid() % 15)}".rpartition(".")
        self.base = int(self.prefix[2])

    def address(self, number):
        return f"{self.prefix[0]}.{self.base + 1 + number}"

    def build(self):
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{self.address(0)}/{self.bits}", "dev", self.bridge, *self.options)
        ip("link", "set", self.bridge, "up")
        for node in range(2):
            self._add(node)

    def _add(self, node):
        name = f"{self.tag}n{node}"
        ip("netns", "add", name)
        self._connect(name)
        ip("link", "set", f"{name}o", "master", self.bridge, "up")
        ip("-n", name, "addr", "add", f"{self.address(node + 1)}/{self.bits}", "dev", f"{name}i", *self.options)
        for device in ("lo", f"{name}i"):
            ip("-n", name, "link", "set", device, "up")

    def _connect(self, name):
        ip("link", "add", f"{name}o", "type", "veth", "peer", "name", f"{name}i")
        ip("link", "set", f"{name}i", "netns", name)

    def reboot(self, node):
        """End a machine as a power failure does, without a word to the others, and start it again."""
        name = f"{self.tag}n{node}"
        self.cut(node)
        pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True).stdout.split()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        ip("netns", "del", name)
        subprocess.run(["ip", "link", "del", f"{name}o"], check=False, capture_output=True)
        self._add(node)

    def inside(self, node):
        """What a command begins with to run there."""
        name = f"{self.tag}n{node}"
        own = f'hostname {name}; mount -t tmpfs none /dev/shm; exec "$@"'
        return ("ip", "netns", "exec", name, "unshare", "--uts", "--mount", "sh", "-c", own, "sh")

    def cut(self, node):
        ip("link", "set", f"{self.tag}n{node}o", "down")

    def heal(self, node):
        ip("link", "set", f"{self.tag}n{node}o", "up")

    def cut_path(self, source, target):
        """Lose what a node sends to the other one: each reaches the head all the same."""
        name, to = f"{self.tag}n{source}", self.address(target + 1)
        nobody = ("lladdr", "02:00:00:00:00:99", "nud", "permanent")
        ip("-n", name, "neigh", "replace", to, "dev", f"{name}i", *nobody)

    def heal_path(self, source, target):
        name = f"{self.tag}n{source}"
        ip("-n", name, "neigh", "del", self.address(target + 1), "dev", f"{name}i")

    def remove(self):
        for words in [*(("netns", "del", f"{self.tag}n{node}") for node in range(2)), ("link", "del", self.bridge)]:
            subprocess.run(["ip", *words], check=False, capture_output=True, timeout=PATIENCE)


class SixOnly(Network):
    """One without IPv4."""

    bits = 64
    options = ("nodad",)

    def __init__(self):
        super().__init__()
        self.tag = f"jx{os.getpid() % 100_000}"
        self.bridge = f"{self.tag}b"

    def address(self, number):
        return f"2001:db8:{os.getpid() % 0xFFFF + 1:x}::{number + 1:x}"  # for documentation, which no network uses


def built(network):
    try:
        network.build()
    except (OSError, subprocess.CalledProcessError) as err:
        network.remove()
        pytest.skip(f"network namespaces cannot be made here: {getattr(err, 'stderr', '') or err}")
    yield network
    network.remove()
