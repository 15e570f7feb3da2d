"""The floor of starts and floods: a warm Python with torch that forks, and nothing else."""

from __future__ import annotations

import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from .protocol import serve

READ_BYTES = 1 << 20
_children: list[int] = []


def start(ranks: int, code: str) -> dict[str, Any]:
    """Fork ranks; each joins a gloo group by a FileStore, runs the code, says so and stays."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        done, say = os.pipe()
        for rank in range(ranks):
            _fork(_join_and_run, rank, ranks, f"{directory}/store", code, say)
        os.close(say)
        said = 0
        while said < ranks:
            data = os.read(done, ranks)
            if not data:
                raise RuntimeError("a forked rank died")
            said += len(data)
        os.close(done)
    return {"seconds": time.perf_counter() - began}


def restart(ranks: int, code: str) -> dict[str, Any]:
    """Kill the ranks and fork new ones."""
    began = time.perf_counter()
    stop()
    start(ranks, code)
    return {"seconds": time.perf_counter() - began}


def stop() -> dict[str, Any]:
    """Kill the ranks."""
    for pid in _children:
        os.kill(pid, signal.SIGKILL)
    while _children:
        os.waitpid(_children.pop(), 0)
    return {}


def flood(ranks: int, code: str) -> dict[str, Any]:
    """Fork ranks that run the code with a plain pipe as stdout, which one loop drains."""
    began = time.perf_counter()
    pipes = []
    for rank in range(ranks):
        read_end, write_end = os.pipe()
        _fork(_write_to, write_end, rank, code)
        os.close(write_end)
        pipes.append(read_end)
    sizes = _drain(pipes)
    seconds = time.perf_counter() - began
    while _children:
        os.waitpid(_children.pop(), 0)
    return {"seconds": seconds, "bytes": sizes}


def _fork(main: Callable[..., None], *arguments: Any) -> None:
    pid = os.fork()
    if pid:
        _children.append(pid)
        return
    try:
        main(*arguments)
    finally:
        os._exit(1)


def _join_and_run(rank: int, ranks: int, store: str, code: str, say: int) -> None:
    dist.init_process_group("gloo", store=dist.FileStore(store, ranks), rank=rank, world_size=ranks)
    exec(code, {})
    os.write(say, b".")
    os.close(say)
    while True:
        signal.pause()


def _write_to(write_end: int, rank: int, code: str) -> None:
    os.dup2(write_end, 1)
    sys.stdout = os.fdopen(1, "w")
    os.environ["RANK"] = str(rank)
    exec(code, {})
    sys.stdout.flush()
    os._exit(0)


def _drain(pipes: list[int]) -> list[int]:
    sizes = dict.fromkeys(pipes, 0)
    poll = select.poll()
    for fd in pipes:
        poll.register(fd, select.POLLIN)
    still_open = set(pipes)
    while still_open:
        for fd, _ in poll.poll():
            data = os.read(fd, READ_BYTES)
            sizes[fd] += len(data)
            if not data:
                poll.unregister(fd)
                still_open.discard(fd)
                os.close(fd)
    return list(sizes.values())


if __name__ == "__main__":
    assert torch.get_num_threads() == 1
    serve({"start": start, "restart": restart, "stop": stop, "flood": flood})
