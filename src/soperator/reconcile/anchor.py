"""The anchor: a second owner of every child, so that the garbage collector deletes no child while jobs run.

A deletion in the foreground (`kubectl delete --cascade=foreground`, and whatever Argo CD prunes) makes Kubernetes delete the children of an object at
once, although a finalizer still holds the object. Kubernetes keeps a child that has another owner which is not being deleted. The anchor is that
owner: a ConfigMap without an owner. The operator deletes the anchor when the SlurmCluster may be deleted, and the garbage collector then deletes the
remaining children (docs/decisions/0089).

A finalizer keeps the anchor if somebody deletes it earlier. A Terminating anchor still keeps its children: the collector ignores only an owner that
is itself deleted in the foreground, and only until it has processed the dependents. The collector also removes the reference to such an owner from
the children that it keeps. So the operator adds the missing owner to such a child again when the collector is done.
"""

import asyncio
import contextlib

import structlog

from soperator.kube import kinds
from soperator.kube.api import Deletion
from soperator.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    NotFound,
)
from soperator.kube.kinds import Kind
from soperator.kube.views import Custom, Meta, ObjectMeta
from soperator.reconcile import finalizers
from soperator.reconcile.cache.decode import named
from soperator.reconcile.cache.informers import LOOSE
from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.context import Operator
from soperator.render.parts import labels, names
from soperator.render.parts.anchor import anchor_marks, render_anchor
from soperator.render.parts.model import Object, anchor_owner
from soperator.runtime.apply import Owner, refuse_foreign
from soperator.runtime.apply_ledger import ANCHORER
from soperator.runtime.cache.store import Key

#: The uid and the version of an anchor that got its finalizer: the cache may not show that write yet.
_HELD: Slot[Key, tuple[str, str]] = per_cluster("the anchor that got its finalizer")
#: The uids of children that may not have a second owner.
_UNANCHORED: Slot[Key, set[str]] = per_cluster("children without an anchor")
_IN_FLIGHT = 8
#: Up to this many objects get their second owner in one pass; each of these writes wakes the next pass.
_IN_A_PASS = 500


def uid(operator: Operator, key: Key) -> str:
    """Return the uid of a cluster's anchor; empty if there is none, or if it is being deleted."""
    found = _find(operator, key)
    return found.uid if found and (found.deletion_timestamp is None or _is_held(found)) else ""


async def hold(operator: Operator, key: Key) -> str:
    """Create a cluster's anchor if there is none, add both owners to children that lack one, and return the anchor's uid."""
    await keep(operator, key)
    known = uid(operator, key)
    if not known and _find(operator, key) is not None:
        return ""  # it is being deleted, and is created again afterwards
    if not known:
        try:
            made = await operator.api.create(kinds.CONFIGMAP, render_anchor(*key))
        except AlreadyExists:  # without the labels by which caches find it, or in a cache that trails
            await _refuse_foreign(operator, key)
            made = await operator.api.apply(kinds.CONFIGMAP, anchor_marks(*key), manager=ANCHORER)
        operator.stores.children[kinds.CONFIGMAP].learn(made)
        known = made.metadata.uid
    found = _find(operator, key)
    if found is None or not finalizers.is_collected(found):
        loose = [(kind, each, _lacking(operator, each, known)) for kind, each in _loose(operator, key)]
        due = [(kind, each, owners) for kind, each, owners in loose if owners][:_IN_A_PASS]
        slots = asyncio.Semaphore(_IN_FLIGHT)
        await asyncio.gather(*(_attach(operator, slots, (kind, each), owners) for kind, each, owners in due))
    return known


async def _refuse_foreign(operator: Operator, key: Key) -> None:
    """Raise ApplyRefused if a foreign ConfigMap has the anchor's name: the operator would delete it with the cluster."""
    meta = (await operator.api.get(kinds.CONFIGMAP, Meta, key[0], names.anchor(key[1]))).metadata
    refuse_foreign(f"ConfigMap/{meta.name}", meta, labels.MANAGER)


async def keep(operator: Operator, key: Key) -> None:
    """Set the finalizer of an anchor that has none: an older operator version created it, or somebody removed the finalizer."""
    found = _find(operator, key)
    if found is None or _is_held(found):
        operator.memory(_HELD).pop(key, None)
    elif found.deletion_timestamp is None and operator.memory(_HELD).get(key) != (found.uid, found.resource_version):
        operator.memory(_HELD)[key] = (found.uid, found.resource_version)  # the cache may not show our write yet
        body = anchor_marks(*key)
        body["metadata"]["uid"] = found.uid
        with contextlib.suppress(Conflict, NotFound):
            await operator.api.apply(kinds.CONFIGMAP, body, manager=ANCHORER)


async def release(operator: Operator, key: Key) -> None:
    """Delete the anchor of a cluster that may be deleted; the garbage collector then deletes the children without another owner."""
    if found := _find(operator, key):
        operator.memory(_HELD).pop(key, None)
        if _is_held(found):
            await operator.api.release(kinds.CONFIGMAP, found, labels.FINALIZER)
        if found.deletion_timestamp is None:
            await operator.api.delete(kinds.CONFIGMAP, found.namespace, found.name, Deletion(uid=found.uid))


async def release_without_cluster(operator: Operator, key: Key) -> bool:
    """Delete the anchor of a cluster that no longer exists although the operator did not remove its finalizer.

    Reads the API server, not the cache.
    """
    if _find(operator, key) is None:
        return False
    try:
        await operator.api.get(kinds.SLURMCLUSTER, Custom, *key)
    except NotFound:
        await release(operator, key)
        return True
    return False


async def _attach(
    operator: Operator, slots: asyncio.Semaphore, child: tuple[Kind, ObjectMeta], owners: list[Object]
) -> None:
    """Add owners to a child with a separate field manager, so that the fields of all other managers stay unchanged."""
    kind, meta = child
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "ownerReferences": owners},
    }
    async with slots:
        try:
            with contextlib.suppress(Conflict, NotFound):
                await operator.api.apply(kind, body, manager=ANCHORER)
        except ApiError as error:  # OpenShift lets only those change owners who may delete the object
            operator.memory(_UNANCHORED).setdefault(_cluster(meta), set()).add(meta.uid)
            structlog.get_logger().warning(
                f"{kind.kind} {meta.namespace}/{meta.name} is deleted at once if its owner is deleted in the foreground",
                error=str(error),
            )


def _find(operator: Operator, key: Key) -> ObjectMeta | None:
    found = operator.stores.children[kinds.CONFIGMAP].get(key[0], names.anchor(key[1]))
    meta: ObjectMeta | None = found.metadata if found else None
    return meta


def _loose(operator: Operator, key: Key) -> list[tuple[Kind, ObjectMeta]]:
    stores = {**operator.stores.applied(), kinds.POD: operator.stores.pods}
    found = [(kind, each.metadata) for kind, store in stores.items() for each in store.by(LOOSE, key)]
    return [(kind, each) for kind, each in found if each.deletion_timestamp is None]


def _lacking(operator: Operator, meta: ObjectMeta, anchor: str) -> list[Object]:
    """Return the owners to add to a child that has only one of its two owners; empty if the child needs no change.

    The first owner is added again only while it is being deleted. Otherwise the pass that applies the child sets it.
    """
    if meta.uid in operator.memory(_UNANCHORED).get(_cluster(meta), ()):
        return []
    found = [anchor_owner(meta.labels[labels.CLUSTER], anchor)]
    if first := _ending_owner(operator, meta):
        found.append(first)
    return found if {each["uid"] for each in found} - {each.uid for each in meta.owner_references} else []


def _ending_owner(operator: Operator, meta: ObjectMeta) -> Object | None:
    """Return the owner reference to a child's NodeSet or SlurmCluster, if the child may have lost it.

    That is so if the owner is being deleted, has our finalizer, and was already processed by the garbage collector.
    """
    stores, cluster = operator.stores, meta.labels[labels.CLUSTER]
    if name := meta.labels.get(labels.NODESET):
        kind, obj = kinds.NODESET, stores.nodesets.get(meta.namespace, name)
        obj = obj if obj and named(obj) == cluster else None
    else:
        kind, obj = kinds.SLURMCLUSTER, stores.clusters.get(meta.namespace, cluster)
    if (
        obj is None
        or not finalizers.is_ending(obj)
        or not finalizers.has_finalizer(obj)
        or finalizers.is_collected(obj.metadata)
    ):
        return None
    return Owner.from_metadata(kind, obj.metadata).reference()


def _is_held(meta: ObjectMeta) -> bool:
    return labels.FINALIZER in meta.finalizers


def _cluster(meta: ObjectMeta) -> Key:
    """Return the name of a child's cluster."""
    return meta.namespace, meta.labels.get(labels.CLUSTER, "")
