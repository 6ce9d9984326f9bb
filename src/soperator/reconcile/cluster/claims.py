"""Reports a claim of the cluster that is being deleted, or is missing.

Kubernetes deletes a claim that pods mount, with its data, when the last of these pods ends. For slurmctld's state that is its next restart.
A new claim would be empty, and slurmctld ends the jobs that it does not know. So while there are workers, the operator creates no new
claim.
"""

from collections.abc import Iterator

from soperator.reconcile import finalizers
from soperator.reconcile.context import Operator
from soperator.render.cluster import database_connection
from soperator.render.cluster.database import database_claim
from soperator.render.cluster.slurmctld import state_claim
from soperator.render.jail.claims import jail_claim
from soperator.render.parts.model import Cluster
from soperator.runtime.status import ReportedCondition

#: How the message about a missing claim begins.
_IS_GONE = "with slurmctld's state is gone"


def gone(operator: Operator, cluster: Cluster) -> str:
    """Return the name of the missing claim of slurmctld's state; empty if it exists, belongs to a person, or may be created."""
    name = state_claim(cluster)
    is_there = operator.stores.claims.get(cluster.namespace, name) is not None
    is_theirs = bool(cluster.spec.controller.state.name)
    return "" if is_there or is_theirs or not finalizers.workers_left(operator, cluster.key) else name


def leaving(operator: Operator, cluster: Cluster) -> str:
    """Return which data is lost with a claim that is being deleted or is missing, and how to save it, as a message; empty if all claims are kept."""
    return "; ".join([*_gone(operator, cluster), *_leaving(operator, cluster)])


def condition(said: str) -> ReportedCondition:
    """Return the condition ClaimsKept."""
    reason = "Gone" if _IS_GONE in said else "BeingDeleted"
    return ReportedCondition("ClaimsKept", "False" if said else "True", reason if said else "Kept", said)


def _gone(operator: Operator, cluster: Cluster) -> Iterator[str]:
    if name := gone(operator, cluster):
        yield (
            f"claim {name} {_IS_GONE}, and slurmctld with an empty one would end all jobs: bind the former volume to a new claim of that name, "
            f"create an empty one by hand, or scale the NodeSets to 0 (docs/howto/storage.md)"
        )


def _leaving(operator: Operator, cluster: Cluster) -> Iterator[str]:
    for name, loses in _claims(cluster):
        found = operator.stores.claims.get(cluster.namespace, name)
        if found is None or found.metadata.deletion_timestamp is None:
            continue
        volume = found.spec.volume_name or "VOLUME"
        patch = """-p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'"""
        yield (
            f"claim {name} is being deleted: when its last pod ends, Kubernetes deletes {loses}. Run kubectl patch pv {volume} {patch}, "
            f"then stop the cluster's pods and bind {volume} to a new claim (docs/howto/storage.md)"
        )


def _claims(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield each essential claim of the cluster, and its content."""
    if not cluster.spec.jail.per_node:
        yield jail_claim(cluster), "the jail with every user's files"
    yield state_claim(cluster), "slurmctld's state with the queue"
    said = cluster.spec.accounting
    if said and database_connection.is_embedded(said):
        yield database_claim(cluster), "all records of accounting"
    if said and said.archive.claim_name:
        yield said.archive.claim_name, "archived records"
