"""The locations of nodes: topology.conf for Slurm, and for Kubernetes a preferred affinity that places the pods of a NodeSet close to each other.

The affinity is not part of the template's hash: it matters only when a pod is scheduled, and no job should be interrupted for it.
"""

import json
from typing import Any

from soperator.api.fields.config import TOPOLOGY_FILES
from soperator.render.parts import labels
from soperator.render.parts.model import Cluster, NodeSet, Object
from soperator.slurm import conf, hostlist, topology

#: How much the closest level weighs for the scheduler; each level above it half as much.
_HEAVIEST = 100


def topology_conf(cluster: Cluster) -> str:
    """Return the operator's topology.conf, empty if there is none."""
    spec, places = cluster.spec, cluster.places
    if not places or spec.config.file(*TOPOLOGY_FILES):
        return ""
    if spec.topology.type == "Block":
        return topology.blocks(places, spec.topology.block_sizes)
    return topology.tree(places) if spec.topology.is_on else ""


def with_known_nodes(cluster: Cluster, text: str) -> str:
    """Return a user's own file with a list of the known nodes at its end, because slurmctld must read it again when a node has registered."""
    return f"{text.rstrip()}\n# read with {hostlist.compress(cluster.places)}\n" if cluster.places else text


def settings(cluster: Cluster) -> dict[str, str | int]:
    """Return the settings that make Slurm use topology.conf; none while slurmctld knows no node of it, because it would then refuse every job."""
    if cluster.spec.config.file("topology.conf"):
        return {"TopologyPlugin": "topology/tree"}
    return {"TopologyPlugin": f"topology/{cluster.spec.topology.type.lower()}"} if topology_conf(cluster) else {}


def spares(cluster: Cluster) -> list[conf.Line]:
    """Return the line of slurm.conf with the spare nodes that keep blocks from being too small."""
    wanted = cluster.spec.topology
    return [topology.spares(cluster.places, wanted.block_sizes)] if cluster.places and wanted.type == "Block" else []


def noted(cluster: Cluster) -> dict[str, str]:
    """Return the annotation with the locations in the file, for a later pass."""
    return {labels.PLACES: json.dumps(topology.note(cluster.places))} if cluster.places else {}


def selector(nodeset: NodeSet, selected: dict[str, str]) -> Object:
    """Return the nodeSelector of a worker: its own, and its declared topology labels."""
    return {"nodeSelector": {**selected, **nodeset.spec.topology_labels}} if nodeset.spec.topology_labels else {}


def together(cluster: Cluster, nodeset: NodeSet, made: Object) -> Object:
    """Return a worker's pod with a preferred affinity to its peers, added to its own affinity."""
    if not cluster.spec.topology.is_on:
        return made
    levels = cluster.spec.topology.levels
    terms = [_near(cluster, nodeset, key, _HEAVIEST >> up) for up, key in enumerate(reversed(levels))]
    affinity: dict[str, Any] = made["spec"].get("affinity") or {}
    pods: dict[str, Any] = affinity.get("podAffinity") or {}
    word = "preferredDuringSchedulingIgnoredDuringExecution"
    wished = {**affinity, "podAffinity": {**pods, word: [*pods.get(word, []), *terms]}}
    return {**made, "spec": {**made["spec"], "affinity": wished}}


def _near(cluster: Cluster, nodeset: NodeSet, key: str, weight: int) -> Object:
    selected = {"matchLabels": labels.worker(cluster.name, nodeset.name)}
    return {"weight": max(weight, 1), "podAffinityTerm": {"labelSelector": selected, "topologyKey": key}}
