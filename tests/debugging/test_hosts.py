"""Requests of debuggers name ranks as all other requests do, by the host of their node, too."""

import asyncio
from types import SimpleNamespace

from jupyter_dist.parts.debugging.server import DebuggingOperations
from jupyter_dist.server.mirror.status import GroupStatus


def test_ranks_are_named_by_their_host():
    status = GroupStatus()
    nodes = [{"ranks": "0-1", "host": "a1", "state": "ready"}, {"ranks": "2-3", "host": "a2", "state": "ready"}]
    status.fields = {"spec": {"world_size": 4}, "nodes": nodes}
    assert list(status.rank_set("a2")) == [2, 3]

    async def ask(_name, _payload, rank):
        return {"reply": {"from": rank}}, b""

    group = SimpleNamespace(mirror=SimpleNamespace(status=status, ask=ask))
    answer = asyncio.run(DebuggingOperations(None).debug(group, {"command": "debugInfo"}, "a2"))
    assert answer == {"replies": [{"rank": rank, "content": {"from": rank}} for rank in (2, 3)]}
