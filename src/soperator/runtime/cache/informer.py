"""Keeps a store equal to the API server.

An explicit state machine of two states. `ListState` reads everything and makes the store equal to it, because only a list shows what was deleted
while no watch ran. `Watching` applies changes from where the list, or the last watch, ended. Each end of a watch determines the next state:

| ends by                       | next state                                                    |
|-------------------------------|---------------------------------------------------------------|
| Eof, Idle                     | Watching from the last version, at least 1 s after the last connect |
| Expired (410, either shape)   | ListState                                                     |
| no answer, or cut off         | the same state after a back-off                               |
| any other error               | the same state after a back-off; the fifth in a row: ListState |
| no such kind, if it may be missing | ListState after a while; the store is empty until then     |

The fourth row covers versions that the server cannot serve but does not call expired, as after etcd was restored from a backup. The last row is for a
kind that may be missing (`InformerSource.missing`), because its definition is installed separately. When the server has answered `ABSENT` times in a
row that it does not exist, it counts as a kind without objects, so that everything else continues; the informer keeps retrying. resourceVersions are
only compared for equality, since the API does not define their order.
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Generic, NoReturn, TypeVar

import structlog

from soperator.kube.api import Api, Object
from soperator.kube.errors import ApiError, Eof, Expired, Idle, KubeError, NotFound, Unreachable
from soperator.kube.kinds import Kind
from soperator.kube.watch import Event
from soperator.runtime.cache.store import (
    Changed,
    Key,
    Store,
    key_of,
)
from soperator.runtime.workqueue import Queue

V = TypeVar("V", bound=Object)
Listener = Callable[[Changed[V]], None]
STUBBORN = 5
#: Seconds after which a cache counts as out of date. One about which nothing happens is up to 240 s old: then its silent watch is opened again.
OUTDATED = 300.0
ABSENT = 3


@dataclass(frozen=True, slots=True)
class InformerSource(Generic[V]):
    """The objects to keep: a kind, the view that decodes it, and a selection.

    `missing` is the remedy to log if there is no such kind; without it, a missing kind is an error like any other.
    """

    kind: Kind
    view: type[V]
    namespace: str | None = None
    labels: str | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class ListState:
    """The store's content is unknown: the next step lists all objects."""


@dataclass(frozen=True, slots=True)
class Watching:
    """The store is correct as of `since`."""

    since: str


State = ListState | Watching


@dataclass(frozen=True, slots=True)
class InformerPace:
    """Durations in seconds: between two connects, and the first and the longest wait after an error, both with jitter."""

    connect: float = 1.0
    first: float = 0.5
    longest: float = 15.0
    random: Callable[[], float] = field(default=random.random)

    def backoff(self, failures: int) -> float:
        """Return the seconds to wait after this number of failures in a row."""
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 16)) * (0.5 + self.random() / 2)


class Informer(Generic[V]):
    """Keeps `store` equal to `source`, and notifies the listeners of each change."""

    def __init__(self, api: Api, source: InformerSource[V], store: Store[V], pace: InformerPace | None = None) -> None:
        self.source = source
        self.store = store
        self.relists = 0
        self._api = api
        self._pace = pace or InformerPace()
        self._listeners: list[Listener[V]] = []
        self._failures = 0
        self._heard = 0.0
        self._connected = 0.0
        self._is_absent = False
        self._was_silent = False
        self._log = structlog.get_logger().bind(kind=source.kind.kind, namespace=source.namespace)

    @property
    def age(self) -> float:
        """The seconds since the API server last answered about this kind: with a list, an event, a bookmark, or the start of a watch."""
        return asyncio.get_running_loop().time() - self._heard

    def listen(self, listener: Listener[V]) -> None:
        """Call `listener` with each change, after the store contains it."""
        self._listeners.append(listener)

    def feed(self, queue: Queue, keys: Callable[[V], Iterable[Key]]) -> None:
        """Add to `queue` the keys that a change concerns: those of the old object and those of the new one."""

        def add(change: Changed[V]) -> None:
            for obj in (change.old, change.new):
                for key in keys(obj) if obj is not None else ():
                    queue.add(key)

        self.listen(add)

    async def run(self) -> NoReturn:
        """Keep the store equal until cancelled; no error of the API server ends this."""
        state: State = ListState()
        while True:
            state = await self.step(state)

    async def step(self, state: State) -> State:
        """Stay in a state until it ends, and return the next state."""
        try:
            match state:
                case ListState():
                    return await self._list()
                case Watching():
                    return await self._watch(state)
        except KubeError as error:
            self._failures += 1
            if isinstance(error, NotFound) and self.source.missing and self._failures >= ABSENT:
                return await self._absent()
            wait = self._pace.backoff(self._failures)
            if isinstance(error, ApiError) and error.retry_after is not None:
                wait = max(wait, error.retry_after)
            self._log.warning("cannot keep the cache", error=str(error), again=round(wait, 1))
            await asyncio.sleep(wait)
            return ListState() if self._failures >= STUBBORN and not isinstance(error, Unreachable) else state

    async def _list(self) -> State:
        source = self.source
        listing = await self._api.list(source.kind, source.view, source.namespace, source.labels)
        self.relists += 1
        self._note_contact()
        self._failures = 0
        self._is_absent = False
        for change in self.store.replace(listing.items):
            self._notify(change)
        return Watching(listing.version)

    async def _absent(self) -> State:
        """Continue without a kind that the server does not have, and log that once."""
        if not self._is_absent:
            self._log.warning(f"the API server has no kind {self.source.kind.kind}: {self.source.missing}")
        self._is_absent = True
        self._note_contact()
        for change in self.store.replace(()):
            self._notify(change)
        await asyncio.sleep(self._pace.backoff(STUBBORN + self._failures))
        return ListState()

    async def _watch(self, state: Watching) -> State:
        await self._spread()
        source, since = self.source, state.since
        timing = self._api.timing
        first, self._was_silent = timing.silent if self._was_silent else timing.idle, False
        has_heard = False
        try:
            async with aclosing(
                self._api.watch(
                    source.kind, source.view, since, source.namespace, source.labels, first, self._note_contact
                )
            ) as events:
                async for event in events:
                    has_heard = True
                    self._failures = 0
                    self._note_contact()
                    self._fold(event)
                    since = event.version
        except (Eof, Idle) as error:
            self._failures = 0
            silence = timing.idle if has_heard else first
            self._note_contact(silence if isinstance(error, Idle) else 0.0)
            self._was_silent = isinstance(error, Idle) and not has_heard
            return Watching(since)
        except Expired:
            return ListState()
        except KubeError:
            if since == state.since:
                raise
            return Watching(since)
        raise AssertionError("a watch always ends by an exception")

    def _note_contact(self, ago: float = 0.0) -> None:
        """Record that the API server answered `ago` seconds ago.

        A watch that was silent had begun before its silence.
        """
        self._heard = max(self._heard, asyncio.get_running_loop().time() - ago)

    async def _spread(self) -> None:
        now = asyncio.get_running_loop().time()
        wait = self._connected + self._pace.connect - now if self._connected else 0.0
        if wait > 0:
            await asyncio.sleep(wait)
        self._connected = asyncio.get_running_loop().time()

    def _fold(self, event: Event[V]) -> None:
        if event.object is None:
            return
        gone = event.type == "DELETED"
        change = self.store.drop(key_of(event.object)) if gone else self.store.put(event.object)
        if change is not None:
            self._notify(change)

    def _notify(self, change: Changed[V]) -> None:
        for listener in self._listeners:
            listener(change)
