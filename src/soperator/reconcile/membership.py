"""Decides which NodeSets belong to a cluster.

A NodeSet with a refused or unreadable spec keeps its nodes and its part of Slurm's configuration, because its jobs still run.
"""

from soperator.reconcile.context import Operator
from soperator.render.parts import labels
from soperator.render.parts.model import Cluster, NodeSet


def started_nodesets(operator: Operator, cluster: Cluster) -> set[str]:
    """Return the names of the NodeSets that may have nodes, whatever their specs: those with our finalizer, which is set before the first node."""
    found = [each.metadata for each in operator.stores.nodesets_of(cluster.key)]
    return {each.name for each in found if labels.FINALIZER in each.finalizers}


def configured(operator: Operator, cluster: Cluster) -> list[NodeSet]:
    """Return the NodeSets in Slurm's configuration, oldest first, including refused ones that may have nodes."""
    return operator.namespaces.view(cluster.namespace).configured(cluster.name, started_nodesets(operator, cluster))


def unreadable(operator: Operator, cluster: Cluster) -> list[NodeSet]:
    """Return the unreadable NodeSets that may have nodes, each with the part of its spec that can be read."""
    partial = operator.namespaces.view(cluster.namespace).unreadable
    return [each for each in configured(operator, cluster) if each.name in partial]
