"""Updates features and weight in Slurm's records, and then the partitions over features.

slurmctld determines the nodes of partitions over features when it reads its files and when a node is created or deleted, but not when
features are updated (24.11). So the operator sets the NodeSets of each such partition again, with scontrol, because slurmrestd cannot
update partitions.
"""

from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.context import Operator
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.slurm_conf import node_conf, slurm_conf
from soperator.runtime.cache.store import Key
from soperator.slurm import hostlist
from soperator.slurmrest.client import SlurmError, SlurmRest

#: By a cluster: the partitions whose nodes slurmctld has to determine again.
_STALE: Slot[Key, set[str]] = per_cluster("partitions over features that have changed")


async def set_fields(operator: Operator, cluster: Cluster, nodeset: NodeSet, nodes: str, client: SlurmRest) -> None:
    """Set the features and the weight of the spec on the nodes of a host list; raises SlurmError."""
    by_plugin, features = node_conf.has_features_plugin(cluster), node_conf.features(nodeset)
    if not by_plugin and _have_others(operator, cluster, nodes, frozenset(features)):
        # Remembered before the update, because the answer to an update that succeeded may be lost.
        stale = {each.name for each in cluster.spec.partitions if each.features}
        operator.memory(_STALE).setdefault(cluster.key, set()).update(stale)
    await client.set_fields(nodes, None if by_plugin else features, nodeset.spec.weight)


async def update_partitions(operator: Operator, cluster: Cluster) -> str:
    """Make slurmctld determine the nodes of partitions over changed features; return what it refused. The next pass tries failed updates again."""
    stale = operator.memory(_STALE).get(cluster.key, set())
    for partition in cluster.spec.partitions:
        if partition.name not in stale:
            continue
        try:
            words = (f"PartitionName={partition.name}", f"Nodes={','.join(slurm_conf.members_of(partition))}")
            await operator.pod_exec.scontrol(cluster, "update", *words)
        except SlurmError as error:
            if "nvalid partition" not in str(
                error
            ):  # slurmctld has yet to read the file that has it, and assigns its nodes then
                return str(error)
        stale.discard(partition.name)
    operator.memory(_STALE).pop(cluster.key, None)
    return ""


def _have_others(operator: Operator, cluster: Cluster, nodes: str, features: frozenset[str]) -> bool:
    """Return whether one of the nodes of a host list had other features in Slurm's last answer, or is missing in it."""
    known = operator.slurm.nodes(cluster.key) or {}
    shapes = [known[name].shape if name in known else None for name in hostlist.expand(nodes)]
    return any(shape is None or shape.features != features for shape in shapes)
