"""``python -m local.bench.exporter``: measures, and writes docs/reports/exporter.md.

With `--real SOCKET KEY PID` the exporter first reads from a real slurmrestd at that socket, the CPU time of slurmrestd is measured too, and
the page is docs/reports/exporter-real.md.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.bench.record import current_scene
from local.bench.report import machine
from local.paths import REPOSITORY

PAGE, REAL = (REPOSITORY / "docs/reports" / each for each in ("exporter.md", "exporter-real.md"))
#: What issue 7 asks for: the slowest scrape in ms, peak memory in MiB, and the exporter's share of what slurmrestd needs.
SCRAPE, PEAK, SHARE = 300.0, 200.0, 0.5
_PATIENCE = 550.0
STORM = 100


@dataclass
class Measured:
    """The cost of one reading of all sources: CPU and wall time in seconds by source, scrapes in ms, memory in MiB.

    `stormed` are scrapes while many clients send requests and do not read the responses. A scrape has its wall time, and the time for which
    the exporter was runnable but waited for a CPU.
    """

    title: str
    result: dict[str, Any]
    scrapes: list[tuple[float, float]]
    stormed: float
    stormy: list[tuple[float, float]]
    slurmrestd: dict[str, float] | None = None


def measure(title: str, *words: str, url: str = "http://rest") -> Measured:
    """Run the exporter's child process, and scrape it until it ends."""
    port = _free_port()
    command = [sys.executable, "-m", "local.bench.exporter.child", url, str(port), *words]
    environment = os.environ | {"PYTHONPATH": f"{REPOSITORY}/src:{REPOSITORY}", "MALLOC_ARENA_MAX": "1"}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=REPOSITORY)
    killer = threading.Timer(_PATIENCE, child.kill)
    killer.start()
    scrapes: list[tuple[float, float]] = []
    done = threading.Event()
    scraper = threading.Thread(target=_scrape, args=(port, child.pid, scrapes, done))
    scraper.start()
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            raise SystemExit("the exporter ended, or did not end its reading in time")
        time.sleep(1.0)  # some scrapes of the whole
        before_storm = scrapes.copy()
        stormed = _storm(port, child.pid)
        return Measured(title, json.loads(line), before_storm, stormed, scrapes[len(before_storm) :])
    finally:
        killer.cancel()
        done.set()
        scraper.join()
        child.kill()
        child.wait()


def _scrape(port: int, pid: int, scrapes: list[tuple[float, float]], done: threading.Event) -> None:
    while not done.wait(0.1):
        began, kept = time.monotonic(), _kept_waiting(pid)
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/metrics", headers={"Accept-Encoding": "gzip"}
        )  # as Prometheus does
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:
                answer.read()
        except OSError:
            continue
        scrapes.append(((time.monotonic() - began) * 1000, _kept_waiting(pid) - kept))


def _kept_waiting(pid: int) -> float:
    """Return for how many ms a process has waited for a CPU. Source: Documentation/scheduler/sched-stats.rst of Linux."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e6


def _storm(port: int, pid: int) -> float:
    """Return the peak memory in MiB after a hundred scrapers that send requests and do not read the responses."""
    asked = [socket.create_connection(("127.0.0.1", port)) for _ in range(STORM)]
    for each in asked:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        each.sendall(b"GET /metrics HTTP/1.1\r\nHost: bench\r\n\r\n")
    time.sleep(2.0)
    status = Path(f"/proc/{pid}/status").read_text()
    for each in asked:
        each.close()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def stand_in(nodes: int, jobs: int) -> Measured:
    """Measure against the fake slurmrestd."""
    command = [sys.executable, "-m", "local.bench.exporter.standin", str(nodes), str(jobs)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        return measure(f"{nodes:,} nodes and {jobs:,} jobs of a stand-in", url=f"http://127.0.0.1:{port}")
    finally:
        server.kill()
        server.wait()


def real(address: str, key: str, pid: int) -> Measured:
    """Measure against a real slurmrestd with the nodes and jobs of its cluster."""
    before = _cpu(pid)
    found = measure("a real slurmrestd", key, address)
    found.title = f"a real slurmrestd, {sum(found.result['jobs'].values()):,.0f} jobs"
    found.slurmrestd = {"all": _cpu(pid) - before}
    return found


def _cpu(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def table(found: list[Measured]) -> str:
    """Return the table of the page."""
    lines = [
        "| figure | " + " | ".join(each.title for each in found) + " | goal |",
        "|---|" + "---:|" * len(found) + "---|",
    ]

    def row(title: str, goal: str, *cells: str) -> None:
        lines.append(f"| {title} | {' | '.join(cells)} | {goal} |")

    for name in ("nodes", "jobs"):
        row(f"CPU of one reading of the {name}", "", *(f"{each.result['cost'][name]['cpu']:.2f} s" for each in found))
    whole = [sum(cost["cpu"] for cost in each.result["cost"].values()) for each in found]
    row("CPU of reading everything", "", *(f"{cpu:.2f} s" for cpu in whole))
    known = [each.slurmrestd["all"] if each.slurmrestd else None for each in found]
    row("CPU of slurmrestd for this", "", *(f"{cpu:.2f} s" if cpu is not None else "" for cpu in known))
    shares = [cpu / base if base else None for cpu, base in zip(whole, known, strict=True)]
    row(
        "exporter's share of that", f"≤ {SHARE:.0%}", *(f"{share:.0%}" if share is not None else "" for share in shares)
    )
    row(
        "slowest of the scrapes in the meantime, one every 0.1 s",
        "",
        *(f"{max(wall for wall, _ in each.scrapes):.0f} ms" for each in found),
    )
    row(
        "slowest, without the time for which the exporter waited for a CPU",
        f"≤ {SCRAPE:.0f} ms",
        *(f"{max(wall - kept for wall, kept in each.scrapes):.0f} ms" for each in found),
    )
    row("median scrape", "", *(f"{statistics.median(wall for wall, _ in each.scrapes):.0f} ms" for each in found))
    row("scrapes", "", *(str(len(each.scrapes)) for each in found))
    row("peak memory (VmHWM)", f"≤ {PEAK:.0f} MiB", *(f"{each.result['peak']:.0f} MiB" for each in found))
    row(
        f"slowest scrape while {STORM} others do not read, without that time",
        "",
        *(f"{max((wall - kept for wall, kept in each.stormy), default=0):.0f} ms" for each in found),
    )
    row(
        f"peak memory then, with {STORM} scrapers that do not read",
        f"≤ {PEAK:.0f} MiB",
        *(f"{each.stormed:.0f} MiB" for each in found),
    )
    row("series", "", *(f"{each.result['series']:,}" for each in found))
    return "\n".join(lines)


def main() -> int:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m local.bench.exporter", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--real", nargs=3, metavar=("SOCKET", "KEY", "PID"))
    result = parser.parse_args()
    scene = current_scene()
    found = [real(result.real[0], result.real[1], int(result.real[2]))] if result.real else []
    found.append(stand_in(result.nodes, result.jobs))
    for each in found:
        for name, cost in each.result["cost"].items():
            if cost["trouble"]:
                print(f"error: {each.title}: {name}: {cost['trouble']}", file=sys.stderr)
                return 1
    where = f"{machine()}, commit {scene.commit}, {scene.when} UTC, load {scene.load} when it began"
    head = f"# What the exporter costs\n\nWritten by `make bench-exporter` on {where}."
    page = REAL if result.real else PAGE
    page.write_text(f"{head}\n\n{table(found)}\n")
    print(page.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
