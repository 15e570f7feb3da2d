"""A launcher whose nodes are processes on this machine, and whose engine ends them in four minutes, as it says."""

import time

from jupyter_dist.server.launchers.allocation import Allocated, EndsSoon
from jupyter_dist.server.launchers.processes import ProcessLauncher


class ScriptedLauncher(ProcessLauncher):
    """What the tests of the page see in place of an engine with a time limit."""

    name = "scripted"
    label = "Nodes with a time limit"

    async def look(self, allocations):
        """Announce the end of each job as soon as it runs."""
        for allocation in allocations:
            was_running = isinstance(allocation.status, Allocated)
            await super().look([allocation])
            if not was_running and isinstance(allocation.status, Allocated):
                allocation.publish(EndsSoon(time.time() + 240, "The job is about to reach its time limit."))
