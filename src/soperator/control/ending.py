"""Deleting a NodeSet or a SlurmCluster: jobs first, then pods, then the rest, and never a deletion that hangs for ever.

A finalizer of ours keeps the object until its workers are drained (as `drain` of the NodeSet says), their pods gone and, as far as slurmctld
answers, their records removed. A SlurmCluster keeps its slurmctld until no worker of any NodeSet is left. It ends at once where waiting cannot
help: no worker pod is left, nobody is there who could be asked (the cluster or its controller is gone), or a person gave the jobs up by an
annotation. Without the operator a person removes the finalizer; docs/howto/uninstall.md has the commands.
"""

import contextlib
from dataclasses import dataclass

from soperator.control import gather, pods
from soperator.control.operator import Operator
from soperator.decide import drain
from soperator.kube import kinds
from soperator.kube.errors import Conflict, NotFound
from soperator.kube.kinds import Kind
from soperator.kube.views import Custom, Pod
from soperator.render import labels, names
from soperator.render.model import Cluster, NodeSet


def is_ending(obj: Custom) -> bool:
    """Whether somebody has deleted the object."""
    return obj.metadata.deletion_timestamp is not None


def holds(obj: Custom) -> bool:
    """Whether the object waits for us."""
    return labels.FINALIZER in obj.metadata.finalizers


async def hold(operator: Operator, kind: Kind, obj: Custom) -> None:
    """Let an object wait for us when it is deleted; called before its first child is made."""
    if not holds(obj) and obj.metadata.uid not in operator.held:
        await _write(operator, kind, obj, [labels.FINALIZER])
        operator.held.add(obj.metadata.uid)


async def let_go(operator: Operator, kind: Kind, obj: Custom) -> None:
    """Let a deleted object go."""
    operator.held.discard(obj.metadata.uid)
    await _write(operator, kind, obj, [])


def reason(obj: Custom, cluster: Custom | None) -> str:
    """With which reason a NodeSet's nodes drain because it, or its cluster, is being deleted; empty while neither is."""
    if is_ending(obj):
        return drain.ENDING
    return drain.CLUSTER_ENDING if cluster is not None and is_ending(cluster) else ""


@dataclass(frozen=True)
class Rest:
    """What is left of a deletion: why nothing is waited for, or what is."""

    nothing: str = ""
    waits: str = ""


def rest_of_nodeset(operator: Operator, obj: Custom, nodeset: NodeSet | None, cluster: Cluster | None) -> Rest:
    """What the deletion of a NodeSet still waits for."""
    key = (obj.metadata.namespace, obj.metadata.name)
    left = [pod for pod in operator.stores.pods.by("nodeset", key) if is_left(operator, pod)]
    if obj.metadata.annotations.get(labels.ABANDON) == "true":
        return Rest(nothing=f"the annotation {labels.ABANDON} gives its jobs up")
    if nodeset is None or cluster is None or not has_controller(operator, cluster):
        return Rest(nothing="there is no slurmctld whose jobs could run")
    if left:
        return Rest(waits=f"workers left: {len(left)}")
    seen = gather.seen(operator, cluster, nodeset, drain.ENDING)
    if seen.nodes is not None:
        return Rest(waits="Slurm still has records of it") if seen.is_known else Rest(nothing="no worker is left")
    silent = operator.slurm.trouble(cluster.key) or not gather.is_rest_ready(operator, cluster)
    return Rest(nothing="no worker is left, and Slurm does not answer") if silent else Rest(waits="Slurm is asked")


def rest_of_cluster(operator: Operator, obj: Custom) -> Rest:
    """What the deletion of a SlurmCluster still waits for."""
    key = (obj.metadata.namespace, obj.metadata.name)
    left = [pod for pod in operator.stores.role_pods(key, "worker") if is_left(operator, pod)]
    if obj.metadata.annotations.get(labels.ABANDON) == "true":
        return Rest(nothing=f"the annotation {labels.ABANDON} gives its jobs up")
    if operator.stores.children[kinds.STATEFULSET].get(key[0], names.controller(key[1])) is None:
        return Rest(nothing="it has no slurmctld")
    return Rest(waits=f"workers left: {len(left)}") if left else Rest(nothing="no worker is left")


def has_controller(operator: Operator, cluster: Cluster) -> bool:
    """Whether a slurmctld is kept for the cluster, running or not."""
    name = names.controller(cluster.name)
    return operator.stores.children[kinds.STATEFULSET].get(cluster.namespace, name) is not None


def is_left(operator: Operator, pod: Pod) -> bool:
    """Whether a pod still has to go; one that is deleted on a Node that does not answer goes when that Node does."""
    node = operator.stores.nodes.get("", pod.spec.node_name) if pod.spec.node_name else None
    silent = bool(pod.spec.node_name) and (node is None or not pods.is_node_ready(node))
    return pod.metadata.deletion_timestamp is None or not silent


async def _write(operator: Operator, kind: Kind, obj: Custom, finalizers: list[str]) -> None:
    meta = obj.metadata
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "finalizers": finalizers},
    }
    with contextlib.suppress(Conflict, NotFound):
        await operator.api.apply(kind, body)
