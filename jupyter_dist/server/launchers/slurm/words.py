"""Sentences for the states and reasons of Slurm."""

from __future__ import annotations

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

_REASONS = {
    "None": "Slurm is about to look at the job.",
    "Priority": "Other jobs are ahead in the queue.",
    "Resources": "It is the next job, and waits until enough nodes are free.",
    "Dependency": "It waits for another job.",
    "BeginTime": "Its start time has not come.",
    "JobHeldUser": "It is held: run 'scontrol release' with its number.",
    "JobHeldAdmin": "An administrator holds it.",
    "Licenses": "It waits for a license.",
    "Reservation": "It waits for its reservation.",
    "ReqNodeNotAvail": "A node that it needs is down, reserved or drained.",
    "PartitionDown": "The partition is down.",
    "PartitionInactive": "The partition takes no jobs at present.",
    "PartitionNodeLimit": "The partition does not have, or does not allow, that many nodes: it will not start.",
    "PartitionTimeLimit": "Its time limit is longer than the partition allows: it will not start.",
    "BadConstraints": "No nodes have what it asks for: it will not start.",
    "InvalidAccount": "The account is not valid.",
    "InvalidQOS": "The QOS is not valid.",
    "Cleaning": "It was requeued, and Slurm cleans up after its last run.",
    "Prolog": "Slurm prepares the nodes.",
    "NodeDown": "A node that it needs is down.",
}
_LIMITS = {
    "Assoc": "your account's limit",
    "QOS": "the QOS's limit",
    "Max": "a limit",
}


def ended(state: str) -> str:
    """Return why a job in that state is over."""
    return _ENDS.get(state, f"The job ended in Slurm's state {state}.")


def waits(reason: str) -> str:
    """Return why a job waits."""
    if reason in _REASONS:
        return f"{_REASONS[reason]} ({reason})" if reason != "None" else _REASONS[reason]
    whose = next((text for start, text in _LIMITS.items() if reason.startswith(start)), None)
    if whose is not None:
        return f"It waits because of {whose}. ({reason})"
    words = reason.strip("()")
    return f"Slurm says: {words}."
