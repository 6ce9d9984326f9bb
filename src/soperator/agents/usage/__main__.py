"""`python3 -m soperator.agents.usage measure --to FILE`: write the usage of the node's jobs to a file every few seconds; `serve` serves that file.

They are two processes in two containers: `measure` may read every process of the pod and does not listen on the network; `serve` has no privileges.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from soperator.agents.usage.answers import listener, serve
from soperator.agents.usage.processes import UsagePaths, measure
from soperator.agents.usage.tally import Snapshot, Totals
from soperator.observe import jobs as names
from soperator.observe.exposition import text
from soperator.observe.metric import OTHER, Family, Sample

EVERY = 5.0


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="usage", description="Measure or serve the resource usage of this node's jobs."
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    measuring = verbs.add_parser("measure", help="measure every few seconds, and write the result to a file")
    measuring.add_argument("--to", type=Path, required=True)
    measuring.add_argument("--cluster", required=True)
    measuring.add_argument("--node", required=True)
    serving = verbs.add_parser("serve", help="answer every request with the written file")
    serving.add_argument("--file", type=Path, required=True)
    serving.add_argument("--port", type=int, required=True)
    said = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(0)
    )  # the first process of a container gets only the signals that it handles
    if said.verb == "serve":
        serve(listener(said.port), said.file)
    totals = Totals()
    while True:
        began = time.monotonic()
        try:
            write(said.to, page(measure(UsagePaths()), totals, said.cluster, said.node))
        except OSError as error:
            print(f"soperator: cannot write the usage of jobs: {error}", file=sys.stderr)
        time.sleep(max(1.0, EVERY - (time.monotonic() - began)))


def page(found: dict[int, Snapshot], totals: Totals, cluster: str, node: str) -> bytes:
    """Return all series of a node in Prometheus' text format."""
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


def write(path: Path, content: bytes) -> None:
    """Write the file so that a reader finds either the old or the new content, complete.

    The kubelet makes the folder writable for everyone, but no other program writes to it.
    """
    if path.parent.stat().st_mode & 0o022:
        path.parent.chmod(0o755)
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)  # whoever made it before us has it open, or has put a link there
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb") as file:
        file.write(content)
    new.replace(path)


if __name__ == "__main__":
    os.umask(0o022)
    main()
