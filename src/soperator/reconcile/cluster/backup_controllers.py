"""Decides how long the names of backup controllers stay: longer than their pods, because daemons with an older slurm.conf still resolve them."""

from soperator.api.slurmcluster import MOST_CONTROLLERS
from soperator.kube import kinds
from soperator.reconcile.cluster.slurm_config import ConfigStatus
from soperator.reconcile.context import Operator
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster


def addresses(operator: Operator, cluster: Cluster, settled: ConfigStatus) -> int:
    """Return the number of slurmctlds whose host names must resolve.

    Slurm resolves all names before it connects to one of them, and retries a missing one for seconds, so that not even a reconfigure would get
    through. So a backup's name is removed only when no daemon has it in its configuration any more.
    """
    rest = [each.metadata.annotations.get(labels.CONFIG) for each in operator.stores.role_pods(cluster.key, "rest")]
    is_forgotten = settled.is_as_wanted and settled.read == settled.daemons and set(rest) <= {settled.state.good}
    if is_forgotten:
        return cluster.spec.controller.replicas
    services = operator.stores.children[kinds.SERVICE]
    named = [
        number
        for number in range(MOST_CONTROLLERS)
        if services.get(cluster.namespace, names.controller_address(cluster.name, number))
    ]
    return max(cluster.spec.controller.replicas, *(number + 1 for number in named), 0)
