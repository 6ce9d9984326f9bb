"""One HTTP/1.1 client, which counts requests, retries them and raises this package's errors.

It uses HTTP/1.1 and not HTTP/2, because with one shared connection a dead peer would stall every watch at once. lightkube finds the cluster and
authenticates (it reads the service account token again on 401, and supports client certificates and exec plugins). Only its client adapter is
imported, since its models would cost more memory than the whole cache.
"""

import asyncio
import random
import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2

from soperator.kube.errors import ApiError, TooBusy, Unreachable, error_of
from soperator.kube.kinds import Kind

TRIES = 4
LONGEST_WAIT = 30.0
#: The kernel asks a silent server after 30 s, and gives it up 30 s later: a watch of a kind without objects hears nothing for minutes.
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `verb` is Kubernetes' verb, as in the audit log and in RBAC."""

    verb: str
    kind: Kind
    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Transport:
    """Sends requests and counts them by (verb, kind, status); status 0 means that no answer came."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self._random = random.Random()

    async def send(self, call: Call, idle: float | None = None, tries: int = TRIES) -> httpx2.Response:
        """Return the successful response. Its body is read, unless `idle` is given, which makes it a stream.

        Retries after a wait, `tries` times in total, while the server answers 429, or 503 with a Retry-After of at most 30 s; the server has not
        executed such requests. `idle` is the number of seconds within which the server must begin its answer. Raises ApiError or Unreachable.
        """
        for attempt in range(tries):
            try:
                return await self._once(call, idle)
            except TooBusy as error:
                wait = error.retry_after if error.retry_after is not None or error.status == 503 else 1.0
                if wait is None or wait > LONGEST_WAIT or attempt == tries - 1:
                    raise
                await asyncio.sleep(wait + self._random.random() * 0.2)
        raise AssertionError("the last attempt always returns or raises")

    async def _once(self, call: Call, idle: float | None) -> httpx2.Response:
        request = self.client.build_request(
            call.method,
            call.path,
            params=dict(call.params),
            content=call.body,
            headers=dict(call.headers),
            timeout=httpx2.Timeout(10.0, read=30.0) if idle is None else httpx2.Timeout(10.0, read=None),
        )
        try:
            async with asyncio.timeout(idle):
                response = await self.client.send(request, stream=idle is not None)
            if response.is_error:
                raise await _error(response)
        except (httpx2.TransportError, TimeoutError) as error:
            self._count(call, 0)
            raise Unreachable(f"{call.verb} {call.kind} {call.path}: {_words(error)}") from error
        except ApiError as error:
            self._count(call, error.status)
            raise
        self._count(call, response.status_code)
        return response

    def _count(self, call: Call, status: int) -> None:
        self.requests[call.verb, call.kind.kind, status] += 1

    async def aclose(self) -> None:
        """Close every connection."""
        await self.client.aclose()


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def _error(response: httpx2.Response) -> ApiError:
    try:
        body = await response.aread()
    finally:
        await response.aclose()
    return error_of(response.status_code, body, response.headers.get("Retry-After"))


def connect(user_agent: str, transport: httpx2.AsyncBaseTransport | None = None) -> tuple[httpx2.AsyncClient, str]:
    """Return an authenticated client and the default namespace, from the Pod's service account or from KUBECONFIG.

    Proxy variables of the environment apply only to a remote cluster from a kubeconfig, because a proxy rarely reaches loopback or a Pod's own API
    server. Raises NoCluster.
    """
    from lightkube.config.client_adapter import ConnectionParams

    from soperator.kube.kubeconfig import configuration

    config = configuration()
    is_remote = config.fname is not None and urlsplit(config.cluster.server).hostname not in LOOPBACK
    params = ConnectionParams(trust_env=is_remote, transport=transport).httpx_params(config)  # type: ignore[arg-type]
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=16, keepalive_expiry=60.0)
    if transport is None and not is_remote:  # a given transport takes no proxy from the environment
        own = httpx2.AsyncHTTPTransport(
            verify=params["verify"], trust_env=False, limits=limits, socket_options=_KEEPALIVE
        )
        params |= {"transport": own}
    return httpx2.AsyncClient(**params, limits=limits, headers={"User-Agent": user_agent}), config.namespace
