"""The message about the progress of a NodeSet's workers, so that `why` names the cause of each change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from soperator.policy.workers import drain
from soperator.policy.workers.removal_order import is_in_service, leave_reason
from soperator.policy.workers.types import WorkerPod, WorkerSnapshot

_NAMED = 3


@dataclass(frozen=True)
class Classification:
    """The policy's decision: the workers that are replaced by another, surplus, chosen for the rollout, or kept, and why no more are chosen."""

    lost: Sequence[WorkerPod]
    surplus: Sequence[WorkerPod]
    chosen: Sequence[WorkerPod]
    kept: Sequence[WorkerPod]
    pause: str


def summarize(seen: WorkerSnapshot, fates: Classification) -> str:
    """Return the message, without a full stop; empty if nothing changes."""
    return "; ".join(_parts(seen, fates))


def _parts(seen: WorkerSnapshot, fates: Classification) -> Iterator[str]:
    if fates.surplus:
        what = "deletion" if seen.ending else "scale-in"
        yield f"{what}: {_names(seen, fates.surplus)}"
    old = [pod for pod in fates.kept if pod.template != seen.template]
    if old:
        done = sum(1 for pod in fates.kept if pod.template == seen.template and is_in_service(seen, pod))
        now = fates.chosen
        doing = _names(seen, now) if now else ""
        change = f" ({seen.change})" if seen.change else ""
        yield f"rollout: {done} of {seen.wanted} are new{change}" + "".join(
            f", {part}" for part in (doing, fates.pause) if part
        )
    unsettled = [pod for pod in fates.kept if pod.index not in seen.settled]
    for why in sorted({leave_reason(seen, pod) for pod in unsettled} - {""}):
        yield f"{why}: {_names(seen, [pod for pod in unsettled if leave_reason(seen, pod) == why])}"
    for pod in fates.lost:
        yield f"{seen.name(pod.index)} is replaced by another, because its Node {pod.machine} does not answer and its Slurm node is DOWN"


def _names(seen: WorkerSnapshot, pods: Sequence[WorkerPod]) -> str:
    ordered = sorted(pods, key=lambda pod: pod.index)
    said = [f"{seen.name(pod.index)} {_state(seen, pod)}" for pod in ordered[:_NAMED]]
    more = len(ordered) - len(said)
    return ", ".join([*said, *([f"and {more} more"] if more > 0 else [])])


def _state(seen: WorkerSnapshot, pod: WorkerPod) -> str:
    node = seen.node(pod.index)
    if pod.deleting:
        return "is being deleted"
    if node is None:
        return "is not known to Slurm" if seen.nodes is not None else "waits for Slurm's answer"
    if drain.is_refused(seen, pod):
        return "was resumed by an administrator and stays"
    if node.is_drained:
        return "is drained"
    jobs = ", ".join(job.label for job in seen.jobs_of(pod.index)[:_NAMED])
    until = node.reason.partition("; ")[2]
    return " ".join(["drains", *([f"({jobs})"] if jobs else []), *([f"({until})"] if until else [])])
