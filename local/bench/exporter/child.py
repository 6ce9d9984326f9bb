"""The exporter in its own process: it serves while it reads each source once, and prints the cost as one line of JSON.

`python -m local.bench.exporter.child URL PORT [KEY SOCKET]`: a fake slurmrestd at the URL, or a real one at a socket with the key of its
tokens.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import httpx2

from soperator.agents.exporter.page import History, page
from soperator.agents.exporter.refresh import Refresher, RefreshOptions
from soperator.agents.exporter.server import build_app
from soperator.runtime.server import serve
from soperator.slurmrest.reader import ListReader
from soperator.slurmrest.token import sign


async def main(url: str, port: int, secret: bytes = b"", socket: str = "") -> None:
    """Read each source once, and serve until a signal ends the process."""
    transport = httpx2.AsyncHTTPTransport(uds=socket) if socket else None

    def credentials() -> tuple[str, str]:
        return "slurmrest", sign(secret, "slurmrest", int(time.time()) - 5, 600)

    refresher = Refresher(ListReader(url, credentials, transport), RefreshOptions("bench", 1500.0))
    serving = asyncio.ensure_future(
        serve(build_app(refresher.metrics, lambda: page(refresher, History())), "127.0.0.1", port)
    )
    await asyncio.sleep(1.0)
    cost = {}
    for name, source in refresher.sources.items():
        began, busy = time.monotonic(), time.process_time()
        await refresher.once(source)
        cost[name] = {"cpu": time.process_time() - busy, "wall": time.monotonic() - began, "trouble": source.trouble}
    series = sum(1 for line in refresher.metrics().splitlines() if not line.startswith(b"#"))
    print(json.dumps({"cost": cost, "peak": _peak(), "series": series, "jobs": refresher.seen.jobs}), flush=True)
    await serving


def _peak() -> float:
    """Return the peak resident memory of this process in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    url, port, *rest = sys.argv[1:]
    asyncio.run(main(url, int(port), Path(rest[0]).read_bytes(), rest[1]) if rest else main(url, int(port)))
