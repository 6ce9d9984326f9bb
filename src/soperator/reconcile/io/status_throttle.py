"""Limits how often progress is written to statuses.

The message of a starting cluster changes many times a second, and each change would be a write to the API server. So a change that a person waits for
(the object is available, is no longer available, or its spec is refused) is written at once, and mere progress only every few seconds. Many objects
with progress take turns, so that fifty clusters that start together cost hardly more writes a second than a few; but no sentence waits longer than
`LONGEST`, however many others there are.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

FIRST = 0.4
EVERY = 4.0
#: Between the progress of one object and that of another, and the most that these waits add up to.
APART = 0.25
LONGEST = 10.0
#: The shortest wait: a shorter one may end too early by the clock's rounding, again and again.
_SOON = 0.001


@dataclass
class StatusThrottle:
    """When the status of each object was last written, by uid."""

    clock: Callable[[], float]
    first: float = FIRST
    every: float = EVERY
    apart: float = APART
    _next: dict[str, float] = field(default_factory=dict)

    def wait(self, uid: str, is_news: bool) -> float:
        """Return the seconds until the object's status may be written; 0 means now.

        The first progress of a new object is delayed for a moment, to collect more.
        """
        now = self.clock()
        if uid not in self._next:
            self._next[uid] = now + self.first + self._turn(now)
        wait = self._next[uid] - now
        return 0.0 if is_news or wait < _SOON else wait

    def wrote(self, uid: str) -> None:
        """Record that the status was written."""
        now = self.clock()
        self._next[uid] = now + max(self.every, self._turn(now))

    def _turn(self, now: float) -> float:
        """Return the seconds that belong to the other objects whose status was written recently, or that wait for a write."""
        others = sum(1 for due in self._next.values() if due > now)
        return min(LONGEST, self.apart * others)

    def forget(self, uid: str) -> None:
        """Forget an object that no longer exists."""
        self._next.pop(uid, None)
