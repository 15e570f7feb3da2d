"""The options that batch queues have in common, and their values in the words of each engine."""

from __future__ import annotations

import re
from typing import Any

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.launchers.common.limits import duration, size, zero_is_all
from jupyter_dist.server.launchers.options import Option, fault_in, fault_of, matches

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.@+:-]*"
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<hours>\d+)(?::(?P<minutes>\d\d)(?::(?P<seconds>\d\d))?)?")
_SIZE = re.compile(r"(\d+)([KMGTkmgt]?)")

QUEUE = Option("queue", "Queue", "Where to queue. Empty: the engine's default.", is_common=True,
               check=matches(_NAME, "a queue looks like gpu."))  # fmt: skip
ACCOUNT = Option("account", "Account", "Who pays. Empty: your default account.",
                 check=matches(_NAME, "an account looks like physics."))  # fmt: skip
PROJECT = Option("project", "Project", "The project of the job. Empty: your default project.",
                 check=matches(_NAME, "a project looks like physics."))  # fmt: skip
GPUS = Option("gpus_per_node", "GPUs per node", "GPUs of each node. Empty: none.", kind="integer", is_common=True)
CPUS = Option("cpus_per_node", "CPUs per node", "CPUs of each node. Empty: one for each rank.",
              kind="integer", minimum=1)  # fmt: skip


def _wrong_time(value: str) -> str | None:
    found = _TIME.fullmatch(value)
    is_time = found is not None and (found["minutes"] is None or found["seconds"] or found["days"])
    like = say("a time limit looks like 90 (minutes), 2:30:00 or 1-12 (days-hours).")
    return None if is_time else fault_of(value, like)


TIME_LIMIT = Option("time_limit", "Time limit", "Minutes, H:MM:SS or D-HH. Empty: the queue's default.",
                    is_common=True, measure=zero_is_all(duration), check=_wrong_time)  # fmt: skip
MEMORY = Option("memory", "Memory per node", "With its unit: 64G.", measure=zero_is_all(size),
                check=matches(r"\d+[KMGTkmgt]", "memory looks like 64G or 512000M."))  # fmt: skip


def words_option(pattern: str, example: str, *ours: str) -> Option:
    """Return the option for more arguments of the engine; `ours` are the arguments that the launcher sets itself."""
    compiled = re.compile(pattern)

    def check(words: list[str]) -> str | None:
        for word in words:
            if not compiled.fullmatch(word):
                return fault_in(word, say("write arguments such as %1.", example))
            if word in ours:
                return say("has '%1', which the launcher sets itself or has an option for.", word)
        return None

    return Option("extra_arguments", "More arguments", say("More arguments for the engine, such as %1.", example),
                  kind="words", check=check)  # fmt: skip


def seconds_of(time_limit: Any) -> int | None:
    """Return a time limit in seconds; None if there is none."""
    found = _TIME.fullmatch(str(time_limit or ""))
    if found is None:
        return None
    days, hours, minutes, seconds = (int(found[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    if found["days"] is None and found["minutes"] is None:
        return hours * 60  # a number alone is minutes
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def clock(seconds: int) -> str:
    """Return a duration as H:MM:SS."""
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
