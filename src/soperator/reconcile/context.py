"""What every reconciler shares: the API, the caches, the writers, and the operator's defaults."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.errors import ApiError, Conflict, KubeError, TooBusy, Unreachable, explain
from soperator.kube.kinds import Kind
from soperator.kube.views import Custom
from soperator.policy.column_text import in_column
from soperator.reconcile.cache.informers import Stores
from soperator.reconcile.cache.namespaces import Namespaces
from soperator.reconcile.cache.per_object import Memories
from soperator.reconcile.cache.slurm_poller import SlurmWatch
from soperator.reconcile.cache.workers import WorkerCache
from soperator.reconcile.io.jail_watch_client import QueryJail, query_jail
from soperator.reconcile.io.pod_events import PodEvents
from soperator.reconcile.io.slurm_exec import PodExec
from soperator.reconcile.io.start_events import StartEvents
from soperator.reconcile.io.status_throttle import StatusThrottle
from soperator.reconcile.io.volume_capacity import VolumeCapacity
from soperator.reconcile.readiness import readiness_event, with_readiness
from soperator.render.parts.model import Defaults
from soperator.runtime.apply import Applier
from soperator.runtime.cache.store import Changed, Key
from soperator.runtime.controller import PermanentError
from soperator.runtime.events import Recorder, Regarding
from soperator.runtime.status import ReportedCondition, StatusWriter

#: Kinds that may work in part; the others are ready or not.
_HAVE_AVAILABLE = (kinds.SLURMCLUSTER, kinds.NODESET)
#: Fields whose change is written at once; a new object has them with its first status.
_NEWS = ("accounting", "config", "refilled", "images", "keys")
#: The assumed status of conditions that were never written; for other conditions the first status is no news.
_UNTOLD = {
    "JailHasRoom": "True",
    "StateHasRoom": "True",
    "DatabaseHasRoom": "True",
    "MetricsServed": "True",
    "RestServed": "True",
}
#: Conditions whose change of reason is news too, with the first reason, which is no news.
_REASONS: Mapping[str, str] = MappingProxyType({"JailReady": "Waiting", "ConfigApplied": "Applied"})


@dataclass(frozen=True)
class Operator:
    """The API, the caches, the writers and the defaults that all reconcilers use."""

    api: Api
    stores: Stores
    applier: Applier
    status: StatusWriter
    recorder: Recorder
    slurm: SlurmWatch
    defaults: Defaults
    status_throttle: StatusThrottle
    capacity: VolumeCapacity
    pulls: PodEvents
    starts: StartEvents
    pod_exec: PodExec
    wall: Callable[[], float] = time.time
    worker_cache: WorkerCache = field(default_factory=WorkerCache)
    memory: Memories = field(default_factory=Memories)
    query_jail: QueryJail = query_jail
    renderer: str = ""

    @cached_property
    def namespaces(self) -> Namespaces:
        """The decoded content of each namespace."""
        return Namespaces(self.stores)

    async def write_status(
        self, kind: Kind, obj: Custom, fields: Mapping[str, Any], conditions: Sequence[ReportedCondition]
    ) -> float | None:
        """Write a status, or return the seconds until it may be written.

        A change that a person waits for is written at once. If a message reports that a pod is starting, the cause from the pod's Events is added.
        """
        pods, namespace = self.stores.pods, obj.metadata.namespace
        texts = [fields.get("why", ""), *(each.message for each in conditions)]
        due = await self.starts.read_due(self.api, pods, namespace, texts)
        fields = {**fields, "why": self.starts.completed(pods, namespace, texts[0])}
        conditions = [
            replace(each, message=self.starts.completed(pods, namespace, each.message)) for each in conditions
        ]
        conditions = with_readiness(conditions, has_own=kind not in _HAVE_AVAILABLE)
        current = self.status.current(obj)
        known = {each.get("type"): each.get("status") for each in current.get("conditions", ())}
        reasons = {each.get("type"): each.get("reason") for each in current.get("conditions", ())}
        first = conditions[0]
        is_news = known.get(first.type, "False") != first.status or first.reason == "InvalidSpec"
        is_news = is_news or any(
            known.get(each.type, _UNTOLD.get(each.type, each.status)) != each.status for each in conditions
        )
        is_news = is_news or any(
            each.type in _REASONS and reasons.get(each.type, _REASONS[each.type]) != each.reason for each in conditions
        )
        is_news = is_news or any((fields.get(each) or None) != (current.get(each) or None) for each in _NEWS if current)
        is_news = is_news or _are_all_up(fields) != _are_all_up(current)
        if wait := self.status_throttle.wait(obj.metadata.uid, is_news):
            return min(wait, due or wait)
        if await self._write(kind, obj, fields, conditions):
            self.status_throttle.wrote(obj.metadata.uid)
        return due

    async def write_status_at_once(
        self, kind: Kind, obj: Custom, fields: Mapping[str, Any], conditions: Sequence[ReportedCondition]
    ) -> bool:
        """Write a status that announces the next action; return False if the status already did."""
        return await self._write(kind, obj, fields, with_readiness(conditions, has_own=kind not in _HAVE_AVAILABLE))

    async def _write(
        self, kind: Kind, obj: Custom, fields: Mapping[str, Any], conditions: Sequence[ReportedCondition]
    ) -> bool:
        """Write a status whose `why` is the first cause, short enough for a column; the conditions have the full messages."""
        ready = next((each.message for each in conditions if each.type == "Ready" and each.status != "True"), "")
        former = {each.get("type"): each for each in self.status.current(obj).get("conditions", ())}
        fields = {**fields, "why": in_column(fields.get("why") or ready)}
        if not await self.status.write(kind, obj, fields, conditions):
            return False
        if note := readiness_event(former.get("Ready"), conditions):
            self.recorder.emit(Regarding(kind, obj.metadata), note)
        return True

    async def announce(self, kind: Kind, obj: Custom, fields: Mapping[str, Any], said: ReportedCondition) -> None:
        """Announce an action in the status, and keep its other fields, so that the action is known even if the operator ends at any point."""
        known = self.status.mine(obj)
        kept = {key: value for key, value in known.items() if key not in ("conditions", "observedGeneration")}
        others = [_condition(each) for each in known.get("conditions", ()) if each["type"] != said.type]
        await self.write_status_at_once(kind, obj, kept | dict(fields), [*others, said])

    async def write_error_status(self, kind: Kind, obj: Custom | None, error: Exception) -> None:
        """Report an error that stopped a pass in the object's status. A temporary error (a lost connection, a conflict) is only logged."""
        if obj is None or isinstance(error, Conflict | Unreachable | TooBusy):
            return
        why = explain(error, f"{kind.kind} {obj.metadata.name}") if isinstance(error, ApiError) else str(error)
        known = self.status.mine(obj)
        kept = {key: value for key, value in known.items() if key not in ("conditions", "why", "observedGeneration")}
        reason = "Refused" if isinstance(error, PermanentError | ApiError) else "Failed"
        said = ReportedCondition("Available" if kind in _HAVE_AVAILABLE else "Ready", "False", reason, why)
        others = [_condition(each) for each in known.get("conditions", ()) if each["type"] != said.type]
        with contextlib.suppress(KubeError):
            await self.write_status_at_once(kind, obj, {**kept, "why": why}, [said, *others])

    def forget_pods(self) -> None:
        """Forget pods that no longer exist."""
        self.memory.forget_where("pod", self.stores.pods.is_gone)
        for uid in {*self.pulls.known, *self.starts.known}:
            if self.stores.pods.is_gone(uid):
                self.pulls.forget(uid)
                self.starts.forget(uid)

    def forget_object(self, change: Changed[Custom]) -> None:
        """Forget an object of our kinds that no longer exists, or whose name belongs to another object now."""
        old, new = change.old, change.new
        if old is None or (new is not None and new.metadata.uid == old.metadata.uid):
            return
        uid = old.metadata.uid
        self.applier.forget(uid)
        self.status.forget(uid)
        self.status_throttle.forget(uid)
        self.memory.forget("object", uid)

    def forget_cluster(self, key: Key) -> None:
        """Forget a cluster that no longer exists."""
        self.slurm.forget(key)
        self.capacity.forget(key)
        self.memory.forget("cluster", key)


def _are_all_up(fields: Mapping[str, Any]) -> bool:
    """Return whether a NodeSet's status counts each worker as ready in Kubernetes, and in service in Slurm: someone waits for that."""
    wanted = fields.get("replicas", 0)
    in_service = sum(fields.get(each, 0) for each in ("idle", "allocated"))
    return bool(wanted) and fields.get("readyReplicas") == wanted and in_service >= wanted


def _condition(raw: Mapping[str, Any]) -> ReportedCondition:
    return ReportedCondition(raw["type"], raw["status"], raw["reason"], raw.get("message", ""))
