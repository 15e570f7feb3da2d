"""Runs a cell under torch's profiler, and sends the server a summary and the trace of this rank.

The summaries of all ranks become one table when the cell has ended (comparing.py), so a rank that fails,
is interrupted or dies takes nothing from the others.
"""

from __future__ import annotations

import argparse
import contextlib
import platform
import shlex
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.core.getipython import get_ipython

from jupyter_dist.parts.profile.models import MAX_RANK_EVENTS, MAX_TRACE_EVENTS
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.collectives.diagnosis import records
from jupyter_dist.rank.guard.own import os, time

from .sessions import BEFORE, MEANWHILE, TWICE, Sessions
from .timeline import Timeline
from .trace import EPOCH_MICROSECONDS, TraceWriter, lane, ours, read_events

LEAST_EVENTS = 10_000
# torch's recorder would write to every cell that it starts and stops; read once, before the first cell.
_QUIET = ("KINETO_LOG_LEVEL", "10")

Summary = dict[str, Any]


class Profiler:
    """Profiles the cells of one rank.

    Args:
        spec: of this rank.
        sessions: the sessions of torch's profiler in this process.
        tell: a function that sends the summary.
        send: a function that sends the next part of the trace; True marks the first part of a cell.
    """

    def __init__(
        self,
        spec: RankSpec,
        sessions: Sessions,
        tell: Callable[[Summary], None],
        send: Callable[[bytes, bool], None],
    ) -> None:
        self._shell: Any = get_ipython()
        self._sessions = sessions
        self._rank = spec.rank
        self._device_type = spec.device.partition(":")[0]
        self._max_events = max(LEAST_EVENTS, min(MAX_RANK_EVENTS, MAX_TRACE_EVENTS // spec.world_size))
        self._tell = tell
        self._send = send

    def run(self, line: str, cell: str) -> None:
        """Run the cell; its output and its error are shown as without the profiler."""
        os.environ.setdefault(*_QUIET)
        from torch import profiler  # few cells are profiled

        options = _options(line)
        if "await" in cell and self._shell.should_run_async(cell, transformed_cell=self._shell.transform_cell(cell)):
            raise UsageError("%%profile cannot run a cell that awaits. Put what it awaits into asyncio.run().")
        if self._sessions.are_ours or self._sessions.is_theirs:
            sys.stderr.write(TWICE if self._sessions.are_ours else BEFORE)
            self._shell.run_cell(cell, store_history=False)
            return
        wanted = ("CPU", self._device_type.upper())
        activities = [activity for activity in profiler.supported_activities() if activity.name in wanted]
        recorder = profiler.profile(activities=activities, **options)
        self._sessions.begin(recorder)
        began = time.time()
        try:
            self._shell.run_cell(cell, store_history=False)
        finally:
            ended = time.time()
            was_on = self._sessions.are_ours
            has_ended = self._sessions.end()
            if not has_ended:
                sys.stderr.write(MEANWHILE)
            if has_ended or not was_on:  # else other code has ended it: torch would end the process that reads it
                self._report(recorder.export_chrome_trace, began, ended)

    def _report(self, export: Callable[[str], None], began: float, ended: float) -> None:
        folder = tempfile.mkdtemp(prefix="jupyter-dist-")
        path = os.path.join(folder, "trace.json")
        try:
            export(path)
            self._tell({**self._read(path, began, ended), "host": platform.node()})
        except Exception as err:  # a full disk, another format: the cell itself has ended
            sys.stderr.write(f"jupyter_dist: The profile of this rank cannot be read ({type(err).__name__}: {err}).\n")
        finally:
            for name in (path, folder):
                with contextlib.suppress(OSError):
                    os.unlink(name) if name == path else os.rmdir(name)

    def _read(self, path: str, began: float, ended: float) -> Summary:
        timeline, lengths = Timeline(), []
        for event in read_events(path):
            timeline.add(event)
            if event.get("ph") == "X":
                lengths.append(float(event.get("dur") or 0.0))
        # The longest ones show the structure.
        least = 0.0 if len(lengths) <= self._max_events else sorted(lengths)[-self._max_events]
        self._write(path, least)
        since, until = (moment * 1e6 - EPOCH_MICROSECONDS for moment in (began, ended))
        num_cut = sum(length < least for length in lengths)
        found = timeline.summary(since, until, [one[:2] for one in records.collectives_since(int(began * 1e9))])
        return {**found, "began": round(since, 3), "num_events": len(lengths), "num_cut": num_cut}

    def _write(self, path: str, least: float) -> None:
        """Send the trace without the events that are shorter, in microseconds."""
        first = [True]

        def send(part: bytes) -> None:
            self._send(part, first[0])
            first[0] = False

        writer = TraceWriter(send)
        for event in lane(self._rank):
            writer.add(event)
        for event in read_events(path):
            if event.get("ph") == "X" and float(event.get("dur") or 0.0) < least:
                continue
            changed = ours(event, self._rank)
            if changed is not None:
                writer.add(changed)
        writer.close()


class _Parser(argparse.ArgumentParser):
    """Reports errors as IPython's own magics do."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%profile: {message}. It takes --shapes, --memory and --stacks.")


def _options(line: str) -> dict[str, bool]:
    """Return the options of torch.profiler.profile that the first line asks for."""
    parser = _Parser(prog="%%profile", add_help=False)
    parser.add_argument("--shapes", dest="record_shapes", action="store_true")
    parser.add_argument("--memory", dest="profile_memory", action="store_true")
    parser.add_argument("--stacks", dest="with_stack", action="store_true")
    try:
        return vars(parser.parse_args(shlex.split(line)))
    except ValueError as err:
        raise UsageError(f"%%profile: {err}.") from err
