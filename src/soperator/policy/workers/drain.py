"""Draining and resuming a Slurm node: the same way for scale-in, rollout, maintenance, deletion and every other cause.

A drain of ours is recognized by its reason in Slurm, which begins with `soperator: `; nothing else is remembered. When a bounded drain has warned the
jobs, the reason says until when they may run. They are not ended earlier, even if the policy is made stricter later.

An administrator is never overridden. A drain with another reason is neither hurried nor undone. A node that an administrator resumed after we had
drained it (which an annotation on the pod records) stays in service until the cause of our drain changes.
"""

from collections.abc import Iterator

from soperator.policy import drain_reasons
from soperator.policy.drain_reasons import LASTING, UNTIL, base_of, end_of, is_ours, stamp
from soperator.policy.workers.types import (
    Action,
    AnnotatePod,
    DrainNode,
    EndJobs,
    Resume,
    SignalJobs,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.node import SlurmNode


def is_refused(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    """Return whether somebody has resumed a node that we had drained."""
    node = seen.node(pod.index)
    return bool(pod.noted and node and not node.is_draining)


def take_out(seen: WorkerSnapshot, pod: WorkerPod, why: str) -> list[Action]:
    """Return the next action until nothing runs on a node and nothing can start; none when that is reached, or while it has to wait."""
    node = seen.node(pod.index)
    if node is None or node.is_drained:
        return []
    if not node.is_draining:
        if is_refused(seen, pod) and pod.noted == why:
            return guard(seen, pod)
        told = drain_reasons.for_rollout(seen.change) if why == drain_reasons.ROLLOUT else why
        return [DrainNode(pod.index, node.reason if node.is_administrators else told)]
    return [*_note(seen, pod, node), *_press(seen, pod, node)]


def put_back(seen: WorkerSnapshot, pod: WorkerPod, why: str) -> list[Action]:
    """Undo a drain of ours when the pod is ready; the pod is protected again before a job can start."""
    if not pod.ready or not is_ours(seen.node(pod.index)):
        return guard(seen, pod)
    marked = [] if pod.protected and not pod.noted else [AnnotatePod(pod.index, why, protected=True, noted="")]
    return [*marked, Resume(pod.index, why)]


def guard(seen: WorkerSnapshot, pod: WorkerPod) -> list[Action]:
    """Protect a pod again if its node can get jobs."""
    node = seen.node(pod.index)
    if pod.protected or pod.deleting or seen.nodes is None or (node and node.is_drained):
        return []
    return [AnnotatePod(pod.index, "its node can take jobs", protected=True, noted=pod.noted)]


def release(seen: WorkerSnapshot, pod: WorkerPod, why: str) -> list[Action]:
    """Let the pod of a drained node be evicted."""
    if not pod.protected or pod.deleting:
        return []
    node = seen.node(pod.index)
    return [AnnotatePod(pod.index, f"{why}: drained and idle", protected=False, noted=base_of(node) if node else "")]


def asks_jobs(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    """Return whether a drain has come to the point where the jobs themselves matter."""
    node = seen.node(pod.index)
    if seen.jobs is not None or node is None or not _is_bounded(seen, node):
        return False
    end = end_of(node)
    return seen.now >= (end if end is not None else _warning(seen, node))


def moments(seen: WorkerSnapshot, pod: WorkerPod) -> Iterator[float]:
    """Yield when to look at a draining node again, in seconds since 1970."""
    node = seen.node(pod.index)
    if node and is_ours(node):
        if not pod.noted:
            yield node.reason_at + LASTING
        if _is_bounded(seen, node):
            end = end_of(node)
            yield end if end is not None else _warning(seen, node)


def _note(seen: WorkerSnapshot, pod: WorkerPod, node: SlurmNode) -> list[Action]:
    """Record a lasting drain on the pod, so that a later resume by an administrator is recognized."""
    if not is_ours(node) or pod.noted == base_of(node) or seen.now - node.reason_at < LASTING:
        return []
    return [AnnotatePod(pod.index, f"{node.name} drains", protected=pod.protected, noted=base_of(node))]


def _press(seen: WorkerSnapshot, pod: WorkerPod, node: SlurmNode) -> list[Action]:
    """Warn the jobs when the warning is due, and end them after the deadline."""
    if seen.jobs is None or not _is_bounded(seen, node):
        return []
    jobs, policy, end = tuple(seen.jobs_of(pod.index)), seen.policy, end_of(node)
    if end is not None:
        why = f"{base_of(node)}: they had until {stamp(end)} (drain.onTimeout: {policy.on_timeout})"
        return [EndJobs(pod.index, why, jobs, policy.on_timeout == "Requeue")] if seen.now >= end and jobs else []
    if seen.now < _warning(seen, node):
        return []
    until = max(seen.now + policy.warning_period, node.reason_at + (policy.drain_timeout or 0.0))
    return [SignalJobs(pod.index, f"{node.reason}{UNTIL}{stamp(until)}", jobs, policy.warning_signal)]


def _is_bounded(seen: WorkerSnapshot, node: SlurmNode) -> bool:
    return seen.policy.on_timeout != "Wait" and seen.policy.drain_timeout is not None and node.is_busy and is_ours(node)


def _warning(seen: WorkerSnapshot, node: SlurmNode) -> float:
    return node.reason_at + (seen.policy.drain_timeout or 0.0) - seen.policy.warning_period
