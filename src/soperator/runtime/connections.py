"""Limits the number and the duration of connections to an HTTP port, which attackers may reach.

uvicorn keeps a connection without a request for ever, and accepts any number of them. Here each client has a few seconds for its request and a minute
in total. If all connections are in use, the oldest client without a pending answer is closed first. An honest client has sent its request before
that. An address has a limited number of connections per second, each for one request (`serve`), because the same event loop does all other work, and
a client that asks without a pause would block it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Clients at a time; seconds in which a client has to ask; seconds that it has in all.
PLACES, PATIENCE, LIFE = 256, 5.0, 60.0
#: Connections accepted from one address per second, and at once after a rest; and the number of addresses that are tracked.
RATE, BURST, _KNOWN = 20.0, 100.0, 1024


@dataclass
class ConnectionRates:
    """The remaining connections of each address, by a clock in seconds."""

    rate: float = RATE
    burst: float = BURST
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, address: str, now: float) -> bool:
        """Return whether this address may open one more connection."""
        left, before = self._left.pop(address, (self.burst, now))
        left = min(self.burst, left + (now - before) * self.rate)
        self._left[address] = (max(0.0, left - 1.0), now)
        if len(self._left) > _KNOWN:
            self._left.popitem(last=False)
        return left >= 1.0


def bounded(
    places: int = PLACES, patience: float = PATIENCE, life: float = LIFE, turns: ConnectionRates | None = None
) -> type[H11Protocol]:
    """Return uvicorn's protocol class with these limits, for one server."""
    present: dict[_Bounded, None] = {}
    left = turns or ConnectionRates()

    class Bounded(_Bounded):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if not left.take(self.client[0] if self.client else "", self.loop.time()):
                transport.abort()
                return
            present[self] = None
            self.timers = (
                self.loop.call_later(patience, self.end_unless_asked),
                self.loop.call_later(life, transport.abort),
            )
            if len(present) > places:
                _least(present).transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            present.pop(self, None)
            for timer in self.timers:
                timer.cancel()
            super().connection_lost(exc)

    return Bounded


class _Bounded(H11Protocol):
    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self.timers: tuple[asyncio.TimerHandle, ...] = ()

    @property
    def is_waiting(self) -> bool:
        """Whether the client has sent its request, and the answer is pending."""
        return self.cycle is not None and not self.cycle.response_complete

    def end_unless_asked(self) -> None:
        if self.cycle is None:
            self.transport.abort()


def _least(present: Iterable[_Bounded]) -> _Bounded:
    """Return the oldest connection without a pending answer, or the oldest of all."""
    found = list(present)
    return next((each for each in found[:-1] if not each.is_waiting), found[0])
