"""Workers that slurmctld has forgotten.

A dynamic node lives in slurmctld's memory until the next time that it writes its nodes down, and a registration is no reason to write (24.11).
One that is killed before forgets the node, and slurmd, which registers only when it starts, never tells it again. So the operator has
new nodes written down at once (`reconcile/cache/slurm_poller`), and where one is forgotten all the same, its slurmd is told to register.
"""

from collections.abc import Iterator

from soperator.policy.workers.types import (
    AnnotatePod,
    Register,
    WorkerPod,
    WorkerSnapshot,
)

#: Seconds that a ready slurmd has to register before it is asked to, and again before the next time. One that has just started needs 1 s.
PATIENCE = 20.0


def due_registrations(seen: WorkerSnapshot, pod: WorkerPod) -> list[Register | AnnotatePod]:
    """Tell a slurmd to register that runs, and that Slurm has not known for a while; jobs beside it go on.

    The drain is forgotten with the node, so it may get a job at once: a pod that was open to eviction is protected first. And the pod's note of that
    drain goes, or the node that comes back would look as if an administrator had resumed it.
    """
    if not _is_unknown(seen, pod) or seen.now < _due(pod):
        return []
    if not pod.protected or pod.noted:
        return [AnnotatePod(pod.index, "Slurm has forgotten that it is drained", protected=True, noted="")]
    return [Register(pod.index, "Slurm does not know it although its slurmd runs")]


def moments(seen: WorkerSnapshot, pod: WorkerPod) -> Iterator[float]:
    """When a slurmd that has not registered is to be told so."""
    if _is_unknown(seen, pod):
        yield _due(pod)


def shortfall(seen: WorkerSnapshot) -> str:
    """Which jobs slurmctld refuses, while it knows fewer nodes of a NodeSet than are wanted, and the way around; empty otherwise.

    It queues no job over more nodes than it has records of, and a worker's record comes with its registration (docs/decisions/0101).
    """
    if seen.nodes is None or seen.on_demand or seen.ending:
        return ""
    known = len(seen.lone) + sum(seen.node(index) is not None for index in seen.pods)
    if known >= seen.wanted:
        return ""
    refused = f"Slurm knows {known} of {seen.wanted} nodes and refuses jobs over more until the others register"
    return f"{refused}; sbatch --hold queues one"


def _is_unknown(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    runs = pod.ready and pod.phase == "Running" and not pod.deleting
    return runs and seen.nodes is not None and seen.node(pod.index) is None


def _due(pod: WorkerPod) -> float:
    return max(pod.ready_since, pod.asked) + PATIENCE
