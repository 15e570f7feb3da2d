"""Run a notebook's cells on a group of ranks through the public HTTP API, and print the folded outputs.

    python examples/run_notebook.py examples/ddp_digits.ipynb --num-ranks 2

Starts a Jupyter server of its own unless --url and --token name a running one. Standard library only: it
shows how little it takes to drive a group (docs/api.md).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Api:
    """The few calls that this needs."""

    def __init__(self, url: str, token: str) -> None:
        self.base = f"{url.rstrip('/')}/jupyter-dist/api/"
        self.headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}

    def __call__(self, method: str, path: str, body: dict | None = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, self.headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.loads(response.read() or "{}")
        except urllib.error.HTTPError as err:
            error = json.loads(err.read())["error"]
            sys.exit(f"{error['message']} {error['hint']}")


@contextmanager
def private_server(root: Path):
    """A headless Jupyter server on loopback, ended with this program."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyter_server", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
               "--no-browser", f"--ServerApp.root_dir={root}", "--ServerApp.log_level=WARN", "--allow-root"]
    process = subprocess.Popen(command, env={**os.environ, "JUPYTER_TOKEN": token})
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(url, process)
        yield url, token
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_until_up(url: str, process: subprocess.Popen, seconds: float = 60) -> None:
    """Poll until the server answers; it has nobody else to tell that it is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url + "/api", timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("The Jupyter server did not start.")


def run_cell(api: Api, group: str, cell: dict, notebook: str) -> bool:
    """Run one cell on all ranks and print what they say; False when it failed."""
    execution = api("POST", f"groups/{group}/executions",
                    {"code": "".join(cell["source"]), "cell_id": cell.get("id"), "notebook": notebook})
    view = {"execution": execution}
    while view["execution"]["state"] in ("queued", "running"):
        view = api("GET", f"groups/{group}/executions/{execution['id']}?wait=30")
    execution = view["execution"]
    print(f"\n[{execution['execution_count']}] {first_line(cell)}")
    for item in view["items"]:
        show(item)
    slowest = max(status["seconds"] or 0 for status in execution["statuses"])
    print(f"    {execution['state']}, {slowest:.2f} s")
    return execution["state"] == "ok"


def first_line(cell: dict) -> str:
    return "".join(cell["source"]).strip().splitlines()[0]


def show(item: dict) -> None:
    """Print one folded item: the set of ranks, then what they said."""
    output = item.get("output")
    if output is None:
        text = f"... {item['elided']['lines']} lines are in the log only ..."
    elif output["output_type"] == "stream":
        text = "".join(output["text"])
    elif output["output_type"] == "error":
        text = ANSI.sub("", "\n".join(output["traceback"]))
    else:
        text = "".join(output["data"].get("text/plain", "<no text>"))
    label = f"ranks {item['ranks']}" if re.search("[,-]", item["ranks"]) else f"rank {item['ranks']}"
    for line in text.rstrip("\n").split("\n"):
        print(f"  {label:>11} | {line}")


def run(api: Api, path: Path, num_ranks: int) -> bool:
    """Start a group, run every code cell, shut the group down."""
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    group = api("POST", "groups", {"name": "demo", "accelerator": "cpu", "num_ranks": num_ranks, "cwd": str(path.parent.resolve())})
    group_id = group["id"]
    try:
        while group["state"] == "starting":
            group = api("GET", f"groups/{group_id}?wait=30&not_state=starting")
        if group["state"] != "ready":
            sys.exit(f"{group['error']['message']} {group['error']['hint']}")
        print(f"group '{group['name']}': {group['world_size']} ranks ready after {group['ready_seconds']:.2f} s")
        return all(run_cell(api, group_id, cell, path.name) for cell in cells)
    finally:
        api("DELETE", f"groups/{group_id}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--num-ranks", type=int, default=2)
    parser.add_argument("--url", help="a running server")
    parser.add_argument("--token", default="", help="its token")
    options = parser.parse_args()
    if options.url:
        done = run(Api(options.url, options.token), options.notebook, options.num_ranks)
    else:
        with private_server(Path.cwd()) as (url, token):
            done = run(Api(url, token), options.notebook, options.num_ranks)
    sys.exit(0 if done else 1)


if __name__ == "__main__":
    main()
