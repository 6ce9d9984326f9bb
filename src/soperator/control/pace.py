"""How often progress is told.

A cluster that starts changes its sentence many times a second, and each would be a write to the API server. So news that a person waits for (it has
become available, it no longer is, the spec is refused) is written at once, and mere progress only every few seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

FIRST = 0.4
EVERY = 4.0


@dataclass
class Pace:
    """When the status of each object was last written."""

    clock: Callable[[], float]
    first: float = FIRST
    every: float = EVERY
    _next: dict[str, float] = field(default_factory=dict)

    def wait(self, uid: str, is_news: bool) -> float:
        """Seconds until the object's status may be written; 0 for now. The first progress of a new object waits a moment for more."""
        now = self.clock()
        due = self._next.setdefault(uid, now + self.first)
        return 0.0 if is_news else max(0.0, due - now)

    def wrote(self, uid: str) -> None:
        """Note that the status was written."""
        self._next[uid] = self.clock() + self.every

    def forget(self, uid: str) -> None:
        """Drop what is known of an object that is gone."""
        self._next.pop(uid, None)
