"""The configuration of a node for Slurm: for slurmd, which reports it at registration, and for scontrol, which creates the record of a sleeping
node. Both must agree, so one module has them. Source: scontrol(1).
"""

from collections.abc import Iterable
from dataclasses import replace

from soperator.api.nodeset import Gpu
from soperator.render.parts.model import Cluster, NodeSet
from soperator.slurm import quantity
from soperator.slurm.conf import settings
from soperator.slurm.hostlist import compress
from soperator.slurm.node import Shape


def node_conf(nodeset: NodeSet) -> str:
    """Return the node's own configuration for `slurmd --conf`: its size as Kubernetes grants it, GPUs, features, weight."""
    resources = {**nodeset.spec.resources.requests, **nodeset.spec.resources.limits}
    pairs: list[tuple[str, object]] = [
        ("CPUs", quantity.cpus(resources)),
        ("RealMemory", quantity.memory_mib(resources)),
        ("Feature", ",".join(features(nodeset))),
        ("Weight", nodeset.spec.weight if nodeset.spec.weight != 1 else None),
        ("Gres", _gres(nodeset.spec.gpu)),
    ]
    said = [f"{key}={value}" for key, value in pairs if value is not None]
    return " ".join([*said, nodeset.spec.extra_conf.strip()]).strip()


def features(nodeset: NodeSet) -> list[str]:
    """Return the features of a NodeSet's nodes, the NodeSet's name first."""
    return list(dict.fromkeys([nodeset.name, *nodeset.spec.features]))


def has_features_plugin(cluster: Cluster) -> bool:
    """Return whether a plugin of Slurm determines the active features of a node, so that the operator must not set them."""
    lines = settings(cluster.spec.config.extra_lines.slurm)
    return any(each.key.lower() == "nodefeaturesplugins" and each.value for each in lines)


def without_record_fields(cluster: Cluster, nodeset: NodeSet) -> NodeSet:
    """Return the NodeSet without the fields that running nodes get by an update of their records in Slurm, because a change of those needs no new
    pods.
    """
    default = {"weight": 1} if has_features_plugin(cluster) else {"weight": 1, "features": []}
    return replace(nodeset, spec=nodeset.spec.model_copy(update=default))


def _gres(gpu: Gpu) -> str | None:
    if gpu.vendor == "None":
        return None
    whole = f"gpu:{gpu.type}:{gpu.count}" if gpu.type else f"gpu:{gpu.count}"
    return f"{whole},shard:{gpu.shards}" if gpu.shards else whole


def hosts(nodeset: str, indexes: Iterable[int]) -> str:
    """Return the Slurm nodes of these indexes as a host list."""
    return compress(f"{nodeset}-{index}" for index in indexes)


def record(nodeset: NodeSet, indexes: Iterable[int]) -> list[str]:
    """Return the arguments of `scontrol create` for records of these nodes, asleep."""
    return [f"NodeName={hosts(nodeset.name, indexes)}", "State=CLOUD", *node_conf(nodeset).split()]


def shape(nodeset: NodeSet) -> Shape:
    """Return the shape that Slurm reports for a node with this configuration."""
    said = dict(word.split("=", 1) for word in node_conf(nodeset).split() if "=" in word)
    return Shape(
        cpus=int(said.get("CPUs", 1)),
        memory=int(said.get("RealMemory", 1)),
        features=frozenset(said["Feature"].split(",")),
        weight=int(said.get("Weight", 1)),
        gres=said.get("Gres", ""),
    )
