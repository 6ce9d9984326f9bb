"""The exporter's process.

Another container of its pod, the only one with the key (agents/tokens), writes its token to a file. So the process that reads users' texts and
answers any client can only read from Slurm.
"""

import argparse
import asyncio
import contextlib
import signal
from pathlib import Path

from soperator.agents.exporter.page import History, page
from soperator.agents.exporter.refresh import Refresher, RefreshOptions
from soperator.agents.exporter.server import build_app
from soperator.runtime import log
from soperator.runtime.server import serve
from soperator.slurmrest.client import SlurmError
from soperator.slurmrest.reader import Credentials, ListReader

#: Seconds between two checks for a due point of the plot.
AWHILE = 20.0


def credentials(user: str, file: Path) -> Credentials:
    """Reads the token for each request, because it is renewed regularly."""

    def read() -> tuple[str, str]:
        try:
            return user, file.read_text().strip()
        except OSError as error:
            raise SlurmError(f"the token for slurmrestd cannot be read: {error}") from error

    return read


async def run(chosen: argparse.Namespace) -> None:
    """Refresh and serve until a signal to stop arrives."""
    reader = ListReader(chosen.slurmrestd, credentials(chosen.user, chosen.token))
    options = RefreshOptions(chosen.cluster, chosen.silence, not chosen.no_nodes, chosen.private, chosen.users)
    refresher = Refresher(reader, options)
    history = History()
    app = build_app(refresher.metrics, lambda: page(refresher, history))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tasks = [
        asyncio.ensure_future(refresher.run()),
        asyncio.ensure_future(_remember(refresher, history)),
        asyncio.ensure_future(serve(app, "0.0.0.0", chosen.port)),
        asyncio.ensure_future(stop.wait()),
    ]
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*rest, return_exceptions=True)
    await reader.close()
    for task in done:
        task.result()


async def _remember(refresher: Refresher, history: History) -> None:
    """Record the allocated share, for the plot."""
    while True:
        await asyncio.sleep(AWHILE)
        history.note(refresher.wall(), refresher.seen)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python3 -m soperator.agents.exporter", description=__doc__)
    parser.add_argument("--slurmrestd", required=True, help="its URL")
    parser.add_argument("--cluster", required=True, help="the value of the label slurm_cluster")
    parser.add_argument("--user", required=True, help="the user of the token")
    parser.add_argument("--token", type=Path, required=True, help="the file with the token")
    parser.add_argument("--users", type=Path, help="a passwd file with the names of users")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument(
        "--silence",
        type=float,
        default=1500.0,
        help="seconds without a report after which a node's checks count as not running",
    )
    parser.add_argument("--private", action="store_true", help="hide the owners of pending jobs on the page")
    parser.add_argument("--no-nodes", action="store_true", help="write no series per node")
    log.configure()
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
