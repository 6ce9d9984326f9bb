"""Measures the cost of the jail: steps with and without the plugin in one real Slurm, and files inside and outside (`make bench-jail`).

Writes docs/reports/bench-jail.md. A step without the plugin and a step in the jail alternate, so that a change of the machine's load
affects both. Needs the same programs as spank/tests/trixie.py.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from pods import PODS
from trixie import HERE, JAIL, TRIXIE, Slurm, build_plugin, wait_until_ready

FILES = r"""
mkdir -p work; cd work
begin=${EPOCHREALTIME/./}
for i in $(seq 2000); do echo $i >f$i; done; cat f* >all; rm f*
dd if=/dev/zero of=big bs=1M count=64 conv=fsync 2>/dev/null; cat big >/dev/null; rm big all
files=$((${EPOCHREALTIME/./} - begin))
printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { return puts("x"); }\n' >a.c
begin=${EPOCHREALTIME/./}
for i in $(seq 10); do gcc -O2 -c a.c; done
echo $files $((${EPOCHREALTIME/./} - begin))
"""


def steps(slurm: Slurm, kind: str, count: int) -> list[tuple[int, int]]:
    """Return the microseconds of the given number of pairs of steps, one without the plugin and one in the jail."""
    done = slurm.sh(f"bash /steps.sh {kind} {count}", timeout=1200)
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stdout, done.stdout
    pairs = [line.split() for line in done.stdout.splitlines()]
    return [(int(plain), int(jailed)) for plain, jailed in pairs]


def own_times(slurm: Slurm) -> dict[str, list[int]]:
    """Return the plugin's own times from slurmd's log."""
    found: dict[str, list[int]] = {}
    for what, number in re.findall(r"jail: (.*?) in (\d+) us", slurm.sh("cat /var/log/slurm/d.log", timeout=60).stdout):
        found.setdefault(what, []).append(int(number))
    return found


def files(slurm: Slurm, rounds: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return the microseconds of small files and of a compiler, outside the jail on the same file system, and inside."""
    for place in ("/bench.sh", f"{JAIL}/home/alice/bench.sh"):
        (Path(f"/proc/{slurm.pid}/root") / place[1:]).write_text(FILES)
    outside, inside = [], []
    for _ in range(rounds):
        done = slurm.sh(f"cd {JAIL}/home/alice && bash /bench.sh", timeout=120)
        outside.append([int(word) for word in done.stdout.split()])
        done = slurm.sh("srun -Q --chdir=/home/alice bash bench.sh", timeout=120)
        inside.append([int(word) for word in done.stdout.split()])
    return outside, inside


def row(name: str, values: list[int]) -> str:
    """Return one row of the table: median, quartile and 95th percentile in milliseconds."""
    parts = statistics.quantiles(values, n=20)
    return f"| {name} | {len(values)} | {statistics.median(values) / 1000:.2f} | {parts[4] / 1000:.2f} | {parts[18] / 1000:.2f} |"


def measure(slurm: Slurm, count: int) -> list[str]:
    """Return the lines of the report."""
    slurm.sh("cp /etc/slurm/plugstack.conf /plugstack.jail; echo '# none' >/plugstack.none")
    names = {
        "later": "`srun true` in a running job",
        "first": "`srun true`, a job of its own",
        "many": "64 tasks in one step",
    }
    lines = ["| what | steps | median ms | 25 % | 95 % |", "|---|---|---|---|---|"]
    for kind, name in names.items():
        pairs = steps(slurm, kind, count)
        lines += [
            row(f"{name}, plain", [plain for plain, _ in pairs]),
            row(f"{name}, in the jail", [jailed for _, jailed in pairs]),
        ]
        lines.append(row("median of the differences of neighbours", [jailed - plain for plain, jailed in pairs]))
    lines += ["", "| the plugin's own time, from slurmd's log | times | median µs | 95 % |", "|---|---|---|---|"]
    for what, values in own_times(slurm).items():
        lines.append(
            f"| {what} | {len(values)} | {statistics.median(values):.0f} | {statistics.quantiles(values, n=20)[18]:.0f} |"
        )
    outside, inside = files(slurm, 20)
    lines += ["", "| files | rounds | outside ms | inside ms |", "|---|---|---|---|"]
    for number, name in enumerate(("2,000 small files, 64 MiB written and read", "ten runs of gcc")):
        medians = [statistics.median(each[number] for each in side) / 1000 for side in (outside, inside)]
        lines.append(f"| {name} | {len(outside)} | {medians[0]:.0f} | {medians[1]:.0f} |")
    return lines


def main() -> None:
    """Start Slurm in a pod with a user namespace, measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "docs/reports/bench-jail.md")
    said = parser.parse_args()
    kind = PODS["userns-move"]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "plugin").mkdir()
        (work / "slurm").mkdir()
        up = [str(HERE / "slurm/up"), str(TRIXIE), str(work / "slurm"), str(build_plugin(work / "plugin"))]
        with (work / "up.log").open("w") as log:
            pod = subprocess.Popen([*kind.words(), "--net", "--", *up], stdout=log, stderr=log)
        try:
            slurm = wait_until_ready(pod, kind.userns, work / "up.log")
            (Path(f"/proc/{slurm.pid}/root") / "steps.sh").write_text((Path(__file__).parent / "steps.sh").read_text())
            load = os.getloadavg()[0]
            lines = measure(slurm, said.steps)
        finally:
            pod.kill()
            pod.wait()
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    head = [
        "# What the jail costs",
        "",
        f"Written by `make bench-jail` on {when} UTC: {os.cpu_count()} cores, Linux {os.uname().release}, load at the start {load:.1f}.",
        "One Slurm 24.11 in namespaces like a pod's (user namespace, root moved without pivot_root); steps without and with the jail alternated.",
        "",
    ]
    said.out.write_text("\n".join([*head, *lines]) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
