"""The launcher of the core keeps the contract that other packages test theirs with."""

from jupyter_dist.testing.launchers import LauncherContract


class TestProcesses(LauncherContract):
    name = "processes"
