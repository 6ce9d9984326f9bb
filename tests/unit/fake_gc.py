"""Kubernetes' garbage collector, as far as deletions by policy need it.

What it does with an object whose owner goes depends on the other owners (garbagecollector.go, `attemptToDeleteItem`): one that is there and is not
itself waiting for its dependents keeps the object, and the other references are taken off; without one the object is deleted, finalizers of the
owner or not. `blockOwnerDeletion` says only who is waited for.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.fake_world import World

Json = dict[str, Any]
Key = tuple[str, str, str, str]

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
#: The finalizer that the API server sets for each policy of a deletion.
FINALIZERS = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


def is_waiting(obj: Json) -> bool:
    """Say whether an object is deleted in the foreground: its dependents go before it does."""
    return "deletionTimestamp" in obj["metadata"] and FOREGROUND in (obj["metadata"].get("finalizers") or ())


def collect(world: "World", uid: str) -> None:
    """Do what the collector does after the owner with this uid was deleted, or began to be."""
    owner = _owner(world, uid)
    if owner is not None and ORPHAN in (owner[1]["metadata"].get("finalizers") or ()):
        for key, _ in [*_dependents(world, uid)]:
            _disown(world, key, {uid})
        world.let_go(owner[0], ORPHAN)
        return
    for key, _ in [*_dependents(world, uid)]:
        _attempt(world, key)
    finish(world, uid)


def finish(world: "World", uid: str) -> None:
    """Let an owner go that waits for its dependents, once none of those that block it is left."""
    owner = _owner(world, uid)
    if owner is None or not is_waiting(owner[1]):
        return
    refs = (ref for _, obj in _dependents(world, uid) for ref in obj["metadata"]["ownerReferences"])
    if not any(ref["uid"] == uid and ref.get("blockOwnerDeletion") for ref in refs):
        world.let_go(owner[0], FOREGROUND)


def _attempt(world: "World", key: Key) -> None:
    """Delete an object that no solid owner keeps; take off one that is kept what is no owner any more."""
    obj = world.objects.get(key)
    if obj is None:
        return
    owners = {ref["uid"]: _owner(world, ref["uid"]) for ref in obj["metadata"].get("ownerReferences", ())}
    solid = {uid for uid, owner in owners.items() if owner is not None and not is_waiting(owner[1])}
    if solid:
        _disown(world, key, owners.keys() - solid)
    elif owners:
        uid = obj["metadata"]["uid"]
        waits = any(owner is not None for owner in owners.values())
        has_blocking = any(
            ref["uid"] == uid and ref.get("blockOwnerDeletion")
            for _, other in _dependents(world, uid)
            for ref in other["metadata"]["ownerReferences"]
        )
        world.delete_key(key, "Foreground" if waits and has_blocking else "Background")


def _disown(world: "World", key: Key, uids: set[str]) -> None:
    if key in world.objects and uids:
        refs = world.objects[key]["metadata"].get("ownerReferences", [])
        world.patch_meta(key, ownerReferences=[ref for ref in refs if ref["uid"] not in uids])
        for uid in uids:
            finish(world, uid)


def _owner(world: "World", uid: str) -> tuple[Key, Json] | None:
    return next(((key, obj) for key, obj in world.objects.items() if obj["metadata"]["uid"] == uid), None)


def _dependents(world: "World", uid: str) -> Iterator[tuple[Key, Json]]:
    for key, obj in world.objects.items():
        if any(ref["uid"] == uid for ref in obj["metadata"].get("ownerReferences", ())):
            yield key, obj
