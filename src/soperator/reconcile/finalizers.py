"""Deletes a NodeSet or a SlurmCluster: its jobs end first, then its pods, then the rest. A deletion never hangs for ever.

Our finalizer keeps the object until its workers are drained (as `drain` of the NodeSet says), their pods deleted and, if slurmctld answers, their
records removed. A SlurmCluster keeps its slurmctld until no worker of any NodeSet is left. The anchor does the same for the children (`anchor`).

A deletion completes at once if waiting cannot help. That is so if no worker pod is left; if no slurmctld can answer (no StatefulSet, no pod, and no
SlurmCluster that would restore it); or if a person gave up the jobs by an annotation. An unknown state keeps the object: a spec that this operator
cannot read does not show whether jobs run. Without the operator a person removes the finalizer; docs/howto/uninstall.md has the commands.
"""

import contextlib
from dataclasses import dataclass

from soperator.kube import kinds
from soperator.kube.api import Deletion
from soperator.kube.errors import Conflict, NotFound
from soperator.kube.kinds import Kind
from soperator.kube.views import Custom, ObjectMeta, Pod
from soperator.policy import drain_reasons
from soperator.reconcile import external_nodes, inputs, pod_status
from soperator.reconcile.cache.decode import named, read_cluster, read_nodeset
from soperator.reconcile.cache.per_object import Slot, per_object
from soperator.reconcile.context import Operator
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster, NodeSet
from soperator.runtime.cache.store import Key

#: The version of an object that got our finalizer: the cache may not show that write yet.
_HELD: Slot[str, str] = per_object("versions that got our finalizer")
#: The finalizers that the API server sets for the garbage collector.
_OF_COLLECTOR = frozenset({"foregroundDeletion", "orphan"})


def is_ending(obj: Custom) -> bool:
    """Return whether somebody has deleted the object."""
    return obj.metadata.deletion_timestamp is not None


def has_finalizer(obj: Custom) -> bool:
    """Return whether the object has our finalizer."""
    return labels.FINALIZER in obj.metadata.finalizers


def is_collected(meta: ObjectMeta) -> bool:
    """Return whether the garbage collector still processes the dependents of an object that was deleted in the foreground, or with `orphan`."""
    return not _OF_COLLECTOR.isdisjoint(meta.finalizers)


async def add_finalizer(operator: Operator, kind: Kind, obj: Custom) -> None:
    """Add our finalizer to an object; called before the first child of the object is created."""
    meta = obj.metadata
    if has_finalizer(obj):
        operator.memory(_HELD).pop(meta.uid, None)  # whoever removes the finalizer later finds it put back
    elif operator.memory(_HELD).get(meta.uid) != meta.resource_version:  # the cache may not show our write yet
        operator.memory(_HELD)[meta.uid] = meta.resource_version
        await _write(operator, kind, obj, [labels.FINALIZER])


async def give_up(operator: Operator, obj: Custom) -> None:
    """Delete the pods of a deleted NodeSet, which the anchor would otherwise keep."""
    left = operator.stores.pods.by("nodeset", (obj.metadata.namespace, obj.metadata.name))
    for meta in (each.metadata for each in left if each.metadata.deletion_timestamp is None):
        await operator.api.delete(kinds.POD, meta.namespace, meta.name, Deletion(uid=meta.uid))


async def remove_finalizer(operator: Operator, kind: Kind, obj: Custom) -> None:
    """Remove our finalizer, so that Kubernetes deletes the object."""
    operator.memory(_HELD).pop(obj.metadata.uid, None)
    await _write(operator, kind, obj, [])


def reason(obj: Custom, cluster: Custom | None) -> str:
    """Return the reason of a NodeSet's drains while it, or its cluster, is being deleted; empty if neither is."""
    if is_ending(obj):
        return drain_reasons.ENDING
    return drain_reasons.CLUSTER_ENDING if cluster is not None and is_ending(cluster) else ""


@dataclass(frozen=True)
class DeletionProgress:
    """The progress of a deletion: what it waits for, or why it has nothing to wait for; exactly one of the two is set."""

    nothing: str = ""
    waits: str = ""


def rest_of_nodeset(
    operator: Operator, obj: Custom, nodeset: NodeSet | None, cluster: Cluster | None
) -> DeletionProgress:
    """Return the progress of a NodeSet's deletion.

    `nodeset` or `cluster` is None if its spec is unreadable, which is not a reason to end a job.
    """
    meta, of = obj.metadata, (obj.metadata.namespace, named(obj))
    left = [pod for pod in operator.stores.pods.by("nodeset", (meta.namespace, meta.name)) if is_left(operator, pod)]
    if obj.metadata.annotations.get(labels.ABANDON) == "true":
        return DeletionProgress(nothing=f"the annotation {labels.ABANDON} gives up its jobs")
    homes = {of, *((meta.namespace, each.metadata.labels.get(labels.CLUSTER, "")) for each in left)}
    if not any(has_controller(operator, each) or (left and _comes_back(operator, each)) for each in homes):
        return DeletionProgress(nothing="no slurmctld exists whose jobs could run")
    if left:
        unread = _unread(operator, obj) if nodeset is None or cluster is None else ""
        return DeletionProgress(waits=f"workers left: {len(left)}{unread}")
    if nodeset is None or cluster is None:
        return DeletionProgress(nothing="no worker is left")
    seen = inputs.seen(operator, cluster, nodeset, drain_reasons.ENDING)
    if seen.nodes is not None:
        return (
            DeletionProgress(waits="Slurm still has records of it")
            if seen.is_known
            else DeletionProgress(nothing="no worker is left")
        )
    silent = operator.slurm.trouble(cluster.key) or not inputs.is_rest_ready(operator, cluster)
    return (
        DeletionProgress(nothing="no worker is left, and Slurm does not answer")
        if silent
        else DeletionProgress(waits="Slurm's answer is pending")
    )


def workers_left(operator: Operator, key: Key) -> int:
    """Return the number of a cluster's workers that still have to be deleted."""
    return sum(is_left(operator, pod) for pod in operator.stores.role_pods(key, "worker"))


def rest_of_cluster(operator: Operator, obj: Custom) -> DeletionProgress:
    """Return the progress of a SlurmCluster's deletion."""
    key = (obj.metadata.namespace, obj.metadata.name)
    if obj.metadata.annotations.get(labels.ABANDON) == "true":
        return DeletionProgress(nothing=f"the annotation {labels.ABANDON} gives up its jobs")
    if left := workers_left(operator, key):
        return DeletionProgress(waits=f"workers left: {left}")
    if not has_controller(operator, key):
        return DeletionProgress(nothing="it has no slurmctld")
    jobs = external_nodes.busy(operator, key) or _unseen(operator, key)
    return DeletionProgress(waits=jobs) if jobs else DeletionProgress(nothing="no worker is left")


def _unseen(operator: Operator, key: Key) -> str:
    """Return the nodes of the cluster's NodeSets that are busy in Slurm although they have no pod; empty if there are none.

    Somebody may have removed the labels of such a pod. The jobs of a deleted NodeSet do not count, because they were given up.
    """
    sets = {each.metadata.name for each in operator.stores.nodesets_of(key)}
    found = (operator.slurm.nodes(key) or {}).values()
    working = [each for each in found if each.is_busy and each.name.rpartition("-")[0] in sets]
    return f"jobs on {external_nodes.named(working)}, whose pods are not found" if working else ""


def has_begun(operator: Operator, key: Key) -> bool:
    """Return whether a cluster needs a finalizer and an anchor: it does if it has a slurmctld, whatever its current spec."""
    return operator.stores.children[kinds.STATEFULSET].get(key[0], names.controller(key[1])) is not None


def has_controller(operator: Operator, key: Key) -> bool:
    """Return whether a slurmctld exists that may have jobs: its StatefulSet or one of its pods exists, or Slurm answers."""
    is_kept = has_begun(operator, key) or operator.slurm.nodes(key) is not None
    return is_kept or any(is_left(operator, each) for each in operator.stores.role_pods(key, "controller"))


def _comes_back(operator: Operator, key: Key) -> bool:
    """Return whether the reconciler of a SlurmCluster restores a missing slurmctld: it does while any worker is left."""
    obj = operator.stores.clusters.get(*key)
    return obj is not None and (not is_ending(obj) or has_finalizer(obj))


def is_left(operator: Operator, pod: Pod) -> bool:
    """Return whether a pod still has to be deleted.

    A pod that is being deleted on a Node that does not answer does not count: it ends with its Node.
    """
    node = operator.stores.nodes.get("", pod.spec.node_name) if pod.spec.node_name else None
    silent = bool(pod.spec.node_name) and (node is None or not pod_status.is_node_ready(node))
    return pod.metadata.deletion_timestamp is None or not silent


def _unread(operator: Operator, obj: Custom) -> str:
    """Return why the operator cannot drain the workers of a NodeSet, and the remedy."""
    found = operator.stores.clusters.get(obj.metadata.namespace, named(obj))
    problems = next(
        (each for each in (read_nodeset(obj), read_cluster(found) if found else []) if isinstance(each, list)), []
    )
    why = str(problems[0]) if problems else f"SlurmCluster {named(obj)} no longer exists, but its slurmctld still runs"
    return f"; {why}; or set the annotation {labels.ABANDON}=true to give up their jobs"


async def _write(operator: Operator, kind: Kind, obj: Custom, finalizers: list[str]) -> None:
    meta = obj.metadata
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "finalizers": finalizers},
    }
    with contextlib.suppress(Conflict, NotFound):
        await operator.api.apply(kind, body)
