"""The outputs that a kernel makes of a result: the bundle, and at the end outputs for readers without the extension."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

from jupyter_dist.protocol.models import models

from .bundle import mime_bundle
from .portable import as_displays, portable_outputs

# Publishes a message of this type with this content.
Emit = Callable[[str, dict[str, Any]], None]


def in_notebook() -> bool:
    """Whether output goes to a Jupyter frontend."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def emit_display(kind: str, content: dict[str, Any]) -> None:
    """Publish a display by IPython."""
    from IPython.display import publish_display_data  # noqa: PLC0415  (scripts do not load IPython)

    update = kind == "update_display_data"
    publish_display_data(content["data"], content["metadata"], transient=content["transient"], update=update)


class Bundled(Protocol):
    """The state of an execution, which outputs show."""

    execution: models.ExecutionModel
    folded: list[models.ViewItem]

    @property
    def id(self) -> str:
        """Return the id of the execution."""

    @property
    def done(self) -> bool:
        """Whether the execution has ended."""

    def bundle(self) -> models.RanksBundle:
        """Return the bundle that a notebook saves for the cell."""


class BundleOutputs:
    """One output with all ranks' folded output, replaced by each new state; at the end, parts of it follow."""

    def __init__(self, emit: Emit, more: Callable[[models.ExecutionModel], dict[str, Any]] = lambda _: {}) -> None:
        """`more` returns further fields of the bundle."""
        self.emit = emit
        self._more = more
        self._shown: tuple[object, ...] = ()
        self._is_begun = False
        self._num_parts: int | None = None  # once the parts are sent

    def __call__(self, result: Bundled) -> None:
        """Show the current state."""
        state = (result.execution, result.folded)
        if state == self._shown:
            return
        self._shown = state
        bundle: Any = {**result.bundle(), **self._more(result.execution)}
        whole = {"data": mime_bundle(bundle), "metadata": {}}
        first, *parts = as_displays(portable_outputs(bundle), result.id) if result.done else [whole]
        if parts and not self._is_begun:
            self._send(whole, result.id)  # the bundle stands before its parts
        for number, part in enumerate(parts, 1):
            is_there = number <= (self._num_parts or 0)
            transient = {"display_id": f"jupyter-dist-{result.id}-{number}"}
            self.emit("update_display_data" if is_there else "display_data", {**part, "transient": transient})
        if result.done:
            self._num_parts = max(len(parts), self._num_parts or 0)
        self._send(first, result.id)  # the bundle names the parts, which have been sent

    def _send(self, output: dict[str, Any], execution_id: str) -> None:
        kind = "update_display_data" if self._is_begun else "display_data"
        self._is_begun = True
        content = {"data": output["data"], "metadata": output["metadata"]}
        self.emit(kind, {**content, "transient": {"display_id": f"jupyter-dist-{execution_id}"}})
