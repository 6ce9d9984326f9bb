"""Decides about the workers of a NodeSet, on a fresh answer of Slurm for every action that may affect a job.

Every action that could affect a job is decided again on an answer from this pass. Without an answer the operator only creates missing pods. Nodes are
read one by one if few are affected, and jobs only if the policy needs them.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from soperator.policy.workers import on_demand, policy
from soperator.policy.workers.power_states import Phase, is_denied, phase_of
from soperator.policy.workers.types import (
    Action,
    Create,
    Delete,
    DeleteNodeRecord,
    EndJobs,
    SetPodCondition,
    SignalJobs,
    UpdateNodes,
    Verb,
    WorkerPlan,
    WorkerSnapshot,
)
from soperator.slurm.job import SlurmJob
from soperator.slurm.node import SlurmNode
from soperator.slurmrest.client import SlurmError, SlurmRest

#: The most jobs that are read at the same time.
_AT_ONCE = 16
#: The most Slurm nodes that are read one by one before an action; more are read as one list.
_ONE_BY_ONE = 8
#: Seconds after which the list of nodes is too old, if reading the jobs took longer.
_SOON = 1.0
#: Seconds until the jobs are read again after a failure.
_WITHOUT_JOBS = 5.0
#: Seconds that are subtracted from the age of a drain: slurmctld reports whole seconds, and its answers take time.
_SKEW = 5.0
#: Seconds of difference from which on no deadline of a job counts as passed.
_APART = 60.0
_RECORDS = DeleteNodeRecord | UpdateNodes


def indexes_of(action: Action) -> tuple[int, ...]:
    """Return the workers that an action affects."""
    return action.indexes if isinstance(action, UpdateNodes) else (action.index,)


def decide(seen: WorkerSnapshot) -> WorkerPlan:
    """Return the policy that applies to a NodeSet's workers."""
    return on_demand.decide(seen) if seen.on_demand else policy.decide(seen)


async def choose(seen: WorkerSnapshot, client: SlurmRest | None) -> tuple[WorkerPlan, str]:
    """Return the plan, decided with a fresh answer of Slurm where an action may affect a job.

    Without an answer the plan only creates pods, and the text is the cause.
    """
    plan = decide(seen if client else replace(seen, nodes=None))
    if (
        client is None
        or seen.nodes is None
        or not (plan.asks_jobs or any(_matters(seen, each) for each in plan.actions))
    ):
        return plan, ""
    try:
        return await _without_early(seen, *await _fresh(seen, plan, client), client)
    except SlurmError as error:
        # A pod whose node still has its former record waits: the record would keep what it had, such as its features, until the next rollout.
        former = {each.index for each in plan.actions if isinstance(each, DeleteNodeRecord)}
        made = tuple(each for each in plan.actions if isinstance(each, Create) and each.index not in former)
        return replace(plan, actions=made), f"Slurm does not answer, so its nodes stay unchanged: {error}"


async def _without_early(
    seen: WorkerSnapshot, plan: WorkerPlan, failed: str, client: SlurmRest
) -> tuple[WorkerPlan, str]:
    """Return the plan, without actions that depend on the time of day while slurmctld's clock and ours disagree; raises SlurmError.

    These set late waking nodes DOWN, let Slurm try them again, or replace a pod whose slurmd should have registered.
    """
    early = [each for each in plan.actions if _is_timed(seen, each)]
    if not early or seen.ending or not (wrong := await _disagreement(seen, indexes_of(early[0])[0], client)):
        return plan, failed
    return replace(plan, actions=tuple(each for each in plan.actions if each not in early)), failed or wrong


def _is_timed(seen: WorkerSnapshot, action: Action) -> bool:
    nodes = [node for index in indexes_of(action) if (node := seen.node(index))]
    if isinstance(action, UpdateNodes):
        return action.verb is Verb.DENY or (action.verb is Verb.ALLOW and any(map(is_denied, nodes)))
    pod = seen.pods.get(action.index)
    is_waking = any(phase_of(node) is Phase.WAKING for node in nodes)
    return isinstance(action, Delete) and is_waking and pod is not None and pod.ready


def _pressed(plan: WorkerPlan) -> list[int]:
    """Return the jobs that a plan warns or ends."""
    return sorted({job.number for each in plan.actions if isinstance(each, SignalJobs | EndJobs) for job in each.jobs})


async def _each(client: SlurmRest, numbers: Sequence[int]) -> list[SlurmJob | None]:
    """Read these jobs again and return them in the same order, None for one that no longer has nodes; raises SlurmError."""
    found: list[SlurmJob | None] = []
    for start in range(0, len(numbers), _AT_ONCE):
        found += await asyncio.gather(*(client.job(each) for each in numbers[start : start + _AT_ONCE]))
    return found


async def _fresh(seen: WorkerSnapshot, plan: WorkerPlan, client: SlurmRest) -> tuple[WorkerPlan, str]:
    """Return the plan, decided on a fresh answer of Slurm about every node that it affects, and what Slurm refused; raises SlurmError.

    A few nodes are read one by one. All are read if Slurm does not know one of them, or if its answer leads to a plan that affects others.
    """
    asked = _touched(seen, plan)
    if seen.nodes is not None and len(asked) <= _ONE_BY_ONE and asked <= seen.nodes.keys():
        with contextlib.suppress(SlurmError):
            few = seen.on({**seen.nodes, **await client.only(asked)})
            again, failed = await _with_jobs(few, client)
            if _touched(few, again) <= asked:
                return again, failed
    return await _with_jobs(seen.on(await client.nodes()), client)


async def _with_jobs(seen: WorkerSnapshot, client: SlurmRest) -> tuple[WorkerPlan, str]:
    """Return the plan, with the list of jobs if it needs one.

    Without that list it drains in any order, because a drain ends no job. It then warns and ends no job, and deletes no pod that may hold a suspended
    job.
    """
    plan = decide(seen)
    if not plan.asks_jobs:
        return plan, ""
    ends = [each for each in plan.actions if policy.ends_jobs(seen, each)]
    # A record is deleted seconds after its pod, for which the jobs were listed: that list is new enough.
    records = {seen.name(index) for each in ends if isinstance(each, _RECORDS) for index in indexes_of(each)}
    taken = {seen.name(index) for each in ends if not isinstance(each, _RECORDS) for index in indexes_of(each)}
    # Nodes whose jobs may be warned or ended: a list from before the drain may lack a job that had just started, which would end without a warning.
    draining = {seen.name(index) for index in seen.pods if (node := seen.node(index)) and node.is_draining}
    try:
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        since = await listed_after(client, seen.nodes or {}, taken | draining)
        listed = {job.number: job for job in await client.jobs(since)}
        held = {number for number, job in listed.items() if job.nodes & (taken | records)}
        # The list may be some seconds old: a job may have ended since, or run on another node under the same number.
        if asked := sorted(held.union(_pressed(decide(seen.with_jobs(listed.values()))))):
            by_now = dict(zip(asked, await _each(client, asked), strict=True))
            current = ((number, by_now.get(number, job)) for number, job in listed.items())
            listed = {number: job for number, job in current if job is not None}
        if clock() - asked_at > _SOON:  # the answer about the nodes is too old by now
            seen = seen.on(await client.nodes())
        final = decide(seen.with_jobs(listed.values()))
        pressed = [each for each in final.actions if isinstance(each, SignalJobs | EndJobs)]
        if not pressed or not (wrong := await _disagreement(seen, pressed[0].index, client)):
            return final, ""
        return replace(final, actions=tuple(each for each in final.actions if each not in pressed)), wrong
    except SlurmError as error:
        lasting = {
            each.index for each in plan.actions if isinstance(each, DeleteNodeRecord) and policy.ends_jobs(seen, each)
        }
        safe = [each for each in plan.actions if not isinstance(each, SignalJobs | EndJobs)]
        safe = [each for each in safe if not (isinstance(each, Create) and each.index in lasting)]
        again = _WITHOUT_JOBS if plan.again is None else min(plan.again, _WITHOUT_JOBS)
        said = f"the list of jobs is missing, so nodes drain in any order, no worker is removed, and no job is warned or ended: {error}"
        return replace(
            plan, actions=tuple(each for each in safe if not policy.ends_jobs(seen, each)), again=again
        ), said


async def _disagreement(seen: WorkerSnapshot, index: int, client: SlurmRest) -> str:
    """Return why it is unknown how long a drain has waited for jobs; empty if it is known.

    Its start is by slurmctld's clock, the present by ours. Raises SlurmError.
    """
    apart = abs(await client.clock(seen.name(index)) - seen.now)
    if apart <= _APART or apart == seen.now:
        return ""
    return (
        f"the clocks of slurmctld and the operator are "
        f"{apart:.0f} s apart: correct the clocks of their Nodes; until then no job is warned or ended, and no waking node is given up or tried again"
    )


async def listed_after(client: SlurmRest, nodes: Mapping[str, SlurmNode], names: Iterable[str]) -> float:
    """Return the time from which on a list of jobs shows every job on these drained nodes, by the clock of the event loop; raises SlurmError.

    No job starts on a draining node, so a later list has every job that may be suspended there. The age of a drain is by slurmctld's own clock: by
    another clock a new drain may look old, or an old one may seem to be in the future. Without slurmctld's time, only a new list is enough.
    """
    drained = {name: nodes[name].reason_at for name in names if name in nodes}
    if not drained:
        return float("-inf")
    last, asked = max(drained, key=lambda name: drained[name]), asyncio.get_running_loop().time()
    age = await client.clock(last) - drained[last]
    return asked - max(0.0, age - _SKEW)


def _touched(seen: WorkerSnapshot, plan: WorkerPlan) -> set[str]:
    return {seen.name(index) for each in plan.actions if _matters(seen, each) for index in indexes_of(each)}


def _matters(seen: WorkerSnapshot, action: Action) -> bool:
    """Return whether an action needs a fresh answer of Slurm.

    A new pod whose name Slurm does not know does not need one, nor does an action that only reports.
    """
    return not isinstance(action, Create | SetPodCondition) or (
        isinstance(action, Create) and seen.node(action.index) is not None
    )
