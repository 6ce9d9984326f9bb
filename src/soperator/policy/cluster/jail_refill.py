"""When the jail is filled, repaired or replaced, and what has to stand still meanwhile: a function of what is seen.

An overwrite goes through draining (no new job starts), closing (no login pod is left) and filling (the Job runs), and ends by
resuming. Invariants, each tested by interrupting at every step:
- The Job of an overwrite is made only when every Slurm node is drained, no job is suspended on one, every worker is known to Slurm, and no login pod
  is left. Login closes on the same terms.
- While such a Job has not completed, nothing is resumed and no login runs, whatever became of the request: the claim may be half-way.
- No answer from Slurm means busy.
- Only drains whose reason is ours are undone.
- Nothing is drained or made for an overwrite while another cluster has pods in the same jail: its jobs are not ours to see or to end.
- Two Jobs never work on one claim: while a pod of a former one may run, none is made.
- Nothing is remembered but what the Job's own annotations say, and in the status the last request that was carried out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from soperator.policy.workers.removal_order import never_ran
from soperator.policy.workers.types import Action, Delete, WorkerPod
from soperator.policy.workers.types import WorkerSnapshot as Workers
from soperator.slurm.node import REASON_PREFIX, SlurmNode

OVERWRITE = f"{REASON_PREFIX}the jail is to be filled anew"


@dataclass(frozen=True)
class PopulateJob:
    """The populate Job that is there: what it was made for, whether it is what would be made now, and how it does."""

    request: str = ""
    overwrites: bool = False
    is_current: bool = True
    is_complete: bool = False


@dataclass(frozen=True)
class JailSnapshot:
    """What is known.

    `request` is empty when there is none that has not been carried out. `nodes` are all of the cluster's in Slurm, None without a fresh answer;
    `workers` are the pods of all its NodeSets by the names of their Slurm nodes. `login_pods` counts those that run or are wanted. `others` says in
    words which pods of other clusters are in the same jail.
    """

    request: str
    overwrites: bool
    job: PopulateJob | None
    has_live_pods: bool
    was_up: bool
    is_login_closed: bool
    login_pods: int
    nodes: Mapping[str, SlurmNode] | None
    workers: Mapping[str, WorkerPod]
    others: str = ""


@dataclass(frozen=True)
class JailStep:
    """What to do about the Job, whether login may run, whether workers are held as they are, which nodes to drain or resume, and why.

    `asks_jobs` is true where it stands on nodes that nothing is on: it counts once the jobs were looked at, for a suspended one shows in no state.
    """

    job: Literal["keep", "make", "drop"] = "keep"
    login: bool = True
    hold: bool = False
    drain: Sequence[str] = ()
    resume: Sequence[str] = ()
    why: str = ""
    asks_jobs: bool = field(default=False, compare=False)


def decide(seen: JailSnapshot) -> JailStep:
    """The next step on the way to a jail that is filled as it was asked for."""
    job = seen.job
    if job and job.overwrites and not job.is_complete:
        return _overwriting(seen, job)
    if seen.overwrites and not (job and job.request == seen.request):
        return _prepare(seen)
    if job and (job.is_complete and seen.request in ("", job.request)):
        return JailStep(resume=_ours(seen))
    if job and job.request == seen.request and job.is_current:
        return JailStep(login=_may_open(seen), hold=not _may_open(seen))
    return _replace(seen, login=_may_open(seen))


def drain_reason(node: SlurmNode) -> str:
    """With which reason a node drains for an overwrite; one that an administrator set DOWN with his, or the end of the drain would lift that too."""
    return node.reason if node.is_administrators else OVERWRITE


def held(seen: Workers) -> list[Action]:
    """What is left to do with a NodeSet's workers while the jail is being replaced: a pod that has not started may not start now."""
    return [
        Delete(pod.index, "the jail is being replaced, and its containers do not run")
        for pod in seen.pods.values()
        if not pod.deleting and never_ran(seen, pod)
    ]


def _overwriting(seen: JailSnapshot, job: PopulateJob) -> JailStep:
    """An overwrite's Job is there: nothing moves until it has completed. One that was corrected is made anew."""
    is_same = job.request == seen.request
    if is_same and not job.is_current:
        return _replace(seen, login=False, drain=_undrained(seen))
    word = "" if is_same else f"; the present request, {seen.request or 'none'}, comes after it"
    return JailStep(login=False, hold=True, drain=_undrained(seen), why=f"request {job.request} is carried out{word}")


def _prepare(seen: JailSnapshot) -> JailStep:
    """An overwrite is asked for: bring everything to rest, then make its Job."""
    asked = f"request {seen.request} asks to fill it anew, which"
    if seen.others:
        return JailStep(
            login=seen.was_up, hold=not seen.was_up, resume=_ours(seen), why=f"{asked} waits for {seen.others}"
        )
    if not seen.was_up and not seen.workers:
        return _replace(seen, login=False)
    if busy := _busy(seen):
        return JailStep(
            login=not seen.is_login_closed, hold=True, drain=_undrained(seen), why=f"{asked} waits for {busy}"
        )
    if seen.login_pods:
        return JailStep(login=False, hold=True, why=f"{asked} waits for the login pods to end", asks_jobs=True)
    return replace(_replace(seen, login=False), asks_jobs=True)


def _replace(seen: JailSnapshot, login: bool, drain: Sequence[str] = ()) -> JailStep:
    """Make the Job, after the former one and its pods are gone."""
    if seen.job:
        return JailStep("drop", login=login, hold=not login, drain=drain, why="its former Job is being removed")
    if seen.has_live_pods:
        return JailStep(login=login, hold=not login, drain=drain, why="the pods of its former Job are ending")
    return JailStep("make", login=login, hold=not login, drain=drain)


def _may_open(seen: JailSnapshot) -> bool:
    """Whether login and workers may run beside the Job: they did before, and no overwrite was under way."""
    return seen.was_up and not seen.is_login_closed and not _ours(seen)


def _busy(seen: JailSnapshot) -> str:
    """What is not known to be at rest, in words; empty when all is."""
    if seen.nodes is None:
        return "an answer from Slurm"
    running = sorted(name for name, node in seen.nodes.items() if node.is_busy)
    if running:
        return f"the jobs on {some(running)}"
    if undrained := sorted(name for name, node in seen.nodes.items() if not node.is_drained):
        return f"{some(undrained)} to be drained"
    unknown = sorted(name for name in seen.workers if name not in seen.nodes)
    return f"Slurm to know {some(unknown)}" if unknown else ""


def some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _undrained(seen: JailSnapshot) -> Sequence[str]:
    return tuple(sorted(name for name, node in (seen.nodes or {}).items() if not node.is_draining))


def _ours(seen: JailSnapshot) -> Sequence[str]:
    found = (seen.nodes or {}).values()
    return tuple(sorted(node.name for node in found if node.is_draining and node.reason.startswith(OVERWRITE)))
