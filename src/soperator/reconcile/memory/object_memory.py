"""The stored state of a HealthCheck or a SlurmAccount: a ConfigMap of its own, which is deleted with its owner.

It has the fields of the status that cannot be derived: when a node ran a check and how often it failed, which job is in progress, and which
limits of users an object has set. They are too large for an annotation. The ConfigMap is written before the status.

The sources have this order of priority: what this process wrote or has read; the ConfigMap; and the status, if there is no ConfigMap or
somebody edited it. Each process reads the content once, and again after another writer's change. An owner without such state has no
ConfigMap.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from soperator.kube import kinds
from soperator.kube.api import Deletion
from soperator.kube.errors import NotFound
from soperator.kube.kinds import Kind
from soperator.kube.objects import ConfigMap
from soperator.kube.views import ChildMeta, Custom
from soperator.reconcile.cache.decode import named
from soperator.reconcile.cache.per_object import Slot, per_object
from soperator.reconcile.context import Operator
from soperator.reconcile.memory.seal import Json, seal, unseal
from soperator.render.parts import labels, names
from soperator.render.parts.model import Object
from soperator.runtime.apply import refuse_foreign_name
from soperator.runtime.controller import PermanentError
from soperator.runtime.events import EventNote, Regarding

#: The fields of the status that are remembered, by kind.
FIELDS: dict[Kind, Sequence[str]] = {
    kinds.HEALTHCHECK: (
        "lastRequest",
        "completedRequests",
        "lastRequestTime",
        "highestJob",
        "dueAfterRepair",
        "runs",
        "lastRuns",
        "unhealthyNodes",
        "endedFailures",
        "readings",
        "findings",
        "comparison",
    ),
    kinds.SLURMACCOUNT: ("applied",),
}
FILE = "memory"
#: Bytes of its text; a ConfigMap may have 1 MiB.
MOST = 1_000_000
_TRAIL = 16
_README = """\
The stored state of {kind} {name}; its status shows the same. Only the operator writes here: it undoes an edit or a deletion.
This object is deleted with {kind} {name}.
"""


@dataclass
class _ObjectMemory:
    """The stored state of an object; None if only the status can have it.

    `seen` is the version of the ConfigMap that was compared last, and `is_lost` says whether it differed from this memory. `ours` are the
    last versions that our writes replaced or created, the newest last: a cache may show any of them.
    """

    fields: dict[str, Any] | None = None
    seen: str | None = None
    is_lost: bool = False
    ours: deque[str] = field(default_factory=lambda: deque(maxlen=_TRAIL))


_MEMORY: Slot[str, _ObjectMemory] = per_object("the stored state of an object in its ConfigMap")


async def recall(operator: Operator, kind: Kind, obj: Custom) -> Json:
    """Return the stored state of an object, by the names of the fields of its status. Raises the errors of a read."""
    memory = operator.memory(_MEMORY).setdefault(obj.metadata.uid, _ObjectMemory())
    found = _cached(operator, kind, obj)
    version = found.resource_version if found else ""
    if version in memory.ours:  # the cache is up to date, or trails behind our last write
        memory.seen, memory.is_lost = version, False
    elif version != memory.seen:
        there = await _fetch(operator, found) if found else None
        fields = unseal(there.data.get(FILE, "")) if there else None
        if (
            fields is not None and not memory.ours
        ):  # until our first write the cache may trail what a former leader wrote
            memory.fields = dict(fields)
        is_same = fields == memory.fields and (there is None or _is_marked(there.metadata, kind, obj))
        memory.seen, memory.is_lost = version, not is_same or (there is not None and fields is None)
    return known(operator, kind, obj)


def known(operator: Operator, kind: Kind, obj: Custom) -> Json:
    """Return the same without a read; call it after `recall` in the same pass."""
    memory = operator.memory(_MEMORY).get(obj.metadata.uid)
    if memory is not None and memory.fields is not None:
        return memory.fields
    status = operator.status.mine(obj)
    return {name: status[name] for name in FIELDS[kind] if name in status}


async def remember(operator: Operator, kind: Kind, obj: Custom, fields: Json) -> None:
    """Store these fields of an object's status, and no others; does nothing if they are stored already.

    Raises the errors of a write, and Conflict if this process is not up to date.
    """
    memory = operator.memory(_MEMORY).setdefault(obj.metadata.uid, _ObjectMemory())
    kept = {name: fields[name] for name in FIELDS[kind] if fields.get(name)}
    if (kept == memory.fields and not memory.is_lost) or (memory.fields is None and not kept):
        return
    text, found = seal(kept), _cached(operator, kind, obj)
    if len(text) > MOST:
        raise PermanentError(
            f"what is to be remembered of {kind.kind} {obj.metadata.name} is larger than a ConfigMap may be"
        )
    is_trailing, was_changed = found is not None and found.resource_version in memory.ours, memory.is_lost
    body = _render(kind, obj, text)
    if found:
        body["metadata"]["resourceVersion"] = memory.ours[-1] if is_trailing else found.resource_version
    elif not memory.ours:
        key = (obj.metadata.namespace, body["metadata"]["name"])
        await refuse_foreign_name(operator.api, kinds.CONFIGMAP, key, (obj.metadata.uid,))
    written = await operator.api.apply(kinds.CONFIGMAP, body)
    operator.stores.children[kinds.CONFIGMAP].learn(written)
    if was_changed:
        _emit_restored(operator, kind, obj)
    if found and not is_trailing:
        memory.ours.append(found.resource_version)
    memory.ours.append(written.metadata.resource_version)
    memory.fields, memory.is_lost = kept, False


async def forget(operator: Operator, kind: Kind, obj: Custom) -> None:
    """Delete the stored state of an object whose finalizer is removed.

    The garbage collector would delete it later, and a new object may have the same name at once.
    """
    if found := _cached(operator, kind, obj):
        await operator.api.delete(kinds.CONFIGMAP, found.namespace, found.name, Deletion(uid=found.uid))


def _cached(operator: Operator, kind: Kind, obj: Custom) -> ChildMeta | None:
    name = names.memory(named(obj), kind.kind, obj.metadata.name)
    found = operator.stores.children[kinds.CONFIGMAP].get(obj.metadata.namespace, name)
    meta: ChildMeta | None = found.metadata if found else None
    return meta


async def _fetch(operator: Operator, found: ChildMeta) -> ConfigMap | None:
    try:
        return await operator.api.get(kinds.CONFIGMAP, ConfigMap, found.namespace, found.name)
    except NotFound:
        return None


def _is_marked(meta: ChildMeta, kind: Kind, obj: Custom) -> bool:
    """Return whether a ConfigMap has its labels, and the object as its owner."""
    is_owned = any(each.uid == obj.metadata.uid for each in meta.owner_references)
    return is_owned and _labels(kind).items() <= meta.labels.items()


def _labels(kind: Kind) -> dict[str, str]:
    """Return the ConfigMap's labels, without that of a cluster, because a new result of a check must not wake a pass of its cluster."""
    return {labels.MANAGED_BY: labels.MANAGER, labels.MEMORY: kind.kind}


def _render(kind: Kind, obj: Custom, text: str) -> Object:
    meta = obj.metadata
    owner = {"apiVersion": kind.api_version, "kind": kind.kind, "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": kinds.CONFIGMAP.api_version,
        "kind": kinds.CONFIGMAP.kind,
        "metadata": {
            "name": names.memory(named(obj), kind.kind, meta.name),
            "namespace": meta.namespace,
            "labels": _labels(kind),
            "ownerReferences": [owner],
        },
        "data": {FILE: text, "README": _README.format(kind=kind.kind, name=meta.name)},
    }


def _emit_restored(operator: Operator, kind: Kind, obj: Custom) -> None:
    name = names.memory(named(obj), kind.kind, obj.metadata.name)
    text = f"ConfigMap {name} was changed or deleted and is restored; only the operator may write it"
    note = EventNote("Warning", "MemoryRestored", text, "Restore")
    operator.recorder.emit(Regarding(kind, obj.metadata), note)
