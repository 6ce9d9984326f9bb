"""A queue of keys. A key is ready, active or neither, and never processed twice at once.

Fifty events on one key that is being processed cause one more pass, not fifty. So the queue holds keys, not events: `ready` is an ordered set,
`active` has the keys that a worker holds, `dirty` those of them that must run again.

A key may rest after a pass: events in that time cause one pass, after the rest. The controller sets the duration. A key's timer is cancelled when the
key becomes ready, because its pass sets the next one. After a failure the key rests for its back-off, at most 5 s, whatever queues it meanwhile. The
event may come from the pass itself (from the status in which it reports the failure), and a failing pass that queues itself must not loop.

The number of active keys of one namespace is limited (`most`). A pass waits for commands in containers of the namespace's owner, and a tenant whose
Slurm answers slowly must not occupy every worker of the controller.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Protocol

from soperator.runtime.cache.store import Key

FIRST = 0.5
LONGEST = 300.0
#: Seconds after a failure within which no event brings a key back.
CALM = 5.0


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call."""

    def when(self) -> float:
        """Return the time of the call, on the clock's scale."""


class Clock(Protocol):
    """Monotonic time in seconds, and delayed calls; an asyncio loop is one."""

    def time(self) -> float:
        """Return the current time."""

    def call_later(self, delay: float, callback: Callable[[Key], object], key: Key, /) -> Timer:
        """Call back after `delay` seconds."""


class Queue:
    """Keys that wait for a pass. All methods except `get` return at once, and none is thread-safe."""

    def __init__(
        self, clock: Clock | None = None, chance: Callable[[], float] = random.random, most: int | None = None
    ) -> None:
        self._clock = clock
        self._most = most
        self._chance = chance
        self._ready: dict[Key, None] = {}
        self._active: set[Key] = set()
        self._dirty: set[Key] = set()
        self._timers: dict[Key, Timer] = {}
        self._failures: dict[Key, int] = {}
        self._rested: dict[Key, float] = {}
        self._closed = False
        self._wake = asyncio.Event()

    @property
    def depth(self) -> int:
        """The number of ready keys."""
        return len(self._ready)

    @property
    def active(self) -> int:
        """The number of keys that are being processed."""
        return len(self._active)

    @property
    def waiting(self) -> int:
        """The number of keys that wait for a timer."""
        return len(self._timers)

    @property
    def failing(self) -> int:
        """The number of keys whose last pass failed."""
        return len(self._failures)

    def failures(self, key: Key) -> int:
        """Return the number of failures in a row of the key's passes."""
        return self._failures.get(key, 0)

    def add(self, key: Key) -> None:
        """Request a pass as soon as the key has rested."""
        if key in self._active:
            self._dirty.add(key)
            return
        if wait := self._rest(key):
            self.after(key, wait)
            return
        self._cancel(key)
        self._ready[key] = None
        self._wake.set()

    def after(self, key: Key, seconds: float) -> None:
        """Request a pass in this number of seconds, unless one is due earlier."""
        if key in self._ready or self._closed:
            return
        clock = self._clock or asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= clock.time() + seconds:
            return
        self._cancel(key)
        self._timers[key] = clock.call_later(max(0.0, seconds), self._due, key)

    def take(self) -> Key | None:
        """Return the key that has been ready longest, of a namespace below its limit, or None. The caller must call `done` for the key."""
        key = None if self._closed else next(filter(self._has_place, self._ready), None)
        if key is None:
            return None
        del self._ready[key]
        self._active.add(key)
        return key

    async def get(self) -> Key | None:
        """Wait for a key and return it; return None once the queue is closed."""
        while not self._closed:
            key = self.take()
            if key is not None:
                return key
            self._wake.clear()
            await self._wake.wait()
        return None

    def done(self, key: Key, failed: bool = False, again: float | None = None, rest: float = 0.0) -> None:
        """Return a key after its pass.

        After a failure the key becomes ready after its back-off, otherwise after `again` seconds, if given; never before `rest` seconds. The back-off
        is 0.5 s, doubled by each further failure in a row up to 5 min, and reduced by up to half at random; `again` is then its minimum.
        """
        self._active.discard(key)
        self._wake.set()
        dirty = key in self._dirty
        self._dirty.discard(key)
        if failed:
            self._failures[key] = self._failures.get(key, 0) + 1
            wait = self._backoff(key)
            rest = max(rest, min(wait, CALM))
            wait = min(wait, CALM) if dirty else wait
        if rest > 0.0:
            self._rested[key] = self._now() + rest
        if failed:
            self.after(key, max(wait, again or 0.0))
            return
        self._failures.pop(key, None)
        if dirty:
            self.add(key)
        elif again is not None:
            self.after(key, again)

    def close(self) -> None:
        """Return no more keys, and wake every waiting worker so that it ends."""
        self._closed = True
        for key in [*self._timers]:
            self._cancel(key)
        self._wake.set()

    def _has_place(self, key: Key) -> bool:
        return self._most is None or sum(each[0] == key[0] for each in self._active) < self._most

    def _backoff(self, key: Key) -> float:
        longest: float = min(LONGEST, FIRST * 2.0 ** min(self._failures[key] - 1, 16))
        return longest * (0.5 + self._chance() / 2)

    def _now(self) -> float:
        return (self._clock or asyncio.get_running_loop()).time()

    def _rest(self, key: Key) -> float:
        """Return the seconds until the key has rested."""
        until = self._rested.get(key)
        wait = until - self._now() if until is not None else 0.0
        if until is not None and wait <= 0.0:
            del self._rested[key]
        return max(0.0, wait)

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _cancel(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
