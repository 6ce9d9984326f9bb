"""NodeSets of the original, and the workers that older releases have in the SlurmCluster."""

from collections.abc import Sequence
from typing import Any

from soperator.importers.nebius import reasons
from soperator.importers.nebius.roles import scheduling, worker_size
from soperator.importers.nebius.volumes import leave_jail, named_sources, submounts
from soperator.importers.parts.fields import ForeignFields
from soperator.importers.parts.node_settings import read_node_text
from soperator.importers.parts.submounts import own_submounts

#: The name of the NodeSet for workers of the SlurmCluster itself; their nodes have this name too.
WORKER = "worker"
_WORKER = "slurmNodes.worker"


def from_nodeset(fields: ForeignFields, features: Sequence[str], shared: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the spec of a NodeSet, and report every field. `shared` are the submounts of all nodes, which it does not repeat."""
    text = read_node_text(fields.read("nodeConfig.static"), fields.where("nodeConfig.static"), fields.report)
    own = [str(each) for each in fields.carried("nodeConfig.features", list, "spec.features") or []]
    volumes = "slurmd.volumes"
    spec = {
        "replicas": fields.carried("replicas", int, "spec.replicas"),
        **worker_size(fields, "slurmd.resources"),
        "features": list(dict.fromkeys([*own, *features, *text.features])),
        "weight": text.weight,
        "extraConf": text.extra,
        "shmSize": fields.carried(f"{volumes}.sharedMemorySize", str, "spec.shmSize"),
        "submounts": own_submounts(fields, submounts(fields, f"{volumes}.jailSubMounts", {}, set()), shared),
        "scheduling": {
            "nodeSelector": fields.carried("nodeSelector", dict, "spec.scheduling.nodeSelector"),
            "affinity": fields.carried("affinity", dict, "spec.scheduling.affinity"),
            "tolerations": fields.carried("tolerations", list, "spec.scheduling.tolerations"),
            "priorityClassName": fields.carried("priorityClass", str, "spec.scheduling.priorityClassName"),
        },
        "podTemplate": _annotated(fields.carried("workerAnnotations", dict, "spec.podTemplate.metadata.annotations")),
        "updateStrategy": {"maxUnavailable": fields.share("maxUnavailable", "spec.updateStrategy.maxUnavailable")},
    }
    leave_jail(fields, f"{volumes}.jail")
    fields.rest(reasons.NODESET)
    return spec


def from_cluster(
    fields: ForeignFields, features: Sequence[str], shared: list[dict[str, Any]], used: dict[str, set[str]]
) -> dict[str, Any]:
    """Return the spec of the NodeSet for the workers in a SlurmCluster. `used` gets the names of filters and sources that it uses."""
    volumes = f"{_WORKER}.volumes"
    where = scheduling(fields, _WORKER, "spec.scheduling of the NodeSet", used["filters"])
    mounts = submounts(fields, f"{volumes}.jailSubMounts", named_sources(fields), used["sources"])
    priority = fields.carried(f"{_WORKER}.priorityClass", str, "spec.scheduling.priorityClassName of the NodeSet")
    annotations = fields.carried(
        f"{_WORKER}.workerAnnotations", dict, "spec.podTemplate.metadata.annotations of the NodeSet"
    )
    spec = {
        "replicas": fields.carried(f"{_WORKER}.size", int, "spec.replicas of the NodeSet"),
        **worker_size(fields, f"{_WORKER}.slurmd.resources"),
        "features": list(features),
        "shmSize": fields.carried(f"{volumes}.sharedMemorySize", str, "spec.shmSize of the NodeSet"),
        "submounts": own_submounts(fields, mounts, shared),
        "scheduling": {**where, "priorityClassName": priority},
        "podTemplate": _annotated(annotations),
    }
    leave_jail(fields, f"{volumes}.jail")
    fields.ours(f"{volumes}.spool", "slurmd's spool is a folder of the pod")
    return spec


def has_workers(fields: ForeignFields) -> bool:
    """Return whether a SlurmCluster has workers of its own."""
    return bool(fields.peek(f"{_WORKER}.size", int))


def _annotated(annotations: dict[str, Any] | None) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}} if annotations else {}
