"""The pass of a NodeSet: gather, decide, act, status."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from soperator.api.base import Problem
from soperator.control import adoption, anchor, ending, gather, ghosts, health, hints, images, jail, repair, sick
from soperator.control.operator import Operator
from soperator.control.read import named, read_cluster, read_nodeset
from soperator.control.workers import Workers
from soperator.decide import phases, registration
from soperator.decide.adoption import Note
from soperator.decide.availability import Role
from soperator.decide.refill import held
from soperator.decide.workers import Plan, Seen
from soperator.kube import kinds
from soperator.kube.views import Custom
from soperator.render import checks, labels, names, worker
from soperator.render.model import Cluster, NodeSet
from soperator.runtime.apply import Owner
from soperator.runtime.controller import Outcome
from soperator.runtime.status import Condition
from soperator.runtime.store import Key
from soperator.slurm.node import REASON_PREFIX


@dataclass(frozen=True)
class Told:
    """What a pass has to say: what failed and its reason in one word, and what the policy is doing."""

    trouble: str = ""
    reason: str = ""
    plan: Plan = field(default_factory=Plan)
    seen: Seen | None = None
    note: Note | None = None
    checks: health.Told = field(default_factory=health.Told)


@dataclass(frozen=True)
class NodeSetControl:
    """Brings the workers of one NodeSet to what its spec says."""

    operator: Operator

    async def reconcile(self, key: Key) -> Outcome:
        """One pass."""
        self.operator.forget_pods()
        obj = self.operator.stores.nodesets.get(*key)
        if obj is None:
            self.operator.roster.forget(key)
            self.operator.hinted.pop(key, None)
            return Outcome(_gone(len(self.operator.stores.pods.by("nodeset", key))), last=True)
        if self.operator.stores.pods.by("nodeset", key) and not ending.is_ending(obj):
            await ending.hold(self.operator, kinds.NODESET, obj)
        nodeset, cluster, problems = self._read(obj)
        if why := ending.reason(obj, self._cluster_of(obj)):
            return await self._end(obj, nodeset, cluster, why)
        if nodeset is None or cluster is None or problems:
            return await self._status(obj, nodeset, Told("; ".join(map(str, problems)), "InvalidSpec"))
        if refused := gather.refusal(self.operator, cluster):
            return await self._status(obj, nodeset, Told(refused, "ClusterRefused"))
        look = self._look(cluster)
        if waiting := self._waiting(cluster, look):
            return await self._status(obj, nodeset, Told(waiting, "ClusterNotReady"))
        if look.step.hold:
            return await self._hold(obj, cluster, nodeset, look)
        if missing := gather.point_wait(self.operator, cluster, [nodeset]):
            return await self._status(obj, nodeset, Told(missing, "MountPointsMissing"))
        await ending.hold(self.operator, kinds.NODESET, obj)
        await self._apply_plan(obj, cluster, nodeset)
        seen = await sick.told(self.operator, nodeset, gather.seen(self.operator, cluster, nodeset))
        note = adoption.of_nodeset(self.operator, obj, self._cluster_of(obj), cluster, seen.template)
        seen = adoption.with_same(seen, note)
        if unnamed := gather.gpu_wait(self.operator, cluster, nodeset, seen):
            return await self._status(obj, nodeset, Told(unnamed, "GpusNotNamed", seen=seen))
        if unready := gather.power_wait(self.operator, cluster, nodeset, seen):
            outcome = await self._status(obj, nodeset, Told(unready, "ClusterNotReady", seen=seen))
            return replace(outcome, again=_soonest(outcome.again, 1.0))
        workers = Workers(self.operator, obj, cluster, nodeset, is_held=lambda: self._is_held(obj))
        plan, refused = await workers.act(seen)
        found = await health.act(workers, seen)
        failed = refused or found.failed or await hints.tell(workers, seen)
        left = await ghosts.look(workers, seen)
        plan = replace(plan, said="; ".join(filter(None, (plan.said, left.said))))
        short = phases.trouble(seen) if seen.on_demand else ""
        last = self.operator.unmade.get(obj.metadata.uid)
        reason = (
            "Refused" if last and failed == last.why else "SlurmRefused" if failed else "NoCapacity" if short else ""
        )
        told = Told(failed or short, reason, plan, seen, note, found)
        outcome = await self._status(obj, nodeset, told)
        soon = found.verdict.again if found.verdict else None
        asked = sick.again(self.operator, nodeset)
        late = workers.again or (2.0 if failed else None)
        return replace(outcome, again=_soonest(outcome.again, plan.again, soon, asked, left.again, late))

    async def _end(self, obj: Custom, nodeset: NodeSet | None, cluster: Cluster | None, why: str) -> Outcome:
        """A pass over a NodeSet that is being deleted, or whose cluster is: no worker is wanted any more."""
        if ending.is_ending(obj) and not ending.holds(obj):
            return Outcome("it is being deleted")
        plan, failed = Plan(), ""
        if nodeset and cluster and ending.has_controller(self.operator, cluster.key):
            seen = gather.seen(self.operator, cluster, nodeset, why)
            plan, failed = await Workers(self.operator, obj, cluster, nodeset).act(seen)
        rest = ending.rest_of_nodeset(self.operator, obj, nodeset, cluster)
        if rest.waits and nodeset and cluster:
            failed = await repair.of_nodeset(self.operator, obj, cluster, nodeset) or failed
        if ending.is_ending(obj) and rest.nothing:
            await ending.give_up(self.operator, obj)
            await ending.let_go(self.operator, kinds.NODESET, obj)
            return Outcome(f"it is let go: {rest.nothing}")
        said = f"{why.removeprefix(REASON_PREFIX)}; {rest.waits or rest.nothing}"
        outcome = await self._status(obj, nodeset, Told("; ".join(filter(None, (said, failed))), "Deleting", plan))
        return replace(outcome, again=_soonest(outcome.again, plan.again, 2.0))

    async def tell(self, key: Key, error: Exception) -> None:
        """Show what stopped a pass."""
        await self.operator.tell_error(kinds.NODESET, self.operator.stores.nodesets.get(*key), error)

    def _cluster_of(self, obj: Custom) -> Custom | None:
        return self.operator.stores.clusters.get(obj.metadata.namespace, named(obj))

    def _read(self, obj: Custom) -> tuple[NodeSet | None, Cluster | None, Sequence[Problem]]:
        read = read_nodeset(obj)
        if isinstance(read, list):
            return None, None, read
        problems = self.operator.namespaces.of(read.namespace).refused.get(read.name, ())
        found = self.operator.stores.clusters.get(read.namespace, read.spec.cluster)
        cluster = read_cluster(found) if found else None
        if not isinstance(cluster, Cluster) or found is None:
            return read, None, [*problems, *([_unreadable(read)] if found else [])]
        cluster = replace(cluster, anchor=anchor.uid(self.operator, cluster.key))
        return read, images.of_workers(self.operator, found, cluster), problems

    def _look(self, cluster: Cluster) -> jail.Look:
        found = self.operator.stores.clusters.get(cluster.namespace, cluster.name)
        assert found is not None  # it was read a moment ago, and nobody else runs in between
        return jail.look(self.operator, found, cluster)

    def _is_held(self, obj: Custom) -> bool:
        """Whether the jail is being replaced, as the caches have it now."""
        _, cluster, _ = self._read(obj)
        return cluster is not None and self._look(cluster).step.hold

    def _waiting(self, cluster: Cluster, look: jail.Look) -> str:
        """Why no worker can be made yet; a cluster that had login before has a jail, whatever became of the Job that filled it."""
        sets = self.operator.stores.children[kinds.STATEFULSET]
        if sets.get(cluster.namespace, names.login(cluster.name)) is not None:
            return ""
        if sets.get(cluster.namespace, names.controller(cluster.name)) is None:
            return f"SlurmCluster {cluster.name} has no controller yet; its own status says why"
        return jail.why_not(self.operator, cluster, look)

    async def _hold(self, obj: Custom, cluster: Cluster, nodeset: NodeSet, look: jail.Look) -> Outcome:
        """While the jail is being replaced no worker comes or goes, but for pods that have not started."""
        seen = gather.seen(self.operator, cluster, nodeset)
        failed = await Workers(self.operator, obj, cluster, nodeset).take(held(seen))
        why = jail.why_not(self.operator, cluster, look) or f"the jail: {look.step.why}"
        return await self._status(obj, nodeset, Told(failed or why, "JailRefill", seen=seen))

    async def _apply_plan(self, obj: Custom, cluster: Cluster, nodeset: NodeSet) -> None:
        """Apply the mount plan, and remove those that no pod has any more."""
        plans = gather.roster(self.operator, nodeset).plans
        used = {names.jail_plan(cluster.name, nodeset.name, plan) for plan in plans}
        made = [worker.render_plan(cluster, nodeset), *checks.render(cluster, nodeset)]
        owner = Owner.of(kinds.NODESET, obj.metadata, cluster.anchored)
        await self.operator.applier.apply(owner, made, [kinds.CONFIGMAP], used)

    async def _status(self, obj: Custom, nodeset: NodeSet | None, told: Told) -> Outcome:
        name, namespace = obj.metadata.name, obj.metadata.namespace
        found = self.operator.stores.pods.by("nodeset", (namespace, name))
        role = gather.workers(self.operator, nodeset) if nodeset else Role()
        short = f"{role} workers ready: {role.trouble}" if role.is_short else ""
        why = "; ".join(part for part in (told.trouble or short, told.plan.said) if part)
        fields = {
            "replicas": len(found),
            "ready": role.ready,
            **(gather.counts(self.operator, nodeset, told.seen, self.operator.status.current(obj)) if nodeset else {}),
            "selector": ",".join(f"{key}={value}" for key, value in labels.worker(named(obj), name).items()),
            "why": why,
            **adoption.told(told.note, obj),
        }
        again = await self.operator.tell(kinds.NODESET, obj, fields, conditions(told, short))
        return Outcome(why or f"{role} workers ready", again)


def conditions(told: Told, short: str) -> list[Condition]:
    """The conditions of a NodeSet: whether its workers take jobs, and whether nothing is being done to them."""
    refused = registration.shortfall(told.seen) if short and told.seen else ""
    bad, said = told.trouble or "; ".join(filter(None, (short, refused))), told.plan.said
    return [
        Condition(
            "Available",
            "False" if bad else "True",
            told.reason or ("WorkersMissing" if bad else "AllReady"),
            bad,
        ),
        Condition("Settled", "False" if said else "True", "Changing" if said else "Settled", said),
        *told.checks.conditions,
    ]


def _unreadable(nodeset: NodeSet) -> Problem:
    remedy = "this operator cannot read that SlurmCluster, whose own status says why; until it can, the workers stay as they are"
    return Problem("spec.cluster", nodeset.spec.cluster, remedy, f"NodeSet {nodeset.name}")


def _gone(pods: int) -> str:
    """What a pass says of a NodeSet that is gone; pods are left where somebody took its finalizer away, for their jobs may run."""
    left = "delete them, or make the NodeSet again, which takes them over"
    return f"it is gone, and {pods} of its pods are left: {left}" if pods else "it is gone"


def _soonest(*moments: float | None) -> float | None:
    return min((each for each in moments if each is not None), default=None)
