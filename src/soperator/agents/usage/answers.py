"""The HTTP port of `usage serve`: every client gets the file with the numbers, and none delays another.

Anyone in the Kubernetes cluster may connect, so no call waits for a client. The number of connections is limited; each client has a few seconds for
its request and as many for the answer; if all connections are in use, the oldest one is closed first. All clients share the bytes of one answer,
because the container's memory is small.
"""

import selectors
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from soperator.observe.exposition import CONTENT_TYPE

#: Seconds after which the file is outdated.
STALE = 60.0
#: For a client to ask, and to take the answer, in seconds.
PATIENCE = 2.0
#: Clients at a time. A few scrape; the others are not meant to be here.
PLACES = 64
#: The most bytes read of a request, and the most clients accepted before the others have their turn.
_LONGEST, _AT_ONCE = 1 << 16, 64


def listener(port: int) -> socket.socket:
    """Return a socket that listens on all addresses, of both families if available; port 0 means any free port."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("::", port), family=socket.AF_INET6, backlog=1024, dualstack_ipv6=True)
    return socket.create_server(("", port), backlog=1024)


@dataclass(eq=False)
class _Client:
    """A client: its deadline, its request so far, and the unsent rest of the answer if it has sent its request."""

    socket: socket.socket
    until: float
    heard: bytes = b""
    rest: memoryview | None = None


@dataclass
class Server:
    """Answers every request with the file."""

    listening: socket.socket
    file: Path
    patience: float = PATIENCE
    places: int = PLACES
    _clients: dict[_Client, None] = field(default_factory=dict)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _last: bytes = b""

    def serve(self) -> None:
        """Serve until the listening socket is closed."""
        self.listening.setblocking(False)
        self._selector.register(self.listening, selectors.EVENT_READ)
        while self.listening.fileno() >= 0:
            for key, _ in self._selector.select(self._wait()):
                if key.data is None:
                    self._accept()
                elif key.data in self._clients:
                    self._turn(key.data)
            now = time.monotonic()
            for client in [each for each in self._clients if each.until <= now]:
                self._drop(client)

    def _wait(self) -> float:
        soonest = min((each.until for each in self._clients), default=float("inf"))
        return min(1.0, max(0.0, soonest - time.monotonic()))

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                made, _ = self.listening.accept()
            except OSError:
                return  # there is no other client
            made.setblocking(False)
            if len(self._clients) >= self.places:
                self._drop(next(iter(self._clients)))
            client = _Client(made, time.monotonic() + self.patience)
            self._clients[client] = None
            self._selector.register(made, selectors.EVENT_READ, client)
            self._turn(client)

    def _turn(self, client: _Client) -> None:
        """Read from the client, or write to it; a client that has its answer, or has disconnected, is removed."""
        try:
            if client.rest is None:
                self._read_head(client)
            if client.rest is not None:
                client.rest = client.rest[client.socket.send(client.rest) :]
                if not client.rest:
                    self._drop(client)
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)

    def _read_head(self, client: _Client) -> None:
        """Read to the end of the request's head: closing a connection with unread bytes resets it, and the client may lose the answer."""
        piece = client.socket.recv(4096)
        client.heard += piece
        if piece and b"\r\n\r\n" not in client.heard and len(client.heard) < _LONGEST:
            return
        client.rest = memoryview(self._answer())
        client.until = time.monotonic() + self.patience
        self._selector.modify(client.socket, selectors.EVENT_WRITE, client)

    def _answer(self) -> bytes:
        """Return the current answer; the same object while its content is unchanged."""
        made = answer(self.file)
        if made != self._last:
            self._last = made
        return self._last

    def _drop(self, client: _Client) -> None:
        self._clients.pop(client, None)
        self._selector.unregister(client.socket)
        with suppress(OSError):
            client.socket.close()


def serve(listening: socket.socket, file: Path, patience: float = PATIENCE) -> None:
    """Answer each client with the file until the socket is closed. Each client has a limited time for its request, and for the answer."""
    Server(listening, file, patience).serve()


def answer(file: Path) -> bytes:
    """Return the complete HTTP answer: the file, or 503 with the cause if the file is missing or outdated."""
    try:
        content, age = file.read_bytes(), time.time() - file.stat().st_mtime
    except OSError as error:
        return _response("503 Service Unavailable", f"no measurement exists yet: {error.strerror}\n".encode())
    if age > STALE:
        return _response("503 Service Unavailable", f"the last measurement is {age:.0f} s old\n".encode())
    return _response("200 OK", content)


def _response(status: str, content: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + content
