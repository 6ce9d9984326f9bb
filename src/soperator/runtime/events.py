"""Emits Events about objects, for `kubectl describe`.

An Event is optional information. It must never fail or delay a pass, and never flood the API server. So a bounded queue takes each Event, and one
task sends them. The same Event is not sent again within ten minutes; each object has a budget of 20 Events and regains one every 30 s. State belongs
in conditions, not in Events.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NoReturn

import structlog

from soperator.kube.api import Api
from soperator.kube.errors import KubeError
from soperator.kube.kinds import EVENT, Kind
from soperator.kube.views import ObjectMeta

REPEAT = 600.0
BUDGET = 20.0
REFILL = 1 / 30
REMEMBERED = 2048
LONGEST_NOTE = 1000


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an Event is about."""

    kind: Kind
    meta: ObjectMeta

    def reference(self) -> dict[str, Any]:
        """Return the object reference."""
        meta = self.meta
        fields = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
        return {"apiVersion": self.kind.api_version, "kind": self.kind.kind} | {k: v for k, v in fields.items() if v}


@dataclass(frozen=True, slots=True)
class EventNote:
    """One Event: `reason` and `action` are CamelCase, `text` is a sentence."""

    type: Literal["Normal", "Warning"]
    reason: str
    text: str
    action: str = "Reconcile"


@dataclass(frozen=True, slots=True)
class _Budget:
    left: float
    at: float

    def at_time(self, now: float) -> float:
        return min(BUDGET, self.left + (now - self.at) * REFILL)


class Recorder:
    """Queues Events about objects; `run` sends them."""

    def __init__(self, api: Api, clock: Callable[[], float], component: str = "soperator") -> None:
        self._api = api
        self._clock = clock
        self._component = component
        self._instance = f"{component}-{os.uname().nodename}"[:128]
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(maxsize=256)
        self._sent: OrderedDict[tuple[str, EventNote], float] = OrderedDict()
        self._budgets: OrderedDict[str, _Budget] = OrderedDict()
        self.dropped = 0

    def emit(self, regarding: Regarding, note: EventNote) -> bool:
        """Queue an Event without waiting; return False if it is a repetition or over the object's budget."""
        now = self._clock()
        uid = regarding.meta.uid
        if now - self._sent.get((uid, note), -REPEAT) < REPEAT:
            return False
        budget = self._budgets.get(uid, _Budget(BUDGET, now)).at_time(now)
        if budget < 1.0 or self._queue.full():
            self.dropped += 1
            return False
        _remember(self._budgets, uid, _Budget(budget - 1.0, now))
        _remember(self._sent, (uid, note), now)
        self._queue.put_nowait(self._body(regarding, note))
        return True

    async def run(self) -> NoReturn:
        """Send queued Events until cancelled."""
        while True:
            body = await self._queue.get()
            try:
                await self._api.create(EVENT, body)
            except KubeError as error:
                self.dropped += 1
                structlog.get_logger().debug("an Event was not sent", error=str(error))

    def _body(self, regarding: Regarding, note: EventNote) -> dict[str, Any]:
        now = datetime.now(UTC)
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {
                "generateName": f"{regarding.meta.name[:200]}-",
                "namespace": regarding.meta.namespace or "default",
            },
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": self._component,
            "reportingInstance": self._instance,
            "action": note.action,
            "reason": note.reason[:128],
            "type": note.type,
            "note": note.text[:LONGEST_NOTE],
            "regarding": regarding.reference(),
        }


def _remember(memory: OrderedDict[Any, Any], key: object, value: object) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > REMEMBERED:
        memory.popitem(last=False)
