"""Keyword arguments with those of parts. Made by `make generate` from rows of options: edit that."""

from __future__ import annotations

from typing import Literal, TypedDict

from jupyter_dist.protocol.wire import requests

ReplaceState = Literal["empty", "copy", "save", "undo"]  # of replaced ranks


class ReplaceOptions(TypedDict, total=False):
    """What parts need to replace ranks."""

    save: str
    folder: str
    any_version: bool


class StartOptions(requests.StartOptions, total=False):
    """How a group is started: keyword arguments of `start` in Python. More are rows of GroupOptions and of parts."""

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
