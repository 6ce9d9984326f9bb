"""A transport of httpx2 for the API server and for slurmrestd: HTTP/1.1 on asyncio's own connections.

A request of the operator is small, and most of its cost is the way through the general HTTP client: with httpx2's own transport a request takes twice
as much CPU, because each byte passes through anyio, h11 and a pool that looks at every idle socket before each request (docs/decisions/0148).
Redirects, authentication, compression and counting remain with httpx2 and `Transport`. A request that becomes a websocket (`exec`) goes through
httpx2's own transport.

An answer must not be taken for that to another request. So a connection is used again only if an answer of known length was read to its end, nothing
follows it, and neither side wants to close. What the server may make it keep in memory is bounded.
"""

import asyncio
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import TypeVar

import httpx2

#: The most bytes of a head, of one line of a chunk, and of an answer that is read before it is handed on; and what chunks may look like.
_HEAD, _LINE, _AT_ONCE = 64 << 10, 4 << 10, 1 << 20
_SIZE, _TRAILERS = re.compile(rb"[0-9A-Fa-f]{1,8}"), 64
#: Bytes after which a connection reads no more until they are taken, and of one read of TLS.
_FULL, _PIECE = 1 << 20, 64 << 10
#: Seconds after which an idle connection is not used again; the API server closes it after 90.
_IDLE = 60.0
#: The most idle connections to one server that are kept.
_KEPT = 16
#: The kernel asks a silent server after 30 s, and gives it up 30 s later: a watch of a kind without objects hears nothing for minutes.
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)
#: Seconds after which the next address of a host is tried beside the first.
_NEXT_ADDRESS = 0.25

Place = tuple[bytes, str, int]
T = TypeVar("T")


class Http11(httpx2.AsyncBaseTransport):
    """Sends requests; `context` is for https, `others` sends what becomes a websocket. Without them it refuses both."""

    def __init__(self, context: ssl.SSLContext | None = None, others: httpx2.AsyncBaseTransport | None = None) -> None:
        if context is not None:
            context.set_alpn_protocols(["http/1.1"])
        self._context = context
        self._others = others
        self._idle: dict[Place, list[_Connection]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request, and return its answer. A body of a known length is read here; any other is read as a stream."""
        if "upgrade" in request.headers and self._others is not None:
            return await self._others.handle_async_request(request)
        head, body = _head(request), await request.aread()
        limits = request.extensions.get("timeout", {})
        connection = await self._connection(request.url, limits.get("connect"))
        is_kept = False
        try:
            connection.write(head + body)
            answer = await _within(limits.get("read"), connection.answer(request.method), httpx2.ReadTimeout)
            if answer.length is None or answer.length > _AT_ONCE:
                is_kept = True  # by the stream
                stream = _Body(self, connection, answer, limits.get("read"))
                return httpx2.Response(answer.status, headers=answer.headers, stream=stream)
            content = await _within(limits.get("read"), connection.exactly(answer.length), httpx2.ReadTimeout)
            is_kept = answer.is_persistent
            if is_kept:
                self.put_back(connection)
            return httpx2.Response(answer.status, headers=answer.headers, content=content)
        finally:
            if not is_kept:
                connection.abort()

    def put_back(self, connection: "_Connection") -> None:
        """Keep a connection whose answer was read to its end."""
        idle = self._idle.setdefault(connection.place, [])
        if len(idle) >= _KEPT or not connection.is_clean:
            connection.abort()
        else:
            connection.idle_since = time.monotonic()
            idle.append(connection)

    async def aclose(self) -> None:
        """Close every idle connection."""
        for idle in self._idle.values():
            for each in idle:
                each.abort()
        self._idle.clear()
        if self._others is not None:
            await self._others.aclose()

    async def _connection(self, url: httpx2.URL, seconds: float | None) -> "_Connection":
        """Return the idle connection that was used last, or a new one."""
        is_tls = url.raw_scheme == b"https"
        if is_tls and self._context is None:
            raise httpx2.UnsupportedProtocol("this transport has no certificates for https")
        place = (url.raw_scheme, url.host, url.port or (443 if is_tls else 80))
        idle = self._idle.get(place, [])
        while idle:
            found = idle.pop()
            if found.is_clean and time.monotonic() - found.idle_since < _IDLE:
                return found
            found.abort()
        try:
            return await _within(seconds, _opened(place, self._context if is_tls else None), httpx2.ConnectTimeout)
        except OSError as error:  # ssl.SSLError too
            raise httpx2.ConnectError(str(error) or type(error).__name__) from error


async def _opened(place: Place, context: ssl.SSLContext | None) -> "_Connection":
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(
        lambda: _Connection(place, context), place[1], place[2], happy_eyeballs_delay=_NEXT_ADDRESS
    )
    try:
        await made.opened()
    except BaseException:
        made.abort()
        raise
    return made


@dataclass(frozen=True, slots=True)
class _Answer:
    """The head of an answer. `length` is that of the body; None if the body is in chunks, or lasts until the connection ends."""

    status: int
    headers: list[tuple[bytes, bytes]]
    length: int | None
    is_chunked: bool
    is_persistent: bool


class _Tls:
    """TLS in memory. asyncio's own keeps 256 KiB for each connection, of which the operator has some thirty."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_hostname=host)
        self.is_open = self.is_over = False

    def take(self, data: bytes) -> bytes:
        """Take encrypted bytes; return the bytes that they complete. Raises ssl.SSLError."""
        self._in.write(data)
        found = bytearray()
        try:
            if not self.is_open:
                self._object.do_handshake()
                self.is_open = True
            while piece := self._object.read(_PIECE):
                found += piece
            self.is_over = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_over = True
        return bytes(found)

    def seal(self, data: bytes) -> bytes:
        """Encrypt bytes."""
        self._object.write(data)
        return self.due()

    def due(self) -> bytes:
        """Return what is to be sent."""
        return self._out.read()


class _Connection(asyncio.Protocol):
    """One connection: it collects what the server sends, and waits for more of it."""

    def __init__(self, place: Place, context: ssl.SSLContext | None = None) -> None:
        self.place = place
        self.idle_since = 0.0
        self._tls = _Tls(context, place[1]) if context else None
        self._transport: asyncio.Transport | None = None
        self._data = bytearray()
        self._ended: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_paused = False
        self._left = 0

    @property
    def is_clean(self) -> bool:
        """Whether the server has neither closed it nor sent what nobody asked for."""
        return self._ended is None and not self._data

    async def opened(self) -> None:
        """Wait until requests can be sent. Raises OSError."""
        while self._tls and not self._tls.is_open:
            try:
                await self._more()
            except httpx2.TransportError as error:
                raise OSError(f"TLS: {error}") from error

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        sock = transport.get_extra_info("socket")
        for level, option, value in _KEEPALIVE:
            sock.setsockopt(level, option, value)
        if self._tls:
            self.data_received(b"")

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if self._tls and self._transport:
            try:
                data = self._tls.take(data)
            except ssl.SSLError as error:
                data = b""
                self._end(httpx2.ReadError(str(error)))
            if due := self._tls.due():
                self._transport.write(due)
            if self._tls.is_over:
                self._end(_closed())
        self._data += data
        if len(self._data) > _FULL and not self._is_paused and self._transport:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Called by asyncio; it then closes the connection."""
        self._end(httpx2.ReadError("the connection is cut off") if self._tls else _closed())

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._end(httpx2.ReadError(f"the connection is lost: {exc}") if exc else _closed())

    def write(self, data: bytes) -> None:
        """Send bytes; asyncio keeps what the socket does not take at once."""
        if self._ended or self._transport is None:
            raise self._ended or httpx2.WriteError("the connection is closed")
        self._transport.write(self._tls.seal(data) if self._tls else data)

    def abort(self) -> None:
        """Close at once."""
        self._end(httpx2.ReadError("the connection was closed"))
        if self._transport:
            self._transport.abort()

    async def answer(self, method: str) -> _Answer:
        """Read a head; skips interim answers."""
        while True:
            found = _parsed(await self._until(b"\r\n\r\n", _HEAD), method)
            if found.status >= 200:
                return found

    async def exactly(self, count: int) -> bytes:
        """Read so many bytes."""
        while len(self._data) < count:
            await self._more()
        return self._taken(count)

    async def some(self) -> bytes:
        """Read what there is, at least one byte; none at the end of the connection."""
        while not self._data:
            if isinstance(self._ended, httpx2.RemoteProtocolError):
                return b""
            await self._more()
        return self._taken(len(self._data))

    async def chunked(self) -> bytes:
        """Read a piece of a body in chunks, at most what has arrived of one chunk; none after the last chunk and its trailers."""
        if not self._left:
            self._left = await self._size()
            if not self._left:
                for _ in range(_TRAILERS):
                    if not await self._until(b"\r\n", _LINE):
                        return b""
                raise httpx2.RemoteProtocolError("the answer has too many trailers")
        if not self._data:
            await self._more()
        found = self._taken(min(self._left, len(self._data)))
        self._left -= len(found)
        if not self._left and await self.exactly(2) != b"\r\n":
            raise httpx2.RemoteProtocolError("a chunk of the answer is longer than its size")
        return found

    async def _size(self) -> int:
        line = (await self._until(b"\r\n", _LINE)).split(b";", 1)[0].strip()
        if not _SIZE.fullmatch(line):
            raise httpx2.RemoteProtocolError("the answer has a chunk without a size")
        return int(line, 16)

    async def _until(self, end: bytes, most: int) -> bytes:
        begin = 0
        while (at := self._data.find(end, begin)) < 0:
            if len(self._data) > most:
                raise httpx2.RemoteProtocolError(f"the head of the answer has more than {most} bytes")
            begin = max(0, len(self._data) - len(end) + 1)
            await self._more()
        found = bytes(self._data[:at])
        del self._data[: at + len(end)]
        return found

    async def _more(self) -> None:
        if self._ended:
            raise self._ended
        if self._is_paused and self._transport:
            self._is_paused = False
            self._transport.resume_reading()
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _taken(self, count: int) -> bytes:
        found = bytes(self._data[:count])
        del self._data[:count]
        return found

    def _end(self, why: Exception) -> None:
        self._ended = self._ended or why
        self._wake()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)


class _Body(httpx2.AsyncByteStream):
    """The body of an answer that is read piece by piece."""

    def __init__(self, pool: Http11, connection: _Connection, answer: _Answer, seconds: float | None) -> None:
        self._pool, self._connection, self._answer, self._seconds = pool, connection, answer, seconds
        self._is_whole = self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._answer.length
        while left is None or left > 0:
            piece = await _within(self._seconds, self._piece(left), httpx2.ReadTimeout)
            if not piece:
                break
            left = None if left is None else left - len(piece)
            yield piece
        self._is_whole = True

    async def _piece(self, left: int | None) -> bytes:
        if self._answer.is_chunked:
            return await self._connection.chunked()
        return await (self._connection.exactly(min(left, _AT_ONCE)) if left else self._connection.some())

    async def aclose(self) -> None:
        """Keep the connection if the body was read to its end; otherwise close it."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._is_whole and self._answer.is_persistent:
            self._pool.put_back(self._connection)
        else:
            self._connection.abort()


def _closed() -> httpx2.RemoteProtocolError:
    return httpx2.RemoteProtocolError("the server closed the connection before the end of its answer")


def _head(request: httpx2.Request) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [b"%s: %s" % pair for pair in request.headers.raw]
    if any(b"\r" in line or b"\n" in line for line in lines):
        raise httpx2.LocalProtocolError("a header of the request has a line break")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _parsed(head: bytes, method: str) -> _Answer:
    first, *lines = head.split(b"\r\n")
    words = first.split(b" ", 2)
    if len(words) < 2 or words[0] not in (b"HTTP/1.1", b"HTTP/1.0") or not (words[1].isdigit() and len(words[1]) == 3):
        raise httpx2.RemoteProtocolError(f"this is no answer of HTTP/1.1: {first[:100]!r}")
    headers = [(name, value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    if any(not name or name != name.strip() for name, _ in headers):
        raise httpx2.RemoteProtocolError("the answer has a header without a name")
    status = int(words[1])
    known = {name.lower(): value for name, value in headers}
    lengths = {value for name, value in headers if name.lower() == b"content-length"}
    is_chunked = known.get(b"transfer-encoding", b"").lower() == b"chunked"
    has_none = method == "HEAD" or status < 200 or status in (204, 304)
    if (b"transfer-encoding" in known and (lengths or not is_chunked)) or len(lengths) > 1:
        raise httpx2.RemoteProtocolError("the length of the answer is ambiguous")
    if lengths and not (said := next(iter(lengths))).isdigit():
        raise httpx2.RemoteProtocolError(f"the length of the answer is no number: {said[:20]!r}")
    length = 0 if has_none else int(next(iter(lengths))) if lengths else None
    is_framed = length is not None or is_chunked
    wants_close = b"close" in known.get(b"connection", b"").lower() or words[0] == b"HTTP/1.0"
    return _Answer(status, headers, length, is_chunked and not has_none, is_framed and not wants_close)


async def _within(seconds: float | None, work: Awaitable[T], late: type[httpx2.TimeoutException]) -> T:
    """Await, for so long at most."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError as error:
        raise late(f"nothing within {seconds:.0f} s") from error
