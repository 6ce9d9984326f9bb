"""Keeps the record of `policy/cluster/render_record` in the status of our objects, and gathers its inputs."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from soperator.kube import kinds
from soperator.kube.views import Custom
from soperator.policy.cluster.images import ImageRecord
from soperator.policy.cluster.render_record import RenderRecord, adopt
from soperator.policy.workers.types import WorkerSnapshot
from soperator.reconcile.context import Operator
from soperator.reconcile.memory import cluster_memory
from soperator.render.parts.model import Cluster, Object
from soperator.render.slurm_conf import slurm_conf
from soperator.runtime.apply import Owner
from soperator.slurm import topology

#: The name of the workers' template in a NodeSet's record.
PODS = "pods"
#: And the generation of Slurm's configuration in a cluster's.
CONFIG = "config"


def of_cluster(
    operator: Operator,
    obj: Custom,
    cluster: Cluster,
    record: ImageRecord,
    objects: Sequence[Object],
    is_same_config: bool,
) -> RenderRecord:
    """Return the workloads and the configuration that the reconciler of a cluster wants.

    While a configuration is being activated, workloads are rendered for it.
    """
    wanted = operator.applier.digests(Owner.from_metadata(kinds.SLURMCLUSTER, obj.metadata), objects)
    return _of_cluster(operator, obj, cluster, record, wanted, is_same_config)


def configurations(operator: Operator, obj: Custom, cluster: Cluster, record: ImageRecord) -> Sequence[str]:
    """Return the generations of Slurm's configuration that count as the desired one.

    An older operator version rendered them from the same spec.
    """
    return _of_cluster(operator, obj, cluster, record, {}).same.get(CONFIG, ())


def is_configured(operator: Operator, cluster: Cluster, generation: str) -> bool:
    """Return whether this generation of Slurm's configuration counts as the desired one, whichever operator version rendered it."""
    obj = operator.stores.clusters.get(cluster.namespace, cluster.name)
    wanted, note = slurm_conf.generation(cluster), _note(cluster_memory.of_cluster(operator, obj)) if obj else None
    counted = note.same.get(CONFIG, ()) if note and note.wanted.get(CONFIG) == wanted else ()
    return generation in (wanted, *counted)


def _of_cluster(
    operator: Operator,
    obj: Custom,
    cluster: Cluster,
    record: ImageRecord,
    wanted: Mapping[str, str],
    is_same_config: bool = True,
) -> RenderRecord:
    gpus = {name: gpu.model_dump() for name, gpu in cluster.gpus.items()}
    checked = ["checked"] if cluster.checked else []
    accounted = [*(["accounted"] if cluster.accounted else []), *(cluster.sleeps or ())]
    placed = [topology.note(cluster.places)] if cluster.places else []
    inputs = _digest(
        [obj.metadata.generation, _noted(record), dict(cluster.shares), gpus, *checked, *accounted, *placed]
    )
    wishes = {**wanted, CONFIG: slurm_conf.generation(cluster)}
    return adopt(
        _note(cluster_memory.of_cluster(operator, obj)),
        RenderRecord(operator.renderer, inputs, record.request, wishes),
        _may(cluster),
        is_same_config,
    )


def of_nodeset(operator: Operator, obj: Custom, of: Custom | None, cluster: Cluster, template: str) -> RenderRecord:
    """Return the workers that the reconciler of a NodeSet wants; `of` is the cluster's object, and `cluster` names the images of its workers."""
    kept = cluster_memory.of_cluster(operator, of).get("images", {}) if of else {}
    named = cluster.spec.images.model_dump() | {"jail": cluster.spec.jail.image}
    inputs = _digest([obj.metadata.generation, of.metadata.generation if of else 0, named])
    now = RenderRecord(operator.renderer, inputs, kept.get("request", ""), {PODS: template})
    return adopt(_note(cluster_memory.of_nodeset(operator, of, obj)), now, _may(cluster))


def with_same(seen: WorkerSnapshot, note: RenderRecord) -> WorkerSnapshot:
    """Return the snapshot, in which workers that count as up to date have the current template."""
    same = note.same.get(PODS, ())
    pods = {
        index: replace(each, template=seen.template) if each.template in same else each
        for index, each in seen.pods.items()
    }
    return replace(seen, pods=pods) if same else seen


def status_fields(note: RenderRecord | None, memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record as a field of the status; without a record the former one."""
    if note is None:
        return {"rendered": memory["rendered"]} if "rendered" in memory else {}
    found = {key: value for key, value in asdict(note).items() if value}
    return {"rendered": found | ({"same": {key: list(each) for key, each in note.same.items()}} if note.same else {})}


def _note(memory: Mapping[str, Any]) -> RenderRecord | None:
    kept = memory.get("rendered")
    if not isinstance(kept, dict) or not kept.get("renderer"):
        return None
    same: Mapping[str, Sequence[str]] = kept.get("same", {})
    listed = {key: tuple(each) for key, each in same.items()}
    return RenderRecord(
        kept["renderer"], kept.get("inputs", ""), kept.get("request", ""), kept.get("wanted", {}), listed
    )


def _noted(record: ImageRecord) -> dict[str, Any]:
    """Return the record without the roles that were added after the first records were written, because their images would change every record."""
    return {
        key: {role: image for role, image in value.items() if role not in ("mariadb", "proxy")}
        if isinstance(value, Mapping)
        else value
        for key, value in asdict(record).items()
    }


def _may(cluster: Cluster) -> bool:
    return cluster.spec.upgrade.mode == "OnRequest"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
