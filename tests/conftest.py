"""Fixtures for every room; each room's own are in its folder."""

pytest_plugins = ("pytest_jupyter.jupyter_server",)


def pytest_addoption(parser):
    """The long variants of docs/reliability.md."""
    group = parser.getgroup("jupyter_dist")
    group.addoption("--cycles", type=int, default=4, help="restarts in the leak test")
    group.addoption("--flood-lines", type=int, default=100_000, help="lines each of 2 ranks prints in the flood test")
    group.addoption("--chaos-kills", type=int, default=10, help="kills in the chaos test")
    group.addoption("--chaos-seed", type=int, default=None, help="repeat the chaos of that seed")
