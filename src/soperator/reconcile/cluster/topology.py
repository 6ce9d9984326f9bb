"""Determines the locations of a cluster's nodes: from the labels of their pods' Kubernetes Nodes, or as their NodeSet declares them.

The content of the current topology.conf is in an annotation of the ConfigMap with Slurm's files. The time of the decision is in memory.
"""

from collections.abc import Mapping, Sequence

from soperator.api.fields.config import TOPOLOGY_FILES
from soperator.kube import kinds
from soperator.policy.cluster.topology import (
    TopologyPlan,
    TopologySnapshot,
    choose,
    with_found_nodes,
)
from soperator.reconcile import pod_status
from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.cache.workers import Worker, WorkerSet
from soperator.reconcile.context import Operator
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster, NodeSet
from soperator.runtime.cache.store import Key
from soperator.runtime.status import ReportedCondition
from soperator.slurm.settings.state import ConfigState
from soperator.slurm.topology import (
    ROOT,
    Place,
    found,
    read_note,
)
from soperator.slurmrest.client import SlurmError

_PLACED: Slot[Key, TopologyPlan] = per_cluster("the content of topology.conf")
#: Seconds until slurmctld is asked, and between two requests.
_SOON = 3.0


def places(
    operator: Operator, cluster: Cluster, crews: Sequence[tuple[NodeSet, WorkerSet]], state: ConfigState
) -> Mapping[str, Place]:
    """Return the content for topology.conf: the location of each node that Slurm knows, as of the last time that a new file was due."""
    placed = operator.memory(_PLACED).get(cluster.key) or TopologyPlan(_noted(operator, cluster), state.since)
    known = operator.slurm.nodes(cluster.key)
    if known is None:
        return placed.places
    levels = cluster.spec.topology.levels if cluster.spec.topology.is_on else []
    nodes: dict[str, Place | None] = dict.fromkeys(known)
    for nodeset, worker_set in crews:
        nodes |= _declared(nodeset, levels, known)
        nodes |= {each.pod.spec.hostname: _place(each, nodeset, levels) for each in worker_set.workers if each.slurm}
    is_settled = all(_is_settled(*each) for each in crews)
    made = choose(TopologySnapshot(placed, nodes, is_settled, operator.wall(), len(levels)))
    operator.memory(_PLACED)[cluster.key] = made
    return made.places


async def fetch_found_nodes(operator: Operator, cluster: Cluster, state: ConfigState) -> None:
    """Ask slurmctld which nodes it found when it read topology.conf, once per read."""
    known, reading = operator.slurm.nodes(cluster.key), _unasked(operator, cluster, state)
    if not known or not reading:
        return
    try:
        nodes = found(await operator.pod_exec.scontrol(cluster, "show", "topology", ROOT))
    except SlurmError:
        return
    noted = _noted(operator, cluster)
    placed = operator.memory(_PLACED).get(cluster.key) or TopologyPlan(noted, state.since)
    operator.memory(_PLACED)[cluster.key] = with_found_nodes(
        placed, reading, noted.keys() & known.keys(), noted if nodes is None else nodes
    )


def again(operator: Operator, cluster: Cluster, state: ConfigState) -> float | None:
    """Return the seconds until a new topology.conf, or the next query to slurmctld, is due."""
    placed = operator.memory(_PLACED).get(cluster.key) if cluster.has_topology else None
    if placed and _unasked(operator, cluster, state):
        return min(placed.again or _SOON, _SOON)
    return placed.again if placed else None


def condition(cluster: Cluster) -> list[ReportedCondition]:
    """Return the condition TopologyKnown; none for a cluster without topology levels."""
    levels = cluster.spec.topology.levels
    if not cluster.spec.topology.is_on:
        return []
    lost = sorted(node for node, place in cluster.places.items() if "" in place)
    if not lost:
        return [ReportedCondition("TopologyKnown", "True", "Known")]
    missing = levels[cluster.places[lost[0]].index("")]
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    why = f"it has no Node, or its Node lacks the label {missing}: set the label, or set topologyLabels of the NodeSet"
    return [
        ReportedCondition(
            "TopologyKnown", "False", "LabelsMissing", f"the location of {lost[0]}{more} is unknown: {why}"
        )
    ]


def _unasked(operator: Operator, cluster: Cluster, state: ConfigState) -> str:
    """Identifies slurmctld's last read of the files, about which it is asked; empty while the files are being activated.

    Only for topology/tree: with blocks, slurmctld uses a node that is in no block and does not report it.
    """
    is_ours = cluster.spec.topology.type == "Tree" and not cluster.spec.config.file(*TOPOLOGY_FILES)
    if not (is_ours and state.is_settled and _noted(operator, cluster)):
        return ""
    ready = [each for each in operator.stores.role_pods(cluster.key, "controller") if pod_status.is_ready(each)]
    began = [
        f"{each.metadata.name} {status.state.running.started_at}"
        for each in ready
        for status in each.status.container_statuses
        if status.name == "slurmctld" and status.state.running
    ]
    reading = " ".join([state.generation, *sorted(began)]) if began else ""
    placed = operator.memory(_PLACED).get(cluster.key)
    return "" if placed and placed.asked == reading else reading


def _noted(operator: Operator, cluster: Cluster) -> dict[str, Place]:
    live = operator.stores.children[kinds.CONFIGMAP].get(cluster.namespace, names.config(cluster.name))
    return read_note(live.metadata.annotations.get(labels.PLACES, "")) if live else {}


def _declared(nodeset: NodeSet, levels: Sequence[str], known: Mapping[str, object]) -> dict[str, Place]:
    """Return the nodes of a NodeSet that declares its location, including those without a pod."""
    if not levels or not set(levels) <= nodeset.spec.topology_labels.keys():
        return {}
    place = tuple(nodeset.spec.topology_labels[each] for each in levels)
    stem = f"{nodeset.name}-"
    return {name: place for name in known if name.startswith(stem) and name.removeprefix(stem).isdecimal()}


def _place(worker: Worker, nodeset: NodeSet, levels: Sequence[str]) -> Place | None:
    if levels and worker.node is None:
        return None
    said = {**(worker.node.metadata.labels if worker.node else {}), **nodeset.spec.topology_labels}
    return tuple(said.get(each, "") for each in levels)


def _is_settled(nodeset: NodeSet, worker_set: WorkerSet) -> bool:
    is_all = (
        nodeset.spec.power_saving is not None or len(worker_set.workers) == nodeset.spec.replicas
    )  # a sleeping node has no pod
    return is_all and all(each.node and each.slurm for each in worker_set.workers)
