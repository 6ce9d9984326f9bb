"""Computes when the jail is filled, repaired or replaced, and which parts stop during that time, from the observed state.

An overwrite has the stages draining (no new job starts), closing (no login pod is left), filling (the Job runs) and resuming. Invariants, each tested
by interrupting at every step:
- The Job of an overwrite is created only when every Slurm node is drained, no job is suspended on one, every worker is known to Slurm, and no login
  pod is left. Login closes under the same conditions.
- Until such a Job has completed, nothing is resumed and no login pod runs, even if the request is gone: the claim may be half written.
- No answer from Slurm means busy.
- Only drains with the operator's reason are undone.
- Nothing is drained and no Job is created for an overwrite while another cluster has pods in the same jail: this operator neither observes nor ends
  its jobs.
- Two Jobs never work on one claim: while a pod of a former Job may run, no Job is created.
- Only the Job's own annotations, and the last request that was carried out, are remembered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from soperator.policy.workers.removal_order import never_ran
from soperator.policy.workers.types import Action, Delete, WorkerPod
from soperator.policy.workers.types import WorkerSnapshot as Workers
from soperator.slurm.node import REASON_PREFIX, SlurmNode

OVERWRITE = f"{REASON_PREFIX}the jail is to be filled again"


@dataclass(frozen=True)
class PopulateJob:
    """The existing populate Job: its request, whether it equals the Job that would be created now, and its progress."""

    request: str = ""
    overwrites: bool = False
    is_current: bool = True
    is_complete: bool = False


@dataclass(frozen=True)
class JailSnapshot:
    """The observed state.

    `request` is empty if every request is complete. `nodes` are all Slurm nodes of the cluster, None without a fresh answer; `workers` are the pods
    of all its NodeSets by the names of their Slurm nodes. `login_pods` counts pods that run or are desired. `others` names the pods of other clusters
    in the same jail.
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
    """The action on the Job, whether login may run, whether workers must not change, the nodes to drain or resume, and a message.

    `asks_jobs` is true if the decision relies on empty nodes: it is valid only with the list of jobs, because no node state shows a suspended job.
    """

    job: Literal["keep", "make", "drop"] = "keep"
    login: bool = True
    hold: bool = False
    drain: Sequence[str] = ()
    resume: Sequence[str] = ()
    why: str = ""
    asks_jobs: bool = field(default=False, compare=False)


def decide(seen: JailSnapshot) -> JailStep:
    """Return the next step towards a jail that is filled as requested."""
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
    """Return the reason of a node's drain for an overwrite; for a node that an administrator set DOWN it is the administrator's reason without the
    operator's prefix, so that no later resume changes it.
    """
    return node.reason.removeprefix(REASON_PREFIX) if node.is_administrators else OVERWRITE


def held(seen: Workers) -> list[Action]:
    """Return the actions on a NodeSet's workers that are allowed while the jail is replaced; no pod may start during that time."""
    return [
        Delete(pod.index, "the jail is being replaced, and the pod's containers do not run")
        for pod in seen.pods.values()
        if not pod.deleting and never_ran(seen, pod)
    ]


def _overwriting(seen: JailSnapshot, job: PopulateJob) -> JailStep:
    """Return the step while the Job of an overwrite exists: nothing else changes until it completes. A Job with a corrected template is created
    again.
    """
    is_same = job.request == seen.request
    if is_same and not job.is_current:
        return _replace(seen, login=False, drain=_undrained(seen))
    word = "" if is_same else f"; the present request, {seen.request or 'none'}, follows it"
    return JailStep(login=False, hold=True, drain=_undrained(seen), why=f"request {job.request} is carried out{word}")


def _prepare(seen: JailSnapshot) -> JailStep:
    """Return the step while an overwrite is requested: drain every node and close login, then create its Job."""
    asked = f"request {seen.request}, to fill it again,"
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
    """Return the step that creates the Job, after the former Job and its pods are deleted."""
    if seen.job:
        return JailStep("drop", login=login, hold=not login, drain=drain, why="its former Job is being deleted")
    if seen.has_live_pods:
        return JailStep(login=login, hold=not login, drain=drain, why="the pods of its former Job are ending")
    return JailStep("make", login=login, hold=not login, drain=drain)


def _may_open(seen: JailSnapshot) -> bool:
    """Return whether login and workers may run during the Job: they ran before, and no overwrite was in progress."""
    return seen.was_up and not seen.is_login_closed and not _ours(seen)


def _busy(seen: JailSnapshot) -> str:
    """Return a message about what may still use the jail; empty if nothing does."""
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
    """Return the first names and the number of the others, as text."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _undrained(seen: JailSnapshot) -> Sequence[str]:
    return tuple(sorted(name for name, node in (seen.nodes or {}).items() if not node.is_draining))


def _ours(seen: JailSnapshot) -> Sequence[str]:
    found = (seen.nodes or {}).values()
    return tuple(sorted(node.name for node in found if node.is_draining and node.our_reason.startswith(OVERWRITE)))
