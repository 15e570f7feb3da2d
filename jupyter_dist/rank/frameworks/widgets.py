"""Widgets: `comm`, through which ipywidgets and others reach a page, and ipywidgets' Output (decision 20)."""

from __future__ import annotations

import sys
from typing import Any

from IPython import get_ipython

from jupyter_dist.rank.guard import usercode

from .fix import Fix, RankContext, need

PACKAGE, SEEN_WITH = "ipywidgets", "8.1"


def connect(context: RankContext, module: Any) -> None:
    """Send the messages of comms to the agent. Others that provide comms (ipykernel) may be imported later."""
    comm: Any = module if module.__name__ == "comm" else sys.modules.get("comm")
    if comm is None:
        return
    need(comm, "create_comm", "get_comm_manager")
    need(comm.base_comm, "BaseComm", "CommManager")
    manager = getattr(context.comms, "manager", None) or comm.base_comm.CommManager()

    base: Any = comm.base_comm.BaseComm

    class RankComm(base):
        """A comm of this rank."""

        def publish_msg(
            self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any
        ) -> None:
            """Send a message."""
            if context.comms is not None:
                content = {"data": data, "metadata": metadata, "target_name": keys.get("target_name")}
                context.comms.publish(msg_type, self.comm_id, content, buffers)

    def get_comm_manager() -> Any:
        if context.comms is not None:
            context.comms.manager = manager
        return manager

    comm.create_comm, comm.get_comm_manager = RankComm, get_comm_manager


def capture_output(context: RankContext, module: Any) -> None:
    """Make `with out:` collect output in the rank: for a kernel, a page collects it, and only while a page is open."""
    output = module.Output
    need(output, "__enter__", "__exit__")
    enter, leave = output.__enter__, output.__exit__

    def begin(self: Any) -> Any:
        found = usercode.call(enter, self)
        if context.comms is not None:
            context.comms.enter(self)
        return found

    def end(self: Any, etype: Any, evalue: Any, tb: Any) -> Any:
        shell: Any = get_ipython()
        before = shell.last_error
        try:
            handled = usercode.call(leave, self, etype, evalue, tb)
        finally:
            if context.comms is not None:
                context.comms.leave(self)
        if etype is not None and issubclass(etype, KeyboardInterrupt):
            return False  # it is for the cell, too
        if handled:
            shell.last_error = before
        return handled

    output.__enter__, output.__exit__ = begin, end


_CONNECT = Fix("comm", "0.2", "", connect)
FIXES = {
    "comm": [_CONNECT],
    "ipykernel.ipkernel": [_CONNECT],
    "ipywidgets.widgets.widget_output": [Fix(PACKAGE, SEEN_WITH, "", capture_output)],
}
