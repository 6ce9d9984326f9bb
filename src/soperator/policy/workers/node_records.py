"""Keeps Slurm's records of workers in sync with the spec: forgotten workers register again, and features and weight are updated.

A dynamic node is only in slurmctld's memory until slurmctld next saves its nodes, and a registration causes no save (24.11). A slurmctld that is
killed before that forgets the node. slurmd registers only when it starts, so it does not register again. So the operator makes slurmctld save new
nodes at once (`reconcile/cache/slurm_poller`), and makes the slurmd of a forgotten node register again.

Features and weight follow the spec without a new pod. slurmd sends them only when Slurm creates the record. Slurm keeps them when slurmd registers
again, but falls back to the weight of the first registration when slurmctld reads its files again (measured with 24.11,
tests/slurm/test_record_fields.py). So each pass compares the record with the spec, whoever changed it. No other field is compared: an administrator
may set all others with scontrol.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from soperator.policy.workers.types import (
    AnnotatePod,
    RecordFields,
    Register,
    UpdateNodes,
    Verb,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.node import Shape, SlurmNode

#: Seconds for which a ready slurmd may be unregistered before it is told to register, and between two such requests. After a start it needs 1 s.
PATIENCE = 20.0


def due_registrations(seen: WorkerSnapshot, pod: WorkerPod) -> list[Register | AnnotatePod]:
    """Return the next step for a running slurmd whose node Slurm has not known for a while: slurmd registers again, and its jobs continue.

    Slurm forgot the drain with the node, so a job may start on the node at once. An earlier step therefore protects a pod that may be evicted, and
    removes the record of the drain from the pod. Otherwise the node would look as if an administrator had resumed it.
    """
    if not _is_unknown(seen, pod) or seen.now < _due(pod):
        return []
    if not pod.protected or pod.noted:
        return [AnnotatePod(pod.index, "Slurm has forgotten the drain of its node", protected=True, noted="")]
    return [Register(pod.index, "Slurm does not know the node although its slurmd runs")]


def moments(seen: WorkerSnapshot, pod: WorkerPod) -> Iterator[float]:
    """Yield when an unregistered slurmd must register again, in seconds since 1970."""
    if _is_unknown(seen, pod):
        yield _due(pod)


def shortfall(seen: WorkerSnapshot) -> str:
    """Return a message about jobs that slurmctld refuses while it knows fewer nodes of a NodeSet than desired, with a remedy; empty otherwise.

    slurmctld refuses a job over more nodes than it has records, and a worker's registration creates its record (docs/decisions/0101).
    """
    if seen.nodes is None or seen.on_demand or seen.ending:
        return ""
    known = len(seen.without_pod) + sum(seen.node(index) is not None for index in seen.pods)
    if known >= seen.wanted:
        return ""
    refused = f"Slurm knows {known} of {seen.wanted} nodes and refuses jobs over more until the others register"
    return f"{refused}; sbatch --hold queues one"


def field_updates(seen: WorkerSnapshot, indexes: Iterable[int]) -> Iterator[UpdateNodes]:
    """Yield one update for the workers whose features or weight in Slurm differ from the spec."""
    wanted = seen.record
    if wanted is None or seen.ending:
        return
    found = {index: node for index in sorted(indexes) if (node := seen.node(index)) and differs(node, wanted)}
    if found:
        change = _change(next(iter(found.values())), wanted)
        yield UpdateNodes(Verb.SET_FIELDS, tuple(found), change)


def differs(node: SlurmNode, wanted: RecordFields) -> bool:
    """Return whether Slurm has other features or another weight of a node; False if it reports neither."""
    return node.shape is not None and not is_as_wanted(node.shape, wanted)


def is_as_wanted(shape: Shape, wanted: RecordFields) -> bool:
    """Return whether a record has the features and the weight of the spec."""
    return shape.weight == wanted.weight and wanted.features in (None, shape.features)


def with_fields(shape: Shape, wanted: RecordFields | None) -> Shape:
    """Return the shape that a record has once its fields match the spec."""
    if wanted is None:
        return shape
    return replace(shape, weight=wanted.weight, features=shape.features if wanted.features is None else wanted.features)


def _is_unknown(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    runs = pod.ready and pod.phase == "Running" and not pod.deleting
    return runs and seen.nodes is not None and seen.node(pod.index) is None


def _due(pod: WorkerPod) -> float:
    return max(pod.ready_since, pod.asked) + PATIENCE


def _change(node: SlurmNode, wanted: RecordFields) -> str:
    """The change of one node as text for an Event."""
    shape = node.shape
    assert shape is not None  # `differs` is True
    parts = []
    if wanted.features not in (None, shape.features):
        parts.append(f"features {_text(shape.features)} → {_text(wanted.features or ())}")
    if shape.weight != wanted.weight:
        parts.append(f"weight {shape.weight} → {wanted.weight}")
    return ", ".join(parts)


def _text(features: Iterable[str]) -> str:
    return ",".join(sorted(features)) or "none"
