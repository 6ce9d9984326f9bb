"""Everything changes while a script submits jobs without pause: sizes, images, configuration, and the operator and slurmctld are killed.

The acts come at set shares of the time, the kills at random moments between them. A job is lost when its work was not done, or its output is not in
the jail; `tests/faults/judge.py` says how that is computed. What the NodeSet said meanwhile is kept: it should read like a log.
"""

import json
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from local import demo
from local.api import Api
from local.cluster import state_of
from local.report import commit
from tests.cluster.conftest import make_user
from tests.cluster.lab import OPERATOR, PAIR, Lab, condition, is_ready, local
from tests.faults.judge import Verdict
from tests.faults.ledger import Ledger
from tests.faults.log import Log, reading

REPORT = demo.ROOT / "docs" / "reports" / "changes.md"
NODESET, USER = "change", "dora"
#: One kill of each daemon in so many minutes: ten in twenty.
EVERY = 2.0
#: The script waits while so many units have not begun; so the queue is never empty and does not grow.
QUEUE = 12
#: slurmctld refuses to start with it, and so far as our checks know it is a setting like any other.
INVALID = "SchedulerType=sched/nonsense\n"

Act = tuple[float, str, Callable[[], None]]


def kills(minutes: float) -> int:
    """How often each daemon is killed."""
    return max(1, round(minutes / EVERY))


@dataclass
class Soak:
    """A run: the cluster, the ledger, and what was seen."""

    lab: Lab
    ledger: Ledger
    chance: random.Random
    began: float = field(default_factory=time.monotonic)
    log: Log = field(default_factory=lambda: Log(is_aloud=True))
    stop: threading.Event = field(default_factory=threading.Event)
    faults: list[str] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    killed: Counter[str] = field(default_factory=Counter)

    # -- beside each other --------------------------------------------------------------------------------------------

    def submit(self) -> None:
        """Submit short and longer jobs, arrays and jobs over two nodes, until told to stop."""
        kinds: Sequence[tuple[str, str, int]] = (
            ("short", "sleep 1; echo done", 1),
            ("array", "sleep 2; echo done", 4),
            ("long", "sleep 15; echo done", 1),
            ("wide", "srun --mpi=pmix python3 -c 'from mpi4py import MPI; MPI.COMM_WORLD.barrier()' && echo done", 1),
        )
        while not self.stop.is_set():
            name, work, tasks = self.chance.choice(kinds)
            began = time.monotonic()
            wide = ["-N2", "-n2"] if name == "wide" else []
            self.ledger.submit(name, work, f"-C {NODESET}", "-t 5", *wide, tasks=tasks)
            self.answers.append(time.monotonic() - began)
            while not self.stop.is_set() and self.waiting() > QUEUE:
                time.sleep(0.5)

    def waiting(self) -> int:
        """How many units wait; as many as can be while slurmctld does not answer."""
        done = self.ledger.run("timeout 20 squeue -h -r --me -t PD -o %i", seconds=30)
        return len(done.stdout.split()) if not done.returncode else QUEUE + 1

    # -- acts ---------------------------------------------------------------------------------------------------------

    def scale(self, replicas: int) -> None:
        """`kubectl scale`."""
        self.lab.kubectl("scale", f"nodeset/{NODESET}", f"--replicas={replicas}")

    def roll(self, number: int) -> None:
        """Another image for slurmd: the same content under another name, on every Node."""
        pod = next(iter(self.lab.pods("worker").values()))
        image = next(each["image"] for each in pod["spec"]["containers"] if each["name"] == "slurmd").split("-roll")[0]
        ctr = f"{self.lab.target.path.split(':')[0]}/ctr"
        for node in self.lab.kubectl("get", "nodes", "-o", "name").split():
            words = ["images", "tag", "--force", image, f"{image}-roll{number}"]
            local("node", "exec", node.removeprefix("node/"), "--", ctr, "-n", "k8s.io", *words)
        self.lab.patch("nodeset", NODESET, {"image": f"{image}-roll{number}"})

    def configure(self, text: str) -> None:
        """Extra lines of slurm.conf."""
        self.lab.patch("slurmcluster", self.lab.cluster, {"config": {"extraLines": {"slurm": text}}})

    def check_refusal(self) -> None:
        """The invalid change is told, and Slurm goes on with what it had."""
        status = self.lab.look("slurmcluster", self.lab.cluster)["status"]
        told = json.dumps(status)
        if "sched/nonsense" not in told and "SchedulerType" not in told:
            self.faults.append(f"nothing tells of the invalid configuration: {status.get('why')!r}")
        if self.ledger.run("timeout 20 scontrol ping", seconds=30).returncode:
            self.faults.append("slurmctld does not answer after an invalid configuration")

    def kill(self, role: str) -> None:
        """Kill a daemon once it is there: the operator's process without warning, then its pod; slurmctld's pod is deleted, as by a person.

        What a SIGKILL to slurmctld costs, whoever runs it, is a case of its own (tests/faults).
        """
        namespace = OPERATOR if role == "operator" else self.lab.namespace
        pod = self.lab.until(f"the {role} is ready", lambda: self._ready(role), 60)
        if role == "operator":
            local("pod", "kill", f"{namespace}/{pod}", "operator")
        grace = ["--grace-period=1"] if role == "operator" else []
        self.lab.kubectl("delete", "pod", "-n", namespace, pod, *grace, "--wait=false")
        self.killed[role] += 1

    def _ready(self, role: str) -> str:
        """The pod of a role that is ready; nothing while there is none, or the API server does not answer."""
        found = self.lab.pods(namespace=OPERATOR) if role == "operator" else self.lab.pods(role)
        ready = [name for name, pod in found.items() if is_ready(pod) and (role != "operator" or "soperator-" in name)]
        return next(iter(ready), "")

    def acts(self, minutes: float) -> list[Act]:
        """What is done, each at its share of the time."""
        plan: list[Act] = [
            (0.05, "scale to 6", lambda: self.scale(6)),
            (0.15, "first new image", lambda: self.roll(1)),
            (0.30, "first change of slurm.conf", lambda: self.configure("SchedulerParameters=bf_interval=20\n")),
            (0.40, "scale to 1", lambda: self.scale(1)),
            (0.50, "invalid change of slurm.conf", lambda: self.configure(INVALID)),
            (0.58, "is it told", self.check_refusal),
            (0.60, "second change of slurm.conf", lambda: self.configure("SchedulerParameters=bf_interval=25\n")),
            (0.70, "scale to 4", lambda: self.scale(4)),
            (0.80, "second new image", lambda: self.roll(2)),
        ]
        for role in ("operator", "controller"):
            for number in range(kills(minutes)):
                moment = 0.02 + 0.93 * (number + self.chance.random()) / kills(minutes)
                plan.append((moment, f"{role} killed", partial(self.kill, role)))
        return sorted(plan, key=lambda act: act[0])

    def run(self, minutes: float) -> None:
        """Carry out the acts in their time."""
        for share, name, act in self.acts(minutes):
            time.sleep(max(0.0, self.began + share * minutes * 60 - time.monotonic()))
            self.log.note(f"# {name}")
            try:
                act()
            except (AssertionError, demo.DemoError) as error:
                self.faults.append(f"{name}: {str(error).splitlines()[0]}")
        time.sleep(max(0.0, self.began + minutes * 60 - time.monotonic()))

    def outputs(self) -> int:
        """How many outputs say that their job was done."""
        return int(self.ledger.run(f"cd {self.ledger.folder} && grep -lx done *.out | wc -l").stdout or 0)


def changes(lab: Lab, minutes: float, seed: int) -> bool:
    """Run it, write the report; whether nothing was lost, run twice or wrong."""
    make_user(lab, USER)
    done = lab.apply("NodeSet", NODESET, {"clusterRef": {"name": lab.cluster}, "replicas": 2, "resources": PAIR})
    assert done.returncode == 0, done.stderr
    lab.wait_available()
    soak = Soak(lab, Ledger(lab, USER, f"/home/{USER}/ledger"), random.Random(seed))
    soak.ledger.open()
    script = threading.Thread(target=soak.submit, daemon=True)
    names = {"nodesets": NODESET, "slurmclusters": lab.cluster}
    try:
        with reading(soak.log, Api(state_of().pki), lab.namespace, names):
            script.start()
            soak.run(minutes)
            ended = finish(soak, script)
    finally:
        soak.stop.set()
        lab.ssh("root", f"scancel -u {USER}")
        lab.kubectl("delete", "nodeset", NODESET, "--ignore-not-found", "--timeout=120s")
        lab.patch("slurmcluster", lab.cluster, {"config": None})
    verdict, written = ended
    missing = verdict.jobs - len(verdict.lost) - written
    if missing > 0:
        soak.faults.append(f"{missing} outputs are missing")
    REPORT.write_text(report(soak, verdict, written, minutes, seed))
    print(REPORT.read_text())
    return not (verdict.lost or verdict.twice or soak.faults)


def finish(soak: Soak, script: threading.Thread) -> tuple[Verdict, int]:
    """Submit no more, let all jobs end, and judge."""
    soak.log.note("# no more jobs are submitted")
    soak.stop.set()
    script.join(90)
    began = time.monotonic()
    soak.lab.until("the queue is empty", lambda: not soak.ledger.queued(), 400)
    soak.log.note(f"# the queue was empty {time.monotonic() - began:.0f} s later")
    soak.lab.until("the cluster has nothing to say", soak.lab.is_whole, 180)
    if condition(soak.lab.status(), "Available")["status"] != "True":
        soak.faults.append("the cluster is not available in the end")
    return soak.ledger.verdict(), soak.outputs()


def report(soak: Soak, verdict: Verdict, written: int, minutes: float, seed: int) -> str:
    """The page."""
    told = [*verdict.lost, *verdict.twice, *soak.faults]
    titles = "".join(f"{'':9}{header}\n" for header in soak.log.headers)
    return f"""# Changes and kills under jobs

Written by `make soak` (`python -m tests.soak --only changes --minutes {minutes:g} --seed {seed}`), {datetime.now(UTC):%Y-%m-%d}, commit {commit()}.
A script submitted jobs without pause (short ones, arrays, longer ones, MPI over two nodes) while the NodeSet went 2 → 6 → 1 → 4, got two new images,
and its cluster three changes of slurm.conf, the second of which is invalid. The operator was killed {soak.killed["operator"]} times by SIGKILL,
and the pod of slurmctld deleted {soak.killed["controller"]} times.

| | |
|---|---|
| jobs and tasks that sbatch had accepted | {verdict.jobs} |
| lost | {len(verdict.lost)} |
| run twice beyond Slurm's rule | {len(verdict.twice)} |
| repeated by Slurm's rule | {verdict.requeued} |
| outputs in the jail | {written} |
| answers of sbatch: refused or none | {soak.ledger.refused} |
| sbatch took, median (longest) | {statistics.median(soak.answers):.1f} s ({max(soak.answers):.1f} s) |

{"".join(f"- {each}" + chr(10) for each in told) or "Nothing was wrong." + chr(10)}
What was done (#), and the lines that `kubectl get nodeset,slurmcluster -o wide` showed whenever one changed, with seconds since the beginning:

```
{titles}{soak.log.text()}```
"""
