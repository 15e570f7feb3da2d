"""The program that the contract of launchers starts on each node, in place of a node agent.

    python nodeprogram.py JOIN_FILE [NODE=ACTION ...]

It prints its join file and a variable, then does its node's action: `wait` (the default) until SIGTERM, `linger`, which
needs a second more as a node agent does that saves, `exit:CODE`, `kill`, or `env:NAME`, to print a variable. It imports
the standard library alone, because the node may not have this package.
"""

import os
import signal
import sys
import time


def main(join_file: str, *actions: str) -> None:
    """Print the join file and a variable, and do the node's action."""
    node = os.environ["JUPYTER_DIST_NODE_RANK"]
    action = dict(given.split("=") for given in actions).get(node, "wait")
    signal.signal(signal.SIGTERM, _end_late if action == "linger" else _end)
    with open(join_file, encoding="utf-8") as file:
        mode = os.fstat(file.fileno()).st_mode & 0o777
        print(f"node {node}: {file.read()} {mode:o} {os.environ['FROM_THE_GROUP']}", flush=True)
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action.startswith("env"):
        print(f"{action[4:]} is {os.environ.get(action[4:])!r}")
        sys.exit(0)
    if action.startswith("exit"):
        print("no such torch", file=sys.stderr)
        sys.exit(int(action.partition(":")[2]))
    while True:
        time.sleep(1000)


def _end_late(signum: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1)
    _end(signum, frame)


def _end(signum: int, frame: object) -> None:  # noqa: ARG001
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as of an engine that asks twice
    print("ended by SIGTERM", flush=True)
    sys.exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
