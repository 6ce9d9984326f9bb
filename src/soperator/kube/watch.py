"""Reads one watch stream.

A healthy watch is never silent for long, since the server sends a bookmark about once a minute. A connection whose peer disappeared stays silent for
ever, and no timeout of the connection detects it. So each chunk has a deadline; missing it ends the watch as `Idle`. An API server that has had no
event of a kind since its start sends no bookmarks for it either: such a watch is opened again after 90 s, and then after each 240 s, which costs one
request and no list.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import httpx2
import msgspec

from soperator.kube.depth import decoded
from soperator.kube.errors import Eof, Idle, Malformed, Unreachable, error_of

V = TypeVar("V")
Change = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds for which a watch may be silent, and its requested duration, which is random so that watches spread out.

    Durations are long, because an idle operator sends few other requests; `idle` detects a dead peer. `silent` is the first deadline of a watch whose
    predecessor was silent from its beginning to its end, as is usual for a kind without objects; there the kernel detects a dead peer (`transport`).
    """

    idle: float = 90.0
    silent: float = 240.0
    span: Callable[[], int] = field(default=lambda: random.randint(1200, 1800))


@dataclass(frozen=True, slots=True)
class Event(Generic[V]):
    """One change. `object` is None in a bookmark; `version` is where a later watch continues."""

    type: Change
    object: V | None
    version: str


class _Frame(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Versioned(msgspec.Struct):
    metadata: _Metadata


async def events(response: httpx2.Response, view: type[V], idle: float, first: float) -> AsyncGenerator[Event[V], None]:
    """Decode the events of an open watch response, and close it at the end; see `Api.watch` for the seconds and the errors."""
    frame = msgspec.json.Decoder(_Frame)
    versioned = msgspec.json.Decoder(_Versioned)
    typed = msgspec.json.Decoder(view)
    try:
        async for line in _lines(response, idle, first):
            yield _event(line, frame, versioned, typed)
    except httpx2.TransportError as error:
        raise Unreachable(f"watch was cut off: {type(error).__name__}: {error}") from error
    except msgspec.MsgspecError as error:
        raise Malformed(f"watch: {error}") from error
    finally:
        await response.aclose()
    raise Eof("the server ended the watch")


def _event(
    line: bytes,
    frame: msgspec.json.Decoder[_Frame],
    versioned: msgspec.json.Decoder[_Versioned],
    typed: msgspec.json.Decoder[V],
) -> Event[V]:
    got = decoded(frame, line)
    match got.type:
        case "ERROR":
            raise error_of(0, bytes(got.object))
        case "BOOKMARK":
            return Event("BOOKMARK", None, versioned.decode(got.object).metadata.resource_version)
        case "ADDED" | "MODIFIED" | "DELETED":
            obj: Any = decoded(typed, got.object)
            return Event(got.type, obj, obj.metadata.resource_version)
        case other:
            raise Malformed(f"watch: the server sent an event of the unknown type {other!r}")


async def _lines(response: httpx2.Response, idle: float, first: float) -> AsyncIterator[bytes]:
    chunks = response.aiter_bytes()
    rest, limit = b"", first
    while True:
        try:
            async with asyncio.timeout(limit):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise Idle(f"the watch was silent for {limit:.0f} s") from None
        limit = idle
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
