"""Sentences for the states and reasons of Slurm."""

from __future__ import annotations

import re

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

_NEVER = "it will not start. Shut the group down, and start one that asks for less."
_OTHERS = "it will not start. Shut the group down, and start one with other options."
_HELD = "run 'scontrol release' with its number."

_REASONS = {
    "None": "Slurm is about to look at the job.",
    "Priority": "Other jobs are ahead in the queue.",
    "Resources": "It is the next job, and waits until enough nodes are free.",
    "Dependency": "It waits for another job.",
    "BeginTime": "Its start time has not come.",
    "JobHeldUser": f"It is held: {_HELD}",
    "JobHeldAdmin": "An administrator holds it.",
    "Licenses": "It waits for a license.",
    "Reservation": "It waits for its reservation.",
    "ReqNodeNotAvail": "A node that it needs is down, reserved or drained.",
    "PartitionDown": "The partition is down.",
    "PartitionInactive": "The partition takes no jobs at present.",
    "PartitionNodeLimit": f"The partition does not have, or does not allow, that many nodes: {_NEVER}",
    "PartitionTimeLimit": f"Its time limit is longer than the partition allows: {_NEVER}",
    "PartitionConfig": f"The partition does not allow what it asks for (nodes, time limit or QOS): {_OTHERS}",
    "BadConstraints": f"No nodes have what it asks for: {_OTHERS}",
    "Constraints": f"No nodes have what it asks for: {_OTHERS}",
    "MaxMemPerLimit": f"It asks for more memory than the partition allows: {_NEVER}",
    "AccountNotAllowed": f"The account may not use the partition: {_OTHERS}",
    "QOSNotAllowed": f"The QOS may not be used on the partition: {_OTHERS}",
    "InvalidAccount": f"The account is not valid: {_OTHERS}",
    "InvalidQOS": f"The QOS is not valid: {_OTHERS}",
    "ReservationDeleted": f"Its reservation was deleted: {_OTHERS}",
    "ReservationInvalid": f"Its reservation is not valid: {_OTHERS}",
    "DependencyNeverSatisfied": f"It waits for a job that did not end as it has to: {_OTHERS}",
    "launch failed requeued held": f"Its start failed, and Slurm holds it: {_HELD}",
    "JobHoldMaxRequeue": f"It was requeued too often, and Slurm holds it: {_HELD}",
    "Cleaning": "It was requeued, and Slurm cleans up after its last run.",
    "Prolog": "Slurm prepares the nodes.",
    "NodeDown": "A node that it needs is down.",
}
_LIMITS = {
    "Assoc": "your account's limit",
    "QOS": "the QOS's limit",
    "Max": "a limit",
}
# Such a limit holds for a job by itself, so waiting does not help; the others pass when other jobs end.
_OF_ONE_JOB = re.compile("Max.*Per(Job|Node)(Limit)?$")


def ended(state: str) -> str:
    """Return why a job in that state is over."""
    return _ENDS.get(state, f"The job ended in Slurm's state {state}.")


def waits(reason: str) -> str:
    """Return why a job waits."""
    known = _REASONS.get(reason.partition(",")[0])  # Slurm may add which nodes are meant
    if known is not None:
        return f"{known} ({reason})" if reason != "None" else known
    whose = next((text for start, text in _LIMITS.items() if reason.startswith(start)), None)
    if whose is not None and _OF_ONE_JOB.search(reason):
        return f"It asks for more than {whose} allows to one job: {_NEVER} ({reason})"
    if whose is not None:
        return f"It waits because of {whose}. ({reason})"
    words = reason.strip("()")
    return f"Slurm says: {words}."
