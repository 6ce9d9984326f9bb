"""``python -m local.bench.joblist``: measures the cost of one list of the jobs for the operator; writes docs/reports/job-list.md.

A fake slurmrestd sends records of the size that 24.11 writes. It answers at once; the real one first needs a second for each thousand jobs.
With `--before CHECKOUT` the source of another commit is measured too.
"""

import argparse
import asyncio
import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from local.bench.exporter import standin
from local.bench.record import current_scene
from local.bench.report import machine
from local.paths import REPOSITORY

PAGE = REPOSITORY / "docs/reports/job-list.md"
COUNTS = (1_000, 10_000, 50_000)
#: The longest wait that a pass may have for it, in seconds, and the most memory, in MiB.
_MEMORY = 40.0


async def child(url: str) -> dict[str, float]:
    """Measure one list, in this process."""
    from soperator.slurmrest.client import SlurmError, SlurmRest

    client = SlurmRest(url, b"key")
    before, began, busy = _peak(), time.monotonic(), time.process_time()
    slowest, waits = 0.0, asyncio.create_task(_blocked())
    found: list[Any] | tuple[Any, ...] | None = None
    while found is None:
        asked = time.monotonic()
        with contextlib.suppress(SlurmError):
            found = await client.jobs()
        slowest = max(slowest, time.monotonic() - asked)
    took = {"wall": time.monotonic() - began, "cpu": time.process_time() - busy, "call": slowest}
    waits.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waits
    return {**took, "before": before, "peak": _peak(), "blocked": _worst[0], "running": len(found)}


_worst = [0.0]


async def _blocked() -> None:
    """Measure the longest time for which the event loop was blocked."""
    while True:
        began = time.monotonic()
        await asyncio.sleep(0.005)
        _worst[0] = max(_worst[0], time.monotonic() - began - 0.005)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(count: int, source: Path) -> dict[str, float] | None:
    """Measure one list of the given number of jobs in its own process; return None if the process did not finish."""
    words = [sys.executable, "-m", "local.bench.exporter.standin", "1", str(count)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        environment = os.environ | {"PYTHONPATH": f"{source}/src:{REPOSITORY}", "MALLOC_ARENA_MAX": "1"}
        command = [sys.executable, "-m", "local.bench.joblist", "--child", url]
        done = subprocess.run(
            command, check=False, env=environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=300
        )
        found: dict[str, float] | None = json.loads(done.stdout) if done.returncode == 0 else None
        return found
    finally:
        server.kill()
        server.wait()


def row(title: str, found: dict[str, float] | None) -> str:
    """Return a row of the table."""
    if found is None:
        return f"| {title} | did not come to an end | | | | |"
    figures = [f"{found['peak'] - found['before']:.0f} MiB", f"{found['peak']:.0f} MiB"]
    figures += [f"{found['cpu']:.2f} s", f"{found['wall']:.1f} s", f"{found['blocked'] * 1000:.0f} ms"]
    return f"| {title} | {' | '.join(figures)} |"


def main() -> int:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m local.bench.joblist", description=__doc__)
    parser.add_argument("--child")
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(asyncio.run(child(options.child))))
        return 0
    scene = current_scene()
    lines = [
        "| jobs | memory of the list, at its peak | peak of the process | CPU | wall | longest block of the event loop |"
    ]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    missed = False
    for title, source in [("", REPOSITORY), *([(" (before)", options.before)] if options.before else [])]:
        for count in COUNTS:
            found = measure(count, source)
            missed |= not title and (found is None or found["peak"] - found["before"] > _MEMORY)
            lines.append(row(f"{count:,}{title}", found))
    where = f"{machine()}, commit {scene.commit}, {scene.when} UTC, load {scene.load} when it began"
    what = f"Written by `python -m local.bench.joblist` on {where}. A record has {standin.SIZE['jobs']:,} bytes, and a third of the jobs run."
    PAGE.write_text(f"# What a list of the jobs costs the operator\n\n{what}\n\n" + "\n".join(lines) + "\n")
    print(PAGE.read_text())
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
