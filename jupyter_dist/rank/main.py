"""A rank from start to end: environment, process group, shell, cells, exit."""

from __future__ import annotations

import contextlib
import contextvars
import faulthandler
import fcntl
import logging
import platform
import re
import sys
from collections.abc import Callable
from os import _exit as exit_now  # not the wrapped one: see spawning.py
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from jupyter_dist.protocol.accelerators import ACCELERATORS
from jupyter_dist.protocol.wire import road
from jupyter_dist.protocol.wire.specs import STACK_FILE, STACK_SIGNAL, RankSpec
from jupyter_dist.rank.cells.clients.calls import Calls
from jupyter_dist.rank.cells.comms import WidgetComms
from jupyter_dist.rank.cells.debuggers import Debuggers
from jupyter_dist.rank.cells.emitter import Emitter
from jupyter_dist.rank.cells.interrupt import Interrupter
from jupyter_dist.rank.cells.runner import Runner, RunnerParts, report_stray, stop_timer
from jupyter_dist.rank.cells.shell import DEFAULT_CACHE_SIZE, RankShell, ShellParts
from jupyter_dist.rank.cells.stdin import Stdin
from jupyter_dist.rank.collectives import captures, process_group, torch_compat, torch_recorders
from jupyter_dist.rank.collectives.diagnosis import mainthread, peers
from jupyter_dist.rank.collectives.interruptible import storewaits, tcpstores, waits
from jupyter_dist.rank.collectives.process_group import Membership, RevivedGroups
from jupyter_dist.rank.collectives.revival import followers
from jupyter_dist.rank.guard import usercode
from jupyter_dist.rank.guard.own import asyncio, os, signal, socket, time, traceback
from jupyter_dist.rank.guard.surroundings import Surroundings
from jupyter_dist.rank.leaving import leave_in_order
from jupyter_dist.rank.output.outbox import Outbox
from jupyter_dist.rank.output.streams import Streams
from jupyter_dist.rank.output.track import track
from jupyter_dist.rank.output.wire import FrameSender
from jupyter_dist.transport.frames import Header

from .control import Control
from .frameworks.hook import ImportHook
from .frameworks.meeting import Meeting
from .guard import descriptors
from .ipython import ipython_compat
from .memory import MemoryCounters
from .output import spawning
from .part import RankCore, RankParts
from .place import NewPlace, move_of, moved, names_of, rename
from .side_thread import SideThread
from .state.process import beside, environment

_FIRST_PRIVATE_FD = 100
_LAST_WORDS_SECONDS = 1.0


def run(spec: RankSpec, channel_fd: int) -> NoReturn:
    """Run this rank until the agent ends it, then exit the process.

    The caller has set up the session, folder and descriptors of the process (start/shim.py).
    """
    code = 1
    _take_cpus(spec.cpus)
    try:
        code = Rank(spec, channel_fd).live()
    except BaseException:  # the outermost level of the process
        traceback.print_exc()
    finally:
        # Not sys.exit: a user thread or a broken process group could keep the process alive forever.
        exit_now(code)


def _take_cpus(cpus: list[int]) -> None:
    """Use these CPUs alone, with all threads to come; nothing changes if there are none of them any more."""
    if cpus:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cpus)


def _take_umask() -> None:
    """Use the user's umask for files that cells write; the agent's own files stay private."""
    umask = os.environ.pop("JUPYTER_DIST_UMASK", "")
    if re.fullmatch("0?[0-7]{3}", umask):
        os.umask(int(umask, 8))


class Rank:
    """Owns the parts of a rank and starts them in order."""

    def __init__(self, spec: RankSpec, channel_fd: int) -> None:
        self._spec = spec
        self._leaving = False
        _prepare_process(spec)
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        logging.getLogger("asyncio").addFilter(_is_not_about_cells)
        self._shell = RankShell.prepare()
        namespace = self._shell.user_ns
        self._wire = FrameSender(_private_socket(channel_fd))
        self._outbox = Outbox(self._wire)
        self._membership = Membership(spec, self._outbox.log)
        self._say_what_is_missing()
        for graphs in torch_recorders.graph_classes():
            captures.watch(graphs)
        self._begin_frameworks()
        self._interrupter = Interrupter(
            namespace,
            self._membership.unhang,
            self._membership.find_failure,
            self._wire.wake,
            self._membership.was_aborted,
        )
        self._outbox.safe_point = self._interrupter.safe_point
        waits.install(self._membership.was_broken, self._leave_collective)
        storewaits.install()
        tcpstores.install()
        peers.install()
        self._streams = Streams(self._outbox, self._interrupter.safe_point)
        self._stdin = Stdin(self._outbox, self._streams, self._interrupter)
        self._emit = Emitter(self._outbox, self._streams, self._interrupter.safe_point)
        self._memory = MemoryCounters(spec.device, mainthread.main_thread_moves)
        self._surroundings = Surroundings()
        self._debuggers = Debuggers(namespace, self._interrupter)
        self._context = contextvars.copy_context()
        self._parts = self._new_parts()
        self._calls = Calls(spec.rank, namespace, self._parts.calls, spec.store_socket)
        self._runner = self._new_runner()
        comms = ImportHook.in_place().context.comms = WidgetComms(self._outbox, self._streams, self._runner)
        self._control = self._new_control(comms)
        self._side = SideThread(self._wire, self._outbox, self._streams, self._interrupter, self._control)

    def _new_parts(self) -> RankParts:
        core = RankCore(
            spec=self._spec,
            shell=self._shell,
            namespace=self._shell.user_ns,
            place=os.path.dirname(self._spec.store_path),
            memory=self._memory,
            running=self._interrupter.running,
            when_idle=lambda work: self._runner.when_idle(work),  # noqa: PLW0108 - it is made later
            may_run=lambda: self._runner.comes_by_itself(is_idle=True),
            leave_groups=self._membership.disconnect,
            stopped=self._report_stop,
            send=lambda _: None,
            emit=self._emit,
            log=lambda line: self._outbox.log(f"jupyter_dist: {line}\n"),
            interrupt=self._interrupt,
        )
        return RankParts(core, self._outbox)

    def _interrupt(self) -> None:
        if (execution := self._interrupter.current) is not None:
            self._interrupter.request(execution.execution_id, False)

    def _report_stop(self, stop: road.Stop | None) -> None:
        """Report where a debugger has stopped the cell, or that it has gone on (any thread)."""
        if (execution := self._interrupter.current) is not None:
            header = {"t": "from_rank", "execution_id": execution.execution_id, "number": 0}
            kind: str = "stopped_over" if stop is None else "stopped"
            self._outbox.send({**header, "kind": kind}, road.FROM_RANK[kind].encode(stop or {}))

    def _new_runner(self) -> Runner:
        return Runner(
            RunnerParts(
                loop=self._loop,
                outbox=self._outbox,
                streams=self._streams,
                interrupter=self._interrupter,
                membership=self._membership,
                shell=self._shell,
                memory=self._memory,
                calls=self._calls,
                surroundings=self._surroundings,
                stdin=self._stdin,
                debuggers=self._debuggers,
                around=self._parts,
                context=self._context,
            )
        )

    def _new_control(self, comms: WidgetComms) -> Control:
        return Control(
            rank=self._spec.rank,
            outbox=self._outbox,
            runner=self._runner,
            interrupter=self._interrupter,
            stdin=self._stdin,
            comms=comms,
            memory=self._memory,
            parts=self._parts,
            surroundings=self._surroundings,
            namespace=self._shell.user_ns,
            rejoin=self._rejoin,
            take_place=self._take_place,
            replicas=self._replicas,
            leave=self._leave,
            peer_lost=self._membership.peer_lost,
        )

    def live(self) -> int:
        """Start, run cells, end; return the exit code."""
        self._side.start()
        self._streams.take_over()
        spawning.install(self._sync, self._begin_fork, self._interrupter.end_fork)
        self._interrupter.begin_cell()
        self._interrupter.handlers.install()
        phase = "joining"
        try:
            self._outbox.send({"t": "phase", "phase": phase})
            self._membership.join_first()
            phase = "shell"
            self._context.run(self._begin_shell)
            _take_umask()
        except BaseException as err:  # the start failed: the agent must receive any error
            self._send_failed(phase, err)
            return 1
        self._outbox.send(self._ready())
        self._serve()
        return self._end()

    def _say_what_is_missing(self) -> None:
        for sentence in [*ipython_compat.missing(), *torch_compat.missing()]:
            self._outbox.log(f"jupyter_dist: {sentence}\n")

    def _begin_frameworks(self) -> None:
        context = ImportHook.in_place().context
        context.begin(self._spec.world_size, self._spec.device, self._outbox.log)
        self._meeting = Meeting(self._spec, self._membership)
        context.meet = self._meeting.store
        context.keep_timeout = self._membership.keep_timeout

    def _rejoin(self, store_path: str, new: NewPlace) -> RevivedGroups:
        """Join another process group, after a resize in another place. If that fails, this rank keeps its place."""
        before, move = self._spec, move_of(self._spec, new)
        self._take_place(new)
        try:
            return self._membership.rejoin(store_path, move)
        except BaseException:
            self._be_at(before)
            raise

    def _replicas(self, asked: dict[str, Any]) -> dict[str, Any]:
        from .state import replicas  # few groups are resized

        place = self._spec.rank, self._spec.world_size
        found: dict[str, Any] = usercode.call(replicas.carry_out, self._shell, place, asked)
        return found

    def _take_place(self, new: NewPlace) -> None:
        self._be_at(moved(self._spec, new))

    def _be_at(self, spec: RankSpec) -> None:
        before, self._spec = self._spec, spec
        earlier = before.for_exec()
        changed = {name: value for name, value in spec.for_exec().items() if earlier.get(name) != value}
        os.environ.update(changed)
        environment.follow(changed)
        followers.follow((before.rank, before.world_size), (spec.rank, spec.world_size))
        self._membership.take_place(spec)
        self._meeting.take_place(spec)
        self._control.take_rank(spec.rank)
        self._calls.rank = spec.rank
        self._parts.take_place(spec)
        ImportHook.in_place().context.world_size = spec.world_size
        rename(self._shell.user_ns, before, spec)
        self._shell.rank_names.update(names_of(spec))
        self._shell.user_ns_hidden.update(names_of(spec))

    def _begin_shell(self) -> None:
        cache_size = int(os.environ.get("JUPYTER_DIST_CACHE_SIZE", DEFAULT_CACHE_SIZE))
        names = {
            **names_of(self._spec),
            "device": torch.device(self._spec.device),
            "gpu_id": gpu_id(self._spec),
            "dist": dist,
            "torch": torch,
            "track": track,
        }
        self._shell.begin(
            ShellParts(
                names=names,
                cache_size=cache_size,
                emit=self._emit,
                interrupter=self._interrupter,
                memory=self._memory,
                outbox=self._outbox,
                restore=self._surroundings.restore,
                cell_magics=self._parts.cell_magics,
            )
        )
        if unused := ipython_compat.unused_profile_files():
            files = ", ".join(unused)
            self._outbox.log(f"jupyter_dist: ranks use no IPython profile. Run in a cell what you need of {files}.\n")
        self._stdin.install()
        self._debuggers.install()
        self._surroundings.take()
        environment.remember()
        beside.remember(self._shell)
        descriptors.protect()

    def _ready(self) -> Header:
        return {
            "t": "ready",
            "device": self._spec.device,
            "python_version": platform.python_version(),
            "torch_version": torch.__version__,
            "backend": self._spec.backend,
            "pid": os.getpid(),
        }

    def _serve(self) -> None:
        while not self._leaving:
            try:
                self._loop.run_forever()
            except BaseException as err:  # from a user's callback, background task or signal handler
                stop_timer()
                report_stray(err)
            self._runner.resume()

    def _sync(self) -> None:
        if not self._outbox.in_child:
            self._streams.flush()
            self._outbox.sync()
            self._interrupter.safe_point()

    def _begin_fork(self) -> None:
        self._interrupter.begin_fork()
        self._sync()

    def _leave_collective(self, is_complete: Callable[[], bool]) -> None:
        self._interrupter.left_collective()
        self._membership.leave(is_complete)

    def _leave(self, seconds: float) -> None:
        """Leave the event loop, and end the process within this time; called in the side thread."""
        self._side.leave_within(seconds)
        self._leaving = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        execution = self._interrupter.current
        if execution is not None:
            self._interrupter.request(execution.execution_id)

    def _end(self) -> int:
        leave_in_order()
        self._say_last_words()
        return 0

    def _send_failed(self, phase: str, err: BaseException) -> None:
        header = {"t": "failed", "phase": phase, "ename": type(err).__name__, "evalue": str(err)[:4000]}
        self._outbox.send(header, traceback.format_exc().encode("utf-8", "backslashreplace"))
        self._say_last_words()

    def _say_last_words(self) -> None:
        self._streams.flush()
        self._outbox.flush_text()
        deadline = time.monotonic() + _LAST_WORDS_SECONDS
        while self._wire.is_blocked and time.monotonic() < deadline:
            self._wire.send()
            time.sleep(0.002)


def _is_not_about_cells(record: logging.LogRecord) -> bool:
    """Whether a message of a loop in debug mode is not about a slow cell, which is a callback for the loop."""
    said = record.getMessage()
    return not (said.startswith("Executing <") and ("Runner._next()" in said or "/rank/cells/context.py" in said))


def gpu_id(spec: RankSpec) -> int | str | None:
    """Return the machine's index of the device, or its name, where an engine gives names; None on CPU."""
    variable = ACCELERATORS[spec.accelerator].visible_devices
    if spec.device_index is not None or variable is None:
        return spec.device_index
    found = spec.env[variable].split(",")[spec.local_rank]
    return int(found) if found.isdigit() else found


def _prepare_process(spec: RankSpec) -> None:
    """Reset the state that a forked process shares with the zygote."""
    os.environ.update(spec.for_exec())
    sys.argv = [""]
    if "" not in sys.path:
        sys.path.insert(0, "")
    # A duplicate, so that the traceback of a crash is written even after a cell closed fd 2.
    last_words_fd = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE_FD)
    faulthandler.enable(last_words_fd)
    faulthandler.register(signal.SIGUSR2, last_words_fd)
    _write_stacks_at(STACK_SIGNAL)
    spawning.fork_by_default()
    spawning.send_by_value()
    process_group.use_threads()
    process_group.reseed(spec.accelerator)
    if spec.outlives_term:
        _outlive_term()


def _write_stacks_at(signum: int) -> None:
    """Have C code write the stacks of all threads at a signal, for the agent: also while the GIL is held for long."""
    with contextlib.suppress(OSError):  # a kernel without such files
        found = os.memfd_create(STACK_FILE)
        fd = fcntl.fcntl(found, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE_FD)
        os.close(found)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)
        faulthandler.register(signum, fd)


def _outlive_term() -> None:
    """Leave the end of this process to its node agent: engines send SIGTERM to all processes of a job.

    A handler, not SIG_IGN, which the programs that cells start would inherit.
    """
    signal.signal(signal.SIGTERM, lambda *_: None)
    ours = signal.getsignal(signal.SIGTERM)

    def reset() -> None:
        if signal.getsignal(signal.SIGTERM) is ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    os.register_at_fork(after_in_child=reset)


def _private_socket(fd: int) -> socket.socket:
    private = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE_FD)
    os.close(fd)
    return socket.socket(fileno=private)
