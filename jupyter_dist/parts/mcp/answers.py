"""The text of answers: the state of a group, results, variables, all within a limit."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jupyter_dist.client import Result
from jupyter_dist.client.bundles.bundle import output_text, rank_label, without_ansi
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.operations import CELL_NOTES
from jupyter_dist.protocol.ranks import RankSet

NUM_EXECUTIONS = 10


def bounded(text: str, max_chars: int, rest: str) -> str:
    """Return the first and the last part of a text that is too long, and how to get the rest (`rest`)."""
    if len(text) <= max_chars:
        return text
    head = max_chars * 2 // 3
    tail = max_chars - head
    cut = f"[... {len(text) - max_chars} of {len(text)} characters are left out here. {rest.format(offset=head)} ...]"
    return f"{text[:head]}\n{cut}\n{text[-tail:]}"


def page(text: str, max_chars: int, offset: int, rest: str) -> str:
    """Return the part of a text that starts at `offset`, and how to get the next one."""
    part = text[offset : offset + max_chars]
    end = offset + len(part)
    shown = f"[Characters {offset} to {end} of {len(text)}.]\n{part}"
    return shown if end >= len(text) else f"{shown}\n[{rest.format(offset=end)}]"


def group_line(group: models.GroupModel) -> str:
    """Return a line about a group."""
    error = f": {group['error']['message']}" if group["error"] else ""
    return (
        f"Group '{group['name']}' is {group['state']}: {group['world_size']} ranks ({group['accelerator']}, "
        f"{group['backend']}), {len(group['running'])} cells running, {len(group['queued'])} queued{error}."
    )


def verdict(
    group: models.GroupModel, executions: Iterable[models.ExecutionModel], verdicts: models.Verdicts | None
) -> str:
    """Return lines about the cells of the ranks, what each waits for, and whether verdicts on cells were wrong."""
    lines = [group_line(group), *_problems(group), *_ranks(group), *_cells(executions), *_proofs(verdicts)]
    return "\n".join(lines)


def _proofs(verdicts: models.Verdicts | None) -> Iterator[str]:
    if verdicts is None or not verdicts["shown"]:
        return
    yield f"Verdicts on cells: {verdicts['shown']} shown, {verdicts['refuted']} refuted by what happened then."
    for record in verdicts["verdicts"]:
        if record["outcome"] == "refuted":
            yield f"Refuted: {record['message']}"


def _problems(group: models.GroupModel) -> Iterator[str]:
    if group["note"]:
        yield f"Note: {group['note']}"
    if group["error"] and group["error"]["hint"]:
        yield f"What to do: {group['error']['hint']}"


def _ranks(group: models.GroupModel) -> Iterator[str]:
    same: dict[str, list[int]] = {}
    for rank in group["ranks"]:
        what = rank["message"] or (rank["exit"]["reason"] if rank["exit"] else "")
        broken = "" if rank["process_group"] == "ok" else f"its process group is {rank['process_group']}"
        text = ": ".join(filter(None, [f"{rank['state']} for {_since(rank['state_at'])}", what]))
        same.setdefault("; ".join(filter(None, [text, broken])), []).append(rank["rank"])
    for text, ranks in same.items():
        yield f"{rank_label(str(RankSet(ranks)))}: {text}"


def _cells(executions: Iterable[models.ExecutionModel]) -> Iterator[str]:
    for execution in executions:
        if execution["state"] == "running":
            parts = [f"{status['status']} on {rank_label(status['ranks'])}" for status in execution["statuses"]]
            since = _since(execution["started_at"] or execution["queued_at"])
            notes = "".join(f" {label}: {sentences}" for label, sentences in _notes(execution))
            yield f"Running for {since}, {', '.join(parts)}: {_title(execution)}{notes}"
        elif execution["state"] == "queued":
            yield f"Queued: {_title(execution)}. {execution.get('waits_for') or ''}".rstrip()


def _notes(execution: Mapping[str, Any], *also: str) -> Iterator[tuple[str, str]]:
    """Yield the notes of parts under a cell: a label, and the sentences."""
    for note in CELL_NOTES:
        if found := note.findings(execution):
            yield note.label.capitalize(), " ".join(one[name] for one in found for name in ("message", *also))


def _title(execution: models.ExecutionModel) -> str:
    return f"execution {execution['id']}, `{execution.get('line') or ''}`"


def _since(at: float) -> str:
    return f"{max(0.0, time.time() - at):.0f} s"


def result_text(result: Result) -> str:
    """Return the state and the folded output of a cell."""
    head = f"Execution {result.id} on {rank_label(result.execution['ranks'])}: {result.state}."
    if not result.done:
        head += " It keeps running: get_result waits for it, verdict says what its ranks wait for, interrupt stops it."
    if error := result.execution["error"]:
        head += f" {error['message']} {error['hint']}".rstrip()
    head += "".join(f"\n{label}: {sentences}" for label, sentences in _notes(result.execution, "advice"))
    return f"{head}\n{without_ansi(result.text)}" if result.folded else f"{head}\nNo output."


def variables_text(result: Result) -> str:
    """Return a line for each variable, once for ranks with an equal one; the result comes from objects/names.py."""
    same: dict[str, list[int]] = {}
    for rank, of_rank in result.items():
        same.setdefault(_variables(of_rank.text), []).append(rank)
    return "\n".join(f"[{rank_label(str(RankSet(ranks)))}]\n{text}" for text, ranks in same.items())


def _variables(printed: str) -> str:
    try:
        found: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
        lines = [f"{name}: {kind}{f', {detail}' if detail else ''}" for name, kind, detail in found["variables"]]
        left_out = int(found["left_out"])
    except (ValueError, KeyError, TypeError, IndexError) as err:
        raise JupyterDistError("internal", f"A rank did not describe its variables: {printed[:200]!r}.") from err
    if left_out:
        lines.append(f"[{left_out} more variables; name a prefix.]")
    return "\n".join(lines) or "no variables"


def log_text(records: Iterable[models.LogRecord]) -> str:
    """Return log records as text, with the number of each."""
    return "".join(f"{record['seq']} {_record(record)}" for record in records)


def _record(record: models.LogRecord) -> str:
    kind = record["kind"]
    if kind == "stream":
        text = f"{record['name']}: {without_ansi(record['text'])}"
    elif kind == "output":
        text = output_text(record["output"])
    elif kind == "begin":
        text = f"cell [{record['execution_count']}] begins: {record['code']}"
    elif kind == "end":
        text = f"cell [{record['execution_count']}] ends: {record['status']}, {record['seconds'] or 0:.2f} s"
    else:
        text = f"note: {record.get('text', '')}"
    return text if text.endswith("\n") else text + "\n"
