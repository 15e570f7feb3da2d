"""torchrun: it has no REPL, so it starts a script whose first line is the first cell."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .protocol import serve

SCRIPT = """
import os, torch.distributed as dist
dist.init_process_group('gloo')
{code}
with open({said!r}, 'wb', buffering=0) as pipe:
    pipe.write(b'.')
dist.destroy_process_group()
"""


def start(ranks: int, code: str) -> dict[str, Any]:
    """Run torchrun until every rank has said that it is through the code."""
    return _run(ranks, code, [["--standalone", f"--nproc-per-node={ranks}"]])


def start_nodes(nodes: int, ranks: int, code: str) -> dict[str, Any]:
    """The same with an agent for each node, as torchrun is started on several hosts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = ["--master-addr=127.0.0.1", f"--master-port={probe.getsockname()[1]}"]
    shape = [f"--nnodes={nodes}", f"--nproc-per-node={ranks}", *address]
    return _run(nodes * ranks, code, [[*shape, f"--node-rank={node}"] for node in range(nodes)])


def _run(ranks: int, code: str, agents: list[list[str]]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        said, script = f"{directory}/said", Path(directory, "script.py")
        os.mkfifo(said)
        script.write_text(SCRIPT.format(code=code, said=said))
        read_end = os.open(said, os.O_RDWR)
        began = time.perf_counter()
        run = [sys.executable, "-m", "torch.distributed.run"]
        processes = [subprocess.Popen([*run, *arguments, str(script)]) for arguments in agents]
        dots = 0
        while dots < ranks:
            dots += len(os.read(read_end, ranks))
        seconds = time.perf_counter() - began
        os.close(read_end)
        for process in processes:
            process.wait(30)
    return {"seconds": seconds}


if __name__ == "__main__":
    serve({"start": start, "restart": start, "start_nodes": start_nodes})
