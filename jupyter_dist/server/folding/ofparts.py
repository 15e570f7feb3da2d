"""Outputs that parts make when a cell has ended, of what its ranks have sent (OUTPUT_KINDS of a part)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from importlib import import_module

from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.parts import declared

# The path of a function, by the kind of output.
MAKERS = declared("OUTPUT_KINDS")

log = logging.getLogger(__name__)


def made_output(
    kind: str, execution_id: str, contents: Mapping[int, bytes], ranks: Iterable[int]
) -> models.Output | None:
    """Return the output of the ranks of a cell, some of which may have sent nothing; None if there is none to show.

    Args:
        kind: a key of MAKERS.
        execution_id: of the cell.
        contents: what ranks have sent last, unchecked.
        ranks: all of the cell.
    """
    module, _, name = MAKERS[kind].rpartition(".")
    try:
        output: models.Output | None = getattr(import_module(module), name)(execution_id, contents, ranks)
    except Exception:  # the view shows what else there is
        log.exception("There is no '%s' of a cell", kind)
        return None
    return output
