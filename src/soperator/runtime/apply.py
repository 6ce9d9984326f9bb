"""Applies the children of an object.

`apply` gets the whole desired state at once, writes each difference by server-side apply, and prunes our own objects that are no longer desired.
Objects that others need to start (ConfigMaps, Secrets, claims, Services) are written first, since a Pod whose Secret is a moment late waits for the
kubelet's next retry. Within such a wave all writes are in flight together.

Some fields are immutable. For kinds whose objects are cheap to lose (Jobs), a change of such a field deletes the object and creates it again. For all
others the owner's status reports the refusal with object and field, and the pass waits for a change. So it does for a foreign object that has the
name of a child: server-side apply would take it over. A foreign claim is used as if the spec named it, and stays unchanged.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

from soperator.kube.api import Api, Deletion
from soperator.kube.errors import Invalid, NotFound, explain
from soperator.kube.kinds import CRONJOB, DAEMONSET, DEPLOYMENT, JOB, POD, PVC, STATEFULSET, Kind, kind_of
from soperator.kube.views import ChildMeta, Meta, ObjectMeta
from soperator.runtime.apply_ledger import (
    APPLIED,
    Written,
    digest_of,
    is_current,
)
from soperator.runtime.cache.store import OWNER, Key, Store
from soperator.runtime.controller import PermanentError, TransientError

MANAGED_BY = "app.kubernetes.io/managed-by"
KEEP = "slurm.soperator.io/keep"
WORKLOADS = frozenset({POD, STATEFULSET, DEPLOYMENT, DAEMONSET, JOB, CRONJOB})
IN_FLIGHT = 8

Ref = tuple[Kind, Key]


@dataclass(frozen=True, slots=True)
class Owner:
    """The object whose children are applied."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    #: References to further owners of each child, which are no part of its digest.
    others: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def from_metadata(cls, kind: Kind, meta: ObjectMeta, others: Sequence[Mapping[str, Any]] = ()) -> Self:
        """Return the Owner for an object with this metadata."""
        return cls(kind, meta.namespace, meta.name, meta.uid, tuple(others))

    def reference(self) -> dict[str, Any]:
        """Return the owner reference for a child."""
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of an apply; objects are named as `Kind/name`. Those in `waiting` are being deleted, and are created again afterwards."""

    written: tuple[str, ...] = ()
    unchanged: int = 0
    pruned: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


class ApplyRefused(PermanentError):  # noqa: N818
    """The API server refused an object; the message names the object and the field."""


@dataclass(frozen=True, slots=True)
class _Child:
    kind: Kind
    key: Key
    body: dict[str, Any]
    digest: str

    @property
    def ref(self) -> Ref:
        return self.kind, self.key

    def __str__(self) -> str:
        return f"{self.kind}/{self.key[1]}"


def _child(obj: Mapping[str, Any], owner: Owner, manager: str) -> _Child:
    """Complete a desired object: namespace, label, owner reference (except on an object that outlives its owner), digest."""
    kind = kind_of(obj)
    meta = dict(obj["metadata"])
    if kind.namespaced:
        meta.setdefault("namespace", owner.namespace)
    meta["labels"] = {**meta.get("labels", {}), MANAGED_BY: manager}
    is_kept = meta.get("annotations", {}).get(KEEP) == "true"
    is_owned = not is_kept and meta.get("namespace", "") == owner.namespace
    if is_owned:
        meta["ownerReferences"] = [owner.reference()]
    digest = digest_of({**obj, "metadata": meta})
    if is_owned:
        meta["ownerReferences"] = [owner.reference(), *owner.others]
    meta["annotations"] = {**meta.get("annotations", {}), APPLIED: digest}
    return _Child(kind, (meta.get("namespace", ""), meta["name"]), {**obj, "metadata": meta}, digest)


def digest_as_child(obj: Mapping[str, Any], owner: Owner, manager: str = "soperator") -> str:
    """Return the digest that the owner's child would carry if it were applied as `obj`."""
    return _child(obj, owner, manager).digest


class Applier:
    """Applies children and remembers its own writes. Reads only the given stores, one for each kind of child."""

    def __init__(
        self, api: Api, stores: Mapping[Kind, Store[Any]], recreate: Collection[Kind] = frozenset({JOB})
    ) -> None:
        self._api = api
        self._stores = stores
        self._recreate = recreate
        self._ledger: dict[str, dict[Ref, Written]] = {}
        self._slots = asyncio.Semaphore(IN_FLIGHT)

    async def apply(
        self,
        owner: Owner,
        objects: Sequence[Mapping[str, Any]],
        prune: Collection[Kind] = (),
        keep: Collection[str] = (),
        same: Mapping[str, Collection[str]] = MappingProxyType({}),
        at_once: bool = False,
    ) -> Applied:
        """Make the owner's children of the kinds in `prune`, and the given objects, equal to the given objects; those named in `keep` stay.

        An object that nobody has touched since it was written with a digest of `same`, by its name there, counts as equal. With `at_once`, a write
        that the server postpones is not retried here, because it is right only now. Raises ApplyRefused if the API server refuses an object. The
        others of its wave are written nevertheless, later waves are not, and nothing is pruned. Raises TransientError or ApiError for an error that
        may pass.
        """
        children = [_child(obj, owner, self._api.field_manager) for obj in objects]
        wanted = {child.ref for child in children}
        if len(wanted) != len(children):
            names = [str(child) for child in children]
            raise ValueError(f"rendered twice: {sorted({name for name in names if names.count(name) > 1})}")
        ledger = self._ledger.setdefault(owner.uid, {})
        for ref in [ref for ref in ledger if ref not in wanted]:
            del ledger[ref]
        waiting = [child for child in children if self._is_leaving(child)]
        stale = [
            child
            for child in children
            if child not in waiting and not self._is_current(child, ledger.get(child.ref), same.get(str(child), ()))
        ]
        await self._write([child for child in stale if child.kind not in WORKLOADS], ledger, at_once)
        await self._write([child for child in stale if child.kind in WORKLOADS], ledger, at_once)
        pruned = await self._prune(owner, wanted, prune, keep)
        return Applied(
            written=tuple(map(str, stale)),
            unchanged=len(children) - len(stale) - len(waiting),
            pruned=pruned,
            waiting=tuple(map(str, waiting)),
        )

    async def repair_children(
        self, owner: Owner, objects: Sequence[Mapping[str, Any]], only_missing: bool = False
    ) -> None:
        """Restore those of the owner's children that are missing, or that another writer changed since they were applied as given here.

        Begins no change: a child whose applied version differs stays unchanged, and nothing is pruned. With `only_missing` existing children stay
        unchanged too. Raises as `apply` does.
        """
        ledger = self._ledger.setdefault(owner.uid, {})
        children = [_child(obj, owner, self._api.field_manager) for obj in objects]
        lost = [child for child in children if self._is_lost(child, ledger.get(child.ref), only_missing)]
        await self._write([child for child in lost if child.kind not in WORKLOADS], ledger)
        await self._write([child for child in lost if child.kind in WORKLOADS], ledger)

    def forget(self, owner_uid: str) -> None:
        """Forget an owner that no longer exists."""
        self._ledger.pop(owner_uid, None)

    def _live(self, child: _Child) -> ObjectMeta | None:
        obj = self._stores[child.kind].get(*child.key)
        meta: ObjectMeta | None = None if obj is None else obj.metadata
        return meta

    def _is_leaving(self, child: _Child) -> bool:
        live = self._live(child)
        return live is not None and live.deletion_timestamp is not None

    def digests(self, owner: Owner, objects: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Return the digests of the given objects that are long-running workloads, by the names that `same` of `apply` takes."""
        children = [_child(obj, owner, self._api.field_manager) for obj in objects]
        return {
            str(child): child.digest
            for child in children
            if child.kind in WORKLOADS and child.kind not in self._recreate
        }

    def _is_current(self, child: _Child, last: Written | None, same: Collection[str]) -> bool:
        store, live = self._stores[child.kind], self._live(child)
        if child.kind == PVC and isinstance(live, ChildMeta) and is_foreign(live, self._api.field_manager):
            return True  # an owner reference would delete it with the owner
        if last is None and not _has_replicas(store.get(*child.key), child.body):
            return False
        return any(is_current(each, self._api.field_manager, store, live, last) for each in (child.digest, *same))

    def _is_lost(self, child: _Child, last: Written | None, only_missing: bool) -> bool:
        live = self._live(child)
        if live is None:
            return not self._is_current(child, last, ())
        is_same = live.annotations.get(APPLIED) == child.digest and live.deletion_timestamp is None
        return is_same and not only_missing and not self._is_current(child, last, ())

    async def _write(self, children: Sequence[_Child], ledger: dict[Ref, Written], at_once: bool = False) -> None:
        writes = (self._write_one(child, ledger, at_once) for child in children)
        results = await asyncio.gather(*writes, return_exceptions=True)
        errors = [result for result in results if isinstance(result, BaseException)]
        passing = [error for error in errors if not isinstance(error, ApplyRefused)]
        if passing:
            raise passing[0]
        if errors:
            raise ApplyRefused("; ".join(map(str, errors)))

    async def _write_one(self, child: _Child, ledger: dict[Ref, Written], at_once: bool) -> None:
        live = self._live(child)
        epoch = self._stores[child.kind].epoch
        async with self._slots:
            if live is None and self._may_be_foreign(child, ledger.get(child.ref)):
                await self._refuse_foreign(child)
            try:
                meta: ObjectMeta = (await self._api.apply(child.kind, child.body, at_once=at_once)).metadata
            except Invalid as error:
                if live is None or child.kind not in self._recreate or not _is_immutable(error):
                    raise ApplyRefused(explain(error, str(child))) from error
                meta = await self._replace(child, live)
        ledger[child.ref] = Written(child.digest, live.resource_version if live else "", meta, epoch)

    def _may_be_foreign(self, child: _Child, last: Written | None) -> bool:
        """Return whether a child that is not in the cache may be of another program: the operator never wrote it, or it may have been deleted."""
        store = self._stores[child.kind]
        return last is None or store.epoch != last.epoch or store.is_gone(last.meta.uid)

    async def _refuse_foreign(self, child: _Child) -> None:
        """Raise ApplyRefused if a foreign object has the child's name: an apply would take it over, and its pods or its content with it.

        A cache of labelled objects does not have it, nor one of ours whose label was removed; that one is known by its other marks.
        """
        owners = {each["uid"] for each in child.body["metadata"].get("ownerReferences", ())}
        await refuse_foreign_name(self._api, child.kind, child.key, owners)

    async def _replace(self, child: _Child, live: ObjectMeta) -> ObjectMeta:
        await self._api.delete(child.kind, live.namespace, live.name, Deletion(uid=live.uid))
        try:
            return (await self._api.apply(child.kind, child.body)).metadata
        except Invalid as error:
            if _is_immutable(error):
                raise TransientError(
                    f"{child} cannot be replaced yet: the old object is still being deleted"
                ) from error
            raise ApplyRefused(explain(error, str(child))) from error

    async def _prune(
        self, owner: Owner, wanted: set[Ref], kinds: Collection[Kind], keep: Collection[str]
    ) -> tuple[str, ...]:
        doomed = [
            (kind, obj.metadata)
            for kind in kinds
            for obj in self._stores[kind].by(OWNER, owner.uid)
            if (kind, (obj.metadata.namespace, obj.metadata.name)) not in wanted
            and obj.metadata.name not in keep
            and _is_prunable(obj.metadata, self._api.field_manager)
        ]
        results = await asyncio.gather(*(self._delete(kind, meta) for kind, meta in doomed), return_exceptions=True)
        if error := next((each for each in results if each is not None), None):
            raise error
        return tuple(f"{kind}/{meta.name}" for kind, meta in doomed)

    async def _delete(self, kind: Kind, meta: ObjectMeta) -> None:
        async with self._slots:
            await self._api.delete(kind, meta.namespace, meta.name, Deletion(uid=meta.uid))


def is_foreign(meta: ChildMeta, manager: str, owners: Collection[str] = ()) -> bool:
    """Return whether the operator neither wrote nor labelled an object, and none of these uids owns it."""
    is_written = any(each.manager.startswith(manager) for each in meta.managed_fields)
    is_marked = APPLIED in meta.annotations or meta.labels.get(MANAGED_BY) == manager
    return not (is_written or is_marked or any(each.uid in owners for each in meta.owner_references))


async def refuse_foreign_name(api: Api, kind: Kind, key: Key, owners: Collection[str] = ()) -> ChildMeta | None:
    """Return the metadata of an object, None if there is none; raise ApplyRefused if it is foreign. Reads the API server, not a cache."""
    try:
        meta = (await api.get(kind, Meta, *key)).metadata
    except NotFound:
        return None
    refuse_foreign(f"{kind}/{meta.name}", meta, api.field_manager, owners)
    return meta


def refuse_foreign(what: str, meta: ChildMeta, manager: str, owners: Collection[str] = ()) -> None:
    """Raise ApplyRefused for a foreign object."""
    if is_foreign(meta, manager, owners):
        raise ApplyRefused(
            f"{what} exists and is not the operator's, so it stays unchanged: rename it, or choose other names"
        )


def _has_replicas(live: Any, body: Mapping[str, Any]) -> bool:
    """Return whether an object has the desired replicas. They are compared because managedFields does not show who wrote to its scale."""
    wanted, spec = body.get("spec", {}).get("replicas"), getattr(live, "spec", None)
    return wanted is None or getattr(spec, "replicas", wanted) == wanted


def _is_prunable(meta: ObjectMeta, manager: str) -> bool:
    return (
        meta.labels.get(MANAGED_BY) == manager
        and meta.deletion_timestamp is None
        and meta.annotations.get(KEEP) != "true"
    )


def _is_immutable(error: Invalid) -> bool:
    said = " ".join([error.message, *(cause.message for cause in error.causes)])
    return "immutable" in said or "updates to" in said
