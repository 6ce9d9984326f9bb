"""The exporter's HTTP port: /metrics for Prometheus, / for people, /healthz for the kubelet.

A client gets the last results, already encoded, so an answer takes no longer while slurmrestd hangs. The exporter is ready while Slurm is down too,
because its metrics matter most then.
"""

import zlib
from collections.abc import AsyncIterator, Callable, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from soperator.agents.exporter.page import HEADERS
from soperator.observe.exposition import CONTENT_TYPE

_GZIP = 16 + zlib.MAX_WBITS
#: Bytes written at once: a slow reader keeps no copy of the whole page, and a hundred of them delay no other client.
_PIECE = 1 << 16


class CompressedPage:
    """A cache of the last page, compressed with gzip once for all clients."""

    def __init__(self) -> None:
        self._plain = b""
        self._packed = b""

    def compress(self, plain: bytes) -> bytes:
        """Return the compressed bytes of the page."""
        if plain is not self._plain:
            self._plain, self._packed = plain, pack(plain)
        return self._packed


def pack(plain: bytes) -> bytes:
    """Compress with gzip, at its fastest level."""
    packer = zlib.compressobj(1, wbits=_GZIP)
    return packer.compress(plain) + packer.flush()


def build_app(metrics: Callable[[], bytes], page: Callable[[], str]) -> Starlette:
    """Return the application. `metrics` returns the same object while its content is unchanged."""
    packed, process = CompressedPage(), CollectorRegistry()
    ProcessCollector(registry=process)

    async def serve_page(_: Request) -> Response:
        return HTMLResponse(page(), headers=HEADERS)

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def serve_metrics(request: Request) -> Response:
        slurm, own = metrics(), generate_latest(process)
        headers = {"Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            slurm, own = packed.compress(slurm), pack(own)  # two members of one gzip file
            headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(slurm) + len(own))
        return StreamingResponse(_pieces([slurm, own]), headers=headers, media_type=CONTENT_TYPE)

    return Starlette(routes=[Route("/", serve_page), Route("/healthz", healthz), Route("/metrics", serve_metrics)])


async def _pieces(parts: Sequence[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        for begin in range(0, len(part), _PIECE):
            yield part[begin : begin + _PIECE]
