"""Decides without a request whether a child is unchanged since the operator applied it.

A server-side apply that changes nothing still costs a request and a merge for each child of each pass. So it is skipped if two things hold: the
desired object has not changed since the last write, and nobody else has written since.

The first is a digest of the desired object. For the second, resourceVersion and generation are unsuitable: resourceVersion changes with every status
update, generation does not change with labels. The server itself records the last write of each manager in `managedFields`, of which the operator
keeps manager, operation and time. The digest is also an annotation on the child, so that a restarted operator, whose ledger is empty, needs no write
for a child that nobody has touched. If somebody has, or may have within the same second, one write settles it. For a write to `scale` the server
records no manager, and only removes the field from ours, so replicas are compared if the ledger is empty (`apply`).

A cache trails our own writes. The object that a write replaced may still be in it (with the same resourceVersion as before the write), or the object
that a write created may not be in it yet (never observed, never deleted, no relist since). In both cases the write counts as done.
"""

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from soperator.kube.views import ChildMeta, ObjectMeta
from soperator.runtime.cache.store import Store

APPLIED = "slurm.soperator.io/applied"
#: The field manager of the second owner of each child (reconcile/anchor.py): what it writes is no change of what was applied.
ANCHORER = "soperator-anchor"


@dataclass(frozen=True, slots=True)
class Written:
    """One write: the desired object, the version that it replaced, the result, and the store's epoch at that time."""

    digest: str
    replaced: str
    meta: ObjectMeta
    epoch: int


def digest_of(obj: Mapping[str, Any]) -> str:
    """Return 16 hex digits that change with the object, but not with the order of its keys."""
    return hashlib.sha256(msgspec.json.encode(obj, order="deterministic")).hexdigest()[:16]


def footprint(meta: ObjectMeta) -> Hashable:
    """Return a value that changes when somebody writes to the object, except to its status."""
    if isinstance(meta, ChildMeta) and meta.managed_fields:
        writers = frozenset(
            (field.manager, field.operation, field.subresource, field.time)
            for field in meta.managed_fields
            if field.subresource != "status" and field.manager != ANCHORER
        )
        return meta.uid, meta.generation, writers
    return meta.uid, meta.generation or meta.resource_version


def is_untouched(meta: ObjectMeta, manager: str) -> bool:
    """Return whether `manager` was the last to write to the object. A write of another manager within the same second counts as later."""
    if not isinstance(meta, ChildMeta):
        return False
    others = [each for each in meta.managed_fields if each.subresource != "status" and each.manager != ANCHORER]
    ours = next((field for field in others if field.manager == manager and field.operation == "Apply"), None)
    if ours is None or ours.time is None:
        return False
    return all(field is ours or (field.time is not None and field.time < ours.time) for field in others)


def is_current(digest: str, manager: str, store: Store[Any], live: ObjectMeta | None, last: Written | None) -> bool:
    """Return whether the desired object with this digest needs no write; `last` is the operator's latest write to it, if any."""
    if last is None:
        return live is not None and live.annotations.get(APPLIED) == digest and is_untouched(live, manager)
    if last.digest != digest:
        return False
    if live is None:
        return store.epoch == last.epoch and not store.is_gone(last.meta.uid)
    if live.resource_version in (last.replaced, last.meta.resource_version):
        return True
    return footprint(live) == footprint(last.meta)
