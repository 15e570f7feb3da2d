"""Sentences for the states and reasons of Slurm."""

from __future__ import annotations

import re
from typing import NamedTuple

from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.server.launchers.allocation import reported

QUEUED = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)
RUNNING = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"})

_ENDS = {
    "": say("Slurm does not list the job any more: it ended some minutes ago, or was never submitted."),
    "COMPLETED": say("The node agents have ended, and their nodes are released."),
    "CANCELLED": say("The job was cancelled: with scancel, or by an administrator."),
    "FAILED": say("The job failed."),
    "TIMEOUT": say("The job has reached its time limit."),
    "DEADLINE": say("The job has reached its deadline."),
    "PREEMPTED": say("The job was preempted: Slurm gave its nodes to a job of higher priority."),
    "NODE_FAIL": say("A node of the job failed."),
    "BOOT_FAIL": say("A node of the job could not be booted."),
    "OUT_OF_MEMORY": say("The job used more memory than it had asked for."),
    "REVOKED": say("Another cluster took the job over."),
}

_LESS = say("it will not start. Shut the group down, and start one that asks for less.")
_OTHERS = say("it will not start. Shut the group down, and start one with other options.")
_HELD = say("run 'scontrol release' with its number.")
_WHY_DOWN = say("'sinfo -R' lists why nodes are down.")

# The job starts when something passes by itself, or when a person acts as the sentence advises.
_WAITS = {
    "None": say("Slurm is about to look at the job."),
    "Priority": say("Other jobs are ahead in the queue."),
    "Resources": say("It is the next job, and waits until enough nodes are free."),
    "Dependency": say("It waits for another job."),
    "BeginTime": say("Its start time has not come."),
    "JobHeldUser": say("It is held: %1", _HELD),
    "JobHeldAdmin": say("An administrator holds it, and has to release it."),
    "Licenses": say("It waits for a license, which other jobs use."),
    "Reservation": say("It waits until its reservation begins."),
    "ReqNodeNotAvail": say(
        "A node that it needs is down, reserved or drained: it starts when the node is back. %1", _WHY_DOWN
    ),
    "Nodes required for job are DOWN": say(
        "Nodes that it needs are down, drained, or reserved for jobs of higher priority: it starts when enough are"
        " back. %1",
        _WHY_DOWN,
    ),
    "NodeDown": say("A node that it needs is down: it starts when the node is back. %1", _WHY_DOWN),
    "PartitionDown": say(
        "The partition is down: it starts when an administrator opens the partition. Others may be up."
    ),
    "PartitionInactive": say("The partition starts no jobs at present. Others may."),
    "launch failed requeued held": say("Its start failed, and Slurm holds it: %1", _HELD),
    "JobHoldMaxRequeue": say("It was requeued too often, and Slurm holds it: %1", _HELD),
    "Cleaning": say("It was requeued, and Slurm cleans up after its last run."),
    "Prolog": say("Slurm prepares the nodes."),
}
_MAINTENANCE = say(
    "Its nodes are reserved for maintenance, which begins before its time limit ends: it starts after that,"
    " and a job with a shorter time limit may start before."
)
# Waiting does not help.
_NEVER = {
    "PartitionNodeLimit": say("The partition does not have, or does not allow, that many nodes: %1", _LESS),
    "PartitionTimeLimit": say("Its time limit is longer than the partition allows: %1", _LESS),
    "PartitionConfig": say("The partition does not allow what it asks for (nodes, time limit or QOS): %1", _OTHERS),
    "BadConstraints": say("No nodes have what it asks for: %1", _OTHERS),
    "Constraints": say("No nodes have what it asks for: %1", _OTHERS),
    "MaxMemPerLimit": say("It asks for more memory than the partition allows: %1", _LESS),
    "AccountNotAllowed": say("The account may not use the partition: %1", _OTHERS),
    "QOSNotAllowed": say("The QOS may not be used on the partition: %1", _OTHERS),
    "InvalidAccount": say("The account is not valid: %1", _OTHERS),
    "InvalidQOS": say("The QOS is not valid: %1", _OTHERS),
    "ReservationDeleted": say("Its reservation was deleted: %1", _OTHERS),
    "ReservationInvalid": say("Its reservation is not valid: %1", _OTHERS),
    "DependencyNeverSatisfied": say("It waits for a job that did not end as it has to: %1", _OTHERS),
}
_OWNERS = {"Assoc": say("your account"), "QOS": say("the QOS"), "Max": "Slurm"}
_AMOUNTS = {
    "cpu": say("many CPUs"),
    "mem": say("much memory"),
    "node": say("many nodes"),
    "gres": say("many GPUs or other resources"),
    "wall": say("much time"),
    "job": say("many jobs"),
}
_OF_ONE_JOB = re.compile(r"Max.*Per(Job|Node)(Limit)?$")
_USED_UP = re.compile(r"Grp\w*(Minutes|Mins)(Limit)?$")


class WaitReason(NamedTuple):
    """Why a job waits, and whether it can start as it was submitted."""

    text: str
    can_start: bool = True


def ended(state: str) -> str:
    """Return why a job in that state is over."""
    return _ENDS.get(state) or say("The job ended in Slurm's state %1.", state)


def waits(reason: str) -> WaitReason:
    """Return why a job waits."""
    words = reason.strip("()")
    key = words.partition(",")[0]  # Slurm may add which nodes are meant
    if "maintenance" in words.lower():
        return WaitReason(say("%1 (%2)", _MAINTENANCE, words))
    if key in _NEVER:
        return WaitReason(say("%1 (%2)", _NEVER[key], words), can_start=False)
    if key in _WAITS:
        return WaitReason(_WAITS[key] if key == "None" else say("%1 (%2)", _WAITS[key], words))
    owner = next((owner for start, owner in _OWNERS.items() if words.startswith(start)), None)
    return WaitReason(reported("Slurm", words)) if owner is None else _limited(words, owner)


def _limited(reason: str, owner: str) -> WaitReason:
    """Return why a limit holds a job back: of one job, which never passes, or of several together."""
    amount = next((text for word, text in _AMOUNTS.items() if word in reason.lower()), say("much"))
    if _OF_ONE_JOB.search(reason):
        text = say("It asks for more than %1 allows to one job: %2", owner, _LESS)
        return WaitReason(say("%1 (%2)", text, reason), can_start=False)
    if _USED_UP.search(reason) and "Run" not in reason:
        text = say("The computing time that %1 has is used up: it starts when an administrator gives more.", owner)
    elif "Grp" in reason:
        text = say("All jobs together have as %1 as %2 allows: it starts when some of them end.", amount, owner)
    else:
        text = say(
            "Your jobs together have as %1 as %2 allows: it starts when some of them end, and never if it asks for more"
            " by itself.",
            amount,
            owner,
        )
    return WaitReason(say("%1 (%2)", text, reason))
