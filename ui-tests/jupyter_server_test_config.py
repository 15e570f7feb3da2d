"""Test only: this removes all protection from the server."""

import os

from jupyterlab.galata import configure_jupyter_server

configure_jupyter_server(c)  # noqa: F821

c.ServerApp.port = int(os.environ.get("JUPYTER_DIST_TEST_PORT", "18989"))  # noqa: F821
c.ServerApp.allow_root = True  # noqa: F821
c.ServerApp.jpserver_extensions = {"jupyter_dist": True, "jupyterlab": True}  # noqa: F821
