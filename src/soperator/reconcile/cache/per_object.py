"""What a feature remembers of a pod, of an object of our kinds or of a cluster, for as long as that exists.

A feature declares a slot beside the code that uses it, and reads it by `operator.memory(slot)`. The context knows no slot: it forgets by scope, so no
feature has to forget, and none can miss it. What has to outlive the process does not belong here (`reconcile/memory_object`).
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
    """One thing that a feature remembers; `what` names it in a failed test."""

    scope: Scope
    what: str


def per_pod(what: str) -> "Slot[str, Any]":
    """A slot by the uids of pods."""
    return Slot("pod", what)


def per_object(what: str) -> "Slot[str, Any]":
    """A slot by the uids of objects of our kinds."""
    return Slot("object", what)


def per_cluster(what: str) -> "Slot[Key, Any]":
    """A slot by the namespaces and names of SlurmClusters."""
    return Slot("cluster", what)


class Memories:
    """The slots of all features, filled as they are used."""

    def __init__(self) -> None:
        self._slots: dict[Slot[Any, Any], dict[Any, Any]] = {}

    def __call__(self, slot: Slot[K, V]) -> dict[K, V]:
        """What a feature remembers, to read and to change."""
        return self._slots.setdefault(slot, {})

    def forget(self, scope: Scope, key: Any) -> None:
        """Forget what no longer exists: a pod or an object by its uid, a cluster by its namespace and name."""
        for slot, known in self._slots.items():
            if slot.scope == scope:
                known.pop(key, None)

    def forget_where(self, scope: Scope, is_gone: Callable[[Any], bool]) -> None:
        """Forget everything of a scope that no longer exists."""
        for key in {each for slot, known in self._slots.items() if slot.scope == scope for each in known}:
            if is_gone(key):
                self.forget(scope, key)

    def slots(self) -> Iterable[tuple[Slot[Any, Any], dict[Any, Any]]]:
        """Every slot with its content."""
        return self._slots.items()
