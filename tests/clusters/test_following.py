"""Jobs are looked at again, and their output followed, whatever an engine does."""

import asyncio
import os
import sys
import threading

from waits import PATIENCE, until

from jupyter_dist.parts.clusters.ray.driver import Node
from jupyter_dist.server.launchers.launcher import Launcher


class Files:
    def read(self):
        pass


class Job:
    """Ends at the third look."""

    files = Files()
    has_ended = False

    def publish_node_events(self):
        pass

    def is_overdue(self, now):
        return False


class Engine(Launcher):
    """Its first look fails in a way that nobody foresaw."""

    name = "engine"
    looks = 0
    probe = start = restore = None

    async def look(self, allocations):
        self.looks += 1
        if self.looks == 1:
            raise ZeroDivisionError("of ours")
        for job in allocations:
            job.has_ended = self.looks == 3


async def test_a_look_that_fails_is_logged_and_the_next_one_comes(caplog):
    engine = Engine(poll_seconds=0.05)
    engine.follow(Job())
    await asyncio.wait_for(engine._follower, PATIENCE)
    assert engine.looks == 3
    assert "Cannot look at the jobs of engine" in caplog.text
    assert "ZeroDivisionError: of ours" in caplog.text
    await engine.detach()


def test_a_follower_that_ray_has_lost_ends_when_there_is_a_new_one(tmp_path):
    """Each one keeps a thread of the actor, of which the last is needed to say that the driver lives."""
    node, go = Node(), tmp_path / "go"
    code = f"import os, time\nos.write(1, b'said\\n')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    node.start([sys.executable, "-c", code], {}, dict(os.environ), str(tmp_path), PATIENCE)
    found = [[] for _ in range(3)]
    lost = []
    for said in found:
        thread = threading.Thread(target=lambda said=said: said.extend(node.follow(0)))
        thread.start()
        lost.append(thread)
        until(lambda said=said: said == [b"said\n"], lambda said=said: said)
    for thread in lost[:-1]:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    go.touch()
    lost[-1].join(PATIENCE)
    assert found == [[b"said\n"], [b"said\n"], [b"said\n", 0]]
    node._process.stdout.close()
