"""Reconciles SlurmAccounts and SlurmQOS: gathers, decides, runs sacctmgr and reports. A `Tenant` holds what differs between the two kinds.

The status records which fields were set, and is written before they are set, so that a crash loses none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soperator.api.base import Problem
from soperator.kube.kinds import Kind
from soperator.kube.views import Custom
from soperator.policy.associations.accounts import (
    Applied,
    Jobs,
    SacctmgrPlan,
    Words,
)
from soperator.reconcile import finalizers
from soperator.reconcile.associations.sacctmgr_client import (
    FRESH,
    PERIOD,
    RETRY,
    SacctmgrClient,
)
from soperator.reconcile.cache.decode import field as text_of
from soperator.reconcile.cache.decode import read_cluster
from soperator.reconcile.cache.informers import CLUSTER
from soperator.reconcile.cache.per_object import Slot, per_object
from soperator.reconcile.context import Operator
from soperator.reconcile.memory import object_memory
from soperator.render.parts import labels
from soperator.render.parts.model import Cluster
from soperator.runtime.cache.store import Key, Store
from soperator.runtime.controller import PassOutcome
from soperator.runtime.status import ReportedCondition
from soperator.slurm.sacctmgr import AssociationTable
from soperator.slurmrest.client import SlurmError

#: The commands that were run last for an object.
_RAN: Slot[str, tuple[Words, ...]] = per_object("commands that changed Slurm's database")
_SOON = 0.2


@dataclass(frozen=True)
class Tenant:
    """One object, as the pass needs it: its name in Slurm, its desired state, the squeue option that selects its jobs, and its own status fields."""

    name: str
    cluster: Key
    deletes: bool
    applied: Applied
    squeue: Sequence[str]
    plan: Callable[[AssociationTable, Applied, Jobs | None], SacctmgrPlan]
    undo: Callable[[AssociationTable, Jobs | None], SacctmgrPlan]
    tell: Callable[[AssociationTable | None], Mapping[str, Any]]
    #: The QOS, which all clusters of the database share.
    shared: str = ""


@dataclass(frozen=True)
class TenancyControl:
    """Keeps the objects of one kind in sync with Slurm's database."""

    operator: Operator
    ledger: SacctmgrClient
    kind: Kind
    store: Store[Custom]
    read: Callable[[Custom], Tenant | Sequence[Problem]]

    async def reconcile(self, key: Key) -> PassOutcome:
        """Reconcile one object; return the result, and the seconds until the next pass."""
        obj = self.store.get(*key)
        if obj is None:
            return PassOutcome("it is gone", is_gone=True)
        await self._recall(obj)
        tenant = self.read(obj)
        if not isinstance(tenant, Tenant):
            return await (self._let_go(obj) if finalizers.is_ending(obj) else self._refuse(obj, tenant))
        if finalizers.is_ending(obj):
            return await self._end(obj, tenant)
        holder = self._holder(obj, tenant)
        if holder is not obj:
            why = f"{self.kind} {holder.metadata.name} is older and already has the name {tenant.name}: delete or rename one of the two"
            return await self._wait(obj, tenant, "Taken", why)
        cluster, why = self._cluster(tenant)
        if cluster is None:
            return await self._wait(obj, tenant, "Waiting", why)
        if tenant.deletes:
            await finalizers.add_finalizer(self.operator, self.kind, obj)
        elif finalizers.has_finalizer(obj):
            await finalizers.remove_finalizer(self.operator, self.kind, obj)
        return await self._pass(obj, tenant, cluster)

    async def report_error(self, key: Key, error: Exception) -> None:
        """Report the cause that stopped a pass, in the conditions of the object."""
        if obj := self.store.get(*key):
            await self.operator.write_error_status(self.kind, obj, error)

    async def _pass(self, obj: Custom, tenant: Tenant, cluster: Cluster) -> PassOutcome:
        before = self._known(obj)
        is_new = self.operator.status.mine(obj).get("observedGeneration") != obj.metadata.generation
        try:
            database = await self.ledger.read(cluster, FRESH if is_new else PERIOD)
            plan = tenant.plan(database, before, None)
            if plan.asks:
                plan = tenant.plan(database, before, await self.ledger.jobs(cluster, tenant.squeue))
        except SlurmError as error:
            return await self._wait(obj, tenant, "NoAnswer", str(error))
        if not plan.commands:
            return await self._done(obj, tenant, database, plan)
        if self.operator.memory(_RAN).get(obj.metadata.uid) == plan.commands:
            why = f"Slurm's database still differs although sacctmgr reported success: {_log_line(plan.commands[0])}"
            return await self._wait(obj, tenant, "Refused", why)
        union = {
            user: before.get(user, frozenset()) | tenant.applied.get(user, frozenset())
            for user in {*before, *tenant.applied}
        }
        if union != before:
            await self._remember(obj, union)
            known = ReportedCondition("Ready", "False", "Changing", "Slurm's database is being changed")
            await self.operator.write_status_at_once(
                self.kind, obj, self._fields(tenant, database, union, known.message), [known]
            )
        try:
            for each in plan.commands:
                await self.ledger.run(cluster, each)
        except SlurmError as error:
            return await self._wait(obj, tenant, "Refused", str(error))
        self.operator.memory(_RAN)[obj.metadata.uid] = plan.commands
        return PassOutcome("; ".join(_log_line(each) for each in plan.commands), _SOON)

    async def _done(self, obj: Custom, tenant: Tenant, database: AssociationTable, plan: SacctmgrPlan) -> PassOutcome:
        """Report that the object and Slurm's database agree, or what is still missing."""
        self.operator.memory(_RAN).pop(obj.metadata.uid, None)
        why = "; ".join(plan.waits)
        applied = self._known(obj) if why else tenant.applied
        await self._remember(obj, applied)
        condition = (
            ReportedCondition("Ready", "False", "Waiting", why)
            if why
            else ReportedCondition("Ready", "True", "InStep", "")
        )
        again = await self.operator.write_status(
            self.kind, obj, self._fields(tenant, database, applied, why), [condition]
        )
        return PassOutcome(why or "Slurm's database matches the spec", again or (RETRY if why else PERIOD))

    async def _end(self, obj: Custom, tenant: Tenant) -> PassOutcome:
        """Reconcile an object that is being deleted: undo it in Slurm's database, then remove the finalizer."""
        if not self._leaves_something(obj, tenant):
            return await self._let_go(obj)
        cluster, why = self._cluster(tenant)
        if cluster is None:
            return await self._wait(obj, tenant, "Deleting", f"it is being deleted; {why}")
        try:
            database = await self.ledger.read(cluster, FRESH)
            plan = tenant.undo(database, None)
            if plan.asks:
                plan = tenant.undo(database, await self.ledger.jobs(cluster, tenant.squeue))
            if plan.commands and tenant.shared and (users := await self.ledger.users_of(cluster, tenant.shared)):
                plan = SacctmgrPlan(
                    waits=(f"these accounts of this or another cluster still use it: {', '.join(users)}",)
                )
            for each in plan.commands:
                await self.ledger.run(cluster, each)
        except SlurmError as error:
            return await self._wait(obj, tenant, "Deleting", f"it is being deleted; {error}")
        if plan.commands:
            return PassOutcome("; ".join(_log_line(each) for each in plan.commands), _SOON)
        if plan.waits:
            return await self._wait(obj, tenant, "Deleting", f"it is being deleted; {'; '.join(plan.waits)}")
        return await self._let_go(obj)

    def _leaves_something(self, obj: Custom, tenant: Tenant) -> bool:
        """Return whether Slurm's database still has entries to delete for the object; False if the database can no longer be reached."""
        found = self.operator.stores.clusters.get(*tenant.cluster)
        cluster = read_cluster(found) if found else None
        is_off = isinstance(cluster, Cluster) and cluster.spec.accounting is None
        is_given_up = obj.metadata.annotations.get(labels.ABANDON) == "true"
        is_wanted = tenant.deletes and finalizers.has_finalizer(obj) and self._holder(obj, tenant) is obj
        return is_wanted and found is not None and not is_off and not is_given_up

    def _cluster(self, tenant: Tenant) -> tuple[Cluster | None, str]:
        """Return the cluster, if its slurmctld is connected to slurmdbd."""
        found = self.operator.stores.clusters.get(*tenant.cluster)
        if found is None:
            return None, f"there is no SlurmCluster {tenant.cluster[1]}"
        cluster = read_cluster(found)
        if not isinstance(cluster, Cluster):
            return None, f"SlurmCluster {tenant.cluster[1]} is refused: see its status"
        if cluster.spec.accounting is None:
            return None, f"SlurmCluster {cluster.name} has no accounting: set spec.accounting"
        if self.operator.status.current(found).get("accounting") != "On":
            return (
                None,
                f"SlurmCluster {cluster.name} is not connected to slurmdbd yet: see its condition AccountingReady",
            )
        return cluster, ""

    def _holder(self, obj: Custom, tenant: Tenant) -> Custom:
        """Return the oldest object that claims the same name; only this one may use the name."""
        others = self.store.by(CLUSTER, tenant.cluster)
        claims = [each for each in others if (text_of(each, "name") or each.metadata.name) == tenant.name]
        return min(
            [obj, *(each for each in claims if each.metadata.uid != obj.metadata.uid)],
            key=lambda each: (str(each.metadata.creation_timestamp), each.metadata.name),
        )

    async def _refuse(self, obj: Custom, problems: Iterable[Problem]) -> PassOutcome:
        said = "; ".join(map(str, problems))
        kept = {"applied": _written(self._known(obj))}
        await self.operator.write_status(
            self.kind, obj, {**kept, "why": said}, [ReportedCondition("Ready", "False", "InvalidSpec", said)]
        )
        return PassOutcome(said)

    async def _wait(self, obj: Custom, tenant: Tenant, reason: str, why: str) -> PassOutcome:
        fields = self._fields(tenant, None, self._known(obj), why)
        again = await self.operator.write_status(
            self.kind, obj, fields, [ReportedCondition("Ready", "False", reason, why)]
        )
        return PassOutcome(why, again or (PERIOD if reason in ("Refused", "Taken") else RETRY))

    async def _let_go(self, obj: Custom) -> PassOutcome:
        if not finalizers.has_finalizer(obj):
            return PassOutcome("it is being deleted")
        if self.kind in object_memory.FIELDS:
            await object_memory.forget(self.operator, self.kind, obj)
        await finalizers.remove_finalizer(self.operator, self.kind, obj)
        return PassOutcome("it is let go")

    def _fields(self, tenant: Tenant, database: AssociationTable | None, applied: Applied, why: str) -> dict[str, Any]:
        return {**tenant.tell(database), "applied": _written(applied), "why": why}

    async def _recall(self, obj: Custom) -> None:
        if self.kind in object_memory.FIELDS:
            await object_memory.recall(self.operator, self.kind, obj)

    def _known(self, obj: Custom) -> Applied:
        """Return the limits of users that the object has set, so that limits removed from its spec are cleared. A SlurmQOS has none."""
        return _applied(object_memory.known(self.operator, self.kind, obj)) if self.kind in object_memory.FIELDS else {}

    async def _remember(self, obj: Custom, applied: Applied) -> None:
        if self.kind in object_memory.FIELDS:
            await object_memory.remember(self.operator, self.kind, obj, {"applied": _written(applied)})


def _written(applied: Applied) -> list[dict[str, Any]]:
    return [{"user": user, "fields": sorted(fields)} for user, fields in sorted(applied.items()) if fields]


def _applied(status: Mapping[str, Any]) -> Applied:
    return {each.get("user", ""): frozenset(each.get("fields", ())) for each in status.get("applied", ())}


def _log_line(words: Sequence[str]) -> str:
    """Return the command as a log line; long values are shortened."""
    return " ".join(words)[:200]
