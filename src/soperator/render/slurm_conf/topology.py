"""Which nodes lie close to each other: topology.conf for Slurm, and for Kubernetes a wish that the pods of a NodeSet lie together.

The wish is no part of what tells an old pod from a current one: it matters when a pod is placed, and no job has to make way for it.
"""

import json
from typing import Any

from soperator.render.parts import labels
from soperator.render.parts.model import Cluster, NodeSet, Object
from soperator.slurm import conf, hostlist, topology

#: How much the closest level weighs for the scheduler; each level above it half as much.
_HEAVIEST = 100


def topology_conf(cluster: Cluster) -> str:
    """Return the file, empty where there is none. A user's own ends in who is there, for slurmctld is to read it anew when a node has come."""
    spec, places = cluster.spec, cluster.places
    if own := spec.config.topology.rstrip():
        return f"{own}\n# read with {hostlist.compress(places)}" if places else own
    if not places:
        return ""
    if spec.topology.type == "Block":
        return topology.blocks(places, spec.topology.block_sizes)
    return topology.tree(places) if spec.topology.is_on else ""


def settings(cluster: Cluster) -> dict[str, str | int]:
    """Return what makes Slurm use it. Without a node that it knows slurmctld has none: it would turn away every job."""
    if cluster.spec.config.topology.strip():
        return {"TopologyPlugin": "topology/tree"}
    return {"TopologyPlugin": f"topology/{cluster.spec.topology.type.lower()}"} if topology_conf(cluster) else {}


def spares(cluster: Cluster) -> list[conf.Line]:
    """Return the line of slurm.conf with the nodes that keep a block from being too small."""
    wanted = cluster.spec.topology
    return [topology.spares(cluster.places, wanted.block_sizes)] if cluster.places and wanted.type == "Block" else []


def noted(cluster: Cluster) -> dict[str, str]:
    """Return the annotation that tells a later pass what the file says."""
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
