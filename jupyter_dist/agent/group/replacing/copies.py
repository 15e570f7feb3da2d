"""Compares the variables of ranks, and copies the variables that all have alike to new ranks."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_dist.agent.group.group import AgentGroup
from jupyter_dist.agent.processes.rank_process import RankProcess
from jupyter_dist.agent.processes.starting.leftparts import left_by
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.system.files.private import make_folder
from jupyter_dist.transport.frames import Header

COMPARE_SECONDS = 120.0
COPY_SECONDS = 300.0
MAX_NAMED = 20
MAX_DEPTH = 12  # of the part of a name that is named

_OF_MODULES = re.compile(r"\._(?:modules|parameters|buffers)\['([^']*)'\]")


class Likeness(NamedTuple):
    """The names of the ranks: which are alike on all of them, which are divided among them, and which differ.

    Attributes:
        sharded: names of co-variables that are alike but for the parts that ranks have of DTensors.
        why: of some that differ: that it cannot be saved, or that a rank lacks it.
        divided: names of co-variables that have such parts, and differ.
    """

    alike: list[str]
    sharded: list[list[str]]
    differ: list[str]
    why: dict[str, str]
    divided: list[list[str]]


async def compare(ranks: Sequence[RankProcess], *, takes_several: bool = False) -> Likeness:
    """Return the names that these ranks have alike. Raises JupyterDistError if a rank cannot answer.

    Args:
        ranks: to compare.
        takes_several: Whether what is divided over a mesh of several dimensions is compared, too.
    """
    asked: dict[str, Any] = {"do": "signatures", "takes_several": takes_several}
    answers = await asyncio.gather(*(_ask(rank, COMPARE_SECONDS, **asked) for rank in ranks))
    return likeness(answers, [rank.rank for rank in ranks])


async def differences(ranks: Sequence[RankProcess], found: Likeness) -> dict[str, str]:
    """Return for the first names that differ which part of them does, or why they cannot be compared."""
    shown = found.differ[:MAX_NAMED]
    paths: dict[str, list[str]] = {name: [] for name in shown if name not in found.why}
    ends: dict[str, str] = {}
    deeper = set(paths)
    for _ in range(MAX_DEPTH):
        asked = {name: paths[name] for name in deeper}
        answers = await asyncio.gather(*(_ask(rank, COMPARE_SECONDS, do="parts", paths=asked) for rank in ranks))
        deeper = set()
        for name in asked:
            parts = [answer["parts"].get(name, {}) for answer in answers]
            if not paths[name]:
                is_alike = len({one.get("") for one in parts}) == 1
                ends[name] = "is alike alone, and shares objects with another of them" if is_alike else "differs"
            if (step := differing_part(parts)) is not None:
                paths[name].append(step[0])
                ends[name] = step[1]
                deeper.add(name)
        if not deeper:
            break
    return {**found.why, **{name: f"{name}{readable(steps)} {ends[name]}" for name, steps in paths.items()}}


def differing_part(parts: Sequence[Mapping[str, str | None]]) -> tuple[str, str] | None:
    """Return the step to the first part that is not equal on all ranks, and what is wrong with it. Pure."""
    steps = dict.fromkeys(step for one in parts for step in one if step)
    missing = next((step for step in steps if any(step not in one for one in parts)), None)
    if missing is not None:
        return missing, "is not on all ranks"
    unequal = next((step for step in steps if len({one[step] for one in parts}) > 1), None)
    if unequal is not None:
        return unequal, "differs"
    unknown = next((step for step in steps if parts[0][step] is None), None)
    return None if unknown is None else (unknown, "cannot be compared")


def readable(steps: Sequence[str]) -> str:
    """Return steps as a user would write them: modules have theirs, parameters and buffers in dictionaries. Pure."""
    return _OF_MODULES.sub(lambda found: f"[{found[1]}]" if found[1].isdigit() else f".{found[1]}", "".join(steps))


def likeness(answers: Sequence[Header], ranks: Sequence[int]) -> Likeness:
    """Return the co-variables that have the same names and the same hash in all answers. Pure."""
    hashes = [{tuple(one["keys"]): one["hash"] for one in answer["covariables"]} for answer in answers]
    equal = [
        keys
        for keys, value in hashes[0].items()
        if value is not None and all(other.get(keys) == value for other in hashes)
    ]
    parted = {tuple(one["keys"]) for one in answers[0]["covariables"] if one["is_sharded"]}
    alike = {key for keys in equal for key in keys}
    names = {key for one in hashes for keys in one for key in keys}
    why = {one["name"]: f"{one['part']} cannot be compared: {one['reason']}" for one in _skipped(answers)}
    names.update(why)
    differ = sorted(name for name in names - alike if name.isidentifier())
    for name in differ:
        lacking = [rank for rank, answer in zip(ranks, answers, strict=True) if name not in _names(answer)]
        if lacking:
            why.setdefault(name, f"{name} is not on rank {RankSet(lacking)}")
    why = {name: reason for name, reason in why.items() if name in differ}
    sharded, divided = (
        [list(keys) for keys in sorted(parted) if (keys in equal) is is_equal] for is_equal in (True, False)
    )
    return Likeness(sorted(alike), sharded, differ, why, divided)


def _skipped(answers: Sequence[Header]) -> list[dict[str, str]]:
    return [one for answer in answers for one in answer["skipped"]]


def _names(answer: Header) -> set[str]:
    skipped = {one["name"] for one in answer["skipped"]}
    return {name for one in answer["covariables"] for name in one["keys"]} | skipped


def refusal(differ: Sequence[str], why: Mapping[str, str], is_growing: bool) -> JupyterDistError:
    """Return the error for a resize that has to be asked about: these names are not alike on all ranks."""
    more = f" and {len(differ) - MAX_NAMED} more" if len(differ) > MAX_NAMED else ""
    named = ", ".join(differ[:MAX_NAMED]) + more
    reasons = "; ".join(why[name] for name in differ[:MAX_NAMED] if name in why)
    lost = "New ranks would begin without" if is_growing else "They would be lost on the ranks that leave"
    message = f"Ranks do not have these names alike: {named} ({reasons}). {lost}."
    or_copy = ", or with others='copy' to copy rank 0's" if is_growing else ""
    hint = f"Resize with others='keep' if that is right{or_copy}."
    return JupyterDistError("ranks_differ", message, hint)


def folder_of(group: AgentGroup, what: str) -> Path:
    """Return the path of a folder for copies: machines share the working directory, if anything."""
    spec = group.spec
    place = Path(spec.cwd) if spec.is_on_nodes else group.directory
    return place / f".jupyter-dist-copies-{spec.group_id}-{what}"


async def copy(source: RankProcess, to: Sequence[RankProcess], folder: Path, keys: Collection[str]) -> list[str]:
    """Copy these names from a rank to new ones; return sentences on what could not be copied.

    Raises:
        JupyterDistError: nothing was copied, or not to all.
        OSError: the folder cannot be made.
    """
    make_folder(folder)
    try:
        out = await _ask(source, COPY_SECONDS, do="out", folder=str(folder), keys=sorted(keys))
        place = {"folder": str(folder), "file": out["file"], "source": source.rank}
        taking = (_ask(rank, COPY_SECONDS, do="in", **place) for rank in to)
        taken = await asyncio.gather(*taking)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    parts = [out["skipped"], *(answer["failed"] for answer in taken)]
    failed = {one["name"]: one["reason"] for part in parts for one in part}
    notes = [f"{one['name']}: {one['reason']}" for one in out["notes"]]
    return [*(f"{name} was not copied to new ranks: {reason}." for name, reason in failed.items()), *notes]


async def ways(source: RankProcess, groups: list[list[str]]) -> list[list[str | None]]:
    """Return the ways to the DTensors of each of these co-variables. Raises JupyterDistError."""
    return list((await _ask(source, COMPARE_SECONDS, do="ways", groups=groups))["ways"])


async def fill(rank: RankProcess, groups: list[list[str]], to: Sequence[str], files: tuple[str, str]) -> None:
    """Give the DTensors of a rank the parts that its predecessor has left in files. Raises JupyterDistError."""
    answer = await _ask(rank, COPY_SECONDS, do="fill", groups=groups, ways=list(to), list=files[0], bytes=files[1])
    rank.left = left_by(rank.local_pid, answer["files"])  # it may die in its first cell


async def on_all(ranks: Sequence[RankProcess], do: str, **asked: Any) -> list[Header]:
    """Let ranks do a step together. Raises JupyterDistError, the first one, when all have answered."""
    answers = await asyncio.gather(
        *(_ask(rank, COPY_SECONDS, do=do, **asked) for rank in ranks), return_exceptions=True
    )
    return _sound(answers)


async def gather_parts(staying: Sequence[RankProcess], leaving: Sequence[RankProcess], groups: list[list[str]]) -> None:
    """Let ranks that stay have their new parts of DTensors, which they take when the group has its new size."""
    size = len(staying)
    numbered: list[tuple[RankProcess, int | None]] = [(rank, number) for number, rank in enumerate(staying)]
    numbered += [(rank, None) for rank in leaving]
    asking = (_ask(rank, COPY_SECONDS, do="gather", groups=groups, number=new, size=size) for rank, new in numbered)
    _sound(await asyncio.gather(*asking, return_exceptions=True))


def _sound(answers: Sequence[Header | BaseException]) -> list[Header]:
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if not isinstance(answer, BaseException)]


async def _ask(rank: RankProcess, seconds: float, **asked: Any) -> Header:
    return await rank.request("replicas", seconds, json.dumps(asked).encode())
