"""One fault under live jobs: what is broken, what is said of it, how long it takes until all is as before, and what became of the jobs."""

import re
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from local.api import Api
from local.cluster import state_of
from tests.cluster.lab import OPERATOR, Lab, condition, is_ready, local
from tests.faults.crowd import NODES, NODESET, Crowd
from tests.faults.judge import Verdict
from tests.faults.log import Log, reading

Steps = Generator[None]
#: So long after its array was submitted a fault may come, in seconds: the array is about half done.
UNTIL_ARRAY_RUNS = 30.0


@dataclass
class Stage:
    """The cluster, the jobs on it, and a fast way to look at Kubernetes."""

    lab: Lab
    crowd: Crowd
    array: str = ""
    api: Api = field(default_factory=lambda: Api(state_of().pki))
    log: Log = field(default_factory=Log)

    def reading(self) -> AbstractContextManager[None]:
        """Keep what the cluster and the crowd's NodeSet say meanwhile."""
        names = {"nodesets": NODESET, "slurmclusters": self.lab.cluster}
        return reading(self.log, self.api, self.lab.namespace, names)

    def nodeset(self, **spec: Any) -> None:
        """Change the NodeSet of the crowd; None removes a field."""
        self.lab.patch("nodeset", NODESET, spec)

    def pods(self) -> dict[str, dict[str, Any]]:
        """The pods of the crowd's NodeSet, by the number of the worker."""
        chosen = f"labelSelector=slurm.soperator.io%2Fnodeset%3D{NODESET}"
        found = self.api.get(f"/api/v1/namespaces/{self.lab.namespace}/pods?{chosen}") or {"items": []}
        return {each["metadata"]["labels"]["slurm.soperator.io/index"]: each for each in found["items"]}

    def at_once(self, what: str, ask: Callable[[], object], seconds: float = 60) -> None:
        """Ask without a pause until it is so: what comes next has to follow closely."""
        until = time.monotonic() + seconds
        while not ask():
            assert time.monotonic() < until, f"not within {seconds:.0f} s: {what}\n{self.lab.seen()}"

    def reasons(self) -> str:
        """The reasons that Slurm shows for nodes that are out of service."""
        return self.crowd.ledger.run(f"sinfo -h -N -n {self.names()} -o '%N %T %E'").stdout

    def names(self) -> str:
        """The Slurm nodes that the crowd may use."""
        return ",".join(f"{NODESET}-{number}" for number in range(NODES + 1))

    def told(self, words: str, since: int, seconds: float) -> str:
        """Wait until somebody has said these words; return the sentence, whether it is still said or was only for a moment."""

        def find() -> str:
            return next((line for _, line in self.log.lines[since:] if words in line and line[0] != "#"), "")

        line = self.lab.until(f"a condition says {words!r}", find, seconds)
        return re.split(r" {2,}", line.strip())[-1]

    def turned(self, kind: str, status: str, seconds: float) -> str:
        """Wait until a condition of the cluster has this status, and return what it says."""

        def now() -> dict[str, Any]:
            found = condition(self.lab.status(), kind)
            return found if found["status"] == status else {}

        return str(self.lab.until(f"{kind} is {status}", now, seconds).get("message", ""))

    def is_back(self) -> bool:
        """Whether all that is wanted is there and every node of the crowd takes a job; no while Kubernetes does not answer."""
        if self.lab.tried("get", "--raw", "/readyz").returncode:
            return False
        try:
            if not self.lab.is_whole() or not is_operated(self.lab):
                return False
        except AssertionError:  # it has ceased to answer
            return False
        states = [line.split()[1] for line in self.reasons().splitlines()]
        if len(states) != self.lab.look("nodeset", NODESET)["spec"]["replicas"] or not set(states) <= SERVING:
            return False
        asked = f"timeout 20 srun -I15 -J probe -t 1 -C {NODESET} -N{len(states)} hostname"
        return len(self.crowd.ledger.run(asked).stdout.split()) == len(states)


SERVING = {"idle", "mixed", "allocated", "completing"}


#: A leader renews its Lease more often than that, in seconds.
RENEWED = 8.0


def is_operated(lab: Lab) -> bool:
    """Whether an operator is ready, and has just renewed its Lease: while Kubernetes is ill, it calls pods ready that are not."""
    found = lab.pods(namespace=OPERATOR)
    lease = lab.tried("get", "lease", "soperator", "-n", OPERATOR, "-o", "jsonpath={.spec.renewTime}").stdout
    is_led = bool(lease) and time.time() - datetime.fromisoformat(lease).timestamp() < RENEWED
    return is_led and any(is_ready(pod) for name, pod in found.items() if name.startswith("soperator-"))


def kill(stage: Stage, role: str) -> None:
    """SIGKILL what does a role's work; its container is started again in its pod."""
    container = {"operator": "operator", "controller": "slurmctld"}[role]
    namespace = OPERATOR if role == "operator" else stage.lab.namespace
    names = stage.lab.pods(namespace=OPERATOR) if role == "operator" else stage.lab.pods(role)
    pod = next(name for name, each in names.items() if is_ready(each) and (role != "operator" or "soperator-" in name))
    local("pod", "kill", f"{namespace}/{pod}", container)
    if role == "controller":
        stage.crowd.ledger.crashed()


def renew(stage: Stage, role: str) -> None:
    """Replace a pod in order: a kubelet starts what is killed again and again ever more slowly."""
    namespace = OPERATOR if role == "operator" else stage.lab.namespace
    label = "app.kubernetes.io/name=soperator" if role == "operator" else f"slurm.soperator.io/role={role}"
    stage.lab.kubectl("delete", "pod", "-n", namespace, "-l", label)
    stage.lab.until(f"{role} is back", stage.is_back, 90)


@dataclass(frozen=True)
class Case:
    """One fault. `steps` breaks something and yields; mends it and yields; and then may put back what it changed.

    `says` are words that a condition shows while it is broken, `within` seconds; none where nobody could tell, or nothing is wrong.
    `condition` is one of the cluster's that turns False while it is broken, and True again afterwards.
    `recovers` is the patience after the mending; a case that takes over half a minute `is_slow`.
    `requeues` is whether Slurm's own rule, or the policy asked for, may let jobs run again; `spares_shell` whether a shell lives on.
    """

    name: str
    steps: Callable[[Stage], Steps]
    says: str = ""
    condition: str = ""
    within: float = 40.0
    recovers: float = 90.0
    requeues: bool = False
    spares_shell: bool = True
    is_slow: bool = False


@dataclass
class Result:
    """What came of one repeat."""

    case: str
    verdict: Verdict
    said: str
    seconds: float
    wrong: list[str] = field(default_factory=list)
    log: str = ""


def play(stage: Stage, case: Case) -> Result:
    """Let the jobs run, break it, hear what is said, mend it, wait until all is as before, and judge."""
    crowd = stage.crowd
    crowd.gather()
    if not case.spares_shell:
        crowd.leave_shell()
    ring, runs, key = crowd.ring, crowd.runs(), crowd.array()
    stage.array = key
    stage.lab.until("the array runs", lambda: key in running(stage), UNTIL_ARRAY_RUNS)
    since = len(stage.log.lines)
    stage.log.note(f"# {case.name}")
    with closing(case.steps(stage)) as steps:
        next(steps)
        stage.log.note("# it is broken")
        said = stage.told(case.says, since, case.within) if case.says else ""
        said = stage.turned(case.condition, "False", case.within) if case.condition else said
        next(steps)
        stage.log.note("# it is mended")
        began = time.monotonic()
        stage.lab.until(f"{case.name}: all is as before", stage.is_back, case.recovers)
        seconds = time.monotonic() - began
        stage.log.note("# all is as before")
        if case.condition:
            stage.turned(case.condition, "True", case.within)
        next(steps, None)
    crowd.hasten()
    crowd.ledger.wait([key], 300)
    goes_on = ring in crowd.ledger.queued() and crowd.goes_round()
    verdict = crowd.ledger.verdict([key] if goes_on else [key, ring])
    verdict.jobs += goes_on
    verdict.requeued += crowd.runs() - runs
    result = Result(case.name, verdict, said, seconds, [*verdict.lost, *verdict.twice], stage.log.text(since))
    if crowd.shell is not None:
        verdict.jobs += 1
        if not crowd.shell.is_alive():
            verdict.lost.append(f"{crowd.shell.key}.0 answers no more")
            result.wrong.append(verdict.lost[-1])
    if verdict.requeued and not case.requeues:
        result.wrong.append(f"{verdict.requeued} runs were repeated")
    return result


def running(stage: Stage) -> set[str]:
    """The keys of jobs that run."""
    return set(stage.crowd.ledger.run("squeue -h --me -t R -o %j").stdout.split())
