"""Fixtures for every room; each room's own are in its folder."""

pytest_plugins = ("pytest_jupyter.jupyter_server",)
