"""Reads an answer within bounds on its bytes and its time, so that a hostile slurmrestd harms only its own cluster.

slurmrestd and the programs of a worker run in containers of the cluster's owner, and the operator serves other clusters too. An answer may never
begin, never end, arrive at a byte a second, or grow by decompression.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2

MIB = 1 << 20


class TooLarge(Exception):  # noqa: N818
    """An answer exceeds the bound on its bytes; the text names the bound."""


@dataclass(frozen=True)
class Bound:
    """The bounds of an answer: bytes, total seconds, and seconds without a byte."""

    most: int
    seconds: float
    silence: float


@contextlib.asynccontextmanager
async def opened(client: httpx2.AsyncClient, request: httpx2.Request, bound: Bound) -> AsyncIterator[httpx2.Response]:
    """The response to a request, whose body `chunks` reads; reading stops when the time is over.

    Raises httpx2.HTTPError, and TimeoutError when the time is over.
    """
    request.extensions = {**request.extensions, "timeout": httpx2.Timeout(bound.silence).as_dict()}
    async with asyncio.timeout(bound.seconds):
        response = await client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()


async def chunks(response: httpx2.Response, most: int) -> AsyncIterator[bytes]:
    """Yield the bytes of a body, piece by piece; raises TooLarge."""
    # Accept-Encoding asks for plain bytes. A compressed answer could grow a thousandfold in one piece.
    if response.headers.get("content-encoding", "identity") != "identity":
        raise TooLarge("the answer is compressed, although the request did not allow it")
    read = 0
    async for chunk in response.aiter_bytes():
        read += len(chunk)
        if read > most:
            raise TooLarge(f"the answer has more than {_size(most)}")
        yield chunk


async def whole(response: httpx2.Response, most: int) -> bytearray:
    """Read a body of a bounded number of bytes; raises TooLarge."""
    body = bytearray()
    async for chunk in chunks(response, most):
        body += chunk
    return body


def _size(most: int) -> str:
    return f"{most // MIB} MiB" if most >= MIB else f"{most} bytes"
