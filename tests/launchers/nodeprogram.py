"""What the contract tests start on each node: a real program in place of a node agent.

    python nodeprogram.py JOIN_FILE [NODE=ACTION ...]

It prints what it was given, then does its node's action: `wait` (the default) until SIGTERM, `exit:CODE`, `kill`, or
`env:NAME`, to print a variable.
"""

import os
import signal
import sys
import time

join_file, *actions = sys.argv[1:]
node = os.environ["JUPYTER_DIST_NODE_RANK"]
action = dict(given.split("=") for given in actions).get(node, "wait")


def end(signum, frame):
    print("ended by SIGTERM", flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, end)
with open(join_file) as file:
    print(
        f"node {node}: {file.read()} {os.fstat(file.fileno()).st_mode & 0o777:o} {os.environ['FROM_THE_GROUP']}",
        flush=True,
    )
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
