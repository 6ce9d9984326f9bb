"""Converts Kubernetes Nodes to the values that the policy for workers reads, and queues passes when they change.

A Node is updated every few seconds. A pass is queued only for a change that the policy or the topology reads.
"""

from collections.abc import Callable, Iterable, Iterator

from soperator.api.fields.change import Maintenance
from soperator.kube.objects import Node
from soperator.policy.workers.types import KubeNode
from soperator.runtime.cache.store import Changed, Key
from soperator.runtime.workqueue import Queue


def machine(node: Node, maintenance: Maintenance) -> KubeNode:
    """Return the Node as the policy reads it, with the NodeSet's settings for maintenance."""
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    since = ready.last_transition_time if ready else node.metadata.creation_timestamp
    mine = [taint for taint in node.spec.taints if taint.key in maintenance.taints]
    closed = node.spec.unschedulable or any(taint.effect == "NoSchedule" for taint in mine)
    return KubeNode(
        name=node.metadata.name,
        ready=bool(ready and ready.status == "True"),
        since=since.timestamp() if since else 0.0,
        leaving=next(_causes(node, maintenance), ""),
        expels=closed and any(taint.effect == "NoExecute" for taint in mine),
    )


def wake(queue: Queue, keys: Callable[[str], Iterable[Key]]) -> Callable[[Changed[Node]], None]:
    """Return a listener that queues the passes of a Node's NodeSets when a relevant field changes."""

    def listener(change: Changed[Node]) -> None:
        if _matters(change.old) != _matters(change.new):
            for node in (change.old, change.new):
                for key in keys(node.metadata.name) if node else ():
                    queue.add(key)

    return listener


def wake_moved(queue: Queue, keys: Callable[[str], Iterable[Key]]) -> Callable[[Changed[Node]], None]:
    """Return a listener that queues the passes of a Node whose topology labels have changed."""

    def listener(change: Changed[Node]) -> None:
        if change.old and change.new and change.old.metadata.labels != change.new.metadata.labels:
            for key in keys(change.new.metadata.name):
                queue.add(key)

    return listener


def _causes(node: Node, maintenance: Maintenance) -> Iterator[str]:
    name = f"Node {node.metadata.name}"
    for taint in node.spec.taints:
        if taint.key in maintenance.taints:
            yield f"{name} has the taint {taint.key}"
    for condition in node.status.conditions:
        if condition.type in maintenance.conditions and condition.status == "True":
            yield f"{name} has the condition {condition.type}"
    for key in maintenance.annotations:
        if node.metadata.annotations.get(key, "false") != "false":
            yield f"{name} has the annotation {key}"
    if maintenance.cordon and node.spec.unschedulable:
        yield f"{name} is cordoned"


def _matters(node: Node | None) -> object:
    if node is None:
        return None
    conditions = frozenset((each.type, each.status) for each in node.status.conditions)
    return node.spec, conditions, tuple(sorted(node.metadata.annotations.items()))
