"""`python -m jupyter_dist.agent.node JOINFILE`: a node agent, and the process that watches over it.

The watcher is its parent. When the agent ends, even by SIGKILL, it ends what ranks had started and left behind, and
reports its end to the head, which would otherwise have to wait until the lease is over.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import secrets
import signal
import sys
import time
from pathlib import Path

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.system.code.sources import own_archive
from jupyter_dist.system.inherited import without_credentials
from jupyter_dist.system.limits import within
from jupyter_dist.system.memory import keep_present_objects
from jupyter_dist.system.processes import adopt_orphans, die_with, end_below
from jupyter_dist.system.sparing import log_sparingly

from .nodes.link.joinfile import JoinFile
from .nodestart import leave_copy, own_folder, print_error, run_code_beside, run_copy, run_installed, start_of_copy

# The first variable that is set has the number of this node. Variables of tasks count, too: each node has one task.
RANK_VARIABLES = (
    "JUPYTER_DIST_NODE_RANK",
    "SLURM_NODEID",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "JOB_COMPLETION_INDEX",
)
# Frameworks would take ranks for tasks of these engines, of which each node has one.
_ENGINE_PREFIXES = ("PMI_", "PMIX_", "OMPI_", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "MPI_LOCAL")
_ASKS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
NOTIFY_SECONDS = 3.0
MAX_FILE_BYTES = 1 << 20


def main(argument: str | None = None) -> int:
    """Join a group; return the exit code. Without an argument, the command line is read."""
    parser = argparse.ArgumentParser(prog="jupyter dist join", description="Be a node of a group.")
    parser.add_argument("file", help="the join file that the group's head wrote, or - for standard input")
    parser.add_argument("--node-rank", type=int, help="which node this is; default: as the engine says, or the next")
    given = parser.parse_args([argument] if argument is not None else None)
    start = start_of_copy()
    if start is None:
        if own_archive() is None:
            run_code_beside(given.file, given.node_rank)
        reason = run_copy(given.file, given.node_rank)
        if own_archive() is not None:  # a process of which starts no others
            print_error(f"the code of its job cannot be used, so the installed package is: {reason}.")
            run_installed(given.file, given.node_rank)
        print_error(f"its code was not copied, so do not upgrade jupyter_dist while this node runs: {reason}.")
    wanted = start.node_rank if start else given.node_rank
    try:
        return _join(given.file, wanted if wanted is not None else _rank_of_engine())
    finally:
        leave_copy(start)


def _join(file: str, node: int | None) -> int:
    try:
        with own_folder() as folder:
            return _watch_over(JoinFile.parse(_read(file)), node, Path(folder))
    except JupyterDistError as err:
        return print_error(err.message + (f" {err.hint}" if err.hint else ""))
    except OSError as err:
        return print_error(f"the node agent cannot run without a temporary folder: {err}.")


def _read(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.read(MAX_FILE_BYTES)
        with open(name) as file:
            return file.read(MAX_FILE_BYTES)
    except (OSError, ValueError) as err:
        hint = "Start the group first; its folder has the file while it runs."
        raise JupyterDistError("bad_request", f"The join file cannot be read: {err}.", hint) from err


def _rank_of_engine() -> int | None:
    for name in RANK_VARIABLES:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def _watch_over(join: JoinFile, node: int | None, folder: Path) -> int:
    """Run the agent as a child; clean up and notify the head if the agent ends before its group."""
    from .nodes.link.places import remove, socket_path  # noqa: PLC0415
    from .nodes.link.sockets import check_usable  # noqa: PLC0415
    from .nodes.member import torch_is_missing  # noqa: PLC0415 - after the join file was found to be sound

    check_usable()
    if torch_is_missing():
        raise JupyterDistError("bad_environment", f"{sys.executable} has no torch.", "Join with a Python that has it.")
    session, watcher = secrets.token_hex(8), os.getpid()
    adopt_orphans()
    agent = os.fork()
    if agent == 0:
        os._exit(_run_agent(join, node, session, watcher, folder))
    for signum in _ASKS:
        signal.signal(signum, lambda *_: _pass_on(agent))
    # Reaped last: until then its pid cannot be reused, so signals cannot hit another process.
    os.waitid(os.P_PID, agent, os.WEXITED | os.WNOWAIT)
    for signum in _ASKS:
        signal.signal(signum, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(agent, 0)[1])
    end_below(os.getpid(), reap_known=())
    if join.is_tunnelled and node is not None:
        remove(socket_path(join.group_id, node))  # a program of a tunnel that was killed has not
    if code < 0:
        print_error(f"the node agent was killed (signal {-code}), and its ranks with it.")
    if code:
        how = f"was killed (signal {-code})" if code < 0 else f"ended with code {code}"
        asyncio.run(_notify_head(join, node, session, f"its node agent {how}"))
    return code if code >= 0 else 128 - code


def _pass_on(agent: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(agent, signal.SIGTERM)


def _run_agent(join: JoinFile, node: int | None, session: str, watcher: int, folder: Path) -> int:
    from jupyter_dist.agent.processes.starting.environment import widen_open_files  # noqa: PLC0415

    from .nodes.member import NodeAgent  # noqa: PLC0415

    try:
        os.setsid()  # Ctrl-C in a terminal goes to the watcher alone
        die_with(watcher, signal.SIGTERM)
        os.environ["JUPYTER_DIST_UMASK"] = f"{os.umask(0o077):o}"
        log_sparingly()
        adopt_orphans()
        widen_open_files()
        kept = without_credentials(os.environ)  # variables of a Jupyter server, if this is one of its terminals
        for name in [name for name in os.environ if name.startswith(_ENGINE_PREFIXES) or name not in kept]:
            del os.environ[name]
        keep_present_objects()

        async def serve() -> str:
            agent, loop = NodeAgent(join, node, session, folder=folder), asyncio.get_running_loop()
            for signum in _ASKS:
                loop.add_signal_handler(signum, agent.asked_to_end, "it was asked to end (a signal)")
            try:
                return await agent.run()
            finally:  # an engine that asks again must not kill what has ended well
                for signum in _ASKS:
                    loop.remove_signal_handler(signum)
                    signal.signal(signum, signal.SIG_IGN)

        reason = asyncio.run(serve())
        return print_error(f"{reason}.") if reason else 0
    except JupyterDistError as err:
        return print_error(f"{err.message} {err.hint}")
    except OSError as err:  # a full disk, no more files
        return print_error(f"the node agent cannot run: {err}.")


async def _notify_head(join: JoinFile, node: int | None, session: str, reason: str) -> None:
    """Report the end of this node agent to the head, if the head can be reached."""
    from jupyter_dist.transport.frames import encode_frame  # noqa: PLC0415

    from .nodes.link.places import endpoints_of  # noqa: PLC0415
    from .nodes.link.sockets import NodeSocket, reachable  # noqa: PLC0415

    received, deadline = asyncio.Event(), time.monotonic() + NOTIFY_SECONDS
    found = None
    with contextlib.suppress(ConnectionRefusedError):  # the head is gone as well
        found = await reachable(endpoints_of(join, node))
    if found is None:
        return
    sock = NodeSocket(found[0], join.server_key, join.client_secret, lambda *_: received.set())
    sock.send(encode_frame({"t": "ended", "session": session, "reason": reason}))
    with contextlib.suppress(asyncio.TimeoutError):
        await within(deadline - time.monotonic(), received.wait())
    sock.close(linger_ms=200)


if __name__ == "__main__":
    sys.exit(main())
