"""Slots: values that a feature remembers about a pod, an object of our kinds or a cluster, until that no longer exists.

A feature declares a slot in the module that uses it, and reads it by `operator.memory(slot)`. The context does not know the slots: it forgets by
scope, so that no feature has to do it, and none can forget to. Values that have to outlive the process do not belong here
(`reconcile/memory_object`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from soperator.runtime.cache.store import Key

K = TypeVar("K")
V = TypeVar("V")
Scope = Literal["pod", "object", "cluster"]


@dataclass(frozen=True, eq=False)
class Slot(Generic[K, V]):
    """The declaration of one slot; `what` names it in a failed test."""

    scope: Scope
    what: str


def per_pod(what: str) -> "Slot[str, Any]":
    """Return a slot with a value per pod, by uid."""
    return Slot("pod", what)


def per_object(what: str) -> "Slot[str, Any]":
    """Return a slot with a value per object of our kinds, by uid."""
    return Slot("object", what)


def per_cluster(what: str) -> "Slot[Key, Any]":
    """Return a slot with a value per SlurmCluster, by namespace and name."""
    return Slot("cluster", what)


class Memories:
    """The content of all slots; each is created when it is first used."""

    def __init__(self) -> None:
        self._slots: dict[Slot[Any, Any], dict[Any, Any]] = {}

    def __call__(self, slot: Slot[K, V]) -> dict[K, V]:
        """Return the content of a slot, which the caller may read and change."""
        return self._slots.setdefault(slot, {})

    def forget(self, scope: Scope, key: Any) -> None:
        """Forget an owner that no longer exists: a pod or an object by its uid, a cluster by its namespace and name."""
        for slot, known in self._slots.items():
            if slot.scope == scope:
                known.pop(key, None)

    def forget_where(self, scope: Scope, is_gone: Callable[[Any], bool]) -> None:
        """Forget every owner of a scope for which `is_gone` returns True."""
        for key in {each for slot, known in self._slots.items() if slot.scope == scope for each in known}:
            if is_gone(key):
                self.forget(scope, key)

    def slots(self) -> Iterable[tuple[Slot[Any, Any], dict[Any, Any]]]:
        """Return every slot with its content."""
        return self._slots.items()
