"""The kernel *Ranks* over unix sockets, which other users of the machine cannot open."""

import os
import stat
from pathlib import Path

import psutil
from jupyter_client.manager import KernelManager
from magickernel import Kernel
from waits import PATIENCE


def test_over_ipc_the_kernel_listens_on_no_port_and_its_sockets_are_the_users_alone(group, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ipc")
    manager = KernelManager(kernel_name="ranks", transport="ipc", connection_file=str(folder / "k.json"))
    before = os.umask(0)
    try:
        manager.start_kernel(env=dict(os.environ))
    finally:
        os.umask(before)
    blocking = manager.client()
    blocking.start_channels()
    try:
        blocking.wait_for_ready(timeout=PATIENCE)
        assert "[ranks 0-1]\nsame\n" in Kernel(manager, blocking).run("print('same')").text
        process = psutil.Process(manager.provisioner.pid)
        assert [found for found in process.net_connections("inet") if found.status == "LISTEN"] == []
        sockets = [path for path in Path(folder).iterdir() if path.is_socket()]
        assert len(sockets) == 5
        assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in sockets} == {0}
    finally:
        blocking.stop_channels()
        manager.shutdown_kernel()
        manager.cleanup_resources()
