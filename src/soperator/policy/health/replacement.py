"""Chooses the workers that move to another machine: those that a check drained, that do not recover, and on which no job runs.

The check must have failed on the current pod, and the drain must be younger than the pod. A worker that also fails on its new machine, before it ever
passed there, more likely shows a fault of the check, and would cordon one Node after another. The limit of drains limits moves too, because only
drained workers move.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from soperator.checks.check_state import CheckState
from soperator.policy.workers.types import WorkerPod, WorkerSnapshot
from soperator.slurm.node import SlurmNode


@dataclass(frozen=True)
class ReplaceNode:
    """Cordon a Kubernetes Node for a worker's failed check, so that the worker's pod moves to another Node."""

    index: int
    machine: str
    check: str
    why: str


def replacements(seen: WorkerSnapshot, out: Iterable[tuple[WorkerPod, SlurmNode]], after: float) -> list[ReplaceNode]:
    """Return the workers that move now; `after` is the time in seconds for which a drained worker may recover."""
    return [
        ReplaceNode(pod.index, pod.machine, bad.check, bad.message)
        for pod, node in out
        if (bad := _bad(pod, node)) and seen.now >= node.reason_at + after
    ]


def moments(seen: WorkerSnapshot, out: Iterable[tuple[WorkerPod, SlurmNode]], after: float) -> Iterator[float]:
    """Yield the seconds until the next worker must move."""
    for pod, node in out:
        if _bad(pod, node) and node.reason_at + after > seen.now:
            yield node.reason_at + after - seen.now + 0.1


def _bad(pod: WorkerPod, node: SlurmNode) -> CheckState | None:
    """Return the failed check that makes a worker move to another machine; None while a job runs, or if no failed check asks for another machine."""
    if node.is_busy or node.report is None or not pod.machine or pod.deleting or pod.born > node.reason_at:
        return None
    found = (each for each in node.report.in_state("failing") if each.on_failure == "replace" and each.since > pod.born)
    return next(found, None)
