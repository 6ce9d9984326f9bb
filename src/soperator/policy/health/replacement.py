"""Which workers move to another machine: those that a check drained, that do not recover, and on which nothing runs any more.

The failure must have been found on the present pod, and the drain must be younger than the pod: a worker that fails on its new machine too, before it
ever passed there, more likely shows a fault of the check, and would cordon one Node after another. The budget is that of the drains: only drained
workers move.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from soperator.checks.check_state import CheckState
from soperator.policy.workers.types import WorkerPod, WorkerSnapshot
from soperator.slurm.node import SlurmNode


@dataclass(frozen=True)
class ReplaceNode:
    """Take a Kubernetes Node out of use for a worker's failed check, and let the worker's pod move to another one."""

    index: int
    machine: str
    check: str
    why: str


def replacements(seen: WorkerSnapshot, out: Iterable[tuple[WorkerPod, SlurmNode]], after: float) -> list[ReplaceNode]:
    """Return the workers that move now, of those that checks drained; `after` is in seconds."""
    return [
        ReplaceNode(pod.index, pod.machine, bad.check, bad.says)
        for pod, node in out
        if (bad := _bad(pod, node)) and seen.now >= node.reason_at + after
    ]


def moments(seen: WorkerSnapshot, out: Iterable[tuple[WorkerPod, SlurmNode]], after: float) -> Iterator[float]:
    """In how many seconds the next worker is due to move."""
    for pod, node in out:
        if _bad(pod, node) and node.reason_at + after > seen.now:
            yield node.reason_at + after - seen.now + 0.1


def _bad(pod: WorkerPod, node: SlurmNode) -> CheckState | None:
    """Return the failure for which a worker moves; None while a job runs, or where no failure is of its machine."""
    if node.is_busy or node.report is None or not pod.machine or pod.deleting or pod.born > node.reason_at:
        return None
    found = (each for each in node.report.in_state("failing") if each.then == "replace" and each.since > pod.born)
    return next(found, None)
