"""A queue of keys, where a key is either ready, active, or neither, and never worked on twice at once.

Fifty events on one key while it is being worked on are one more pass, not fifty. So the queue holds keys, not events:
`ready` is an ordered set, `active` the keys that a worker holds, `dirty` those of them that must run again.

A key may rest after a pass: what wakes it meanwhile wakes it once, when it has rested. How long is the controller's to say.

A key's timer is cancelled when the key becomes ready, because its pass will say itself when to come again. After a
failure the key rests for its back-off, at most 5 s, whatever wakes it meanwhile: an event may well be the pass's own
doing (the status in which it reports the failure), and a failing pass that wakes itself must not spin.

At most so many keys of one namespace are active at once (`most`): a pass waits for what runs in containers of the namespace's owner, and one whose
Slurm answers slowly must not have every worker of the controller wait for it.
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
        """Return when it happens, on the clock's scale."""


class Clock(Protocol):
    """Monotonic time in seconds, and calls in the future; an asyncio loop is one."""

    def time(self) -> float:
        """Return now."""

    def call_later(self, delay: float, callback: Callable[[Key], object], key: Key, /) -> Timer:
        """Call back after `delay` seconds."""


class Queue:
    """Keys that wait for a pass; all methods but `get` return at once, and none is thread-safe."""

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
        """How many keys are ready."""
        return len(self._ready)

    @property
    def active(self) -> int:
        """How many keys are being worked on."""
        return len(self._active)

    @property
    def waiting(self) -> int:
        """How many keys wait for a timer."""
        return len(self._timers)

    @property
    def failing(self) -> int:
        """How many keys have failed in their last pass."""
        return len(self._failures)

    def failures(self, key: Key) -> int:
        """Return how often in a row the key's pass has failed."""
        return self._failures.get(key, 0)

    def add(self, key: Key) -> None:
        """Ask for a pass as soon as the key has rested."""
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
        """Ask for a pass in so many seconds, unless one is due before that."""
        if key in self._ready or self._closed:
            return
        clock = self._clock or asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= clock.time() + seconds:
            return
        self._cancel(key)
        self._timers[key] = clock.call_later(max(0.0, seconds), self._due, key)

    def take(self) -> Key | None:
        """Hand out the key that is ready longest, of a namespace that has a place, or None; whoever gets it must call `done`."""
        key = None if self._closed else next(filter(self._has_place, self._ready), None)
        if key is None:
            return None
        del self._ready[key]
        self._active.add(key)
        return key

    async def get(self) -> Key | None:
        """Wait for a key; return None once the queue is closed."""
        while not self._closed:
            key = self.take()
            if key is not None:
                return key
            self._wake.clear()
            await self._wake.wait()
        return None

    def done(self, key: Key, failed: bool = False, again: float | None = None, rest: float = 0.0) -> None:
        """Give a key back: after a failure it becomes ready again after its back-off, else after `again` seconds, if given, and never before `rest`
        seconds.

        A failure's wait is 0.5 s, doubled by each further failure in a row up to 5 min, less up to half by chance;
        `again` is then its minimum.
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
        """Hand out no more keys, and wake every waiting worker to tell it so."""
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
        """Return in how many seconds the key will have rested."""
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
