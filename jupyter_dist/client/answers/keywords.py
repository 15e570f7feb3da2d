"""Keyword arguments with those of parts. Made by `make generate` from rows of options: edit that."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from jupyter_dist.protocol.wire import requests

ReplaceState = Literal["empty", "copy", "save", "undo"]  # of replaced ranks


class ReplaceOptions(TypedDict, total=False):
    """What parts need to replace ranks."""

    save: str
    folder: str
    any_version: bool


class StartOptions(TypedDict, total=False):
    """How a group is started: keyword arguments of `start` in Python. More are rows of GroupOptions and of parts."""

    environment: str
    python: str
    accelerator: str
    devices: list[int] | int | Literal["all"]
    num_ranks: int
    preset: str
    launcher: str
    launcher_options: dict[str, Any]
    num_nodes: int
    ranks_per_node: list[int] | int
    backend: str
    cwd: str
    notebook: str
    env: dict[str, str]
    checks: bool
    park: list[str]
    park_after_seconds: float
    save_every_seconds: float
    save_before_end_seconds: float
    saves_kept: int
    restore: str


class RunOptions(requests.RunOptions, total=False):
    """How a cell is run: keyword arguments of `run` and `submit` in Python. Parts have more."""

    keep_undo: bool
