"""`make soak`: many kills on a running cluster, and a report of what came of them.

python3 -m tests.soak [--rounds 100] [--nodes 4] [--seed N]
"""

import argparse
import os
import random
import statistics
import sys
import time
from datetime import UTC, datetime

from local import demo
from local.demo import CLUSTER, NAMESPACE, local_target
from local.report import commit
from tests.cluster.conftest import make_user
from tests.cluster.fills import survive
from tests.cluster.lab import PAIR, Lab, Timings
from tests.soak.changes import changes
from tests.soak.kills import KILLS, USERS, Tally, run

REPORT = demo.ROOT / "docs" / "reports" / "kills.md"
POPULATE = "populate Job"
CHANGES = "changes"
BATCH = 10


def main() -> int:
    """Run the rounds, write the report; the exit code is 0 when nothing leaked and every job ended as Slurm says."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    parser.add_argument(
        "--minutes", type=float, help="of each kind: begin no round after so long (60), or change for so long (20)"
    )
    parser.add_argument(
        "--only", choices=[*KILLS, POPULATE, CHANGES], help="the other lines of the report stay as they are"
    )
    said = parser.parse_args()
    target = local_target()
    lab = Lab(target, NAMESPACE, CLUSTER, Timings())
    if said.only == CHANGES:
        return 0 if changes(lab, said.minutes or 20, said.seed) else 1
    tallies: list[Tally] = []
    for kind in [said.only] if said.only else [*KILLS, POPULATE]:
        tallies += kill_populate(lab, said.rounds, said.seed) if kind == POPULATE else kill_jobs(lab, said, kind)
        REPORT.write_text(report(tallies))
    print(REPORT.read_text())
    is_whole = bool(said.only) or changes(lab, said.minutes or 20, said.seed)
    return 1 if not is_whole or any(each.leaks or each.wrong for each in tallies) else 0


def kill_jobs(lab: Lab, said: argparse.Namespace, kind: str) -> list[Tally]:
    """Kills under live jobs, on nodes of their own."""
    for user in USERS:
        make_user(lab, user)
    lab.apply("NodeSet", "soak", {"clusterRef": {"name": CLUSTER}, "replicas": said.nodes, "resources": PAIR})
    nodes = [f"soak-{number}" for number in range(said.nodes)]
    try:
        lab.wait_available()
        return [run(lab, kind, nodes, said.rounds, said.seed, said.minutes or 60)]
    finally:
        lab.ssh("root", f"scancel {' '.join(f'-u {user}' for user in USERS)}")
        lab.kubectl("delete", "nodeset", "soak", "--ignore-not-found", "--timeout=120s")


def kill_populate(lab: Lab, rounds: int, seed: int) -> list[Tally]:
    """Kills of Jobs that fill claims, ten at once; each claim ends as one that was left alone, or the run fails."""
    tally, chance = Tally(POPULATE), random.Random(seed)
    while tally.kills < rounds:
        began, count = time.monotonic(), min(BATCH, rounds - tally.kills)
        survive(lab, count, chance)
        tally.kills += count
        tally.ends.update({"Complete": count})
        tally.recovered.append(time.monotonic() - began)
    return [tally]


def report(tallies: list[Tally]) -> str:
    """The page: new lines for what ran now, the former ones for what did not."""
    former = REPORT.read_text().splitlines() if REPORT.exists() else []
    rows = {each.what: row(each) for each in tallies}
    for kind in (*KILLS, POPULATE):
        rows.setdefault(kind, next((f"{line}\n" for line in former if line.startswith(f"| {kind} |")), ""))
    return HEAD + "".join(rows[kind] for kind in (*KILLS, POPULATE)) + details(tallies)


HEAD = """# Kills under live jobs

Written by `make soak`. In each round two users' jobs, with steps and with processes that try to outlive them, are hit at a random moment between
0 and 2 s after they were submitted; a populate Job at one between 0 and 5 s after its pod appeared, ten Jobs beside each other.
`tests/soak/kills.py` and `tests/cluster/fills.py` say what is done and what is counted.

| killed | rounds | jobs | their ends | back after, median (longest) | jobs that ended otherwise than they should | left behind | run |
|---|---|---|---|---|---|---|---|
"""


def row(tally: Tally) -> str:
    """The line of one kind."""
    ends = ", ".join(f"{count} {name}" for name, count in tally.ends.most_common())
    back = f"{statistics.median(tally.recovered):.1f} s ({max(tally.recovered):.1f} s)"
    wrong, left = len(tally.wrong) or "none", len(tally.leaks) or "nothing"
    when = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit()}, {os.cpu_count()} cores"
    jobs = sum(tally.ends.values())
    return f"| {tally.what} | {tally.kills} | {jobs} | {ends} | {back} | {wrong} | {left} | {when} |\n"


def details(tallies: list[Tally]) -> str:
    """Every fault, in words."""
    found = [f"- {each.what}: {text}\n" for each in tallies for text in (*each.wrong, *each.leaks)]
    counted = "Counted on each node after each round: mounts, namespaces, slurmd's descriptors, processes, zombies, folders of jobs.\n"
    return f"\n{counted}" + ("\n" + "".join(found) if found else "")


if __name__ == "__main__":
    sys.exit(main())
