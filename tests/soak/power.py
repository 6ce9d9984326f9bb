"""`make soak-power`: nodes that sleep, on the running local cluster, and docs/reports/power.md.

First how long a job waits for a node that sleeps, and whose time that is; then 200 short jobs on four nodes while the operator is killed five times;
then what a thousand nodes that sleep ask of the API server, and how long 500 take that wake together. The exit code is 0 when every job ran once and
nothing was left.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import pairwise

from local import demo
from local.demo import CLUSTER, NAMESPACE, local_target
from local.paths import DEFAULT_STATE
from local.report import commit
from tests.cluster.conftest import make_user
from tests.cluster.lab import OPERATOR, Lab, Timings
from tests.soak.sleepers import Sleepers, kill_operator
from tests.world.test_power import wake

REPORT = demo.ROOT / "docs" / "reports" / "power.md"
AUDIT = DEFAULT_STATE / "audit.log"
GOAL_S, QUIET_S = 15.0, 60.0
TASKS, KILLS, NODES, CROWD = 200, 5, 4, 1000
TOGETHER, TOGETHER_S = 500, 60.0
#: The lines of slurmctld that tell the moments of a wake.
_GIVEN = r"(?:Started|Allocate) JobId={job} "
_THERE = r"Node {node} now responding"
_READY = r"Configuration for JobId={job} (?:is )?complete"

#: What the parts of a wake are called in the report.
WORDS = {
    "choose": "until Slurm chose the node",
    "pod": "pod, container and slurmd, until Slurm heard of it",
    "look": "until slurmctld looked",
    "launch": "until the job's first command",
}


@dataclass(frozen=True)
class Wake:
    """Where the time of one wake went, in seconds: until Slurm chose the node, until its slurmd answered, until Slurm saw that, until the job ran."""

    choose: float
    pod: float
    look: float
    launch: float

    @property
    def whole(self) -> float:
        """From the submission to the job's first command."""
        return self.choose + self.pod + self.look + self.launch

    @property
    def slurms(self) -> float:
        """Slurm's own share: all but the pod."""
        return self.whole - self.pod


def read_wake(lines: Iterable[str], job: str, node: str, submitted: float, ran: float) -> Wake:
    """A wake from slurmctld's log as `kubectl logs --timestamps` prints it; raises ValueError where a moment of it is missing there."""
    moments = [submitted]
    left = iter(lines)
    for pattern in (_GIVEN, _THERE, _READY):
        wanted = re.compile(pattern.format(job=job, node=node))
        line = next((each for each in left if wanted.search(each)), "")
        if not line:
            raise ValueError(f"slurmctld's log has no {wanted.pattern!r} at its place")
        moments.append(datetime.fromisoformat(line.split()[0]).timestamp())
    moments.append(ran)
    return Wake(*(after - before for before, after in pairwise(moments)))


def wakes(owls: Sleepers, count: int) -> list[Wake]:
    """Single jobs, each on a node that slept, each submitted at another moment of the 30 s after which slurmctld would look by itself."""
    found, lab = [], owls.lab
    for number in range(count):
        lab.until("all sleep", owls.sleep, 180)
        time.sleep(30.0 * number / count)
        owls.lab.ssh(owls.user, f"rm -f {owls.name}-*")
        submitted = owls.submit("-w owl-0 -J wake", f"echo $SLURM_JOB_ID $(date +%s.%N) >$HOME/{owls.name}-began")
        job, ran = lab.until("the job has run", lambda: owls.read(f"{owls.name}-began"), 180).split()
        words = ("logs", f"{CLUSTER}-controller-0", "-c", "slurmctld", "--timestamps", "--since=300s")
        found.append(read_wake(lab.kubectl(*words).splitlines(), job, "owl-0", submitted, float(ran)))
    return found


def array(owls: Sleepers, tasks: int, kills: int) -> float:
    """Run an array with the operator killed so often meanwhile; how long until all nodes slept again. Nothing is left."""
    lab, began = owls.lab, time.monotonic()
    lab.ssh(owls.user, f"rm -f {owls.name}-*")
    owls.submit(f"--array=1-{tasks}", f"echo $SLURMD_NODENAME >>$HOME/{owls.name}-$SLURM_ARRAY_TASK_ID; sleep 1")
    for kill in range(kills):
        least = tasks * kill // kills
        lab.until(f"{least} tasks have run", lambda least=least: owls.ran() >= least, 600)
        kill_operator(lab)
    lab.until("all tasks have run", lambda: owls.ran() == tasks, 900)
    owls.check(tasks)
    lab.until("all sleep again", owls.sleep, 300)
    took = time.monotonic() - began
    assert not lab.ssh("root", f"squeue -h -u {owls.user}").strip()
    return took


def crowd(lab: Lab, user: str) -> Counter[str]:
    """The operator's requests of a quiet minute, by verb and resource, beside a thousand nodes that sleep; watches and its Lease do not count."""
    many = Sleepers(lab, "crowd", CROWD, user)
    many.apply()
    try:
        lab.until("a thousand nodes sleep", lambda: lab.status("nodeset", "crowd").get("asleep") == CROWD, 300)
        assert not many.pods()
        time.sleep(20.0)  # the status that is paced is written by then
        begin = AUDIT.stat().st_size
        time.sleep(QUIET_S)
        with AUDIT.open("rb") as log:
            log.seek(begin)
            raw = log.read()
    finally:
        lab.kubectl("delete", "nodeset", "crowd", "--ignore-not-found", "--timeout=180s")
    entries = [json.loads(line) for line in raw[: raw.rfind(b"\n") + 1].splitlines()]
    mine = [each for each in entries if each["user"]["username"] == f"system:serviceaccount:{OPERATOR}:soperator"]
    asked = {each["auditID"]: f"{each['verb']} {each['objectRef'].get('resource', '')}" for each in mine}
    return Counter(each for each in asked.values() if not each.startswith("watch ") and not each.endswith(" leases"))


def together() -> str:
    """500 nodes wake at once: the operator's own process against an API server in memory, which starts each pod at once."""
    requests, commands, took = asyncio.run(wake(TOGETHER))
    goal = f"Goal: {TOGETHER_S:.0f} s, {'met' if took <= TOGETHER_S else '**missed**'}"
    return f"""{took:.1f} s until every pod is ready and the status says so. {goal}. {requests} requests besides one for each pod, {commands} commands
to slurmctld. It is the operator's own process, an API server in memory, and pods that start at once (`tests/world/test_power.py`)."""


def page(found: list[Wake], took: float, asked: Counter[str], together: str) -> str:
    """The report."""
    columns = {WORDS[each.name]: [getattr(wake, each.name) for wake in found] for each in fields(Wake)}
    columns |= {"**whole**": [each.whole for each in found], "**of it Slurm's own**": [each.slurms for each in found]}
    rows = "\n".join(
        f"| {name} | {statistics.median(values):.1f} s | {min(values):.1f} s | {max(values):.1f} s |"
        for name, values in columns.items()
    )
    median = statistics.median(each.whole for each in found)
    quiet = ", ".join(f"{count} {what}" for what, count in asked.most_common()) or "none"
    return f"""# Nodes that sleep

Written by `make soak-power` ({datetime.now(UTC):%Y-%m-%d}, commit {commit()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}).

## A job on a node that sleeps

{len(found)} single jobs, image present; the moments are those of slurmctld's log. Without a PrologSlurmctld that waits
([decision 81](../decisions/0081-a-prologslurmctld-waits-for-nodes-that-wake.md)) slurmctld looks every 30 s for jobs whose nodes are up.

| from sbatch | median | least | most |
|---|---:|---:|---:|
{rows}

Goal: {GOAL_S:.0f} s, with Slurm's share shown: {"met" if median <= GOAL_S else "**missed**"}.

## {TASKS} jobs, and the operator killed {KILLS} times

All tasks of the array ran, each once, on {NODES} nodes that slept before; {took:.0f} s after sbatch all slept again, without a pod, and no job was
left. With the NodeSet its records went.

## {CROWD:,} nodes that sleep

They have no pod. Requests of the operator in a quiet minute, besides watches and its Lease: {quiet}.

## {TOGETHER} nodes that wake together

{together}
"""


def main() -> int:
    """Play all of it, and write the report."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.soak.power", description=__doc__)
    parser.add_argument("--wakes", type=int, default=6)
    said = parser.parse_args()
    target = local_target()
    lab = Lab(target, NAMESPACE, CLUSTER, Timings())
    make_user(lab, "alice")
    owls = Sleepers(lab, "owl", NODES, "alice")
    owls.apply(idle="5s")
    try:
        found, took = wakes(owls, said.wakes), array(owls, TASKS, KILLS)
        asked = crowd(lab, owls.user)
    finally:
        lab.ssh("root", f"scancel -u {owls.user}")
        lab.kubectl("delete", "nodeset", "owl", "--ignore-not-found", "--timeout=120s")
    left = [*owls.states(), *owls.pods()]
    if left:
        print(f"error: left behind: {', '.join(left)}", file=sys.stderr)
        return 1
    REPORT.write_text(page(found, took, asked, together()))
    print(REPORT.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
