"""Test only: a JupyterHub below a prefix, behind its real proxy; anybody with the password is let in, as this user."""

import json
import os
from pathlib import Path

port = int(os.environ["JUPYTER_DIST_TEST_PORT"]) + 40
root = Path(os.environ["JUPYTER_DATA_DIR"]).parent / "hub"
root.mkdir(exist_ok=True)
proxy = Path(__file__).parent / "node_modules" / "configurable-http-proxy" / "bin" / "configurable-http-proxy"

c.JupyterHub.bind_url = f"http://127.0.0.1:{port}/some/prefix/"  # noqa: F821
c.JupyterHub.hub_port = port + 1  # noqa: F821
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{port + 2}"  # noqa: F821
c.ConfigurableHTTPProxy.command = ["node", os.environ.get("CONFIGURABLE_HTTP_PROXY", str(proxy))]  # noqa: F821
c.ConfigurableHTTPProxy.pid_file = str(root / "proxy.pid")  # noqa: F821
c.JupyterHub.db_url = f"sqlite:///{root}/hub.sqlite"  # noqa: F821
c.JupyterHub.cookie_secret_file = str(root / "cookie_secret")  # noqa: F821
c.JupyterHub.cleanup_servers = True  # noqa: F821
c.JupyterHub.authenticator_class = "dummy"  # noqa: F821
c.DummyAuthenticator.password = "only-for-tests"  # noqa: F821, S105
c.Authenticator.allow_all = True  # noqa: F821
c.JupyterHub.spawner_class = "simple"  # noqa: F821
c.SimpleLocalProcessSpawner.home_dir_template = f"{root}/home"  # noqa: F821
c.Spawner.notebook_dir = os.environ["JUPYTERLAB_GALATA_ROOT_DIR"]  # noqa: F821
c.Spawner.args = [  # noqa: F821
    "--allow-root",
    "--ServerApp.jpserver_extensions=jupyter_dist=True",
    # A server that has opened a shared document does not end at the hub's SIGINT: a thread of its store waits.
    "--ServerApp.jpserver_extensions=jupyter_server_ydoc=False",
    "--LabApp.expose_app_in_browser=True",
    # The hub's SIGINT ends the server without its extensions: what waits for the next start would stay for its lease.
    "--DistApp.warm_environment=False",
]
c.Spawner.http_timeout = c.Spawner.start_timeout = 120  # noqa: F821
# Without the server's part of jupyter-collaboration its frontend waits forever for the notebook. The config folder of the
# other server has it on.
config = root / "config"
(config / "labconfig").mkdir(parents=True, exist_ok=True)
others = ("@jupyter/collaboration-extension", "@jupyter/docprovider-extension", "@datalayer/jupyter-server-nbmodel")
page = {"disabledExtensions": dict.fromkeys(others, True), "buildAvailable": False, "buildCheck": False}
(config / "labconfig" / "page_config.json").write_text(json.dumps(page))
# No groups or settings of the user who runs the tests; and the code under test. Of data and groups it has its own, as a user of
# a hub has: the other server holds a database of its files there.
places = ("JUPYTER_PATH", "PYTHONPATH", "TMPDIR")
environment = {name: os.environ[name] for name in places if name in os.environ}
for name in ("data", "runtime"):
    (root / name).mkdir(mode=0o700, exist_ok=True)
    environment[f"JUPYTER_{name.upper()}_DIR"] = str(root / name)
c.Spawner.environment = {**environment, "JUPYTER_CONFIG_DIR": str(config)}  # noqa: F821
