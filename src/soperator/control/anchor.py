"""The anchor: a second owner of every child, so that the garbage collector takes none while jobs run.

A deletion in the foreground (`kubectl delete --cascade=foreground`, and whatever Argo CD prunes) makes Kubernetes delete the children of an object at
once, although a finalizer still holds the object. It spares those that have another owner which is not being deleted. That owner is a ConfigMap
without an owner of its own; it goes when the SlurmCluster may go, and takes along what is left (docs/decisions/0089). A finalizer of ours
keeps it when a person deletes it: one that is being deleted still keeps its children, unless it was deleted in the foreground too.
"""

import asyncio
import contextlib

import structlog

from soperator.control.operator import Operator
from soperator.control.stores import LOOSE
from soperator.kube import kinds
from soperator.kube.api import Deletion
from soperator.kube.errors import ApiError, Conflict, NotFound
from soperator.kube.kinds import Kind
from soperator.kube.views import Custom, ObjectMeta
from soperator.render import labels, names
from soperator.render.anchor import render_anchor
from soperator.render.model import anchor_owner
from soperator.runtime.ledger import ANCHORER
from soperator.runtime.store import Key

#: The finalizer of the garbage collector on what was deleted in the foreground.
FOREGROUND = "foregroundDeletion"
_IN_FLIGHT = 8
#: Up to this many objects get their second owner in one pass; each of these writes wakes the next pass.
_IN_A_PASS = 500


def uid(operator: Operator, key: Key) -> str:
    """The uid of a cluster's anchor; empty where there is none, or none that stays."""
    found = _find(operator, key)
    return found.uid if found and (found.deletion_timestamp is None or _is_held(found)) else ""


async def hold(operator: Operator, key: Key) -> str:
    """Make the anchor of a cluster where there is none, name it as an owner of what lacks it, and return its uid."""
    known, found = uid(operator, key), _find(operator, key)
    if not known or (found and found.deletion_timestamp is None and not _is_held(found)):
        made = await operator.api.apply(kinds.CONFIGMAP, render_anchor(*key))
        operator.stores.children[kinds.CONFIGMAP].learn(made)
        known = made.metadata.uid
    loose = [(kind, each) for kind, each in _loose(operator, key) if each.uid not in operator.unanchored]
    slots = asyncio.Semaphore(_IN_FLIGHT)
    await asyncio.gather(*(_attach(operator, slots, (kind, each), known) for kind, each in loose[:_IN_A_PASS]))
    return known


async def release(operator: Operator, key: Key) -> None:
    """Delete the anchor of a cluster that may go; the garbage collector then takes what nobody else owns."""
    if found := _find(operator, key):
        if found.deletion_timestamp is None:
            await operator.api.delete(kinds.CONFIGMAP, *_place(found), Deletion(uid=found.uid))
        body = render_anchor(*key, is_held=False)
        body["metadata"]["uid"] = found.uid
        with contextlib.suppress(Conflict, NotFound):
            await operator.api.apply(kinds.CONFIGMAP, body)


async def release_lone(operator: Operator, key: Key) -> bool:
    """Delete the anchor of a cluster that is gone although its finalizer was not ours to remove; the API server is asked, not the cache."""
    if _find(operator, key) is None:
        return False
    try:
        await operator.api.get(kinds.SLURMCLUSTER, Custom, *key)
    except NotFound:
        await release(operator, key)
        return True
    return False


async def _attach(operator: Operator, slots: asyncio.Semaphore, child: tuple[Kind, ObjectMeta], owner: str) -> None:
    """Add the anchor to the owners of a child, as a field manager of its own: the fields of all others stay as they are."""
    kind, meta = child
    reference = anchor_owner(meta.labels[labels.CLUSTER], owner)
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "ownerReferences": [reference]},
    }
    async with slots:
        try:
            with contextlib.suppress(Conflict, NotFound):
                await operator.api.apply(kind, body, manager=ANCHORER)
        except ApiError as error:  # OpenShift lets only those change owners who may delete the object
            operator.unanchored.add(meta.uid)
            structlog.get_logger().warning(
                f"{kind.kind} {meta.namespace}/{meta.name} goes at once when its owner is deleted in the foreground",
                error=str(error),
            )


def _is_held(found: ObjectMeta) -> bool:
    """Whether a finalizer of ours keeps an anchor, and the garbage collector is not told to take its children first."""
    return labels.FINALIZER in found.finalizers and FOREGROUND not in found.finalizers


def _find(operator: Operator, key: Key) -> ObjectMeta | None:
    found = operator.stores.children[kinds.CONFIGMAP].get(key[0], names.anchor(key[1]))
    meta: ObjectMeta | None = found.metadata if found else None
    return meta


def _loose(operator: Operator, key: Key) -> list[tuple[Kind, ObjectMeta]]:
    stores = {**operator.stores.applied(), kinds.POD: operator.stores.pods}
    found = [(kind, each.metadata) for kind, store in stores.items() for each in store.by(LOOSE, key)]
    return [(kind, each) for kind, each in found if each.deletion_timestamp is None]


def _place(meta: ObjectMeta) -> tuple[str, str]:
    return meta.namespace, meta.name
