"""The pass of a NodeSet: gather, decide, act, status."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from soperator.api.base import Problem
from soperator.control import gather
from soperator.control.operator import Operator
from soperator.control.read import named, read_cluster, read_nodeset
from soperator.decide.admission import nodeset_problems
from soperator.decide.availability import Role
from soperator.decide.workers import Action, Create, Delete, Drain, Forget, Resume, Seen, decide
from soperator.kube import kinds
from soperator.kube.api import Deletion
from soperator.kube.errors import AlreadyExists
from soperator.kube.views import Custom
from soperator.render import labels, names, worker
from soperator.render.model import Cluster, NodeSet
from soperator.runtime.apply import Owner
from soperator.runtime.controller import Outcome, Retry
from soperator.runtime.events import Note, Regarding
from soperator.runtime.status import Condition
from soperator.runtime.store import Key
from soperator.slurmrest.client import SlurmError, SlurmRest

_AT_ONCE = 16


@dataclass(frozen=True)
class NodeSetControl:
    """Brings the workers of one NodeSet to what its spec says."""

    operator: Operator

    async def reconcile(self, key: Key) -> Outcome:
        """One pass."""
        obj = self.operator.stores.nodesets.get(*key)
        if obj is None:
            return Outcome("it is gone", last=True)
        if obj.metadata.deletion_timestamp is not None:
            return Outcome("it is being deleted")
        nodeset, cluster, problems = self._read(obj)
        if nodeset is None or cluster is None or problems:
            return await self._status(obj, nodeset, "; ".join(map(str, problems)), "InvalidSpec")
        if refused := gather.refusal(self.operator, cluster):
            return await self._status(obj, nodeset, refused, "ClusterRefused")
        if waiting := self._waiting(cluster):
            return await self._status(obj, nodeset, waiting, "ClusterNotReady")
        if missing := gather.point_wait(self.operator, cluster, [nodeset]):
            return await self._status(obj, nodeset, missing, "MountPointsMissing")
        await self._apply_plan(obj, cluster, nodeset)
        failed = await self._act(obj, cluster, nodeset)
        outcome = await self._status(obj, nodeset, failed, "SlurmRefused" if failed else "")
        return replace(outcome, again=2.0) if failed else outcome

    async def tell(self, key: Key, error: Exception) -> None:
        """Show what stopped a pass."""
        await self.operator.tell_error(kinds.NODESET, self.operator.stores.nodesets.get(*key), error)

    def _read(self, obj: Custom) -> tuple[NodeSet | None, Cluster | None, Sequence[Problem]]:
        read = read_nodeset(obj)
        if isinstance(read, list):
            return None, None, read
        world = gather.world(self.operator, read.namespace)
        found = self.operator.stores.clusters.get(read.namespace, read.spec.cluster)
        cluster = read_cluster(found) if found else None
        return read, cluster if isinstance(cluster, Cluster) else None, nodeset_problems(read.name, world)

    def _waiting(self, cluster: Cluster) -> str:
        """Why no worker can be made yet; a cluster that had login before has a jail, whatever became of the Job that filled it."""
        if gather.has_login(self.operator, cluster):
            return ""
        if (
            self.operator.stores.children[kinds.STATEFULSET].get(cluster.namespace, names.controller(cluster.name))
            is None
        ):
            return f"SlurmCluster {cluster.name} has no controller yet; its own status says why"
        return gather.jail_wait(self.operator, cluster)

    async def _apply_plan(self, obj: Custom, cluster: Cluster, nodeset: NodeSet) -> None:
        """Apply the mount plan, and remove those that no pod has any more."""
        pods = self.operator.stores.pods.by("nodeset", (nodeset.namespace, nodeset.name))
        plans = {pod.metadata.annotations.get(labels.PLAN, "") for pod in pods}
        used = {names.jail_plan(cluster.name, nodeset.name, plan) for plan in plans}
        made = [worker.render_plan(cluster, nodeset)]
        await self.operator.applier.apply(Owner.of(kinds.NODESET, obj.metadata), made, [kinds.CONFIGMAP], used)

    async def _act(self, obj: Custom, cluster: Cluster, nodeset: NodeSet) -> str:
        """Take the actions; return what Slurm refused, in one sentence. Records go before pods come, and hold none of them up."""
        seen = gather.seen(self.operator, cluster, nodeset)
        client = self.operator.slurm.client((cluster.namespace, cluster.name))
        actions, failed = await _chosen(seen, client)
        forgotten = await self._take_all(obj, cluster, nodeset, [each for each in actions if isinstance(each, Forget)])
        await self._create(cluster, nodeset, [each for each in actions if isinstance(each, Create)])
        others = [each for each in actions if not isinstance(each, Create | Forget)]
        return await self._take_all(obj, cluster, nodeset, others) or forgotten or failed

    async def _take_all(self, obj: Custom, cluster: Cluster, nodeset: NodeSet, actions: Sequence[Action]) -> str:
        client = self.operator.slurm.client((cluster.namespace, cluster.name))
        for each in actions:
            try:
                await self._take(each, nodeset, cluster, client)
            except SlurmError as error:
                return f"{names.slurm_node(nodeset.name, each.index)}: {error}"
            self._tell(obj, each, nodeset)
        return ""

    async def _create(self, cluster: Cluster, nodeset: NodeSet, creations: Sequence[Create]) -> None:
        slots = asyncio.Semaphore(_AT_ONCE)

        async def create(each: Create) -> None:
            async with slots:
                try:
                    made = worker.render_worker(cluster, nodeset, each.index, self.operator.defaults)
                    await self.operator.api.create(kinds.POD, made)
                except AlreadyExists as error:
                    pod = self.operator.stores.pods.get(
                        nodeset.namespace, names.worker_pod(cluster.name, nodeset.name, each.index)
                    )
                    if pod is not None and pod.metadata.labels.get(labels.NODESET) != nodeset.name:
                        raise Retry(f"the name of pod {pod.metadata.name} is taken by another NodeSet") from error

        await asyncio.gather(*map(create, creations))

    async def _take(self, action: Action, nodeset: NodeSet, cluster: Cluster, client: SlurmRest | None) -> None:
        node = names.slurm_node(nodeset.name, action.index)
        match action:
            case Delete(index):
                await self._delete(names.worker_pod(cluster.name, nodeset.name, index), nodeset)
            case Drain(_, why) if client:
                await client.drain(node, why)
            case Resume() if client:
                await client.resume(node)
            case Forget() if client:
                await client.delete(node)

    async def _delete(self, name: str, nodeset: NodeSet) -> None:
        pod = self.operator.stores.pods.get(nodeset.namespace, name)
        if pod is not None:
            await self.operator.api.delete(kinds.POD, nodeset.namespace, name, Deletion(uid=pod.metadata.uid))

    def _tell(self, obj: Custom, action: Action, nodeset: NodeSet) -> None:
        node, verb = names.slurm_node(nodeset.name, action.index), type(action).__name__
        self.operator.recorder.emit(
            Regarding(kinds.NODESET, obj.metadata), Note("Normal", verb, f"{node}: {action.why}", verb)
        )

    async def _status(self, obj: Custom, nodeset: NodeSet | None, trouble: str, reason: str) -> Outcome:
        name, namespace = obj.metadata.name, obj.metadata.namespace
        found = self.operator.stores.pods.by("nodeset", (namespace, name))
        role = gather.workers(self.operator, nodeset) if nodeset else Role()
        why = trouble or (f"{role} workers ready: {role.trouble}" if role.is_short else "")
        fields = {
            "replicas": len(found),
            "ready": role.ready,
            "selector": ",".join(f"{key}={value}" for key, value in labels.worker(named(obj), name).items()),
            "why": why,
        }
        available = not why
        said = Condition(
            "Available",
            "True" if available else "False",
            reason or ("AllReady" if available else "WorkersMissing"),
            why,
        )
        again = await self.operator.tell(kinds.NODESET, obj, fields, [said])
        return Outcome(why or f"{role} workers ready", again)


async def _chosen(seen: Seen, client: SlurmRest | None) -> tuple[Sequence[Action], str]:
    """The actions, decided with a fresh look at Slurm where it has a record; without an answer only what is to be made, and why."""
    actions = decide(seen)
    if client is None or not any(seen.node(each.index) for each in actions):
        return actions, ""
    try:
        return decide(replace(seen, nodes=await client.nodes())), ""
    except SlurmError as error:
        return [
            each for each in actions if isinstance(each, Create)
        ], f"Slurm does not answer, so its nodes stay as they are: {error}"
