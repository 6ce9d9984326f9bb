"""Slurm's state of a node as a condition of its pod, for people who work with kubectl.

The condition is written for lasting states (any drain, or DOWN), with Slurm's reason, and reset when the node is in service again. Idle and allocated
are not written, because every start of a job would be a write; the NodeSet's status counts them.
"""

from collections.abc import Iterator

from soperator.policy.drain_reasons import LASTING
from soperator.policy.workers.types import SetPodCondition, WorkerPod, WorkerSnapshot
from soperator.slurm.node import SlurmNode

IN_SERVICE = "InService"


def condition_to_set(seen: WorkerSnapshot, pod: WorkerPod) -> list[SetPodCondition]:
    """Return the condition to write on a pod; None if the pod has it already."""
    node = seen.node(pod.index)
    if node is None or pod.deleting:
        return []
    if _is_out(node) and seen.now - node.reason_at < LASTING:
        return []
    wanted = (
        SetPodCondition(pod.index, node.reason, _reason(node))
        if _is_out(node)
        else SetPodCondition(pod.index, "", IN_SERVICE)
    )
    return [] if as_text(wanted.reason, wanted.why) == (pod.reported or as_text(IN_SERVICE, "")) else [wanted]


def as_text(reason: str, message: str) -> str:
    """Return a condition as one text, for comparison with the current one."""
    return f"{reason}: {message}"


def moments(seen: WorkerSnapshot, pod: WorkerPod) -> Iterator[float]:
    """Yield when the current state will have lasted long enough to be written, in seconds since 1970."""
    node = seen.node(pod.index)
    if node and _is_out(node):
        yield node.reason_at + LASTING


def _is_out(node: SlurmNode) -> bool:
    return node.is_draining or not node.is_up


def _reason(node: SlurmNode) -> str:
    if node.is_draining:
        return "Drained" if node.is_drained else "Draining"
    return "Down" if node.is_down else "NotResponding"
