"""Starts with an idempotency key: one that is not done is never forgotten."""

import asyncio

from waits import until_async

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.devices.reader import DeviceReader
from jupyter_dist.server.environments.environments import Environments
from jupyter_dist.server.groups.manager import MAX_KEYS, GroupManager
from jupyter_dist.server.groups.resolve import GroupDefaults, WantedGroup
from jupyter_dist.server.spawner.local import LocalSpawner


def test_a_start_that_is_not_done_is_remembered_however_many_come_after_it(tmp_path):
    begun = []

    async def main():
        proceed = asyncio.Event()

        async def slow_kernel_specs():  # the first thing that a start waits for
            begun.append(1)
            await proceed.wait()
            return {}

        spawner, environments = LocalSpawner(tmp_path / "groups", []), Environments(slow_kernel_specs)
        manager = GroupManager(spawner, environments, DeviceReader(), GroupDefaults(), keep_warm=False, launchers=dict)
        wanted = WantedGroup(name="g", environment="none")
        starts = [asyncio.ensure_future(manager.start(wanted, f"key-{number}")) for number in range(2 * MAX_KEYS)]
        await until_async(lambda: len(begun) == 2 * MAX_KEYS)
        again = asyncio.ensure_future(manager.start(wanted, "key-0"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(begun) == 2 * MAX_KEYS
        proceed.set()
        outcomes = await asyncio.gather(*starts, again, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {JupyterDistError}
        assert outcomes[0] is outcomes[-1]  # the same start
        assert not manager._keyed

    asyncio.run(main())
