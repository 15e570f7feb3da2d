"""Waiting agents, which have imported torch, so that a start takes a fork, not an import."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.environments.environments import Environment
from jupyter_dist.system.memory import is_short
from jupyter_dist.transport.tasks import start_task

from .group import ManagedGroup

MAX_WARM = 2  # environments
LOOK_SECONDS = 10.0  # for memory, while an agent waits

log = logging.getLogger(__name__)

Key = tuple[str, str | None, tuple[tuple[str, str], ...]]


Begin = Callable[[ManagedGroup], Awaitable[None]]


class WarmAgents:
    """At most one waiting agent per environment."""

    def __init__(self, launch: Callable[..., Awaitable[ManagedGroup]], *, keep_warm: bool) -> None:
        self._launch = launch
        self._keep_warm = keep_warm
        self._waiting: dict[Key, ManagedGroup] = {}
        self._warming: dict[Key, asyncio.Task[None]] = {}
        self._claimed: set[Key] = set()
        self._looking: asyncio.Task[None] | None = None
        self._expiring: set[asyncio.Future[list[str]]] = set()

    async def begin(self, environment: Environment, begin: Begin) -> ManagedGroup:
        """Return an agent of this environment that has begun its group: the waiting agent, or a new one.

        A waiting agent must not make a start fail: if it does not begin the group, a new agent is started.

        Raises:
            JupyterDistError: no agent can be started, or the error of the agent.
        """
        if (waiting := await self._claim(_key(environment))) is not None:
            try:
                return await begun(waiting, begin, or_end=self.discard)
            except JupyterDistError as err:
                if err.code not in ("agent_unreachable", "timed_out"):
                    raise
                log.warning("jupyter_dist: the agent that was kept ready fails, so another one is started: %s", err)
        return await begun(await self._launch(environment), begin)

    async def _claim(self, key: Key) -> ManagedGroup | None:
        """Return the waiting agent; None if there is none, or it does not respond."""
        self._claimed.add(key)
        if key in self._warming:
            await asyncio.wait([self._warming[key]])
        group = self._waiting.pop(key, None)
        if group is not None and not (group.mirror.is_attached and await group.responds()):
            self.discard(group)
            return None
        return group

    def discard(self, group: ManagedGroup) -> None:
        """End a waiting agent, without waiting for its end: the agent may be stopped."""
        self._expiring.add(task := asyncio.ensure_future(group.shutdown()))
        task.add_done_callback(self._discarded)

    def _discarded(self, task: asyncio.Future[list[str]]) -> None:
        self._expiring.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("jupyter_dist: an agent that was kept ready cannot be ended: %s", error)

    async def warm(self, environment: Environment, seconds: float | None = None) -> None:
        """Make sure that an agent waits for this environment; return once an agent is being started.

        With `seconds`, a program is about to ask for the agent: it ends after that time if it has not been claimed.
        """
        key = _key(environment)
        waiting = self._waiting.get(key)
        if key in self._warming or (waiting is not None and waiting.mirror.is_attached) or is_short():
            return
        if seconds is not None and key in self._claimed:  # it was claimed while its environment was probed
            return
        self._warming[key] = start_task(self._start(key, environment, is_spare=seconds is None), "warm an agent")
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, self._expire, key)

    def _expire(self, key: Key) -> None:
        """End an agent that has not been claimed in time."""
        if (group := self._waiting.pop(key, None)) is not None:
            self.discard(group)

    def warm_next(self, environment: Environment) -> None:
        """Start the next waiting agent after a claim, if configured."""
        key = _key(environment)
        if self._keep_warm and key not in self._warming and key not in self._waiting and not is_short():
            self._warming[key] = start_task(self._start(key, environment, 2.0, is_spare=True), "warm the next agent")

    def agents(self) -> list[int]:
        """Return the processes of the waiting agents."""
        pids = (group.status.fields.get("agent_pid") for group in self._waiting.values())
        return [pid for pid in pids if isinstance(pid, int)]

    async def _end_when_short(self) -> None:
        """End the waiting agents when memory is short: only the next start is slower then."""
        while self._waiting:
            await asyncio.sleep(LOOK_SECONDS)
            if is_short():
                waiting, self._waiting = list(self._waiting.values()), {}
                log.warning("jupyter_dist: memory is short: no agent is kept ready.")
                await asyncio.gather(*(group.shutdown() for group in waiting), return_exceptions=True)

    async def stop(self) -> None:
        """End all waiting agents. Idempotent."""
        tasks = [*self._warming.values(), *([self._looking] if self._looking is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        waiting, self._waiting = list(self._waiting.values()), {}
        ending = [*(group.shutdown() for group in waiting), *self._expiring]
        await asyncio.gather(*ending, return_exceptions=True)

    async def _start(self, key: Key, environment: Environment, delay_seconds: float = 0.0, *, is_spare: bool) -> None:
        try:
            # The group that was just started needs the CPUs first.
            await asyncio.sleep(delay_seconds)
            group = await self._launch(environment, is_spare=is_spare)
        except JupyterDistError as err:
            log.warning("jupyter_dist: cannot warm %s: %s", environment.python, err)
            return
        finally:
            self._warming.pop(key, None)
        self._waiting[key] = group
        if self._looking is None or self._looking.done():
            self._looking = start_task(self._end_when_short(), "look whether memory is short")
        while len(self._waiting) > MAX_WARM:
            await self._waiting.pop(next(iter(self._waiting))).shutdown()


async def begun(
    group: ManagedGroup, begin: Begin, or_end: Callable[[ManagedGroup], object] | None = None
) -> ManagedGroup:
    """Have an agent begin its group, and return the group; a failing agent is ended (`or_end`: without waiting)."""
    try:
        await begin(group)
    except BaseException:
        if or_end is not None:
            or_end(group)
        else:
            await group.shutdown()
        raise
    return group


def _key(environment: Environment) -> Key:
    return environment.python, environment.torch_version, tuple(sorted(environment.env.items()))
