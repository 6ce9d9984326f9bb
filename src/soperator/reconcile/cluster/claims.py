"""Whether a claim of the cluster is being deleted. Pods that mount it hold it back, so that it goes, with its data, when the last of them ends."""

from collections.abc import Iterator

from soperator.reconcile.context import Operator
from soperator.render.cluster import database_connection
from soperator.render.cluster.database import database_claim
from soperator.render.cluster.slurmctld import state_claim
from soperator.render.jail.claims import jail_claim
from soperator.render.parts.model import Cluster
from soperator.runtime.status import ReportedCondition


def leaving(operator: Operator, cluster: Cluster) -> str:
    """What is lost with a claim that is being deleted, and how it is saved, in a sentence; empty where none is."""
    return "; ".join(_leaving(operator, cluster))


def condition(said: str) -> ReportedCondition:
    """The condition ClaimsKept."""
    return ReportedCondition("ClaimsKept", "False" if said else "True", "BeingDeleted" if said else "Kept", said)


def _leaving(operator: Operator, cluster: Cluster) -> Iterator[str]:
    for name, loses in _claims(cluster):
        found = operator.stores.claims.get(cluster.namespace, name)
        if found is None or found.metadata.deletion_timestamp is None:
            continue
        volume = found.spec.volume_name or "VOLUME"
        patch = """-p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'"""
        yield (
            f"claim {name} is being deleted, and with its last pod {loses} go: kubectl patch pv {volume} {patch}, then stop the cluster's pods "
            f"and bind {volume} to a new claim (docs/howto/storage.md)"
        )


def _claims(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Each claim that the cluster cannot do without, and what is on it."""
    if not cluster.spec.jail.per_node:
        yield jail_claim(cluster), "the jail with every user's files"
    yield state_claim(cluster), "slurmctld's state with the queue"
    said = cluster.spec.accounting
    if said.enabled and database_connection.is_embedded(said):
        yield database_claim(cluster), "all records of accounting"
    if said.enabled and said.archive.claim:
        yield said.archive.claim, "archived records"
