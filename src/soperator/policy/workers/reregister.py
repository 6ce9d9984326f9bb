"""Workers that slurmctld has forgotten are registered again.

A dynamic node is only in slurmctld's memory until slurmctld saves its nodes the next time, and a registration does not cause a save (24.11). A
slurmctld that is killed before forgets the node, and slurmd, which registers only when it starts, does not register again. So the operator has new
nodes saved at once (`reconcile/cache/slurm_poller`), and where one is forgotten all the same, its slurmd is told to register.
"""

from collections.abc import Iterator

from soperator.policy.workers.types import (
    AnnotatePod,
    Register,
    WorkerPod,
    WorkerSnapshot,
)

#: Seconds for which a ready slurmd may be unregistered before it is told to register, and between two such requests. After a start it needs 1 s.
PATIENCE = 20.0


def due_registrations(seen: WorkerSnapshot, pod: WorkerPod) -> list[Register | AnnotatePod]:
    """Have a running slurmd register that Slurm has not known for a while; its jobs continue.

    Slurm forgot the drain with the node, so the node may get a job at once: a pod that was open to eviction is protected first. The record of that
    drain on the pod is removed too, or the node would look as if an administrator had resumed it.
    """
    if not _is_unknown(seen, pod) or seen.now < _due(pod):
        return []
    if not pod.protected or pod.noted:
        return [AnnotatePod(pod.index, "Slurm has forgotten that it is drained", protected=True, noted="")]
    return [Register(pod.index, "Slurm does not know it although its slurmd runs")]


def moments(seen: WorkerSnapshot, pod: WorkerPod) -> Iterator[float]:
    """Yield when an unregistered slurmd is told to register."""
    if _is_unknown(seen, pod):
        yield _due(pod)


def shortfall(seen: WorkerSnapshot) -> str:
    """Return a message about the jobs that slurmctld refuses while it knows fewer nodes of a NodeSet than desired, with the way around it; empty
    otherwise.

    slurmctld queues no job over more nodes than it has records of, and a worker's record is created by its registration (docs/decisions/0101).
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
