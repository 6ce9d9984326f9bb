"""Writes a status only if it has changed.

A condition's `lastTransitionTime` changes only with its status; people and `kubectl wait` rely on that. Both that and the decision to write need the
*current* status, while the cache may still hold the one from before our last write. So the writer remembers its last write to each object until the
cache has it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from soperator.kube.api import Api
from soperator.kube.kinds import Kind
from soperator.kube.views import Custom

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReportedCondition:
    """One condition to report: `reason` is CamelCase, `message` a sentence for people."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def timestamp(now: datetime) -> str:
    """Return a time as Kubernetes writes it, to the second."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def merge(
    old: Iterable[Mapping[str, Any]], new: Sequence[ReportedCondition], generation: int, now: datetime
) -> list[Json]:
    """Return the `new` conditions as JSON; a condition with an unchanged status keeps its old transition time.

    A condition that is only in `old` is dropped: the new list is complete.
    """
    known = {condition.get("type"): condition for condition in old}
    merged: list[Json] = []
    for condition in new:
        was = known.get(condition.type, {})
        same = was.get("status") == condition.status
        merged.append(
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "observedGeneration": generation,
                "lastTransitionTime": was.get("lastTransitionTime") if same else timestamp(now),
            }
        )
    return merged


@dataclass(frozen=True, slots=True)
class _Written:
    replaced: str
    desired: Json
    stored: Json
    version: str


class StatusWriter:
    """Writes the status of our own objects by server-side apply."""

    def __init__(self, api: Api, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._api = api
        self._now = now
        self._written: dict[str, _Written] = {}

    def current(self, obj: Custom) -> Json:
        """Return the current status, which our last write may have changed since `obj` was read."""
        last = self._written.get(obj.metadata.uid)
        if last is not None and obj.metadata.resource_version == last.replaced:
            return last.stored
        return obj.status

    def mine(self, obj: Custom) -> Json:
        """Return the status of our last write, however old `obj` is, or that of `obj` if this process has not written one.

        This is for state that is kept in the status: nobody else writes it, and a cache may show a version from between two writes.
        """
        last = self._written.get(obj.metadata.uid)
        return last.stored if last is not None else obj.status

    async def write(
        self, kind: Kind, obj: Custom, fields: Mapping[str, Any], conditions: Sequence[ReportedCondition]
    ) -> bool:
        """Make the status equal to `fields` and `conditions`; return False if it already was.

        Sets `observedGeneration` at the top and in each condition. Raises Conflict if another object has the name now.
        """
        meta = obj.metadata
        current = self.current(obj)
        status: Json = {
            **fields,
            "observedGeneration": meta.generation,
            "conditions": merge(current.get("conditions", ()), conditions, meta.generation, self._now()),
        }
        last = self._written.get(meta.uid)
        if _by_type(status) == _by_type(current) or (
            last is not None and status == last.desired and current == last.stored
        ):
            return False
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "status": status,
        }
        got = await self._api.apply_status(kind, body)
        self._written[meta.uid] = _Written(meta.resource_version, status, got.status, got.metadata.resource_version)
        return True

    def forget(self, uid: str) -> None:
        """Forget an object that no longer exists."""
        self._written.pop(uid, None)


def _by_type(status: Json) -> Json:
    """Return a status without the order of its conditions. The API server appends a new condition to the existing ones, so the order may differ."""
    return {**status, "conditions": {each.get("type"): each for each in status.get("conditions", ())}}
