"""Sentences for the states and reasons of Slurm."""

from __future__ import annotations

import re
from typing import NamedTuple

QUEUED = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)
RUNNING = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"})

_ENDS = {
    "": "Slurm does not list the job any more: it ended some minutes ago, or was never submitted.",
    "COMPLETED": "The node agents have ended, and their nodes are released.",
    "CANCELLED": "The job was cancelled: with scancel, or by an administrator.",
    "FAILED": "The job failed.",
    "TIMEOUT": "The job has reached its time limit.",
    "DEADLINE": "The job has reached its deadline.",
    "PREEMPTED": "The job was preempted: Slurm gave its nodes to a job of higher priority.",
    "NODE_FAIL": "A node of the job failed.",
    "BOOT_FAIL": "A node of the job could not be booted.",
    "OUT_OF_MEMORY": "The job used more memory than it had asked for.",
    "REVOKED": "Another cluster took the job over.",
}

_LESS = "it will not start. Shut the group down, and start one that asks for less."
_OTHERS = "it will not start. Shut the group down, and start one with other options."
_HELD = "run 'scontrol release' with its number."
_WHY_DOWN = "'sinfo -R' lists why nodes are down."

# The job starts when something passes by itself, or when a person acts as the sentence advises.
_WAITS = {
    "None": "Slurm is about to look at the job.",
    "Priority": "Other jobs are ahead in the queue.",
    "Resources": "It is the next job, and waits until enough nodes are free.",
    "Dependency": "It waits for another job.",
    "BeginTime": "Its start time has not come.",
    "JobHeldUser": f"It is held: {_HELD}",
    "JobHeldAdmin": "An administrator holds it, and has to release it.",
    "Licenses": "It waits for a license, which other jobs use.",
    "Reservation": "It waits until its reservation begins.",
    "ReqNodeNotAvail": "A node that it needs is down, reserved or drained: it starts when the node is back."
    f" {_WHY_DOWN}",
    "Nodes required for job are DOWN": "Nodes that it needs are down, drained, or reserved for jobs of higher priority:"
    f" it starts when enough are back. {_WHY_DOWN}",
    "NodeDown": f"A node that it needs is down: it starts when the node is back. {_WHY_DOWN}",
    "PartitionDown": "The partition is down: it starts when an administrator opens the partition. Others may be up.",
    "PartitionInactive": "The partition starts no jobs at present. Others may.",
    "launch failed requeued held": f"Its start failed, and Slurm holds it: {_HELD}",
    "JobHoldMaxRequeue": f"It was requeued too often, and Slurm holds it: {_HELD}",
    "Cleaning": "It was requeued, and Slurm cleans up after its last run.",
    "Prolog": "Slurm prepares the nodes.",
}
_MAINTENANCE = (
    "Its nodes are reserved for maintenance, which begins before its time limit ends: it starts after that,"
    " and a job with a shorter time limit may start before."
)
# Waiting does not help.
_NEVER = {
    "PartitionNodeLimit": f"The partition does not have, or does not allow, that many nodes: {_LESS}",
    "PartitionTimeLimit": f"Its time limit is longer than the partition allows: {_LESS}",
    "PartitionConfig": f"The partition does not allow what it asks for (nodes, time limit or QOS): {_OTHERS}",
    "BadConstraints": f"No nodes have what it asks for: {_OTHERS}",
    "Constraints": f"No nodes have what it asks for: {_OTHERS}",
    "MaxMemPerLimit": f"It asks for more memory than the partition allows: {_LESS}",
    "AccountNotAllowed": f"The account may not use the partition: {_OTHERS}",
    "QOSNotAllowed": f"The QOS may not be used on the partition: {_OTHERS}",
    "InvalidAccount": f"The account is not valid: {_OTHERS}",
    "InvalidQOS": f"The QOS is not valid: {_OTHERS}",
    "ReservationDeleted": f"Its reservation was deleted: {_OTHERS}",
    "ReservationInvalid": f"Its reservation is not valid: {_OTHERS}",
    "DependencyNeverSatisfied": f"It waits for a job that did not end as it has to: {_OTHERS}",
}
_OWNERS = {"Assoc": "your account", "QOS": "the QOS", "Max": "Slurm"}
_AMOUNTS = {
    "cpu": "many CPUs",
    "mem": "much memory",
    "node": "many nodes",
    "gres": "many GPUs or other resources",
    "wall": "much time",
    "job": "many jobs",
}
_OF_ONE_JOB = re.compile(r"Max.*Per(Job|Node)(Limit)?$")
_USED_UP = re.compile(r"Grp\w*(Minutes|Mins)(Limit)?$")


class WaitReason(NamedTuple):
    """Why a job waits, and whether it can start as it was submitted."""

    text: str
    can_start: bool = True


def ended(state: str) -> str:
    """Return why a job in that state is over."""
    return _ENDS.get(state, f"The job ended in Slurm's state {state}.")


def waits(reason: str) -> WaitReason:
    """Return why a job waits."""
    words = reason.strip("()")
    key = words.partition(",")[0]  # Slurm may add which nodes are meant
    if "maintenance" in words.lower():
        return WaitReason(f"{_MAINTENANCE} ({words})")
    if key in _NEVER:
        return WaitReason(f"{_NEVER[key]} ({words})", can_start=False)
    if key in _WAITS:
        return WaitReason(_WAITS[key] if key == "None" else f"{_WAITS[key]} ({words})")
    owner = next((owner for start, owner in _OWNERS.items() if words.startswith(start)), None)
    return WaitReason(f"Slurm says: {words}.") if owner is None else _limited(words, owner)


def _limited(reason: str, owner: str) -> WaitReason:
    """Return why a limit holds a job back: of one job, which never passes, or of several together."""
    amount = next((text for word, text in _AMOUNTS.items() if word in reason.lower()), "much")
    if _OF_ONE_JOB.search(reason):
        return WaitReason(f"It asks for more than {owner} allows to one job: {_LESS} ({reason})", can_start=False)
    if _USED_UP.search(reason) and "Run" not in reason:
        text = f"The computing time of {owner} is used up: it starts when an administrator gives more."
    elif "Grp" in reason:
        text = f"All jobs of {owner} together have as {amount} as they may: it starts when some of them end."
    else:
        text = (
            f"Your jobs together have as {amount} as {owner} allows: it starts when some of them end,"
            " and never if it asks for more by itself."
        )
    return WaitReason(f"{text} ({reason})")
