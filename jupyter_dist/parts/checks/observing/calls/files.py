"""Files of torch.save(): from when to when one was written, and on which machine."""

from __future__ import annotations

import functools
import stat
from typing import Any

import torch

from jupyter_dist.parts.checks.observing.facts import Facts
from jupyter_dist.rank.guard.own import os, time

INTERRUPTIBLE = True  # what is saved has code of the user


class Files:
    """Notes the files of this rank."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def install(self) -> None:
        """Begin to note files."""
        call = torch.save

        @functools.wraps(call)
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            began = time.time()
            result = call(obj, f, *args, **kwargs)
            if self._facts.is_observed and isinstance(f, (str, os.PathLike)):
                self._saved(os.path.realpath(f), began)
            return result

        torch.save = save

    def _saved(self, path: str, began: float) -> None:
        try:
            about = os.stat(path)
        except OSError:  # it was moved already
            return
        if stat.S_ISREG(about.st_mode):
            where = f"{os.uname().nodename} {about.st_dev} {about.st_ino}"
            self._facts.add("file", path[-200:], [began, time.time()], [where], self._facts.place(3))
