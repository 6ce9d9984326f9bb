"""Drains and resumes a Slurm node in the same way for scale-in, rollout, maintenance, deletion and every other cause.

The policy recognizes a drain of the operator by its reason in Slurm, which begins with `soperator: ` and is signed by SlurmUser; it remembers nothing
else. After a drain with a timeout has warned the jobs, the reason says until when they may run. The jobs do not end earlier, even if the spec becomes
stricter later.

The policy never overrides an administrator. It neither shortens nor undoes a drain with another reason. A node that an administrator resumed after
the operator had drained it (an annotation on the pod records that drain) stays in service until the cause of the operator's drain changes.
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
from soperator.slurm.node import REASON_PREFIX, SlurmNode


def is_refused(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    """Return whether a person has resumed a node that the operator had drained."""
    node = seen.node(pod.index)
    return bool(pod.noted and node and not node.is_draining)


def drain_steps(seen: WorkerSnapshot, pod: WorkerPod, why: str) -> list[Action]:
    """Return the next actions until nothing runs on a node and nothing can start; none after that, or while jobs still run in their time."""
    node = seen.node(pod.index)
    if node is None or node.is_drained:
        return []
    if not node.is_draining:
        if is_refused(seen, pod) and pod.noted == why:
            return guard(seen, pod)
        cause = drain_reasons.for_rollout(seen.change) if why == drain_reasons.ROLLOUT else why
        return [DrainNode(pod.index, node.reason.removeprefix(REASON_PREFIX) if node.is_administrators else cause)]
    return [*_note(seen, pod, node), *_press(seen, pod, node)]


def resume_steps(seen: WorkerSnapshot, pod: WorkerPod, why: str) -> list[Action]:
    """Resume a node that the operator drained, after protecting its pod again; nothing while the pod is not ready."""
    if not pod.ready or not is_ours(seen.node(pod.index)):
        return guard(seen, pod)
    marked = [] if pod.protected and not pod.noted else [AnnotatePod(pod.index, why, protected=True, noted="")]
    return [*marked, Resume(pod.index, why)]


def guard(seen: WorkerSnapshot, pod: WorkerPod) -> list[Action]:
    """Protect a pod again if its node can get jobs."""
    node = seen.node(pod.index)
    if pod.protected or pod.deleting or seen.nodes is None or (node and node.is_drained):
        return []
    return [AnnotatePod(pod.index, "jobs may start on its node", protected=True, noted=pod.noted)]


def release(seen: WorkerSnapshot, pod: WorkerPod, why: str) -> list[Action]:
    """Allow the eviction of a drained node's pod."""
    if not pod.protected or pod.deleting:
        return []
    node = seen.node(pod.index)
    return [AnnotatePod(pod.index, f"{why}: drained and idle", protected=False, noted=base_of(node) if node else "")]


def asks_jobs(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    """Return whether the next step of a drain depends on the running jobs themselves."""
    node = seen.node(pod.index)
    if seen.jobs is not None or node is None or not _is_bounded(seen, node):
        return False
    end = end_of(node)
    return seen.now >= (end if end is not None else _warning(seen, node))


def moments(seen: WorkerSnapshot, pod: WorkerPod) -> Iterator[float]:
    """Yield when the next step of a drain is due, in seconds since 1970."""
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
    """Return the warning of the jobs when it is due, and their end after the deadline."""
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
