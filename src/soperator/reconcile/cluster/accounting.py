"""Reconciles accounting: decides when slurm.conf names slurmdbd, which objects are applied, and the reported state (`policy/cluster/accounting`)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from soperator.kube import kinds
from soperator.kube.errors import NotFound
from soperator.kube.views import Meta
from soperator.policy.cluster.accounting import AccountingSnapshot, judge
from soperator.reconcile import pod_status
from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.context import Operator
from soperator.reconcile.memory import cluster_memory
from soperator.render.cluster import database, database_connection
from soperator.render.cluster.objects import render_accounted
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster, Object
from soperator.render.slurm_conf import slurm_conf
from soperator.runtime.apply import ApplyRefused, refuse_foreign_name
from soperator.runtime.cache.store import Key
from soperator.runtime.status import ReportedCondition
from soperator.slurm.settings.state import ConfigState

ON = "On"
#: A digest of the MariaDB resource that was applied last.
_DATABASES: Slot[Key, str] = per_cluster("the MariaDB resource that was applied")
#: Seconds until the next look at a slurmdbd that is not ready.
SOON = 5.0


@dataclass(frozen=True)
class AccountingStatus:
    """The state of accounting: a reason, a message if there is a fault, and whether slurm.conf names slurmdbd from now on."""

    reason: str = ""
    why: str = ""
    is_on: bool = False


def is_on(operator: Operator, cluster: Cluster, state: ConfigState) -> bool:
    """Return whether slurm.conf has to name slurmdbd: True from slurmdbd's first answer on."""
    if cluster.spec.accounting is None:
        return False
    obj = operator.stores.clusters.get(*cluster.key)
    if obj and cluster_memory.of_cluster(operator, obj).get("accounting") == ON:
        return True
    if any(pod_status.is_ready(each) for each in operator.stores.role_pods(cluster.key, "accounting")):
        return True
    return bool(state.generation) and slurm_conf.generation(replace(cluster, accounted=True)) in (
        state.generation,
        state.good,
    )


def slurmdbd(operator: Operator, cluster: Cluster, memory: Mapping[str, Any]) -> str | None:
    """Return the image of the ready slurmdbd; empty while none is ready, None if slurmctld does not use slurmdbd."""
    if cluster.spec.accounting is None or memory.get("accounting") != ON:
        return None
    ready = [each for each in operator.stores.role_pods(cluster.key, "accounting") if pod_status.is_ready(each)]
    return ready[0].metadata.annotations.get(labels.IMAGE, "") if ready else ""


def objects(operator: Operator, cluster: Cluster) -> list[Object]:
    """Return the objects to apply; empty while a Secret that they read is missing. `cluster` names slurmdbd's image."""
    if cluster.spec.accounting is None:
        return []
    found = _secrets(operator, cluster)
    versions = " ".join(_version(operator, each) for each in found if each)
    if None in found:
        return []
    rendered = render_accounted(cluster, operator.defaults, hashlib.sha256(versions.encode()).hexdigest()[:16])
    return [each for each in rendered if each["kind"] != kinds.MARIADB.kind]


def kept(operator: Operator, cluster: Cluster, is_forgotten: bool) -> frozenset[str]:
    """Return the names of objects that stay although they are not rendered.

    They stay until slurmctld no longer uses slurmdbd, and while a Secret is missing.
    """
    is_on = cluster.spec.accounting is not None
    stays = None in _secrets(operator, cluster) if is_on else not is_forgotten
    return frozenset({names.accounting(cluster.name), names.database(cluster.name)}) if stays else frozenset()


def _secrets(operator: Operator, cluster: Cluster) -> list[Meta | None]:
    """Return the Secrets that slurmdbd and its database read; None for each that does not exist."""
    store = operator.stores.children[kinds.SECRET]
    return [store.get(cluster.namespace, each) for each in database_connection.storage(cluster).secrets]


def _version(operator: Operator, secret: Meta) -> str:
    """Return a value that changes with a Secret's content, but not when the operator restores the Secret or its labels."""
    meta = secret.metadata
    copy = operator.stores.children[kinds.SECRET].get(meta.namespace, names.kept(meta.name))
    found: str = copy.metadata.annotations.get(labels.CHECKSUM, "") if copy else ""
    return found or meta.resource_version


async def request_database(operator: Operator, cluster: Cluster) -> str:
    """Apply the MariaDB resource if accounting needs one and it differs; return why that is impossible, empty on success."""
    said = cluster.spec.accounting
    if said is None or said.mariadb_operator is None:
        operator.memory(_DATABASES).pop(cluster.key, None)
        return ""
    wanted = next(
        each for each in database.render_database(cluster, operator.defaults) if each["kind"] == kinds.MARIADB.kind
    )
    digest = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()
    if operator.memory(_DATABASES).get(cluster.key) == digest:
        return ""
    try:
        await _refuse_foreign(operator, cluster, wanted)
        await operator.api.apply(kinds.MARIADB, wanted)
    except ApplyRefused as error:
        return str(error)
    except NotFound:
        return (
            "this Kubernetes has no kind MariaDB: install mariadb-operator, or remove spec.accounting.mariadbOperator to use "
            "the database that this operator runs"
        )
    operator.memory(_DATABASES)[cluster.key] = digest
    return ""


async def _refuse_foreign(operator: Operator, cluster: Cluster, wanted: Object) -> None:
    """Raise ApplyRefused if the MariaDB resource is foreign, or if it does not exist and its root password does: that is another database's."""
    key = (cluster.namespace, wanted["metadata"]["name"])
    if await refuse_foreign_name(operator.api, kinds.MARIADB, key) is not None:
        return
    name = wanted["spec"].get("rootPasswordSecretKeyRef", {}).get("name")
    secret = operator.stores.children[kinds.SECRET].get(cluster.namespace, name) if name else None
    if secret and secret.metadata.annotations.get(labels.BROUGHT_FOR) != cluster.name:
        raise ApplyRefused(
            f"Secret/{name} exists, and would be the root password of the new database: rename it, or add to it the annotation "
            f"{labels.BROUGHT_FOR}: {cluster.name}"
        )


async def status(operator: Operator, cluster: Cluster, missing: str, state: ConfigState) -> AccountingStatus:
    """Return the state of accounting; empty if accounting is off. Queries slurmdbd's pod only while the pod is not ready. Never raises."""
    said = cluster.spec.accounting
    if said is None:
        return AccountingStatus()
    found = operator.stores.role_pods(cluster.key, "accounting")
    mine = operator.stores.role_pods(cluster.key, "database")
    nodes = operator.stores.nodes
    running = [
        each.metadata for each in found if not pod_status.is_ready(each) and pod_status.is_running(each, "slurmdbd")
    ]
    is_written = cluster.accounted and state.generation == slurm_conf.generation(cluster)
    seen = AccountingSnapshot(
        slurmdbd=pod_status.role(found, 1, nodes),
        database=pod_status.role(mine, 1, nodes) if database_connection.is_embedded(said) else None,
        missing=missing,
        said=await operator.pod_exec.slurmdbd(running[0].namespace, running[0].name) if running else "",
        named=cluster.accounted and state.good == slurm_conf.generation(cluster),
    )
    return AccountingStatus(*judge(seen), is_on=is_written)


def status_field(look_: AccountingStatus, memory: Mapping[str, Any]) -> str:
    """Return the value of status.accounting: On from the time when slurm.conf names slurmdbd, until accounting is switched off."""
    return ON if look_.is_on or (look_.reason and memory.get("accounting") == ON) else ""


def condition(look_: AccountingStatus) -> list[ReportedCondition]:
    """Return the condition AccountingReady; none if accounting is off."""
    if not look_.reason:
        return []
    return [ReportedCondition("AccountingReady", "False" if look_.why else "True", look_.reason, look_.why)]
