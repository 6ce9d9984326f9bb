"""Reconciles NodeSets: gathers, decides, acts and reports."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from soperator.api.base import Problem
from soperator.kube import kinds
from soperator.kube.views import Custom
from soperator.policy.cluster.conditions import Role
from soperator.policy.cluster.jail_refill import held
from soperator.policy.cluster.render_record import RenderRecord
from soperator.policy.workers import node_records, power_states
from soperator.policy.workers.types import WorkerPlan, WorkerSnapshot
from soperator.reconcile import (
    anchor,
    finalizers,
    inputs,
    render_record,
    repair,
)
from soperator.reconcile.cache.decode import named, read_cluster, read_nodeset
from soperator.reconcile.cluster import images, jail
from soperator.reconcile.context import Operator
from soperator.reconcile.memory import cluster_memory
from soperator.reconcile.nodeset import (
    health,
    jail_drain,
    job_comments,
    lost_jobs,
    record_updates,
    template_change,
    worker_labels,
)
from soperator.reconcile.nodeset.actions import UNMADE, Workers
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.slurm_conf import health_checks
from soperator.render.worker import pod
from soperator.runtime.apply import Owner
from soperator.runtime.cache.store import Key
from soperator.runtime.controller import PassOutcome
from soperator.runtime.status import ReportedCondition
from soperator.slurm.node import REASON_PREFIX


@dataclass(frozen=True)
class PassResult:
    """The report of a pass: the failure and its reason, and the progress according to the policy."""

    trouble: str = ""
    reason: str = ""
    plan: WorkerPlan = field(default_factory=WorkerPlan)
    seen: WorkerSnapshot | None = None
    note: RenderRecord | None = None
    checks: health.HealthResult = field(default_factory=health.HealthResult)


@dataclass(frozen=True)
class NodeSetControl:
    """Reconciles the workers of one NodeSet with its spec."""

    operator: Operator

    async def reconcile(self, key: Key) -> PassOutcome:
        """Reconcile one NodeSet; return the result, and the seconds until the next pass."""
        self.operator.forget_pods()
        obj = self.operator.stores.nodesets.get(*key)
        if obj is None:
            self.operator.worker_cache.forget(key)
            return PassOutcome(_gone(len(self.operator.stores.pods.by("nodeset", key))), is_gone=True)
        await worker_labels.restore(self.operator, obj)
        if self.operator.stores.pods.by("nodeset", key) and not finalizers.is_ending(obj):
            await finalizers.add_finalizer(self.operator, kinds.NODESET, obj)
        nodeset, cluster, problems = self._read(obj)
        if why := finalizers.reason(obj, self._cluster_of(obj)):
            return await self._end(obj, nodeset, cluster, why)
        if nodeset is None or cluster is None or problems:
            return await self._status(obj, nodeset, PassResult("; ".join(map(str, problems)), "InvalidSpec"))
        if refused := inputs.refusal(self.operator, cluster):
            return await self._status(obj, nodeset, PassResult(refused, "ClusterRefused"))
        look = self._jail_status(cluster)
        if waiting := self._waiting(cluster, look):
            return await self._status(obj, nodeset, PassResult(waiting, "ClusterNotReady"))
        if look.step.hold:
            return await self._hold(obj, cluster, nodeset, look)
        if missing := inputs.point_wait(self.operator, cluster, [nodeset]):
            return await self._status(obj, nodeset, PassResult(missing, "MountPointsMissing"))
        await finalizers.add_finalizer(self.operator, kinds.NODESET, obj)
        await self._apply_plan(obj, cluster, nodeset)
        seen = await jail_drain.with_jail_reasons(self.operator, nodeset, inputs.seen(self.operator, cluster, nodeset))
        note = render_record.of_nodeset(self.operator, obj, self._cluster_of(obj), cluster, seen.template)
        seen = render_record.with_same(seen, note)
        seen = await template_change.with_change(self.operator, cluster, nodeset, obj.metadata.uid, seen)
        if unnamed := inputs.gpu_wait(self.operator, cluster, nodeset, seen):
            return await self._status(obj, nodeset, PassResult(unnamed, "GpusNotNamed", seen=seen))
        if unready := inputs.power_wait(self.operator, cluster, nodeset, seen):
            outcome = await self._status(obj, nodeset, PassResult(unready, "ClusterNotReady", seen=seen))
            return replace(outcome, requeue_after=_soonest(outcome.requeue_after, 1.0))
        workers = Workers(self.operator, obj, cluster, nodeset, is_held=lambda: self._is_held(obj))
        plan, refused = await workers.act(seen)
        found = await health.act(workers, seen)
        failed = refused or await record_updates.update_partitions(self.operator, cluster)
        failed = failed or found.failed or await job_comments.write_comments(workers, seen)
        left = await lost_jobs.find_lost_jobs(workers, seen)
        plan = replace(plan, said="; ".join(filter(None, (plan.said, left.said))))
        short = power_states.trouble(seen) if seen.on_demand else ""
        last = self.operator.memory(UNMADE).get(obj.metadata.uid)
        reason = (
            "Refused" if last and failed == last.why else "SlurmRefused" if failed else "NoCapacity" if short else ""
        )
        result = PassResult(failed or short, reason, plan, seen, note, found)
        outcome = await self._status(obj, nodeset, result)
        soon = found.verdict.again if found.verdict else None
        asked = jail_drain.again(self.operator, nodeset)
        late = 2.0 if failed and workers.again is None else None
        return replace(
            outcome,
            requeue_after=_soonest(outcome.requeue_after, plan.again, soon, asked, left.again, workers.again, late),
        )

    async def _end(self, obj: Custom, nodeset: NodeSet | None, cluster: Cluster | None, why: str) -> PassOutcome:
        """Reconcile a NodeSet that is being deleted, or whose cluster is: no worker is desired any more."""
        if finalizers.is_ending(obj) and not finalizers.has_finalizer(obj):
            return PassOutcome("it is being deleted")
        plan, failed = WorkerPlan(), ""
        if nodeset and cluster and finalizers.has_controller(self.operator, cluster.key):
            seen = inputs.seen(self.operator, cluster, nodeset, why)
            plan, failed = await Workers(self.operator, obj, cluster, nodeset).act(seen)
        rest = finalizers.rest_of_nodeset(self.operator, obj, nodeset, cluster)
        if rest.waits and nodeset and cluster:
            failed = await repair.of_nodeset(self.operator, obj, cluster, nodeset) or failed
        if finalizers.is_ending(obj) and rest.nothing:
            await finalizers.give_up(self.operator, obj)
            await finalizers.remove_finalizer(self.operator, kinds.NODESET, obj)
            return PassOutcome(f"it is let go: {rest.nothing}")
        said = f"{why.removeprefix(REASON_PREFIX)}; {rest.waits or rest.nothing}"
        outcome = await self._status(
            obj, nodeset, PassResult("; ".join(filter(None, (said, failed))), "Deleting", plan)
        )
        return replace(outcome, requeue_after=_soonest(outcome.requeue_after, plan.again, 2.0))

    async def report_error(self, key: Key, error: Exception) -> None:
        """Report the cause that stopped a pass, in the conditions of the object."""
        await self.operator.write_error_status(kinds.NODESET, self.operator.stores.nodesets.get(*key), error)

    def _cluster_of(self, obj: Custom) -> Custom | None:
        return self.operator.stores.clusters.get(obj.metadata.namespace, named(obj))

    def _read(self, obj: Custom) -> tuple[NodeSet | None, Cluster | None, Sequence[Problem]]:
        read = read_nodeset(obj)
        if isinstance(read, list):
            return None, None, read
        problems = self.operator.namespaces.view(read.namespace).refused.get(read.name, ())
        found = self.operator.stores.clusters.get(read.namespace, read.spec.cluster)
        cluster = read_cluster(found) if found else None
        if not isinstance(cluster, Cluster) or found is None:
            return read, None, [*problems, *([_unreadable(read)] if found else [])]
        cluster = replace(cluster, anchor=anchor.uid(self.operator, cluster.key))
        return read, images.of_workers(self.operator, found, cluster), problems

    def _jail_status(self, cluster: Cluster) -> jail.JailStatus:
        found = self.operator.stores.clusters.get(cluster.namespace, cluster.name)
        assert found is not None  # it was read just before, and no other task runs in between
        return jail.jail_status(self.operator, found, cluster)

    def _is_held(self, obj: Custom) -> bool:
        """Return whether the jail is being replaced, according to the caches."""
        _, cluster, _ = self._read(obj)
        return cluster is not None and self._jail_status(cluster).step.hold

    def _waiting(self, cluster: Cluster, look: jail.JailStatus) -> str:
        """Return why no worker can be created yet; empty if nothing prevents it.

        A cluster that had login before has a jail, even if the Job that filled it is gone.
        """
        sets = self.operator.stores.children[kinds.STATEFULSET]
        if sets.get(cluster.namespace, names.login(cluster.name)) is not None:
            return ""
        if sets.get(cluster.namespace, names.controller(cluster.name)) is None:
            return f"SlurmCluster {cluster.name} has no controller yet: see its status"
        return jail.unusable_reason(self.operator, cluster, look)

    async def _hold(self, obj: Custom, cluster: Cluster, nodeset: NodeSet, look: jail.JailStatus) -> PassOutcome:
        """Return the reduced plan while the jail is being replaced: no worker is created or deleted, except pods that have not started."""
        seen = inputs.seen(self.operator, cluster, nodeset)
        workers = Workers(self.operator, obj, cluster, nodeset)
        failed = await workers.take(held(seen), seen)
        why = jail.unusable_reason(self.operator, cluster, look) or f"the jail: {look.step.why}"
        outcome = await self._status(obj, nodeset, PassResult(failed or why, "JailRefill", seen=seen))
        return replace(outcome, requeue_after=_soonest(outcome.requeue_after, workers.again))

    async def _apply_plan(self, obj: Custom, cluster: Cluster, nodeset: NodeSet) -> None:
        """Apply the current mount plan, and delete plans that no pod uses any more."""
        plans = inputs.worker_set(self.operator, nodeset).plans
        used = {names.jail_plan(cluster.name, nodeset.name, plan) for plan in plans}
        made = [pod.render_plan(cluster, nodeset), *health_checks.render(cluster, nodeset)]
        owner = Owner.from_metadata(kinds.NODESET, obj.metadata, cluster.anchored)
        await self.operator.applier.apply(owner, made, [kinds.CONFIGMAP], used)

    async def _status(self, obj: Custom, nodeset: NodeSet | None, result: PassResult) -> PassOutcome:
        name, namespace = obj.metadata.name, obj.metadata.namespace
        found = self.operator.stores.pods.by("nodeset", (namespace, name))
        role = inputs.workers(self.operator, nodeset) if nodeset else Role()
        short = f"{role} workers ready: {role.trouble}" if role.is_short else ""
        why = "; ".join(part for part in (result.trouble or short, result.plan.said) if part)
        fields = {
            "replicas": len(found),
            "readyReplicas": role.ready,
            **(
                inputs.counts(self.operator, nodeset, result.seen, self.operator.status.current(obj)) if nodeset else {}
            ),
            "selector": ",".join(f"{key}={value}" for key, value in labels.worker(named(obj), name).items()),
            "why": why,
        }
        of = self._cluster_of(obj)
        rendered = render_record.status_fields(result.note, cluster_memory.of_nodeset(self.operator, of, obj))
        if result.note:
            await cluster_memory.remember_nodeset(self.operator, of, obj, rendered)
        fields |= rendered
        again = await self.operator.write_status(kinds.NODESET, obj, fields, conditions(result, short))
        return PassOutcome(why or f"{role} workers ready", again)


def conditions(result: PassResult, short: str) -> list[ReportedCondition]:
    """Return the conditions of a NodeSet: whether its workers can take jobs, and whether no change is in progress."""
    refused = node_records.shortfall(result.seen) if short and result.seen else ""
    bad, said = result.trouble or "; ".join(filter(None, (short, refused))), result.plan.said
    return [
        ReportedCondition(
            "Available",
            "False" if bad else "True",
            result.reason or ("WorkersMissing" if bad else "AllReady"),
            bad,
        ),
        ReportedCondition("Settled", "False" if said else "True", "Changing" if said else "Settled", said),
        *result.checks.conditions,
    ]


def _unreadable(nodeset: NodeSet) -> Problem:
    remedy = "this operator cannot read that SlurmCluster, see its status; until it can, the workers stay unchanged"
    return Problem("spec.clusterRef.name", nodeset.spec.cluster, remedy, f"NodeSet {nodeset.name}")


def _gone(pods: int) -> str:
    """Return the result of a pass for a NodeSet that no longer exists.

    If somebody removed its finalizer, its pods stay, because jobs may run in them.
    """
    left = "delete them, or create the NodeSet again, which adopts them"
    return f"it no longer exists, but {pods} of its pods do: {left}" if pods else "it no longer exists"


def _soonest(*moments: float | None) -> float | None:
    return min((each for each in moments if each is not None), default=None)
