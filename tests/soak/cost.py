"""What checks cost: `python3 -m tests.soak.cost` measures on the running local cluster and writes docs/reports/health.md.

A round of all checks of a node: its time, and the time of a core that it takes. Then an MPI job over two nodes that does nothing but reduce,
in windows of ten seconds: in every other one each of its nodes runs a round. That is three times as often as with one round a minute.
"""

import argparse
import os
import platform
import statistics
import time
from datetime import UTC, datetime

from local import demo
from local.demo import CLUSTER, NAMESPACE, local_target
from tests.cluster.checked import HEALTH, Checked, cluster
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, Timings

REPORT = demo.ROOT / "docs" / "reports" / "health.md"
WINDOW = 10
NODES = ("small-0", "small-1")
#: Runs rounds one after the other, and prints for each its seconds, and the seconds of a core that it and its children took.
ROUNDS = """
import os, subprocess, time
for _ in range(%d):
    t, w = os.times(), time.monotonic()
    subprocess.run(["/usr/lib/soperator/checks", "interval"], check=True)
    u = os.times()
    print(time.monotonic() - w, u.children_user + u.children_system - t.children_user - t.children_system)
"""
#: Prints how often two ranks have reduced so far, ten times a second.
REDUCE = """
import sys, time
import numpy
from mpi4py import MPI
mine, all, n, last = numpy.ones(4096), numpy.empty(4096), 0, 0.0
while True:
    MPI.COMM_WORLD.Allreduce(mine, all)
    n += 1
    if MPI.COMM_WORLD.rank == 0 and time.time() - last > 0.1:
        last = time.time()
        print(last, n, flush=True)
"""


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.soak.cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--windows", type=int, default=24)
    said = parser.parse_args()
    target = local_target()
    lab = Lab(target, NAMESPACE, CLUSTER, Timings())
    make_user(lab, "alice")
    with cluster(lab, HEALTH | {"interval": "99m"}) as checked:
        load = os.getloadavg()[0]
        rounds = [list(map(float, line.split())) for line in _rounds(checked, said.rounds)]
        ratios = _reduced(checked, said.windows) if said.windows else []
    REPORT.write_text(_report(rounds, ratios, load))
    print(REPORT.read_text())


def _rounds(checked: Checked, count: int) -> list[str]:
    return checked.inside(NODES[0], f"python3 -c '{ROUNDS % count}'").splitlines()


def _reduced(checked: Checked, windows: int) -> list[float]:
    """The throughput of each window with a round, as a share of that of the window before it."""
    lab = checked.lab
    lab.ssh("alice", "cat > reduce.py", stdin=REDUCE.encode())
    job = lab.ssh(
        "alice", f"sbatch --parsable -N2 -n2 -w {','.join(NODES)} -o reduced --wrap 'srun --mpi=pmix python3 reduce.py'"
    ).strip()
    lab.until("it reduces", lambda: lab.ssh("alice", "cat reduced 2>/dev/null | head -n 3"), 60)
    moments = []
    for number in range(windows + 1):
        moments.append(time.time())
        if number % 2:
            for node in NODES:
                checked.inside(node, "/usr/lib/soperator/checks interval")
        time.sleep(max(0.0, moments[-1] + WINDOW - time.time()))
    lines = lab.ssh("alice", f"scancel {job}; cat reduced").splitlines()
    told = [(float(moment), int(count)) for moment, count in (line.split() for line in lines if len(line.split()) == 2)]
    counts = [max((count for at, count in told if at <= moment), default=0) for moment in moments]
    rates = [
        (after - before) / (end - begin)
        for before, after, begin, end in zip(counts, counts[1:], moments, moments[1:], strict=False)
    ]
    return [with_round / without for without, with_round in zip(rates[::2], rates[1::2], strict=False) if without]


def _report(rounds: list[list[float]], ratios: list[float], load: float) -> str:
    walls, cores = zip(*rounds, strict=True)
    return f"""# What checks cost

Written from `python3 -m tests.soak.cost` on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, Linux {platform.release()},
load {load:.1f} when it began.

| | median | most |
|---|---|---|
| a round, ms | {1000 * statistics.median(walls):.0f} | {1000 * max(walls):.0f} |
| time of a core, ms | {1000 * statistics.median(cores):.0f} | {1000 * max(cores):.0f} |

{len(rounds)} rounds of all checks of a node, one after the other. At one round a minute the median is
{100 * statistics.median(cores) / 60:.2f} % of a core.

{_compared(ratios)}
"""


def _compared(ratios: list[float]) -> str:
    if len(ratios) < 2:
        return "What they cost an MPI job was not measured in this run: that needs a machine without other work (`--windows`)."
    lost = 100 * (1 - statistics.median(ratios))
    quarters = [100 * (1 - each) for each in statistics.quantiles(ratios, n=4)]
    return f"""An MPI job of two ranks that does nothing but reduce 32 KiB, in windows of {WINDOW} s, every other one with a round on each node
(three times as often as one a minute): in {len(ratios)} pairs of windows the one with a round had a throughput {lost:.1f} % lower in the
median ({quarters[2]:.1f} to {quarters[0]:.1f} % in the middle half), other work on the machine included."""


if __name__ == "__main__":
    main()
