"""Accounting: when slurm.conf names slurmdbd, what is applied for it, and how it does (`decide/accounting`)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from soperator.control import pods
from soperator.control.operator import Operator
from soperator.decide.accounting import Seen, judge
from soperator.kube import kinds
from soperator.kube.errors import NotFound
from soperator.kube.views import Custom, Meta
from soperator.render import config, database, labels, names, storage
from soperator.render.cluster import render_accounted
from soperator.render.model import Cluster, Object
from soperator.runtime.status import Condition
from soperator.slurm.transaction import State

ON = "On"
#: Seconds until the next look at a slurmdbd that is not ready.
SOON = 5.0


@dataclass(frozen=True)
class Look:
    """How accounting does: a reason, a sentence where not all is well, and whether slurm.conf names slurmdbd from now on."""

    reason: str = ""
    why: str = ""
    is_on: bool = False


def is_on(operator: Operator, cluster: Cluster, state: State) -> bool:
    """Whether slurm.conf is to name slurmdbd: when that answers, and ever after."""
    if not cluster.spec.accounting.enabled:
        return False
    obj = operator.stores.clusters.get(*cluster.key)
    if obj and operator.status.current(obj).get("accounting") == ON:
        return True
    if any(pods.is_ready(each) for each in operator.stores.role_pods(cluster.key, "accounting")):
        return True
    return bool(state.generation) and config.generation(replace(cluster, accounted=True)) in (
        state.generation,
        state.good,
    )


def slurmdbd(operator: Operator, cluster: Cluster, status: Mapping[str, Any]) -> str | None:
    """The image with which slurmdbd is ready, empty while it is not; None where slurmctld does not speak to it."""
    if not cluster.spec.accounting.enabled or status.get("accounting") != ON:
        return None
    ready = [each for each in operator.stores.role_pods(cluster.key, "accounting") if pods.is_ready(each)]
    return ready[0].metadata.annotations.get(labels.IMAGE, "") if ready else ""


def objects(operator: Operator, cluster: Cluster) -> list[Object]:
    """What is to be applied, once every Secret that it reads is there; `cluster` names slurmdbd's image."""
    if not cluster.spec.accounting.enabled:
        return []
    found = _secrets(operator, cluster)
    versions = " ".join(_version(operator, each) for each in found if each)
    if None in found:
        return []
    rendered = render_accounted(cluster, operator.defaults, hashlib.sha256(versions.encode()).hexdigest()[:16])
    return [each for each in rendered if each["kind"] != kinds.MARIADB.kind]


def kept(operator: Operator, cluster: Cluster, is_forgotten: bool) -> frozenset[str]:
    """The names of what stays although it is not rendered: until slurmctld has forgotten slurmdbd, and while a Secret is missing."""
    is_on = cluster.spec.accounting.enabled
    stays = None in _secrets(operator, cluster) if is_on else not is_forgotten
    return frozenset({names.accounting(cluster.name), names.database(cluster.name)}) if stays else frozenset()


def _secrets(operator: Operator, cluster: Cluster) -> list[Meta | None]:
    """The Secrets that slurmdbd and its database read, None for each that is not there."""
    store = operator.stores.children[kinds.SECRET]
    return [store.get(cluster.namespace, each) for each in storage.storage(cluster).secrets]


def _version(operator: Operator, secret: Meta) -> str:
    """What changes with the content of a Secret. One that the operator put back, or that got its labels back, holds what it held."""
    meta = secret.metadata
    copy = operator.stores.children[kinds.SECRET].get(meta.namespace, names.kept(meta.name))
    found: str = copy.metadata.annotations.get(labels.CHECKSUM, "") if copy else ""
    return found or meta.resource_version


async def ask_for_database(operator: Operator, cluster: Cluster) -> str:
    """Apply the MariaDB resource where one is wanted and is another than before; return why that cannot be."""
    said = cluster.spec.accounting
    if not said.enabled or said.mariadb is None:
        operator.databases.pop(cluster.key, None)
        return ""
    wanted = next(
        each for each in database.render_database(cluster, operator.defaults) if each["kind"] == kinds.MARIADB.kind
    )
    digest = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()
    if operator.databases.get(cluster.key) == digest:
        return ""
    try:
        await operator.api.apply(kinds.MARIADB, wanted)
    except NotFound:
        return (
            "this Kubernetes has no kind MariaDB: install mariadb-operator, or remove spec.accounting.mariadb to have "
            "the database that this operator runs"
        )
    operator.databases[cluster.key] = digest
    return ""


async def look(operator: Operator, cluster: Cluster, missing: str, state: State) -> Look:
    """How accounting does; nothing where it is off. Asks slurmdbd's pod only while that is not ready. Never raises."""
    said = cluster.spec.accounting
    if not said.enabled:
        return Look()
    found = operator.stores.role_pods(cluster.key, "accounting")
    mine = operator.stores.role_pods(cluster.key, "database")
    nodes = operator.stores.nodes
    running = [each.metadata for each in found if not pods.is_ready(each) and pods.is_running(each, "slurmdbd")]
    is_written = cluster.accounted and state.generation == config.generation(cluster)
    seen = Seen(
        slurmdbd=pods.role(found, 1, nodes),
        database=pods.role(mine, 1, nodes) if storage.is_embedded(said) else None,
        missing=missing,
        said=await operator.inside.slurmdbd(running[0].namespace, running[0].name) if running else "",
        named=cluster.accounted and state.good == config.generation(cluster),
    )
    return Look(*judge(seen), is_on=is_written)


def told(look_: Look, obj: Custom) -> str:
    """The field of the status: On since slurm.conf names slurmdbd, until accounting is switched off."""
    return ON if look_.is_on or (look_.reason and obj.status.get("accounting") == ON) else ""


def condition(look_: Look) -> list[Condition]:
    """The condition AccountingReady; none where accounting is off."""
    if not look_.reason:
        return []
    return [Condition("AccountingReady", "False" if look_.why else "True", look_.reason, look_.why)]
