"""torchrun's options for `jupyter dist run`: their meaning for a group, and the options without a meaning here."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from jupyter_dist.client import Client, Group
from jupyter_dist.client.displays.growing import stream_of
from jupyter_dist.protocol.accelerators import WITH_DEVICES
from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.models.models import LogRecord

STREAMS = ("stdout", "stderr")  # the bits of torchrun's --redirects and --tee
PAGE_BYTES = 4 << 20

_MEET = "the ranks of a group meet on this machine by themselves"
_WATCH = "the group's agent watches its ranks"
WITHOUT_EFFECT = {
    "rdzv-backend": _MEET,
    "rdzv-endpoint": _MEET,
    "rdzv-conf": _MEET,
    "master-addr": _MEET,
    "master-port": _MEET,
    "local-addr": _MEET,
    "monitor-interval": _WATCH,
    "event-log-handler": _WATCH,
    "signals-to-handle": _WATCH,
    "shutdown-timeout": _WATCH,
    "start-method": "ranks are forked from a process that has imported torch",
}
# The value, or None for a flag.
REFUSED = {
    "no-python": (None, "Ranks run Python: give a script, or -m and a module."),
    "logs-specs": ("NAME", "Use --log-dir and --tee."),
    "numa-binding": ("MODE", "Bind the process in the script, or start the Jupyter server under numactl."),
    "virtual-local-rank": (None, "Each rank sees all devices of its group; use LOCAL_RANK."),
    "duplicate-stdout-filters": ("WORDS", "Use --log-dir and --tee, and search the files."),
    "duplicate-stderr-filters": ("WORDS", "Use --log-dir and --tee, and search the files."),
}


def add_torchrun_arguments(parser: argparse.ArgumentParser) -> None:
    """Add torchrun's options, with hyphens or underscores."""
    add = parser.add_argument
    add(
        *_both("nproc-per-node"),
        metavar="N",
        help="number of ranks (as -n), or auto, cpu, gpu, or a kind of device: all of these",
    )
    add(*_both("nnodes"), default="1", help="1: a group has one machine")
    add(*_both("node-rank"), type=int, default=0, help="0")
    add(
        *_both("max-restarts"),
        type=int,
        default=0,
        metavar="N",
        help="restarts of all ranks if the script fails",
    )
    add("-m", "--module", action="store_true", help="the script is a module, as in python -m")
    add(*_both("log-dir"), metavar="FOLDER", help="where --tee and --redirects write files, by attempt and rank")
    add("-t", "--tee", default="0", metavar="STD", help="write output to files and show it: 1 stdout, 2 stderr, 3 both")
    add(
        "--redirects",
        default="0",
        metavar="STD",
        help="write output to files only (torchrun's -r, which is --ranks here)",
    )
    add(*_both("local-ranks-filter"), default="", metavar="RANKS", help="show the output of these ranks only")
    add("--role", default="default", help="ROLE_NAME of the ranks")
    add(*_both("rdzv-id"), metavar="ID", help="TORCHELASTIC_RUN_ID of the ranks, and the name of their folder of logs")
    add("--standalone", action="store_true", help="always so")
    add(*_both("run-path"), action="store_true", help="always so")
    for name in WITHOUT_EFFECT:
        add(*_both(name), help=argparse.SUPPRESS)
    for name, (value, _) in REFUSED.items():
        shape: dict[str, Any] = {"action": "store_true", "default": None} if value is None else {"metavar": value}
        add(*_both(name), help=argparse.SUPPRESS, **shape)


def check(options: argparse.Namespace) -> None:
    """Print the options without effect on stderr. Raises JupyterDistError for options that cannot be followed."""
    for name, (_, hint) in REFUSED.items():
        if _value(options, name) is not None:
            raise bad_request(f"There is no --{name} here.", hint)
    if options.nnodes not in ("1", "1:1") or options.node_rank:
        raise bad_request("A group has one machine.", "Use --nnodes 1 and --node-rank 0, or torchrun itself.")
    if options.nproc_per_node and (options.num_ranks is not None or options.devices is not None):
        raise bad_request("--nproc-per-node was given together with -n or -d.", "Give one of them.")
    if options.group is not None and (options.nproc_per_node or options.max_restarts):
        which = "--nproc-per-node" if options.nproc_per_node else "--max-restarts"
        raise bad_request(f"{which} is for a new group, but -g names a running one.", "Give one of them.")
    without = [name for name in WITHOUT_EFFECT if _value(options, name) is not None]
    for name in without:
        print(f"--{name} has no effect: {WITHOUT_EFFECT[name]}.", file=sys.stderr)


def start_fields(options: argparse.Namespace, client: Client) -> dict[str, Any]:
    """Return the fields of the group to start that the options set."""
    env = {"TORCHELASTIC_MAX_RESTARTS": str(options.max_restarts), "ROLE_NAME": options.role}
    if options.rdzv_id:
        env["TORCHELASTIC_RUN_ID"] = options.rdzv_id
    return {**_shape(options.nproc_per_node, client), "env": env | dict(options.env or ())}


def _shape(nproc: str | None, client: Client) -> dict[str, Any]:
    if nproc is None:
        return {}
    if nproc == "auto":
        nproc = "gpu" if client.ask("GET", "devices")["devices"] else "cpu"
    if nproc == "cpu":
        return {"accelerator": "cpu", "num_ranks": len(os.sched_getaffinity(0))}
    if nproc == "gpu":
        return {"devices": "all"}
    kinds = [row.name for row in WITH_DEVICES]
    if nproc in kinds:
        return {"devices": "all", "accelerator": nproc}
    if not nproc.isdecimal():
        others = f"Give a number, or auto, cpu, gpu, {', '.join(kinds)}."
        raise bad_request(f"--nproc-per-node cannot be '{nproc}'.", others)
    return {"num_ranks": int(nproc)}


class RankLogs:
    """The output that goes to files, and the output that is shown."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._tee, self._redirects = _bits("tee", options.tee), _bits("redirects", options.redirects)
        chosen = options.local_ranks_filter
        try:
            self._only = {int(rank) for rank in chosen.split(",")} if chosen else None
        except ValueError:
            raise bad_request(f"--local-ranks-filter cannot be '{chosen}'.", "Write 0,1,2.") from None
        self._log_dir = options.log_dir
        self._run_id = options.rdzv_id or "none"

    def hidden(self, rank: int) -> frozenset[str]:
        """Return the streams of a rank that are not shown."""
        if self._only is not None and rank not in self._only:
            return frozenset(STREAMS)
        return frozenset(name for name in STREAMS if self._is_redirected(rank, name))

    def write(self, group: Group, note: str, attempts: int) -> None:
        """Write the output of the last `attempts` executions with that note, in torchrun's layout; print where."""
        if not (self._tee or self._redirects):
            return
        if self._log_dir:
            os.makedirs(self._log_dir, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{self._run_id}_", dir=self._log_dir))
        for rank in range(group.world_size):
            for attempt, records in enumerate(_attempts(all_records(group, rank), note)[-attempts:]):
                self._write_rank(folder / f"attempt_{attempt}" / str(rank), rank, records)
        print(f"Logs: {folder}", file=sys.stderr)

    def _write_rank(self, folder: Path, rank: int, records: list[LogRecord]) -> None:
        folder.mkdir(parents=True)
        for bit, name in enumerate(STREAMS):
            if self._bits_of(self._tee, rank) & 1 << bit or self._is_redirected(rank, name):
                texts = (_text(record, name) for record in records)
                (folder / f"{name}.log").write_text("".join(texts), encoding="utf-8", errors="surrogateescape")

    def _is_redirected(self, rank: int, name: str) -> bool:
        return bool(self._bits_of(self._redirects, rank) & 1 << STREAMS.index(name))

    @staticmethod
    def _bits_of(chosen: dict[int | None, int], rank: int) -> int:
        return chosen.get(rank, chosen.get(None, 0))


def all_records(group: Group, rank: int) -> list[LogRecord]:
    """Return the whole log of a rank."""
    pages: list[list[LogRecord]] = []
    before: int | None = None
    while True:
        path = ("groups", group.id, "ranks", str(rank), "log")
        page = group.client.ask("GET", *path, params={"tail_bytes": PAGE_BYTES, "before": before})
        pages.append(page["records"])
        if not page["more"] or not page["records"]:
            return [record for found in reversed(pages) for record in found]
        before = page["records"][0]["seq"]


def _attempts(records: list[LogRecord], note: str) -> list[list[LogRecord]]:
    """Return the records of each execution with that note."""
    found: list[list[LogRecord]] = []
    is_inside = False
    for record in records:
        if record["kind"] == "begin":
            is_inside = record["code"] == note
            found += [[]] if is_inside else []
        if is_inside:
            found[-1].append(record)
    return found


def _text(record: LogRecord, name: str) -> str:
    """Return the text that a record adds to the file of a stream."""
    if record["kind"] == "stream":
        return str(record["text"]) if record["name"] == name else ""
    if record["kind"] == "output" and stream_of(record["output"]) == name:
        output = record["output"]
        if output["output_type"] == "error":
            return "\n".join(output["traceback"]) + "\n"
        return "".join(output.get("data", {}).get("text/plain", "")) + "\n"
    return ""


def _bits(option: str, text: str) -> dict[int | None, int]:
    """Parse `3`, or `0:1,1:2`: bits by rank, with the bits of all ranks under None. Empty for 0."""
    found: dict[int | None, int] = {}
    for part in text.split(","):
        rank, colon, bits = part.rpartition(":")
        if bits not in ("0", "1", "2", "3") or (colon and not rank.isdecimal()) or (not colon and "," in text):
            raise bad_request(f"--{option} cannot be '{text}'.", "Write 1 (stdout), 2 (stderr) or 3; by rank: 0:3,1:1.")
        found[int(rank) if colon else None] = int(bits)
    return found if any(found.values()) else {}


def _both(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}")))


def _value(options: argparse.Namespace, name: str) -> Any:
    return getattr(options, name.replace("-", "_"))
