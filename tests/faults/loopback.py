"""A group in a network of its own. `unshare --net python tests/faults/loopback.py FOLDER 6|none`, as root."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from agent.harness import AgentProcess  # noqa: E402

from jupyter_dist.protocol.errors import JupyterDistError  # noqa: E402


def main(folder: Path, kind: str) -> None:
    if kind == "6":
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "addr", "del", "127.0.0.1/8", "dev", "lo"], check=True)
    process = AgentProcess(folder / "g", forked=False)
    client = process.client()
    try:
        client.start(2)
    except JupyterDistError as err:
        print(err.code, err)
    else:
        code = "import os; t = torch.ones(1); dist.all_reduce(t); print(int(t), os.environ['MASTER_ADDR'])"
        print(client.text(0, client.run(code)["id"]))
    process.__exit__()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
