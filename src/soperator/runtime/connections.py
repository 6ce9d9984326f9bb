"""How many clients an HTTP port has at a time, and how long each of them: a port may be open to people who mean no good.

uvicorn keeps a connection that never asks for ever, and takes any number of them. Here each client has a few seconds to ask and a minute in all, and
where a place is needed the oldest client that waits for no answer goes first. One that means it has asked before its turn comes.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Clients at a time; seconds in which a client has to ask; seconds that it has in all.
PLACES, PATIENCE, LIFE = 256, 5.0, 60.0


def bounded(places: int = PLACES, patience: float = PATIENCE, life: float = LIFE) -> type[H11Protocol]:
    """Return uvicorn's protocol with these bounds, for one server."""
    present: dict[_Bounded, None] = {}

    class Bounded(_Bounded):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
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
        """Whether it has asked, and the answer is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    def end_unless_asked(self) -> None:
        if self.cycle is None:
            self.transport.abort()


def _least(present: Iterable[_Bounded]) -> _Bounded:
    """The oldest of those that wait for nothing, or of all."""
    found = list(present)
    return next((each for each in found[:-1] if not each.is_waiting), found[0])
