"""The most that users may ask a launcher for, as an administrator has set it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.models.sentences import join, say, templates
from jupyter_dist.server.launchers.options import Option, fault_of

_OF_NODES, _ON_A_NODE, _OF_RANKS, _OF_OPTION = templates(
    "%1 nodes were requested; this server allows at most %2.",
    "%1 ranks on a node were requested; this server allows at most %2.",
    "%1 ranks were requested; this server allows at most %2.",
    "'%3' %1 was requested; this server allows at most %2.",
)
SHAPE = {"num_nodes": _OF_NODES, "ranks_per_node": _ON_A_NODE, "num_ranks": _OF_RANKS}
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def number(value: Any) -> float | None:
    """Return the number in a value: of 4, or of the last word in a100:4."""
    found = re.fullmatch(r"(?:.*:)?(\d+)", str(value), re.ASCII)
    return float(found[1]) if found else None


def size(value: Any) -> float | None:
    """Return the bytes in 64G or 64Gi; without a unit it is in MiB, as for Slurm."""
    found = re.fullmatch(r"(\d+)([KMGTkmgt]?)i?", str(value), re.ASCII)
    return float(found[1]) * _UNITS[(found[2] or "m").lower()] if found else None


def duration(value: Any) -> float | None:
    """Return the seconds in 90 (minutes), 2:30:00 or 1-12 (days-hours), as Slurm reads them."""
    text = str(value)
    if not re.fullmatch(r"[\d:-]+", text, re.ASCII):
        return None
    days, dash, rest = text.partition("-") if "-" in text else ("0", "", text)
    parts = [float(part) for part in rest.split(":") if part]
    if dash:
        hours, minutes, seconds = [*parts, 0.0, 0.0, 0.0][:3]
    elif len(parts) == 1:
        hours, minutes, seconds = 0.0, parts[0], 0.0
    elif len(parts) == 2:
        hours, minutes, seconds = 0.0, *parts
    else:
        hours, minutes, seconds = parts
    return float(days or 0) * 86_400 + hours * 3600 + minutes * 60 + seconds


def zero_is_all(measure: Callable[[Any], float | None]) -> Callable[[Any], float | None]:
    """Return a measure of an option of which engines take 0 for no limit: all memory of a node, or any time."""
    return lambda value: math.inf if (found := measure(value)) == 0 else found


def _wrong_wait(value: str) -> str | None:
    is_duration = duration(value) is not None and value[-1:].isdigit()
    return None if is_duration else fault_of(value, "a wait looks like 90 (minutes), 2:30:00 or 1-12 (days-hours).")


MAX_WAIT = Option("max_wait", "Longest wait", "Minutes, H:MM:SS or D-HH. A job that has no nodes after this time is"
                  " cancelled, and the start fails. Empty: it waits for ever.", is_advanced=True, measure=duration,
                  check=_wrong_wait)  # fmt: skip


def check_limits(setting: str, limits: Mapping[str, Any], options: Sequence[Option], given: Mapping[str, Any]) -> None:
    """Raise JupyterDistError `bad_request`, with a sentence for each value above its limit.

    Args:
        setting: the name of the setting that has the limits.
        limits: the greatest value, by the name of an option or of a field in SHAPE.
        options: all options of the launcher.
        given: the options of a group, and its shape.
    """
    measures = {**dict.fromkeys(SHAPE, number), **{option.name: option.measure or number for option in options}}
    unknown = sorted(set(limits) - set(measures))
    if unknown:
        names = say("Names are %1, and the options of the launcher.", ", ".join(SHAPE))
        raise bad_request(say("%1 has a limit for '%2', which is no option.", setting, unknown[0][:60]), names)
    sentences = []
    for name, limit in limits.items():
        if name not in given:
            continue
        most, wanted = measures[name](limit), measures[name](given[name])
        if most is None:
            raise bad_request(
                say("%1 has %2 as limit of '%3'.", setting, f"{str(limit)[:60]!r}", name), say("Correct the setting.")
            )
        if wanted is not None and wanted > most:
            text = SHAPE.get(name, _OF_OPTION)
            sentences.append(say(text, given[name], limit, name))
    if sentences:
        raise bad_request(join(*sentences), say("Ask for less. An administrator has set %1.", setting))


def check_fixed(setting: str, fixed: Sequence[str], defaults: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise JupyterDistError `bad_request` if an option was given that only an administrator sets."""
    wrong = [name for name in fixed if name in given and given[name] not in ("", None, defaults.get(name))]
    if wrong:
        named = ", ".join(f"'{name}'" for name in wrong)
        raise bad_request(
            say("%1 cannot be set on this server.", named), say("Leave it out. An administrator has set %1.", setting)
        )
