"""A kernel that a Jupyter server started uses that server, even if others are running."""

import contextlib
import json
import urllib.request

from faults.server import TOKEN, JupyterServer
from jupyter_client import BlockingKernelClient
from jupyter_core.paths import jupyter_runtime_dir
from ownserver import environment, private
from waits import PATIENCE

from jupyter_dist.client.servers import Server


def ask(server, method, path, body=None):
    headers = {"Authorization": f"token {server.token}"}
    request = urllib.request.Request(
        server.url + path, json.dumps(body).encode() if body else None, headers, method=method
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        return json.loads(response.read() or "null")


def test_a_kernel_finds_the_server_that_started_it(tmp_path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rt")  # of its own: the private server of the other tests must live
    with environment(folder):
        jupyter = JupyterServer(tmp_path, runtime=folder)
        older = Server(jupyter.info["url"], TOKEN)
        opened = contextlib.ExitStack()
        opened.enter_context(private(tmp_path))
        body = {"path": "a.ipynb", "name": "a.ipynb", "type": "notebook", "kernel": {"name": "python3"}}
        session = ask(older, "POST", "api/sessions", body)
        kernel = BlockingKernelClient()
        try:
            kernel.load_connection_file(f"{jupyter_runtime_dir()}/kernel-{session['kernel']['id']}.json")
            kernel.start_channels(hb=False)  # a kernel on a busy machine may beat late
            kernel.wait_for_ready(timeout=PATIENCE)
            connected = "__import__('jupyter_dist.client').client.connect()"
            # Its groups outlive it: they do in JupyterLab.
            expressions = {"url": f"{connected}.url", "is_own": f"{connected}.is_own"}
            reply = kernel.execute_interactive("", user_expressions=expressions, timeout=PATIENCE)
            assert reply["content"]["user_expressions"]["url"]["data"]["text/plain"] == repr(older.url)
            assert reply["content"]["user_expressions"]["is_own"]["data"]["text/plain"] == "True"
        finally:
            kernel.stop_channels()
            ask(older, "DELETE", f"api/sessions/{session['id']}")
            opened.close()
            jupyter.end()
