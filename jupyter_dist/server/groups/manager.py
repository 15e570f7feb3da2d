"""All groups of this server: starts, adopts, finds and ends them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import difflib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import machine, models
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.protocol.wire.specs import LOCAL
from jupyter_dist.server.devices.reader import DeviceReader
from jupyter_dist.server.environments.environments import Environment, Environments
from jupyter_dist.server.launchers.allocation import STATE_FILE
from jupyter_dist.server.launchers.common.command import tunnel_words
from jupyter_dist.server.launchers.common.network import group_fields, variables
from jupyter_dist.server.launchers.common.presets import Presets
from jupyter_dist.server.mirror.mirror import GroupMirror, Topic
from jupyter_dist.server.mirror.status import GroupStatus
from jupyter_dist.server.spawner.directories import GroupDirectory
from jupyter_dist.server.spawner.local import agent_environment, client_environment
from jupyter_dist.server.spawner.spawner import Spawner, check_usable
from jupyter_dist.system.memory import proportional_bytes
from jupyter_dist.system.processes import descendants
from jupyter_dist.transport.tasks import start_task

from .group import ManagedGroup
from .resolve import (
    EXTERNAL,
    Again,
    GroupDefaults,
    WantedGroup,
    build_spec,
    check_reserved,
    idle_gpus_note,
    resolve_spec,
)
from .warm import WarmAgents, begun

if TYPE_CHECKING:
    from jupyter_dist.server.launchers.common.optionset import LauncherOptions
    from jupyter_dist.server.launchers.registry import Launchers

log = logging.getLogger(__name__)

ABANDONED_SECONDS = 60.0
MAX_KEYS = 200
ADOPT_SECONDS = 3.0
HANDOVER_SECONDS = 10.0
HANDOVER_POLL_SECONDS = 0.05
START_HELLO_SECONDS = 15.0
PREPARED_SECONDS = 30.0  # how long an agent waits for a client that has started a server and may start a group

REMOVED: Topic = ("removed",)  # groups are no longer listed, and will not change any more

Listener = Callable[[Topic], None]
# Makes `restore` of the ReplaceSpec of a group, from the fields of a request.
WayToReplace = Callable[..., dict[str, Any]]
Launch = Callable[[str, "dict[str, str] | None"], Awaitable[GroupDirectory]]


class PartsOfGroups(Protocol):
    """What the parts of a server add to its groups."""

    async def before_start(self, request: WantedGroup) -> None:
        """Prepare for a group that starts. Raises JupyterDistError if a part refuses the start."""

    def start_note(self, fields: Mapping[str, Any]) -> str | None:
        """Return the note of a group that starts; None: it has none."""

    def start_options(self, request: WantedGroup, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return options of a group that starts which are not as they are configured."""

    def work_at_end(self, options: Mapping[str, Any]) -> bool:
        """Whether nodes of a group with these options wait for a part when their engine ends them."""

    def group_fields(self, status: GroupStatus) -> dict[str, Any]:
        """Return fields of the model of a group."""

    def way_to_replace(self, state: str) -> WayToReplace | None:
        """Return how ranks are replaced with that `state`; None: no part has it."""


class NoParts:
    """No parts."""

    async def before_start(self, _: WantedGroup) -> None:
        """Do nothing."""

    def start_note(self, _: Mapping[str, Any]) -> str | None:
        """Return nothing."""
        return None

    def start_options(self, _: WantedGroup, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def work_at_end(self, _: Mapping[str, Any]) -> bool:
        """Return False."""
        return False

    def group_fields(self, _: GroupStatus) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def way_to_replace(self, _: str) -> None:
        """Return None."""


class GroupManager:
    """All groups of this server, by id and by name."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a server, each once
        self,
        spawner: Spawner,
        environments: Environments,
        devices: DeviceReader,
        defaults: GroupDefaults,
        keep_warm: bool,
        launchers: Callable[[], Launchers],
        presets: Presets | None = None,
    ) -> None:
        self.environments = environments
        self.devices = devices
        self.defaults = defaults
        self.parts: PartsOfGroups = NoParts()
        self.presets = presets or Presets({})
        self.server_id = f"s-{secrets.token_hex(6)}"
        self._spawner = spawner
        self._make_launchers = launchers
        self._made_launchers: Launchers | None = None
        self._groups: dict[str, ManagedGroup] = {}
        self._starting: dict[str, asyncio.Event] = {}  # by name; set when that start has succeeded or failed
        self._listeners: set[Listener] = set()
        # Starts by idempotency key, newest last; each returns the id, because a group that has ended is not kept.
        self._keyed: dict[str, tuple[WantedGroup, asyncio.Task[str]]] = {}
        self._discarding: dict[asyncio.Task[None], ManagedGroup] = {}  # lost groups, while their nodes are released
        self._warm = WarmAgents(self._launch, keep_warm=keep_warm)
        self._is_stopping = False

    # -- life -----------------------------------------------------------------------------------------

    async def adopt(self) -> None:
        """Adopt the groups that another server left, whether alive or not; known groups are kept."""
        directories = [found for found in self._spawner.directories() if found.group_id not in self._groups]
        found = await asyncio.gather(*map(self._adopt_one, directories), return_exceptions=True)
        for directory, outcome in zip(directories, found, strict=True):
            if isinstance(outcome, Exception):  # an error in one group must not hide the others
                log.error("jupyter_dist: cannot adopt %s", directory.path, exc_info=outcome)
                directory.release()

    async def stop(self, end_groups: bool) -> None:
        """Leave all groups to the next server, or end them, as configured. Idempotent."""
        self._is_stopping = True
        groups = list(self._groups.values())
        if not end_groups:
            for group in groups:
                group.mirror.directory.announce_release()
        await self._warm.stop()
        for group in groups:
            what = "ends with this server" if end_groups else "keeps running without this server"
            log.warning("jupyter_dist: group '%s' (%d ranks) %s.", group.name, group.mirror.world_size, what)
        groups += await self._stop_discarding()
        leave = (group.shutdown() if end_groups else group.mirror.detach() for group in groups)
        await asyncio.gather(*leave, return_exceptions=True)
        if self._made_launchers is not None:
            await self._made_launchers.detach()
        self._groups.clear()
        self._spawner.detach()

    @property
    def launchers(self) -> Launchers:
        """Return the launchers, which are imported when they are first needed, or by `load_launchers`."""
        if self._made_launchers is None:
            self._made_launchers = self._make_launchers()
        return self._made_launchers

    async def load_launchers(self) -> None:
        """Import the launchers: later they may be of another version, or gone."""
        made = None if self._made_launchers else await asyncio.to_thread(self._make_launchers)
        self._made_launchers = self._made_launchers or made

    @property
    def refusal(self) -> str | None:
        """Return why no group can be started on this server, in a sentence with the remedy; None if some can."""
        return str(self._spawner.refusal) if self._spawner.refusal is not None else None

    # -- finding --------------------------------------------------------------------------------------

    def all(self) -> list[ManagedGroup]:
        """Return all groups, oldest first."""
        return sorted(self._groups.values(), key=lambda group: group.model()["started_at"] or 0.0)

    def get(self, id_or_name: str) -> ManagedGroup:
        """Return the group with that id or name.

        Raises:
            JupyterDistError: `unknown_group`, with the existing groups in its hint.
        """
        if self._is_stopping:
            raise JupyterDistError("server_gone", say("The Jupyter server is stopping."), say("Ask the next one."))
        if id_or_name in self._groups:
            return self._groups[id_or_name]
        named = [group for group in self._groups.values() if group.name == id_or_name]
        for group in sorted(named, key=lambda group: group.status.is_gone):
            return group
        if id_or_name in self._starting:
            message = say("There is no group '%1' yet: it is about to start.", id_or_name[:60])
            hint = say("The first start in an environment imports torch. Try again in some seconds.")
            raise JupyterDistError("unknown_group", message, hint)
        missing = say("There is no group '%1'.", id_or_name[:60])
        raise JupyterDistError("unknown_group", missing, self._names_hint(id_or_name))

    def has(self, group_id: str) -> bool:
        """Whether the group has not been removed."""
        return group_id in self._groups

    def rank_of_pid(self, pid: int) -> tuple[str, int] | None:
        """Return the group's name and the rank of a process."""
        for group in self._groups.values():
            if (rank := group.status.pids.get(pid)) is not None:
                return group.name, rank
        return None

    # -- starting and ending ----------------------------------------------------------------------------

    async def start(self, request: WantedGroup, key: str | None = None) -> ManagedGroup:
        """Start a group; return while its ranks are still starting. The same key returns the earlier group.

        Raises:
            JupyterDistError: one error per bad field; no process is left running then. `unknown_group`, if the earlier
                group has been removed.
        """
        if key is None:
            return await self._start(request)
        known, start = self._keyed.get(key, (request, None))
        if known != request:
            message = say("This idempotency key was used for another group.")
            raise JupyterDistError("key_reused", message, say("Choose a new key for every group."))
        if start is None:
            if (group := self._started_with(key)) is not None:
                return group
            start = asyncio.create_task(self._start_keyed(request, key), name="start a group")
            self._keyed[key] = request, start
            ended = [old for old, (_, known) in self._keyed.items() if known.done()]
            for old in ended[: max(0, len(self._keyed) - MAX_KEYS)]:
                del self._keyed[old]
        group = self._groups.get(await asyncio.shield(start))
        if group is None:
            message = say("The group that was started with this idempotency key has been removed.")
            raise JupyterDistError("unknown_group", message, say("Choose a new key to start another group."))
        return group

    async def start_again(self, group: ManagedGroup, again: Again, key: str | None = None) -> ManagedGroup:
        """Start a group that has ended with the options of its start; the new group takes its name.

        Raises:
            JupyterDistError: `group_not_ready`, if it has not ended, or not all its options are known; else as `start`.
        """
        if key is not None and key in self._keyed:
            return await self.start(self._keyed[key][0], key)
        if not group.status.is_gone:
            message = say("Group '%1' is %2.", group.name, say(group.mirror.state))
            raise JupyterDistError("group_not_ready", message, say("Restart it, or shut it down."))
        options = group.status.fields.get("spec", {}).get("request")
        if not options or not isinstance(options, dict) or options.keys() - WantedGroup.names():
            message = say("The options of group '%1' are not known: an earlier version has started it.", group.name)
            if options:
                message = say("The options of group '%1' are not known: its group.json is damaged.", group.name)
            raise JupyterDistError("group_not_ready", message, say("Start a new group."))
        return await self.start(again.completed({**options, "name": group.name}), key)

    async def _start_keyed(self, request: WantedGroup, key: str) -> str:
        try:
            return (await self._start(request, key)).id
        except BaseException:  # no group was started: the next request with this key starts one
            self._keyed.pop(key, None)
            raise

    async def _start(self, request: WantedGroup, key: str | None = None) -> ManagedGroup:
        if request.preset is not None:
            request = await asyncio.to_thread(self.presets.applied, request)
        environment = await self.environments.get(request.environment, request.python)
        devices = await self.devices.usable(request.accelerator)
        while request.name in self._starting:  # a client that gets `name_taken` can attach to that group
            await self._starting[request.name].wait()
        launcher = None if request.launcher in (LOCAL, EXTERNAL) else self.launchers.get(request.launcher)
        allowed = None if request.launcher == LOCAL else self.launchers.options_of(request.launcher)
        if allowed is not None:
            request = dataclasses.replace(request, gpus_per_node=allowed.gpus_per_node(request.launcher_options))
        fields = resolve_spec(request, environment, devices, self.defaults, self._taken_names())
        options = _checked(allowed, request.launcher_options, fields) if allowed else {}
        reserved = allowed.reserved_gpus(request.launcher_options, fields["ranks_per_node"]) if allowed else []
        check_reserved(fields, reserved)
        await self.parts.before_start(request)
        fields["options"] |= self.parts.start_options(request, fields)
        if launcher is not None and self.parts.work_at_end(fields["options"]):
            fields["end_grace_seconds"] = await launcher.grace_seconds(options)
        fields["note"] = idle_gpus_note(fields, reserved) or self.parts.start_note(fields)
        name, is_on_nodes = fields["name"], request.launcher != LOCAL
        self._starting[name] = asyncio.Event()
        try:
            own = _of_client(environment, request.environ)

            fields.update(key=key, request=request.fields())

            async def begin(group: ManagedGroup) -> None:
                await group.start(build_spec(group.id, fields), _environment_shown(environment))

            if is_on_nodes:
                group = await begun(await self._attached(self._spawner.launch_head, own), begin)
            else:
                group = await self._warm.begin(own, begin)
            try:
                if is_on_nodes:
                    env = agent_environment(list(self.defaults.preload_modules), own.env)
                    await group.launch_nodes(launcher, options, Secrets(env), self._spawner.archive)
            except BaseException:
                await group.shutdown()
                raise
            self._drop_remains(name)
            self._groups[group.id] = group
        finally:
            self._starting.pop(name).set()
        self.notify(("groups",))
        if not is_on_nodes:
            self._warm.warm_next(environment)
        return group

    def check_name(self, group: ManagedGroup) -> None:
        """Raise JupyterDistError `name_taken` if another group has the name of this one, which was dead."""
        taken = [other.name for other in self._groups.values() if other is not group and not other.status.is_gone]
        if group.name in (*taken, *self._starting):
            message = say("There is another group '%1' now, or one is about to start.", group.name)
            raise JupyterDistError("name_taken", message, say("Shut that one down first, or use it."))

    def _started_with(self, key: str) -> ManagedGroup | None:
        """Return the group that an earlier server started for this key before it could answer."""
        return next(
            (group for group in self._groups.values() if group.status.fields.get("spec", {}).get("key") == key), None
        )

    async def warm(self, name: str) -> None:
        """Keep an agent ready for the next start in this environment."""
        await self._warm.warm(await self.environments.listed(name))

    async def prepared(self) -> list[machine.PreparedProcess]:
        """Return the processes that are kept to make the next start faster, with their memory."""
        return await asyncio.to_thread(_with_memory, self._warm.agents(), self._spawner)

    async def prepare(self, python: str, environ: str) -> None:
        """Start the agent that a client's first start will claim, and read the devices, before it asks for them."""
        try:
            environment, _ = await asyncio.gather(self.environments.get(None, python), self.devices.usable("auto"))
            await self._warm.warm(_of_client(environment, client_environment(environ)), PREPARED_SECONDS)
        except JupyterDistError as err:  # the client gets this error when it starts a group
            log.warning("jupyter_dist: nothing is prepared: %s", err)

    async def shutdown(self, group: ManagedGroup) -> list[str]:
        """End and remove a group; return the processes that had to be killed."""
        killed = await group.shutdown()
        for sentence in killed:
            log.warning("jupyter_dist: group '%s': %s", group.name, sentence)
        self._groups.pop(group.id, None)
        self._spawner.reap_soon()
        self.notify(("groups",))
        self.notify(REMOVED)
        return killed

    # -- listening --------------------------------------------------------------------------------------

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with the topic of every change; return a function that stops it."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def notify(self, topic: Topic) -> None:
        """Notify all listeners of a change."""
        for listener in list(self._listeners):
            listener(topic)

    # -- inside -----------------------------------------------------------------------------------------

    async def _launch(self, environment: Environment, *, is_spare: bool = False) -> ManagedGroup:
        return await self._attached(self._spawner.launch_spare if is_spare else self._spawner.launch, environment)

    async def _attached(self, launch: Launch, environment: Environment) -> ManagedGroup:
        check_usable(type(self._spawner))
        directory = await launch(environment.python, environment.env)
        group = self._managed(directory)
        try:
            await group.mirror.attach(START_HELLO_SECONDS)
        except JupyterDistError:
            await group.shutdown()
            raise
        return group

    def _managed(self, directory: GroupDirectory) -> ManagedGroup:
        group = ManagedGroup(GroupMirror(directory, self.server_id, self._mirror_changed))
        group.status.of_parts = self.parts.group_fields
        return group

    def _mirror_changed(self, topic: Topic) -> None:
        self.notify(topic)

    async def _adopt_one(self, directory: GroupDirectory) -> None:
        try:
            if not await _held(directory):
                return  # another running server of this user has the group
        except OSError:
            return  # the group ended meanwhile
        content = directory.read_group_json()
        group = self._managed(directory)
        if not content.get("spec"):
            await self._end_unclaimed(group)
            return
        await group.mirror.adopt(content, ADOPT_SECONDS)  # no request waits longer for an agent that does not respond
        self._adopt_nodes(group)
        self._groups[group.id] = group
        self.notify(("groups",))

    def _adopt_nodes(self, group: ManagedGroup) -> None:
        if not (group.mirror.directory.path / STATE_FILE).exists():
            return
        try:
            if (allocation := self.launchers.adopt(group.mirror.directory.path)) is not None:
                group.take_allocation(allocation)
        except JupyterDistError as err:
            log.warning("jupyter_dist: group '%s': %s", group.name, err)

    async def _end_unclaimed(self, group: ManagedGroup) -> None:
        """End a waiting agent whose server is gone, or remove its files."""
        if group.mirror.agent_lives():
            with contextlib.suppress(JupyterDistError):
                await group.mirror.attach(ADOPT_SECONDS)
                if group.mirror.state == "warm":
                    await group.shutdown()
                else:  # a rank removed group.json
                    self._groups[group.id] = group
                    self.notify(("groups",))
                return
            await group.mirror.detach()  # the agent ends by itself if no server claims it
        elif group.mirror.directory.age_seconds() > ABANDONED_SECONDS:
            group.mirror.directory.remove()
        else:
            group.mirror.directory.release()  # another server may be creating the directory right now

    def _taken_names(self) -> list[str]:
        living = [group.name for group in self._groups.values() if not group.status.is_gone]
        return [*living, *self._starting]

    def _drop_remains(self, name: str) -> None:
        """Remove a dead group whose name a new group takes; a start waits neither for its agent nor for its nodes."""
        for group in [group for group in self._groups.values() if group.name == name and group.status.is_gone]:
            if group.mirror.state != "ending":  # a request is removing the group
                del self._groups[group.id]
                task = start_task(self._discard(group), f"discard {group.id}")
                self._discarding[task] = group
                task.add_done_callback(lambda task: self._discarding.pop(task, None))
                self.notify(REMOVED)

    async def _discard(self, group: ManagedGroup) -> None:
        for sentence in await group.shutdown():
            log.warning("jupyter_dist: group '%s', whose name another one has taken: %s", group.name, sentence)

    async def _stop_discarding(self) -> list[ManagedGroup]:
        """Return the groups whose nodes are not released yet: an engine may take longer than this server has."""
        tasks, groups = list(self._discarding), list(self._discarding.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return groups

    def _names_hint(self, wanted: str) -> str:
        if not self._groups:
            return "No group is running. Start one."
        names = [f"{group.name} ({group.mirror.world_size} ranks)" for group in self.all()]
        near = difflib.get_close_matches(wanted, [group.name for group in self.all()], 1)
        return (f"Did you mean '{near[0]}'? " if near else "") + f"Running groups: {', '.join(names[:20])}."


def _with_memory(agents: list[int], spawner: Spawner) -> list[machine.PreparedProcess]:
    waiting = [("agent", pid, [pid, *descendants(pid)]) for pid in agents]
    kept = [*waiting, *(("forkserver", pid, [pid]) for pid in spawner.forkservers())]
    return [{"what": what, "pid": pid, "memory_bytes": sum(map(proportional_bytes, all_))} for what, pid, all_ in kept]


async def _held(directory: GroupDirectory) -> bool:
    """Take a group's lock; a server that is ending gets some time to release it."""
    deadline = time.monotonic() + HANDOVER_SECONDS
    while not directory.hold():
        if time.monotonic() > deadline or not directory.is_being_released():
            return False
        await asyncio.sleep(HANDOVER_POLL_SECONDS)
    return True


def _checked(allowed: LauncherOptions, given: Mapping[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the options with defaults; set the fields and the variables of the GroupSpec that they stand for.

    Raises:
        JupyterDistError: `bad_request`, with a sentence for each mistake, or for each limit that is exceeded.
    """
    options = allowed.check(given, len(fields["ranks_per_node"]))
    allowed.check_limits(options, fields["ranks_per_node"])
    env = Secrets(variables(options)).under(fields["env"])
    fields.update(group_fields(options), tunnel=tunnel_words(options), env=env)
    return options


def _of_client(environment: Environment, environ: Secrets | str | None) -> Environment:
    """Return the environment with the variables that the client sent instead of the server's."""
    if not isinstance(environ, Secrets):
        return environment
    return dataclasses.replace(environment, env={**environ.for_exec(), **environment.env})


def _environment_shown(environment: Environment) -> models.GroupEnvironment:
    shown = ("name", "display_name", "python", "python_version", "torch_version")
    return cast("models.GroupEnvironment", {name: getattr(environment, name) for name in shown})
