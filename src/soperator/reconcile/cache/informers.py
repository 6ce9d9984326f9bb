"""The operator's caches of Kubernetes objects, and the passes that each change wakes.

There is one informer per kind. Children are selected by our own label, so that the other pods of a busy Kubernetes cluster cost nothing. All claims
are read, because a spec names them. Secrets and ConfigMaps are read as metadata only, so their content does not stay in memory.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.objects import (
    Job,
    Node,
    PersistentVolumeClaim,
    Service,
    Workload,
)
from soperator.kube.views import Custom, Meta, Pod
from soperator.reconcile import pod_status
from soperator.reconcile.cache import kube_nodes
from soperator.reconcile.cache.decode import named
from soperator.render.parts import labels, names
from soperator.runtime.cache.informer import Informer, InformerSource
from soperator.runtime.cache.store import (
    Changed,
    Key,
    Store,
    by_label,
    key_of,
)
from soperator.runtime.workqueue import Queue

OURS = f"{labels.MANAGED_BY}={labels.MANAGER}"

CLUSTER = "cluster"
NODESET = "nodeset"
MACHINE = "machine"
ROLE = "role"
SICK = "sick"
NAMESPACE = "namespace"
#: Index of workers by the uid of their NodeSet, if somebody has edited the labels by which they are found.
MISLABELLED = "mislabelled"
#: Index of children with only one of their two owners: the cluster or NodeSet, or the anchor.
LOOSE = "loose"

NO_CHECKS = "upgrade the chart soperator-crds, which has its definition; until then everything else works, but no deep checks run"

_OWNERS = frozenset({kinds.SLURMCLUSTER.kind, kinds.NODESET.kind})

#: Kinds that a pass applies or looks at, by the view that reads them.
CHILDREN: dict[kinds.Kind, Any] = {
    kinds.CONFIGMAP: Meta,
    kinds.SECRET: Meta,
    kinds.SERVICE: Service,
    kinds.STATEFULSET: Workload,
    kinds.DEPLOYMENT: Workload,
    kinds.JOB: Job,
    kinds.PDB: Meta,
    kinds.NETWORKPOLICY: Meta,
}


@dataclass(frozen=True)
class Stores:
    """The caches that passes read from."""

    clusters: Store[Custom]
    nodesets: Store[Custom]
    healthchecks: Store[Custom]
    accounts: Store[Custom]
    qos: Store[Custom]
    backups: Store[Custom]
    pods: Store[Pod]
    nodes: Store[Node]
    claims: Store[PersistentVolumeClaim]
    children: dict[kinds.Kind, Store[Any]]

    def applied(self) -> dict[kinds.Kind, Store[Any]]:
        """Return the stores with which the applier compares."""
        return {**self.children, kinds.PVC: self.claims}

    def cluster_pods(self, key: Key) -> tuple[Pod, ...]:
        """Return all pods of a cluster."""
        return self.pods.by(CLUSTER, key)

    def role_pods(self, key: Key, role: str) -> tuple[Pod, ...]:
        """Return the pods of one role of a cluster."""
        return self.pods.by(ROLE, (key, role))

    def sick_pods(self, key: Key) -> tuple[Pod, ...]:
        """Return the pods of a cluster that report that their jail cannot be entered."""
        return self.pods.by(SICK, key)

    def nodesets_of(self, key: Key) -> list[Custom]:
        """Return the NodeSets that name a cluster, oldest first."""
        return sorted(self.nodesets.by(CLUSTER, key), key=_age)

    def healthchecks_of(self, key: Key) -> tuple[Custom, ...]:
        """Return the HealthChecks that name a cluster."""
        return self.healthchecks.by(CLUSTER, key)


def _of_cluster(each: Custom) -> list[Key]:
    return [(each.metadata.namespace, named(each))]


def make_stores() -> Stores:
    """Return empty stores with the indexes that the passes use."""
    by_cluster = by_label(labels.CLUSTER)
    return Stores(
        clusters=Store({NAMESPACE: _namespace}),
        nodesets=Store({NAMESPACE: _namespace, CLUSTER: _of_cluster}),
        healthchecks=Store({NAMESPACE: _namespace, CLUSTER: _of_cluster}),
        accounts=Store({CLUSTER: _of_cluster}),
        qos=Store({CLUSTER: _of_cluster}),
        backups=Store({NAMESPACE: _namespace, CLUSTER: _of_cluster}),
        pods=Store(
            {
                CLUSTER: by_cluster,
                NODESET: by_label(labels.NODESET),
                MACHINE: lambda pod: [pod.spec.node_name] if pod.spec.node_name else [],
                ROLE: lambda pod: [(key, pod.metadata.labels.get(labels.ROLE, "")) for key in by_cluster(pod)],
                SICK: lambda pod: by_cluster(pod) if pod_status.is_jail_sick(pod) else [],
                MISLABELLED: pod_status.mislabelled,
                LOOSE: lambda pod: _loose(pod) if labels.NODESET in pod.metadata.labels else [],
            }
        ),
        nodes=Store(),
        claims=Store({NAMESPACE: _namespace, LOOSE: _loose}),
        children={kind: Store({NAMESPACE: _namespace, CLUSTER: by_cluster, LOOSE: _loose}) for kind in CHILDREN},
    )


def make_reflectors(
    api: Api, stores: Stores, namespace: str | None, clusters: Queue, nodesets: Queue, healthchecks: Queue
) -> list[Informer[Any]]:
    """Return the informers that fill the stores and queue the passes."""
    read_clusters = Informer(api, InformerSource(kinds.SLURMCLUSTER, Custom, namespace), stores.clusters)
    read_clusters.feed(clusters, lambda each: [key_of(each)])
    read_clusters.feed(nodesets, lambda each: [key_of(other) for other in stores.nodesets_of(key_of(each))])

    read_clusters.listen(_wake_neighbours(stores, clusters))

    read_nodesets = Informer(api, InformerSource(kinds.NODESET, Custom, namespace), stores.nodesets)
    read_nodesets.feed(nodesets, lambda each: [key_of(each)])
    read_nodesets.feed(clusters, lambda each: [(each.metadata.namespace, named(each))])

    read_checks = Informer(
        api, InformerSource(kinds.HEALTHCHECK, Custom, namespace, missing=NO_CHECKS), stores.healthchecks
    )
    read_checks.feed(healthchecks, lambda each: [key_of(each)])
    read_checks.listen(wake_of_check(stores, clusters, nodesets))

    read_pods = Informer(api, InformerSource(kinds.POD, Pod, namespace, OURS), stores.pods)
    read_pods.feed(clusters, _labelled(labels.CLUSTER))
    read_pods.feed(nodesets, _labelled(labels.NODESET))

    read_nodes = Informer(api, InformerSource(kinds.NODE, Node), stores.nodes)
    read_nodes.listen(kube_nodes.wake(nodesets, lambda name: _nodesets_on(stores, name)))
    read_nodes.listen(kube_nodes.wake_moved(clusters, lambda name: _clusters_on(stores, name)))

    read_claims = Informer(api, InformerSource(kinds.PVC, PersistentVolumeClaim, namespace), stores.claims)
    read_claims.feed(clusters, lambda claim: _all_in(stores.clusters, claim.metadata.namespace))
    read_claims.feed(nodesets, lambda claim: _all_in(stores.nodesets, claim.metadata.namespace))

    # Secrets are read whatever their labels: a spec may name one, and a key that a person made beforehand is to be found.
    children = [
        Informer(
            api, InformerSource(kind, view, namespace, None if kind == kinds.SECRET else OURS), stores.children[kind]
        )
        for kind, view in CHILDREN.items()
    ]
    for each in children:
        each.feed(clusters, _labelled(labels.CLUSTER))
        if each.source.kind == kinds.SECRET:
            each.feed(clusters, lambda secret: _all_in(stores.clusters, secret.metadata.namespace))
            each.feed(nodesets, lambda secret: _all_in(stores.nodesets, secret.metadata.namespace))
        if each.source.kind == kinds.CONFIGMAP:
            each.feed(healthchecks, _remembered_check)
        if each.source.kind in (kinds.JOB, kinds.CONFIGMAP, kinds.STATEFULSET):
            each.feed(nodesets, lambda child: _nodesets_of_child(stores, child))
    return [read_clusters, read_nodesets, read_checks, read_pods, read_nodes, read_claims, *children]


def _wake_neighbours(stores: Stores, clusters: Queue) -> Callable[[Changed[Custom]], None]:
    """Wakes the other clusters of a namespace when one was deleted, because their names may no longer conflict."""

    def wake(change: Changed[Custom]) -> None:
        if change.old is not None and change.new is None:
            for key in _all_in(stores.clusters, change.old.metadata.namespace):
                clusters.add(key)

    return wake


def wake_of_check(stores: Stores, clusters: Queue, nodesets: Queue) -> Callable[[Changed[Custom]], None]:
    """Wakes a cluster's pass when one of its HealthChecks is created or deleted, and the passes of its NodeSets when a check has a new result."""

    def wake(change: Changed[Custom]) -> None:
        for each in (change.old, change.new):
            key = (each.metadata.namespace, named(each)) if each else None
            if key and (change.old is None or change.new is None):
                clusters.add(key)
            if key and _findings(change.old) != _findings(change.new):
                for nodeset in stores.nodesets_of(key):
                    nodesets.add(key_of(nodeset))

    return wake


def _findings(check: Custom | None) -> object:
    if check is None:
        return None
    return (
        check.status.get("unhealthyNodes"),
        check.status.get("endedFailures"),
        bytes(check.spec),
        check.metadata.deletion_timestamp,
    )


def _labelled(label: str) -> Any:
    def keys(obj: Any) -> Iterable[Key]:
        value = obj.metadata.labels.get(label)
        return [(obj.metadata.namespace, value)] if value else []

    return keys


def _remembered_check(child: Any) -> Iterable[Key]:
    """The HealthCheck whose state a ConfigMap stores: the operator writes a deleted or edited one again."""
    meta = child.metadata
    is_of_check = meta.labels.get(labels.MEMORY) == kinds.HEALTHCHECK.kind
    return [(meta.namespace, meta.name.rpartition(".")[2])] if is_of_check else []


def _nodesets_of_child(stores: Stores, child: Any) -> Iterable[Key]:
    cluster = child.metadata.labels.get(labels.CLUSTER, "")
    return [key_of(each) for each in stores.nodesets_of((child.metadata.namespace, cluster))]


def _nodesets_on(stores: Stores, machine: str) -> set[Key]:
    return {
        (pod.metadata.namespace, pod.metadata.labels[labels.NODESET])
        for pod in stores.pods.by(MACHINE, machine)
        if labels.NODESET in pod.metadata.labels
    }


def _clusters_on(stores: Stores, machine: str) -> set[Key]:
    return {
        (pod.metadata.namespace, pod.metadata.labels[labels.CLUSTER])
        for pod in stores.pods.by(MACHINE, machine)
        if labels.NODESET in pod.metadata.labels
    }


def _all_in(store: Store[Any], namespace: str) -> Iterable[Key]:
    return [key_of(each) for each in store.by(NAMESPACE, namespace)]


def _namespace(each: Any) -> list[str]:
    return [each.metadata.namespace]


def _loose(each: Any) -> list[Key]:
    """Return the cluster of a child that has only one of its two owners."""
    owners, cluster = each.metadata.owner_references, each.metadata.labels.get(labels.CLUSTER)
    if not cluster or not owners:
        return []
    has_first = any(owner.kind in _OWNERS for owner in owners)
    has_anchor = any(owner.kind == kinds.CONFIGMAP.kind and owner.name == names.anchor(cluster) for owner in owners)
    return [(each.metadata.namespace, cluster)] if has_first != has_anchor else []


def _age(each: Custom) -> tuple[str, str]:
    made = each.metadata.creation_timestamp
    return (made.isoformat() if made else "", each.metadata.name)
