"""The test of that launcher, as its package has it: docs/extending.md."""

from jupyter_dist.testing.launchers import LauncherContract


class TestPrefix(LauncherContract):
    name = "prefix"
