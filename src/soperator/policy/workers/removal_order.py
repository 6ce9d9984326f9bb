"""The order in which workers are removed, least disturbance first, and which workers are in service. One order serves scale-in, rollout and
eviction.
"""

from soperator.policy import drain_reasons
from soperator.policy.workers import drain
from soperator.policy.workers.power_states import Phase, phase_of
from soperator.policy.workers.types import WorkerPod, WorkerSnapshot


def never_ran(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    """Return whether no slurmd runs in the pod: its containers have not started, or have ended for good.

    The pod's phase Pending may be older than Slurm's answer, so Slurm's state decides: a node that is up has a slurmd.
    """
    node = seen.node(pod.index)
    has_begun = _is_silent(seen, pod) or (node is not None and node.is_up and phase_of(node) is Phase.AWAKE)
    return pod.phase in ("Failed", "Succeeded") or (pod.phase == "Pending" and not has_begun)


def is_unused(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    """Return whether no job can be on a worker: no container ran, or the pod is not ready and Slurm never knew it, or its node is drained."""
    node = seen.node(pod.index)
    if node is None:
        unknown = seen.nodes is not None and not seen.jobs_of(pod.index)
        return never_ran(seen, pod) or (unknown and not pod.ready and not _is_silent(seen, pod))
    return never_ran(seen, pod) or node.is_drained


def _is_silent(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    """Return whether the pod's Node no longer reports its state."""
    machine = seen.machine(pod)
    return bool(pod.machine) and (machine is None or not machine.ready)


def is_in_service(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    """Return whether a worker counts as in service: Slurm can start jobs on it, or an administrator drained it. A worker that the operator drained
    does not count.
    """
    node = seen.node(pod.index)
    return bool(pod.ready and not pod.deleting and node and node.is_up and not drain_reasons.is_ours(node))


def is_busy(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    """Return whether a job may be on the worker; True without an answer of Slurm."""
    node = seen.node(pod.index)
    return not is_unused(seen, pod) and (node is None or node.is_busy)


def cost(seen: WorkerSnapshot, pod: WorkerPod) -> tuple[float, ...]:
    """Return the sort key for removal: the least disturbing worker first, in the same order in each pass.

    Order: being deleted, never started, unknown to Slurm and not ready, out of service, drained, idle (longest first), busy (warned, then draining,
    then by the earliest end of its last job), unknown but ready, resumed by an administrator. Among equals, first a worker on a Node that must be
    emptied, then one of a former template, then the highest number.
    """
    node, rank = seen.node(pod.index), _rank(seen, pod)
    details: tuple[float, float, float] = (0.0, 0.0, 0.0)
    if node and rank == _IDLE:
        details = (not leave_reason(seen, pod), pod.template == seen.template, node.last_busy)
    elif node and rank == _BUSY:
        ends = max((job.ends for job in seen.jobs_of(pod.index)), default=0.0)
        details = (drain_reasons.end_of(node) is None, not node.is_draining, ends)
    return (rank, *details, -pod.index)


_IDLE, _BUSY = 5.0, 6.0


def _rank(seen: WorkerSnapshot, pod: WorkerPod) -> float:
    node = seen.node(pod.index)
    if pod.deleting or never_ran(seen, pod):
        return 0.0 if pod.deleting else 1.0
    if node is None:
        return 7.0 if pod.ready or seen.nodes is None else 2.0
    if drain.is_refused(seen, pod):
        return 8.0
    if node.is_busy:
        return _BUSY
    if not pod.ready or not node.is_up:
        return 3.0
    return 4.0 if node.is_drained else _IDLE


def leave_reason(seen: WorkerSnapshot, pod: WorkerPod) -> str:
    """Return why a worker must get no more jobs on its Node; empty if it may."""
    machine = seen.machine(pod)
    return pod.leave or (machine.leaving if machine else "")
