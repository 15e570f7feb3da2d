"""Test only: this removes all protection from the server."""

import os
import sys
from pathlib import Path

from jupyterlab.galata import configure_jupyter_server

configure_jupyter_server(c)  # noqa: F821
c.LabServerApp.extra_labextensions_path = []  # helpers for tests of JupyterLab itself  # noqa: F821

c.ServerApp.port = int(os.environ.get("JUPYTER_DIST_TEST_PORT", "18989"))  # noqa: F821
c.DistApp.forkserver_seconds = 1.0  # nothing may be left when the tests are over  # noqa: F821
c.DistApp.presets = {  # noqa: F821
    "two-nodes": {
        "label": "Two small nodes",
        "description": "To try code for several nodes.",
        "launcher": "processes",
        "num_nodes": 2,
        "ranks_per_node": 1,
        "env": {"JUPYTER_DIST_OPTIONAL_PRELOAD": "numpy"},  # each node imports by itself
        "launcher_options": {"omp_threads": 3},
        "save_every_seconds": 900,
    },
    "broken": {"walltime": 3},
}
c.ProcessLauncher.defaults = {"environment_passed": "all"}  # noqa: F821
c.ProcessLauncher.fixed = ["output_folder"]  # noqa: F821
c.ProcessLauncher.limits = {"num_nodes": 4}  # noqa: F821
# A launcher with a time limit, as if a package had been installed.
installed = Path(os.environ["JUPYTER_DATA_DIR"], "packages")
metadata = installed / "scripted-1.0.dist-info"
metadata.mkdir(parents=True, exist_ok=True)
(metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted\nVersion: 1.0\n")
(metadata / "entry_points.txt").write_text("[jupyter_dist.launchers]\nscripted = scripted:ScriptedLauncher\n")
sys.path += [str(installed), str(Path(__file__).with_name("scripted"))]
c.ServerApp.allow_root = True  # noqa: F821
# Other extensions are installed for `make test-beside`, and off but in the tests beside them.
others = ("jupyter_server_ydoc", "jupyter_server_fileid", "notebook", "notebook_shim")
beside = os.environ.get("JUPYTER_DIST_TEST_BESIDE")
c.ServerApp.jpserver_extensions = {  # noqa: F821
    **dict.fromkeys(("jupyter_dist", "jupyterlab"), True),
    **dict.fromkeys(others, beside == "collaboration"),
    "jupyter_server_nbmodel": beside == "nbmodel",
}
if beside == "collaboration":
    # Notebook 7 has its own switch for what the tests speak to.
    c.JupyterNotebookApp.expose_app_in_browser = True  # noqa: F821
    # The history of shared documents goes where everything of a test goes, and not beside this file.
    c.SQLiteYStore.db_path = os.path.join(os.environ["JUPYTER_DATA_DIR"], "ystore.db")  # noqa: F821
