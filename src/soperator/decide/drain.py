"""Taking a Slurm node out of service and back: the one way for scale-in, rollout, maintenance, deletion and whoever else needs it.

A drain is known by the reason that Slurm shows, which begins with `soperator: `; nothing else is remembered. When a bounded drain has warned
the jobs, the reason says until when they may run, and only at that moment, not earlier, are they ended: a policy that is made stricter later
cannot take a warning back.

An administrator is never fought. A drain with another reason is neither pressed nor undone. Who resumes a node that we drained (the pod's note
says so, written once a drain has lasted) has decided: the node stays in service until what we wanted of it changes.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from soperator.decide.workers import Action, Drain, End, Mark, Resume, Seen, Warn, WorkerPod
from soperator.slurm.node import REASON_PREFIX, SlurmNode

#: Drains of health checks, which others lift.
CHECK_PREFIX = f"{REASON_PREFIX}check"
#: Drains of nodes whose jail cannot be entered; what is wrong there follows.
JAIL = f"{REASON_PREFIX}jail: "
SCALE_IN = f"{REASON_PREFIX}scale-in"
ROLLOUT = f"{REASON_PREFIX}new pod template"
ENDING = f"{REASON_PREFIX}the NodeSet is being deleted"
CLUSTER_ENDING = f"{REASON_PREFIX}the cluster is being deleted"

#: What is over within this many seconds is written on no pod.
LASTING = 10.0
_UNTIL = "; its jobs end at "


def reason(why: str) -> str:
    """What Slurm shows for a drain of ours: one line without quotes, and without a time at which jobs end, whoever said it."""
    said = " ".join(why.split()).translate(str.maketrans("", "", chr(34) + chr(39) + chr(96)))
    return f"{REASON_PREFIX}{said.partition(_UNTIL)[0][:200]}"


def for_check(check: str, says: str) -> str:
    """What Slurm shows for a drain by a health check."""
    return reason(f"check {check}: {says}")


def is_of_check(node: SlurmNode) -> bool:
    """Whether a node is drained, or draining, by a health check."""
    return node.is_draining and node.reason.startswith(CHECK_PREFIX)


def check_of(node: SlurmNode) -> tuple[str, str]:
    """The check that drained a node, and its words, for people."""
    check, _, says = node.reason.removeprefix(CHECK_PREFIX).strip().partition(": ")
    return check, says


def is_ours(node: SlurmNode | None) -> bool:
    """Whether a node is drained, or draining, by this policy."""
    return bool(node and node.is_draining and node.is_ours and not is_of_check(node))


def end_of(node: SlurmNode) -> float | None:
    """Until when the jobs of a node may run, where they were warned."""
    _, found, text = node.reason.partition(_UNTIL)
    try:
        return datetime.fromisoformat(text).timestamp() if found else None
    except ValueError:
        return None


def is_refused(seen: Seen, pod: WorkerPod) -> bool:
    """Whether somebody has resumed a node that we had drained."""
    node = seen.node(pod.index)
    return bool(pod.noted and node and not node.is_draining)


def take_out(seen: Seen, pod: WorkerPod, why: str) -> list[Action]:
    """The next step until nothing runs on a node and nothing can start; none when it is there, or has to wait."""
    node = seen.node(pod.index)
    if node is None or node.is_drained:
        return []
    if not node.is_draining:
        if is_refused(seen, pod) and pod.noted == why:
            return guard(seen, pod)
        return [Drain(pod.index, node.reason if node.is_administrators else why)]
    return [*_note(seen, pod, node), *_press(seen, pod, node)]


def put_back(seen: Seen, pod: WorkerPod, why: str) -> list[Action]:
    """Undo a drain of ours once the pod is ready; the pod is protected again before a job can start."""
    if not pod.ready or not is_ours(seen.node(pod.index)):
        return guard(seen, pod)
    marked = [] if pod.protected and not pod.noted else [Mark(pod.index, why, protected=True, noted="")]
    return [*marked, Resume(pod.index, why)]


def guard(seen: Seen, pod: WorkerPod) -> list[Action]:
    """Protect a pod again whose node can take jobs."""
    node = seen.node(pod.index)
    if pod.protected or pod.deleting or seen.nodes is None or (node and node.is_drained):
        return []
    return [Mark(pod.index, "its node can take jobs", protected=True, noted=pod.noted)]


def release(seen: Seen, pod: WorkerPod, why: str) -> list[Action]:
    """Let the pod of a drained node be evicted."""
    if not pod.protected or pod.deleting:
        return []
    node = seen.node(pod.index)
    return [Mark(pod.index, f"{why}: drained and idle", protected=False, noted=_base(node) if node else "")]


def asks_jobs(seen: Seen, pod: WorkerPod) -> bool:
    """Whether a drain has come to the point where the jobs themselves matter."""
    node = seen.node(pod.index)
    if seen.jobs is not None or node is None or not _is_bounded(seen, node):
        return False
    end = end_of(node)
    return seen.now >= (end if end is not None else _warning(seen, node))


def moments(seen: Seen, pod: WorkerPod) -> Iterator[float]:
    """When to look at a draining node again, in seconds since 1970."""
    node = seen.node(pod.index)
    if node and is_ours(node):
        if not pod.noted:
            yield node.reason_at + LASTING
        if _is_bounded(seen, node):
            end = end_of(node)
            yield end if end is not None else _warning(seen, node)


def _note(seen: Seen, pod: WorkerPod, node: SlurmNode) -> list[Action]:
    """Write a drain that lasts on the pod, so that we know later who took it back."""
    if not is_ours(node) or pod.noted == _base(node) or seen.now - node.reason_at < LASTING:
        return []
    return [Mark(pod.index, f"{node.name} drains", protected=pod.protected, noted=_base(node))]


def _press(seen: Seen, pod: WorkerPod, node: SlurmNode) -> list[Action]:
    """Warn the jobs when their time comes, and end them when it is over."""
    if seen.jobs is None or not _is_bounded(seen, node):
        return []
    jobs, policy, end = tuple(seen.jobs_of(pod.index)), seen.policy, end_of(node)
    if end is not None:
        why = f"{_base(node)}: they had until {stamp(end)} (drain.then: {policy.then})"
        return [End(pod.index, why, jobs, policy.then == "Requeue")] if seen.now >= end and jobs else []
    if seen.now < _warning(seen, node):
        return []
    until = max(seen.now + policy.warn_before, node.reason_at + (policy.max_wait or 0.0))
    return [Warn(pod.index, f"{node.reason}{_UNTIL}{stamp(until)}", jobs, policy.signal)]


def _is_bounded(seen: Seen, node: SlurmNode) -> bool:
    return seen.policy.then != "Wait" and seen.policy.max_wait is not None and node.is_busy and is_ours(node)


def _warning(seen: Seen, node: SlurmNode) -> float:
    return node.reason_at + (seen.policy.max_wait or 0.0) - seen.policy.warn_before


def _base(node: SlurmNode) -> str:
    return node.reason.partition(_UNTIL)[0] if is_ours(node) else ""


def stamp(moment: float) -> str:
    """A moment as people read it, in UTC."""
    return datetime.fromtimestamp(round(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
