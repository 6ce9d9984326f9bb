"""The stored state of a SlurmCluster and its NodeSets: an annotation of the cluster's anchor.

The status shows the same state. No pod, no Secret and no answer of Slurm contains it: the images that the cluster keeps, the rendered
objects, the keys in force and the next one, the completed requests, the generation that slurmctld runs with, and whether accounting is
on.

The sources have this order of priority: what this process wrote; the annotation; and the status, if the annotation has no entry for an
object. So a lost status loses no state, a lost or edited annotation is written again, and the first pass copies the state of an older
operator version from the status. A former leader with an outdated cache overwrites nothing: each write names the version of the anchor on
which it is based. The anchor has a finalizer and no owner, exists as long as the cluster, and is in the caches (docs/decisions/0120).
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from soperator.kube import kinds
from soperator.kube.views import ChildMeta, Custom
from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.context import Operator
from soperator.reconcile.memory.seal import Json, seal, unseal
from soperator.render.parts import labels, names
from soperator.runtime.cache.store import Key
from soperator.runtime.events import EventNote, Regarding

#: The fields of the status that are remembered.
CLUSTER_FIELDS = (
    "completedRequests",
    "config",
    "refilled",
    "images",
    "rendered",
    "keyDigests",
    "keyRotations",
    "accounting",
)
NODESET_FIELDS = ("rendered",)
#: The field manager of the annotation: the anchor's other fields have another one.
MANAGER = "soperator-memory"
_CLUSTER, _NODESETS = "cluster", "nodesets"
_TRAIL = 16


@dataclass
class _ClusterMemory:
    """The stored state of the cluster with this uid.

    `seen` is the version of the anchor whose annotation was compared last, and `is_lost` says whether it differed from this memory. `ours`
    are the last versions that our writes replaced or created, the newest last: a cache may show any of them.
    """

    uid: str
    parts: dict[str, Any] = field(default_factory=dict)
    seen: str = ""
    is_lost: bool = False
    ours: deque[str] = field(default_factory=lambda: deque(maxlen=_TRAIL))
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


_MEMORY: Slot[Key, _ClusterMemory] = per_cluster("the stored state of a cluster in its anchor")


def of_cluster(operator: Operator, obj: Custom) -> Json:
    """Return the stored state of a cluster, by the names of the fields of its status."""
    found: Json | None = _read(operator, obj).parts.get(_CLUSTER)
    return _picked(operator.status.mine(obj), CLUSTER_FIELDS) if found is None else found


def of_nodeset(operator: Operator, cluster: Custom | None, obj: Custom) -> Json:
    """Return the stored state of a NodeSet, by the names of the fields of its status."""
    known = _read(operator, cluster).parts.get(_NODESETS, {}) if cluster else {}
    found: Json | None = known.get(obj.metadata.name)
    is_same = found is not None and found.get("uid") == obj.metadata.uid
    return found if found is not None and is_same else _picked(operator.status.mine(obj), NODESET_FIELDS)


async def remember_cluster(operator: Operator, obj: Custom, fields: Json) -> None:
    """Store fields of a cluster's status; the others stay. Raises the errors of a write, and Conflict if this process is not up to date.

    Nothing is stored before slurmctld runs with a configuration: until then no state can be lost, and the status is enough.
    """
    memory = _read(operator, obj)
    if not memory.parts and not fields.get("config"):
        return
    async with memory.lock:
        kept = {**of_cluster(operator, obj), **_picked(fields, CLUSTER_FIELDS)}
        await _write(operator, obj, memory, {**memory.parts, _CLUSTER: kept})


async def remember_nodeset(operator: Operator, cluster: Custom | None, obj: Custom, fields: Json) -> None:
    """Store fields of a NodeSet's status; deletes the entries of NodeSets that no longer exist."""
    if cluster is None:
        return
    memory = _read(operator, cluster)
    async with memory.lock:
        if not memory.parts:
            return
        key = (cluster.metadata.namespace, cluster.metadata.name)
        there = {each.metadata.name for each in operator.stores.nodesets_of(key)}
        known = {name: each for name, each in memory.parts.get(_NODESETS, {}).items() if name in there}
        known[obj.metadata.name] = {"uid": obj.metadata.uid, **_picked(fields, NODESET_FIELDS)}
        await _write(operator, cluster, memory, {**memory.parts, _NODESETS: known})


def _read(operator: Operator, obj: Custom) -> _ClusterMemory:
    """Return the memory of a cluster; reads the annotation if the anchor has a new version."""
    key = (obj.metadata.namespace, obj.metadata.name)
    memory = operator.memory(_MEMORY).get(key)
    if memory is None or memory.uid != obj.metadata.uid:
        memory = operator.memory(_MEMORY)[key] = _ClusterMemory(obj.metadata.uid)
    found = _anchor(operator, key)
    if found is None:
        memory.seen, memory.is_lost = "", bool(memory.parts)
    elif found.resource_version in memory.ours:  # the cache is up to date, or trails behind our last write
        memory.seen, memory.is_lost = found.resource_version, False
    elif found.resource_version != memory.seen:
        text = found.annotations.get(labels.MEMORY, "")
        parts = unseal(text)
        if (
            parts is not None and not memory.ours
        ):  # until our first write the cache may trail what a former leader wrote
            memory.parts = dict(parts)
        memory.seen, memory.is_lost = found.resource_version, bool(memory.parts or text) and text != seal(memory.parts)
    return memory


async def _write(operator: Operator, obj: Custom, memory: _ClusterMemory, parts: dict[str, Any]) -> None:
    """Write the annotation if it differs. Until the anchor exists, before the first child, only the status has the state."""
    if parts == memory.parts and not memory.is_lost:
        return
    found = _anchor(operator, (obj.metadata.namespace, obj.metadata.name))
    if found is None:
        memory.parts, memory.is_lost = parts, True
        return
    is_trailing, was_changed = found.resource_version in memory.ours, memory.is_lost
    meta = {
        "name": found.name,
        "namespace": found.namespace,
        "uid": found.uid,
        "resourceVersion": memory.ours[-1] if is_trailing else found.resource_version,
        "annotations": {labels.MEMORY: seal(parts)},
    }
    body = {"apiVersion": kinds.CONFIGMAP.api_version, "kind": kinds.CONFIGMAP.kind, "metadata": meta}
    written = await operator.api.apply(kinds.CONFIGMAP, body, manager=MANAGER)
    if was_changed and (memory.ours or labels.MEMORY in found.annotations):
        _emit_restored(operator, obj, found)
    if not is_trailing:
        memory.ours.append(found.resource_version)
    memory.ours.append(written.metadata.resource_version)
    memory.parts, memory.is_lost = parts, False


def _anchor(operator: Operator, key: Key) -> ChildMeta | None:
    found = operator.stores.children[kinds.CONFIGMAP].get(key[0], names.anchor(key[1]))
    meta: ChildMeta | None = found.metadata if found else None
    return meta


def _picked(fields: Json, which: Sequence[str]) -> dict[str, Any]:
    return {name: fields[name] for name in which if name in fields}


def _emit_restored(operator: Operator, obj: Custom, found: ChildMeta) -> None:
    text = f"annotation {labels.MEMORY} of ConfigMap {found.name} was changed and is restored; only the operator may write it"
    operator.recorder.emit(
        Regarding(kinds.SLURMCLUSTER, obj.metadata), EventNote("Warning", "MemoryRestored", text, "Restore")
    )
