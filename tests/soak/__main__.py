"""`make soak`: many kills on a running cluster, and a report of what came of them.

python3 -m tests.soak [--rounds 100] [--nodes 4] [--seed N]
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime

from local import binaries, demo
from local.demo import CLUSTER, NAMESPACE, STATE, Target
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, Timings
from tests.soak.kills import KILLS, USERS, Tally, run

REPORT = demo.ROOT / "docs" / "reports" / "kills.md"
SIZE = {"requests": {"cpu": "50m", "memory": "2Gi"}, "limits": {"cpu": "2"}}


def main() -> int:
    """Run the rounds, write the report; the exit code is 0 when nothing leaked and every job ended as Slurm says."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    said = parser.parse_args()
    target = Target(str(STATE / "kubeconfig"), f"{binaries.folder()}:{os.environ['PATH']}", is_local=True)
    lab = Lab(target, NAMESPACE, CLUSTER, Timings())
    for user in USERS:
        make_user(lab, user)
    lab.apply("NodeSet", "soak", {"cluster": CLUSTER, "replicas": said.nodes, "resources": SIZE})
    try:
        lab.wait_available()
        nodes = [f"soak-{number}" for number in range(said.nodes)]
        began = time.monotonic()
        tallies = [run(lab, what, nodes, said.rounds, said.seed) for what in KILLS]
        text = report(tallies, said.seed, time.monotonic() - began, said.nodes)
    finally:
        lab.ssh("root", f"scancel {' '.join(f'-u {user}' for user in USERS)}")
        lab.kubectl("delete", "nodeset", "soak", "--ignore-not-found", "--timeout=120s")
    REPORT.write_text(text)
    print(text)
    return 1 if any(each.leaks or each.wrong for each in tallies) else 0


def report(tallies: list[Tally], seed: int, seconds: float, nodes: int) -> str:
    """The page."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=demo.ROOT, capture_output=True, text=True, check=True
    )
    where = (
        f"commit {commit.stdout.strip()}, {nodes} worker pods beside each other on {os.cpu_count()} cores, seed {seed}"
    )
    head = f"""# Kills under live jobs

Written by `make soak` on {datetime.now(UTC):%Y-%m-%d}: {where}, {seconds / 60:.0f} minutes.

In each round two users' jobs, with steps and with processes that try to outlive them, are hit at a random moment between 0 and 2 s after
they were submitted. `tests/soak/kills.py` says what is done and what is counted.

| killed | rounds | jobs | their ends | back after, median (longest) | jobs that ended otherwise than they should | left behind |
|---|---|---|---|---|---|---|
"""
    return head + "".join(map(row, tallies)) + details(tallies)


def row(tally: Tally) -> str:
    """The line of one kind."""
    ends = ", ".join(f"{count} {name}" for name, count in tally.ends.most_common())
    back = f"{statistics.median(tally.recovered):.1f} s ({max(tally.recovered):.1f} s)"
    wrong, left = len(tally.wrong) or "none", len(tally.leaks) or "nothing"
    return f"| {tally.what} | {tally.kills} | {sum(tally.ends.values())} | {ends} | {back} | {wrong} | {left} |\n"


def details(tallies: list[Tally]) -> str:
    """Every fault, in words."""
    found = [f"- {each.what}: {text}\n" for each in tallies for text in (*each.wrong, *each.leaks)]
    counted = "Counted on each node after each round: mounts, namespaces, slurmd's descriptors, processes, zombies, folders of jobs.\n"
    return f"\n{counted}" + ("\n" + "".join(found) if found else "")


if __name__ == "__main__":
    sys.exit(main())
