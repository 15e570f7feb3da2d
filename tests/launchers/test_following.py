"""Jobs are looked at again, whatever an engine does."""

import asyncio

from waits import PATIENCE

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


class Engine(Launcher):
    """Its first look fails in a way that nobody foresaw."""

    name = "engine"
    looks = 0

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
