"""Carries out the consequences of checks, after the policy for workers and with a fresh answer of Slurm about each affected node."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from soperator.api.fields.change import seconds, share
from soperator.kube import kinds
from soperator.policy import drain_reasons
from soperator.policy.health import merge_reports
from soperator.policy.health import policy as health_policy
from soperator.policy.health.policy import HealthPlan, HealthPolicy
from soperator.policy.health.replacement import ReplaceNode
from soperator.policy.healthcheck import status_codec as status_codec
from soperator.policy.healthcheck.types import CheckHistory
from soperator.policy.workers.types import DrainNode, WorkerSnapshot
from soperator.reconcile import finalizers
from soperator.reconcile.cache.decode import read_healthcheck
from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.healthcheck.context import follows
from soperator.reconcile.memory import object_memory
from soperator.reconcile.nodeset import node_replacement
from soperator.reconcile.nodeset.actions import Workers
from soperator.reconcile.nodeset.decision import listed_after
from soperator.render.parts.model import HealthCheck
from soperator.render.slurm_conf import health_checks
from soperator.runtime.cache.store import Key
from soperator.runtime.status import ReportedCondition
from soperator.slurmrest.client import SlurmError

#: Held while nodes of a cluster are drained for a check.
_DRAINING: Slot[Key, asyncio.Lock] = per_cluster("whether nodes are being drained for a check")
#: Seconds after which a node with a suspended job is looked at again.
_SUSPENDED = 10.0


@dataclass(frozen=True)
class HealthResult:
    """The result of the checks, and what Slurm refused; empty if no check runs."""

    verdict: HealthPlan | None = None
    failed: str = ""

    @property
    def conditions(self) -> list[ReportedCondition]:
        """The condition of the NodeSet about the health of its nodes."""
        if self.verdict is None:
            return []
        said = self.verdict.said
        reason = "ChecksFail" if said else "ChecksPass"
        return [ReportedCondition("Healthy", "False" if said else "True", reason, said)]


async def deep_books(workers: Workers) -> list[tuple[str, CheckHistory]]:
    """Return the histories of the cluster's HealthChecks, each with its name. The results of an unreadable check are only reported."""
    operator, found = workers.operator, []
    for obj in operator.stores.healthchecks_of(workers.cluster.key):
        check = read_healthcheck(obj)
        then = follows(check.spec.on_failure) if isinstance(check, HealthCheck) else "report"
        history = status_codec.read_found(
            obj.metadata.name, await object_memory.recall(operator, kinds.HEALTHCHECK, obj), then
        )
        if finalizers.is_ending(obj):
            history = merge_reports.withdrawn(history, operator.wall())
        found.append((obj.metadata.name, history))
    return found


async def act(workers: Workers, seen: WorkerSnapshot) -> HealthResult:
    """Decide and carry out the actions; none if Slurm does not answer."""
    spec = workers.cluster.spec.health
    deep = await deep_books(workers)
    if seen.nodes is None or not (health_checks.is_on(workers.cluster.spec) or deep or _is_left(seen)):
        return HealthResult()
    policy = HealthPolicy(
        drains=spec.mode == "Drain" or bool(deep),
        most=share(workers.nodeset.spec.size, spec.max_unhealthy),
        interval=seconds(spec.interval),
        replace_after=seconds(spec.replace.after),
        most_of_all=share(len(seen.nodes), spec.max_unhealthy_of_cluster),
    )
    found = merge_reports.findings(deep)

    def judged(looked: WorkerSnapshot) -> HealthPlan:
        # Also after the last HealthCheck was deleted: its drains are undone as those of a check that has ended.
        with_deep = deep or spec.mode == "Off"
        return health_policy.decide(
            merge_reports.with_findings(looked, found, spec.mode) if with_deep else looked, policy
        )

    verdict = judged(seen)
    if not any(isinstance(each, DrainNode) for each in verdict.actions):
        return await _take(workers, seen, judged, verdict, policy.drains)
    # The nodes of all NodeSets count, so those of one cluster are drained one NodeSet after the other.
    async with workers.operator.memory(_DRAINING).setdefault(workers.cluster.key, asyncio.Lock()):
        return await _take(workers, seen, judged, verdict, policy.drains, whole=True)


def _is_left(seen: WorkerSnapshot) -> bool:
    """Return whether a worker is still drained for a check that no longer exists; a settled one is not drained."""
    nodes = (seen.node(pod.index) for pod in seen.unsettled)
    return any(node is not None and drain_reasons.is_of_check(node) for node in nodes)


async def _take(
    workers: Workers,
    seen: WorkerSnapshot,
    judged: Callable[[WorkerSnapshot], HealthPlan],
    verdict: HealthPlan,
    moves: bool,
    whole: bool = False,
) -> HealthResult:
    """Carry out the actions, decided again on a fresh answer about the affected nodes, or about all nodes."""
    touched = {seen.name(each.index) for each in (*verdict.actions, *verdict.moves)}
    if not touched or workers.client is None or seen.nodes is None:
        return HealthResult(verdict)
    try:
        looked = await (workers.client.nodes() if whole else workers.client.only(touched))
        fresh = seen.on({**seen.nodes, **looked})
    except SlurmError as error:
        return HealthResult(replace(verdict, actions=(), moves=()), str(error))
    again = judged(fresh)
    taken = [each for each in again.actions if seen.name(each.index) in touched]
    failed = await workers.take(taken, seen)
    stay = 0
    for move in again.moves if moves else ():
        try:
            if await _may_move(workers, fresh, judged, move):
                refused = await node_replacement.cordon(workers, move)
                # The cordon may have taken long, and so may the worker before this one.
                if not refused and await _may_move(workers, fresh, judged, move):
                    refused = await node_replacement.leave(workers, move, seen)
                failed = refused or failed
            else:
                stay += 1
        except SlurmError as error:
            failed = str(error)
    if stay:
        again = replace(again, again=min(again.again or _SUSPENDED, _SUSPENDED))
    return HealthResult(again, failed)


async def _may_move(
    workers: Workers, seen: WorkerSnapshot, judged: Callable[[WorkerSnapshot], HealthPlan], move: ReplaceNode
) -> bool:
    """Return whether a worker has to move, by Slurm's current answer about its node and jobs; raises SlurmError.

    A node's state does not show a suspended job.
    """
    assert workers.client is not None
    assert seen.nodes is not None  # the decision is the same
    name = seen.name(move.index)
    jobs = await workers.client.jobs(await listed_after(workers.client, seen.nodes, [name]))
    looked = seen.on({**seen.nodes, **await workers.client.only([name])}).with_jobs(jobs)
    return move.index in {each.index for each in judged(looked).moves}
