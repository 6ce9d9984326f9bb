"""What every pass is given: the API, the caches, the tools that write, and the operator's defaults."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from soperator.control.certificate import Certificate
from soperator.control.inside import Inside
from soperator.control.keys import Answers
from soperator.control.known import Namespaces
from soperator.control.pace import Pace
from soperator.control.pulls import Pulls
from soperator.control.room import Room
from soperator.control.roster import Roster
from soperator.control.slurm import SlurmWatch
from soperator.control.stores import Stores
from soperator.control.word import Ask, ask_jail
from soperator.decide.configuration import Handed
from soperator.decide.topology import Placed
from soperator.kube.api import Api
from soperator.kube.errors import ApiError, Conflict, KubeError, TooBusy, Unreachable, explain
from soperator.kube.kinds import Kind
from soperator.kube.views import Custom
from soperator.render.model import Defaults
from soperator.runtime.apply import Applier
from soperator.runtime.controller import Terminal
from soperator.runtime.events import Recorder
from soperator.runtime.status import Condition, StatusWriter
from soperator.runtime.store import Key

#: Fields whose change is told at once.
_NEWS = ("accounting", "config", "refilled", "images", "keys")
#: What holds until it was told otherwise; of the other conditions the first word is no news.
_UNTOLD = {
    "JailHasRoom": "True",
    "StateHasRoom": "True",
    "DatabaseHasRoom": "True",
    "MetricsServed": "True",
    "RestServed": "True",
}
#: Conditions whose reason is news too, and the one that is none at first.
_REASONS: Mapping[str, str] = MappingProxyType({"JailReady": "Waiting", "ConfigApplied": "Applied"})


@dataclass(frozen=True)
class Operator:
    """The parts that passes share."""

    api: Api
    stores: Stores
    applier: Applier
    status: StatusWriter
    recorder: Recorder
    slurm: SlurmWatch
    defaults: Defaults
    pace: Pace
    room: Room
    pulls: Pulls
    inside: Inside
    wall: Callable[[], float] = time.time
    roster: Roster = field(default_factory=Roster)
    held: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    asked: dict[str, float] = field(default_factory=dict)
    ask_jail: Ask = ask_jail
    renderer: str = ""
    turning: dict[Key, Answers] = field(default_factory=dict)
    handed: dict[Key, dict[str, Handed]] = field(default_factory=dict)
    hinted: dict[Key, Mapping[str, str]] = field(default_factory=dict)
    databases: dict[Key, str] = field(default_factory=dict)
    placed: dict[Key, Placed] = field(default_factory=dict)
    certificates: dict[Key, tuple[str, Certificate]] = field(default_factory=dict)

    @cached_property
    def namespaces(self) -> Namespaces:
        """What is known of each namespace."""
        return Namespaces(self.stores)

    async def tell(
        self, kind: Kind, obj: Custom, fields: Mapping[str, Any], conditions: Sequence[Condition]
    ) -> float | None:
        """Write a status, or return in how many seconds it may be written. What a person waits for is written at once."""
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
        is_news = is_news or any((fields.get(each) or None) != (current.get(each) or None) for each in _NEWS)
        if wait := self.pace.wait(obj.metadata.uid, is_news):
            return wait
        if await self.status.write(kind, obj, fields, conditions):
            self.pace.wrote(obj.metadata.uid)
        return None

    async def tell_error(self, kind: Kind, obj: Custom | None, error: Exception) -> None:
        """Put what stopped a pass where the object's owner looks. What passes by itself (a lost connection, a lost race) is only logged."""
        if obj is None or isinstance(error, Conflict | Unreachable | TooBusy):
            return
        why = explain(error, f"{kind.kind} {obj.metadata.name}") if isinstance(error, ApiError) else str(error)
        known = self.status.mine(obj)
        kept = {key: value for key, value in known.items() if key not in ("conditions", "why", "observedGeneration")}
        said = Condition("Available", "False", "Refused" if isinstance(error, Terminal | ApiError) else "Failed", why)
        others = [_condition(each) for each in known.get("conditions", ()) if each["type"] != said.type]
        with contextlib.suppress(KubeError):
            await self.status.write(kind, obj, {**kept, "why": why}, [said, *others])

    def forget_pods(self) -> None:
        """Drop what is held of pods that are gone."""
        gone = [uid for uid in {*self.deleted, *self.asked, *self.pulls.known} if self.stores.pods.is_gone(uid)]
        self.deleted.difference_update(gone)
        for uid in gone:
            self.asked.pop(uid, None)
            self.pulls.forget(uid)

    def forget_cluster(self, key: Key) -> None:
        """Drop what is held of a cluster that is gone."""
        self.slurm.forget(key)
        self.room.forget(key)
        self.turning.pop(key, None)
        self.handed.pop(key, None)
        self.databases.pop(key, None)
        self.placed.pop(key, None)


def _condition(raw: Mapping[str, Any]) -> Condition:
    return Condition(raw["type"], raw["status"], raw["reason"], raw.get("message", ""))
