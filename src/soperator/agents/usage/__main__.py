"""`python3 -m soperator.agents.usage measure --to FILE`: write down every few seconds what the node's jobs use; `serve` answers with that file.

They are two processes in two containers: who measures may look into every process of the pod and listens to nobody; who answers has no right at all.
"""

import argparse
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from soperator.agents.usage.processes import Place, measure
from soperator.agents.usage.tally import Snapshot, Totals
from soperator.observe import jobs as names
from soperator.observe.exposition import CONTENT_TYPE, text
from soperator.observe.metric import OTHER, Family, Sample

EVERY = 5.0
#: A file older than this says nothing of now, in seconds.
STALE = 60.0
#: For a client to ask, and to take the answer, in seconds.
_PATIENCE = 2.0
#: So many bytes of a request are read.
_LONGEST = 1 << 16


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="usage", description="What the jobs of this node use.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    measuring = verbs.add_parser("measure", help="measure every few seconds, and write it down")
    measuring.add_argument("--to", type=Path, required=True)
    measuring.add_argument("--cluster", required=True)
    measuring.add_argument("--node", required=True)
    serving = verbs.add_parser("serve", help="answer every request with what was written down")
    serving.add_argument("--file", type=Path, required=True)
    serving.add_argument("--port", type=int, required=True)
    said = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(0)
    )  # the first process of a container sees only the signals that it asks for
    if said.verb == "serve":
        serve(listener(said.port), said.file)
    totals = Totals()
    while True:
        began = time.monotonic()
        try:
            _write(said.to, page(measure(Place()), totals, said.cluster, said.node))
        except OSError as error:
            print(f"soperator: what jobs use is not written down: {error}", file=sys.stderr)
        time.sleep(max(1.0, EVERY - (time.monotonic() - began)))


def page(found: dict[int, Snapshot], totals: Totals, cluster: str, node: str) -> bytes:
    """All series of a node in Prometheus' text format."""
    return text(_families(found, totals.add(found), node), cluster)


def _families(found: dict[int, Snapshot], seconds: dict[int, float], node: str) -> Iterator[Family]:
    labels = {job: str(job) if place < names.JOBS else OTHER for place, job in enumerate(sorted(found))}

    def summed(values: dict[int, float]) -> list[Sample]:
        sums: dict[str, float] = {}
        for job, value in values.items():
            sums[labels[job]] = sums.get(labels[job], 0.0) + value
        return [Sample((node, job), value) for job, value in sums.items()]

    yield names.CPU, summed({job: round(value, 2) for job, value in seconds.items()})
    yield names.MEMORY, summed({job: each.memory for job, each in found.items()})
    yield names.PROCESSES, summed({job: each.processes for job, each in found.items()})
    gpus = sorted({(node, labels[job], gpu) for job, each in found.items() for gpu in each.gpus})
    yield names.GPU, [Sample(each, 1) for each in gpus[: names.GPUS]]
    yield names.MEASURED, [Sample((node,), round(time.time(), 1))]


def _write(path: Path, content: bytes) -> None:
    """A reader finds the former content or this one, whole."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.chmod(0o644)
    new.replace(path)


def listener(port: int) -> socket.socket:
    """A socket that listens on all addresses, of both families where there are both; port 0 is any that is free."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def serve(listening: socket.socket, file: Path, patience: float = _PATIENCE) -> None:
    """Answer each client with the file, whatever it asks, one after the other; each has so many seconds."""
    while True:
        client, _ = listening.accept()
        with client, suppress(OSError):
            _hear(client, patience)
            client.settimeout(patience)
            client.sendall(answer(file))


def _hear(client: socket.socket, patience: float) -> None:
    """Read a request to the end of its head: to close a connection with something unread resets it, and may take the answer from the client."""
    until, heard = time.monotonic() + patience, b""
    while b"\r\n\r\n" not in heard and len(heard) < _LONGEST:
        client.settimeout(max(0.001, until - time.monotonic()))
        piece = client.recv(4096)
        if not piece:
            break
        heard += piece


def answer(file: Path) -> bytes:
    """The whole HTTP answer: the file, or 503 with the reason where there is none, or it is old."""
    try:
        content, age = file.read_bytes(), time.time() - file.stat().st_mtime
    except OSError as error:
        return _response("503 Service Unavailable", f"nothing was measured yet: {error.strerror}\n".encode())
    if age > STALE:
        return _response("503 Service Unavailable", f"nothing was measured for {age:.0f} s\n".encode())
    return _response("200 OK", content)


def _response(status: str, content: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + content


if __name__ == "__main__":
    os.umask(0o022)
    main()
