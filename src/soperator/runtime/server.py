"""The operator's own HTTP port: /healthz, /readyz and /metrics.

One port serves all three. It has no access log and no signal handlers, because signals belong to the operator's own shutdown.
"""

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping

import uvicorn
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from soperator.runtime.connections import bounded

Checks = Callable[[], Mapping[str, bool]]


def build_app(registry: CollectorRegistry, ready: Checks) -> Starlette:
    """Return the application. /readyz answers 503 and names the failed checks until every check passes."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        missing = [name for name, holds in ready().items() if not holds]
        return PlainTextResponse(f"waiting for {', '.join(missing)}\n", 503) if missing else PlainTextResponse("ok\n")

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)])


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Install no signal handlers."""
        yield


async def serve(app: Starlette, host: str, port: int, protocol: type[asyncio.Protocol] | None = None) -> None:
    """Serve until cancelled, with limits on clients."""
    made = protocol or bounded()
    # One request for each connection, of which an address has so many; a few are accepted at a time, before the loop's other work has its turn.
    config = uvicorn.Config(
        app, host=host, port=port, http=made, log_config=None, access_log=False, lifespan="off", backlog=64, headers=[("Connection", "close")]
    )  # fmt: skip
    await _Server(config).serve()
