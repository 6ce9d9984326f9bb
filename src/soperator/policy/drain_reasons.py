"""Writes and reads the reasons of the operator's drains in Slurm.

The reason is the only memory of a drain. It begins with `soperator: `, and an administrator sees it in `sinfo -R`.
"""

from datetime import UTC, datetime

from soperator.slurm.node import REASON_PREFIX, SlurmNode

#: Drains of health checks, which others lift.
CHECK_PREFIX = f"{REASON_PREFIX}check"
#: The reason of a drain because the jail cannot be entered; the cause follows.
JAIL = f"{REASON_PREFIX}jail: "
SCALE_IN = f"{REASON_PREFIX}scale-in"
ROLLOUT = f"{REASON_PREFIX}new pod template"
ENDING = f"{REASON_PREFIX}the NodeSet is being deleted"
CLUSTER_ENDING = f"{REASON_PREFIX}the cluster is being deleted"

#: What is over within this many seconds is written on no pod.
LASTING = 10.0
UNTIL = "; its jobs end at "
_NO_QUOTES = str.maketrans("", "", "\"'`")


def reason(why: str) -> str:
    """Return the reason of a drain: one line without quotes.

    Text from elsewhere in it, such as a worker's message about its jail, cannot set the time until which jobs may run.
    """
    line = " ".join(why.split()).translate(_NO_QUOTES)
    return f"{REASON_PREFIX}{line.partition(UNTIL)[0][:200]}"


def for_rollout(change: str) -> str:
    """Return the reason of a drain by a rollout; `change` is the first difference of the template, empty if unknown."""
    return reason(f"{ROLLOUT.removeprefix(REASON_PREFIX)}: {change}") if change else ROLLOUT


def base_of(node: SlurmNode) -> str:
    """Return the part of a drain's reason that does not change, which the operator records on the pod and compares."""
    if not is_ours(node):
        return ""
    base = node.reason.partition(UNTIL)[0]
    return ROLLOUT if base.startswith(f"{ROLLOUT}: ") else base


def for_check(check: str, says: str) -> str:
    """Return the reason of a drain by a health check."""
    return reason(f"check {check}: {says}")


def is_of_check(node: SlurmNode) -> bool:
    """Return whether a health check drained the node, even if jobs still run there."""
    return node.is_draining and node.our_reason.startswith(CHECK_PREFIX)


def check_of(node: SlurmNode) -> tuple[str, str]:
    """Return the check that drained a node, and its message."""
    check, _, says = node.reason.removeprefix(CHECK_PREFIX).strip().partition(": ")
    return check, says


def is_ours(node: SlurmNode | None) -> bool:
    """Return whether the policy of workers drained the node, even if jobs still run there."""
    return bool(node and node.is_draining and node.is_ours and not is_of_check(node))


def end_of(node: SlurmNode) -> float | None:
    """Return the time until which the jobs of a node may run, in seconds since 1970; None if they were not warned."""
    _, found, text = node.reason.partition(UNTIL)
    try:
        return datetime.fromisoformat(text).timestamp() if found else None
    except ValueError:
        return None


def stamp(moment: float) -> str:
    """Return a time as text in UTC."""
    return datetime.fromtimestamp(round(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
