"""An indexed cache of objects.

Passes read only from stores, so a store must be correct rather than fast. A relist replaces it as a whole and returns the differences, including
objects that were deleted while no watch ran. Deleted uids are remembered for a while, because a write whose object is not in the store may mean
either of two things: the object is not in it *yet*, or *no longer*.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from soperator.kube.api import Object

Key = tuple[str, str]
V = TypeVar("V", bound=Object)
Index = Callable[[V], Iterable[Hashable]]

OWNER = "owner"
EVERY = "every"
TOMBSTONES = 8192
#: From how many objects on a result is kept: a pass asks some twenty times for the pods of a role.
LONG = 64


@dataclass(frozen=True, slots=True)
class Changed(Generic[V]):
    """One difference: `old` is None for a new object, `new` is None for a deleted one."""

    old: V | None
    new: V | None


def key_of(obj: Object) -> Key:
    """Return (namespace, name); the namespace of a cluster-scoped object is empty."""
    return obj.metadata.namespace, obj.metadata.name


def by_owner(obj: Object) -> Iterable[str]:
    """Index by the uids of the owners."""
    return [owner.uid for owner in obj.metadata.owner_references]


def by_label(label: str) -> Callable[[Object], Iterable[str]]:
    """Index by (namespace, value of the label)."""

    def values(obj: Object) -> Iterable[tuple[str, str]]:
        value = obj.metadata.labels.get(label)
        return [(obj.metadata.namespace, value)] if value else []

    return values  # type: ignore[return-value]


class Store(Generic[V]):
    """Objects of one kind by (namespace, name), and by any number of indexes; `owner` is always one of them.

    The sorted order of an index's objects is cached until an object enters or leaves the index, and a long result until one of its objects changes.
    `version` increases with every change.
    """

    def __init__(self, indexes: Mapping[str, Index[V]] | None = None) -> None:
        self._objects: dict[Key, V] = {}
        self._functions: dict[str, Index[V]] = {EVERY: lambda _: [None], OWNER: by_owner, **(indexes or {})}
        self._indexes: dict[str, dict[Hashable, set[Key]]] = {name: {} for name in self._functions}
        self._sorted: dict[tuple[str, Hashable], list[Key]] = {}
        self._results: dict[tuple[str, Hashable], tuple[V, ...]] = {}
        self._gone: set[str] = set()
        self._gone_order: deque[str] = deque()
        self._synced = asyncio.Event()
        self.epoch = 0
        self.version = 0

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def is_synced(self) -> bool:
        """Whether a complete list has been read at least once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return once a complete list has been read."""
        await self._synced.wait()

    def get(self, namespace: str, name: str) -> V | None:
        """Return one object, or None."""
        return self._objects.get((namespace, name))

    def by(self, index: str, value: Hashable) -> tuple[V, ...]:
        """Return the objects that have `value` in the index, ordered by namespace and name."""
        if known := self._results.get((index, value)):
            return known
        order = self._sorted.get((index, value))
        if order is None:
            keys = self._indexes[index].get(value)
            if keys is None:
                return ()
            order = self._sorted[index, value] = sorted(keys)
        found = tuple(map(self._objects.__getitem__, order))
        if len(found) >= LONG:
            self._results[index, value] = found
        return found

    def all(self) -> tuple[V, ...]:
        """Return every object, ordered by namespace and name."""
        return self.by(EVERY, None)

    def is_gone(self, uid: str) -> bool:
        """Return whether the object with this uid was in the store and has been deleted, as far as the store remembers."""
        return uid in self._gone

    def put(self, obj: V) -> Changed[V] | None:
        """Add or update an object; return None if the store already has this version."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None:
            if _is_same(old, obj):
                return None
            if old.metadata.uid != obj.metadata.uid:
                self._record_deletion(old)
        self._objects[key] = obj
        self._index(key, old, obj)
        return Changed(old, obj)

    def learn(self, obj: V) -> None:
        """Add an object that one of our writes has just created, before a watch reports it. An object that is or was in the store stays unchanged."""
        if key_of(obj) not in self._objects and not self.is_gone(obj.metadata.uid):
            self.put(obj)

    def drop(self, key: Key) -> Changed[V] | None:
        """Remove an object; return None if the store did not have it."""
        old = self._objects.pop(key, None)
        if old is None:
            return None
        self._index(key, old, None)
        self._record_deletion(old)
        return Changed(old, None)

    def replace(self, objects: Iterable[V]) -> list[Changed[V]]:
        """Make the store equal to a complete list; return the changes, deleted objects first."""
        fresh = {key_of(obj): obj for obj in objects}
        changes = [change for key in [*self._objects] if key not in fresh and (change := self.drop(key))]
        changes += [change for obj in fresh.values() if (change := self.put(obj))]
        self.epoch += 1
        self._synced.set()
        return changes

    def _index(self, key: Key, old: V | None, new: V | None) -> None:
        """Update the indexes of a key: remove it from those with only the old object, and add it to those with only the new one."""
        self.version += 1
        for name, function in self._functions.items():
            index = self._indexes[name]
            before = set(function(old)) if old is not None else set()
            after = set(function(new)) if new is not None else set()
            for value in before | after:
                self._results.pop((name, value), None)
            for value in before ^ after:
                self._sorted.pop((name, value), None)
                keys = index.setdefault(value, set())
                keys.add(key) if value in after else keys.discard(key)
                if not keys:
                    del index[value]

    def _record_deletion(self, obj: V) -> None:
        uid = obj.metadata.uid
        if uid in self._gone:
            return
        self._gone.add(uid)
        self._gone_order.append(uid)
        if len(self._gone_order) > TOMBSTONES:
            self._gone.discard(self._gone_order.popleft())


def _is_same(old: Object, new: Object) -> bool:
    return (old.metadata.uid, old.metadata.resource_version) == (new.metadata.uid, new.metadata.resource_version)
