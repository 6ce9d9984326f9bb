"""Simulates a day of jobs on three NodeSets with power saving, in virtual time: the real policy runs against a model of Slurm and Kubernetes.

The day has two thousand jobs from a seeded distribution, and three periods with fewer machines than nodes. The result is compared with the
same scheduler whose nodes boot in no time and stop as soon as no job needs them. The simulation counts lost jobs, jobs that waited although
the policy could have started a node for them, and the node-hours of both. `make bench-day` writes docs/reports/power-day.md and its plot; a
smaller day is a unit test.
"""

import heapq
from dataclasses import dataclass, field, replace

from local.bench.dayjobs import BOOT, REQUEUE, SETS, SHORTAGES, SUSPEND, WISH, Job, Result
from soperator.policy.workers import on_demand
from soperator.policy.workers.power_states import Phase, phase_of
from soperator.policy.workers.types import (
    AnnotatePod,
    Create,
    Delete,
    UpdateNodes,
    Verb,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.node import SlurmNode


@dataclass
class Set:
    """One NodeSet: its records in Slurm, its pods, and the job on each node."""

    name: str
    most: int
    nodes: dict[str, SlurmNode] = field(default_factory=dict)
    pods: dict[int, WorkerPod] = field(default_factory=dict)
    holders: dict[str, int] = field(default_factory=dict)
    falling: dict[str, float] = field(default_factory=dict)
    again: float | None = None
    known: object = None
    hours: float = 0.0

    def change(self, name: str, add: set[str], drop: set[str]) -> None:
        """Change the states of a node."""
        self.nodes[name] = replace(self.nodes[name], states=self.nodes[name].states - drop | add)

    def usable(self) -> list[str]:
        """Return the nodes that a job may use, awake nodes first."""
        found = [
            each
            for each in self.nodes.values()
            if "IDLE" in each.states and each.name not in self.holders and "POWER_DOWN" not in each.states
        ]
        order = {Phase.AWAKE: 0, Phase.WAKING: 1, Phase.ASLEEP: 2}
        ready = [each for each in found if phase_of(each) in order]
        return [each.name for each in sorted(ready, key=lambda node: (order[phase_of(node)], _number(node.name)))]


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])


@dataclass
class Day:
    """The simulated day with the policy: after each event in virtual time Slurm schedules and the operator makes a pass."""

    todo: list[Job]
    now: float = 0.0
    sets: dict[str, Set] = field(default_factory=lambda: {name: Set(name, most) for name, most in SETS.items()})
    queue: list[tuple[float, Job]] = field(default_factory=list)
    running: dict[int, tuple[Job, str, list[str], bool]] = field(default_factory=dict)
    events: list[tuple[float, int, str, object]] = field(default_factory=list)
    counted: int = 0
    result: Result = field(default_factory=Result)

    def run(self) -> Result:
        """Run until no job is pending or running and all nodes are powered down."""
        for job in self.todo:
            self.at(job.queued, "submit", job)
        for _, start, end, _ in SHORTAGES:
            self.at(start * 3600, "begin_pass", None)
            self.at(end * 3600, "begin_pass", None)
        self.at(0.0, "begin_pass", None)
        while self.events:
            moment = self.events[0][0]
            self.pass_time(moment)
            while self.events and self.events[0][0] <= moment:
                _, _, what, about = heapq.heappop(self.events)
                getattr(self, what)(about)
            self.schedule()
            while self.operate():
                self.schedule()
            self.judge()
        self.result.node_hours = sum(each.hours for each in self.sets.values())
        return self.result

    def at(self, moment: float, what: str, about: object) -> None:
        """Schedule an event at a time."""
        self.counted += 1
        heapq.heappush(self.events, (moment, self.counted, what, about))

    def pass_time(self, moment: float) -> None:
        """Count the nodes that exist in the meantime: a pod on a machine costs, even if it is idle."""
        for each in self.sets.values():
            each.hours += sum(bool(pod.machine) for pod in each.pods.values()) * (moment - self.now) / 3600
        self.now = moment
        pods = sum(bool(pod.machine) for each in self.sets.values() for pod in each.pods.values())
        self.result.curve.append((moment, sum(len(each.holders) for each in self.sets.values()), pods))

    # -- events -------------------------------------------------------------------------------------------------------

    def begin_pass(self, _: object) -> None:
        """Trigger a pass without any other event."""

    def submit(self, job: Job) -> None:
        """Queue a job, for the first time or again."""
        self.queue.append((self.now, job))

    def register(self, about: tuple[str, int, float]) -> None:
        """Register the slurmd of a started pod, unless another pod has replaced that pod."""
        name, index, born = about
        there = self.sets[name]
        pod = there.pods.get(index)
        if pod is None or pod.born != born or pod.deleting:
            return
        there.pods[index] = replace(pod, phase="Running", ready=True, ready_since=self.now)
        node = f"{name}-{index}"
        there.change(node, set(), {"POWERING_UP", "DOWN"})
        there.nodes[node] = replace(there.nodes[node], last_busy=self.now)
        for number, (job, set_name, nodes, began) in list(self.running.items()):
            awake = set_name == name and not began and all(phase_of(there.nodes[each]) is Phase.AWAKE for each in nodes)
            if awake:
                self.running[number] = job, set_name, nodes, True
                self.result.waited.append(self.now - job.queued)
                self.at(self.now + job.length, "end", number)

    def end(self, number: int) -> None:
        """End a job."""
        _, set_name, nodes, _ = self.running.pop(number)
        there = self.sets[set_name]
        for each in nodes:
            del there.holders[each]
            there.change(each, {"IDLE"}, {"ALLOCATED"})
            there.nodes[each] = replace(there.nodes[each], last_busy=self.now)
        self.result.ended += 1

    def doze(self, about: tuple[str, str]) -> None:
        """Apply the end of SuspendTimeout."""
        name, node = about
        if "POWERING_DOWN" in self.sets[name].nodes[node].states:
            self.sets[name].change(node, {"POWERED_DOWN"}, {"POWERING_DOWN"})

    def vanish(self, about: tuple[str, int, float]) -> None:
        """Remove a deleted pod and release its machine."""
        name, index, born = about
        pod = self.sets[name].pods.get(index)
        if pod and pod.born == born:
            del self.sets[name].pods[index]

    # -- Slurm --------------------------------------------------------------------------------------------------------

    def schedule(self) -> None:
        """Schedule each job in order if enough nodes are available; a job that does not fit does not block later jobs."""
        left: list[tuple[float, Job]] = []
        for since, job in self.queue:
            if since > self.now or not self._start(job):
                left.append((since, job))
        self.queue = left

    def _start(self, job: Job) -> bool:
        for name in sorted(job.sets, key=lambda each: self._asleep(each, job)):
            there = self.sets[name]
            found = there.usable()[: job.nodes]
            if len(found) < job.nodes:
                continue
            awake = all(phase_of(there.nodes[each]) is Phase.AWAKE for each in found)
            for each in found:
                if phase_of(there.nodes[each]) is Phase.ASLEEP:
                    there.change(each, {"POWERING_UP"}, {"POWERED_DOWN"})
                there.change(each, {"ALLOCATED"}, {"IDLE"})
                there.holders[each] = job.number
            self.running[job.number] = job, name, found, awake
            if awake:
                self.result.waited.append(self.now - job.queued)
                self.at(self.now + job.length, "end", job.number)
            return True
        return False

    def _asleep(self, name: str, job: Job) -> int:
        there = self.sets[name]
        return sum(phase_of(there.nodes[each]) is not Phase.AWAKE for each in there.usable()[: job.nodes])

    def requeue(self, number: int) -> None:
        """Requeue a job whose node was given up; Slurm considers it again after two minutes."""
        job, set_name, nodes, began = self.running.pop(number)
        assert not began, "a job that runs is given up"
        for each in nodes:
            del self.sets[set_name].holders[each]
            self.sets[set_name].change(each, {"IDLE"}, {"ALLOCATED"})
        self.queue.append((self.now + REQUEUE, job))
        self.at(self.now + REQUEUE, "begin_pass", None)
        self.result.requeued += 1

    # -- the operator -------------------------------------------------------------------------------------------------

    def operate(self) -> bool:
        """Run a pass over each NodeSet that has changed or is due; return whether the pass acted."""
        done = False
        for there in self.sets.values():
            known = (dict(there.nodes), dict(there.pods))
            if there.known == known and not (there.again is not None and there.again <= self.now):
                continue
            there.known = known
            power_saving = replace(WISH, most=there.most)
            snapshot = WorkerSnapshot(
                there.name, 0, "new", dict(there.pods), dict(there.nodes), now=self.now, on_demand=power_saving
            )
            plan = on_demand.decide(snapshot)
            done = done or bool(plan.actions)
            for action in plan.actions:
                self.take(there, action)
            there.again = None if plan.again is None else self.now + plan.again
            if there.again is not None:
                self.at(there.again, "begin_pass", None)
        self.settle()
        return done

    def take(self, there: Set, action: object) -> None:
        """Execute an action of the policy."""
        match action:
            case Create(index):
                there.pods[index] = WorkerPod(index, "new", "Pending", False, False, born=self.now)
            case Delete(index):
                pod = there.pods[index]
                holder = there.holders.get(f"{there.name}-{index}")
                assert holder is None or not self.running[holder][3], "a pod is deleted under a running job"
                there.pods[index] = replace(pod, deleting=True, ready=False)
                self.at(self.now + 2, "vanish", (there.name, index, pod.born))
            case AnnotatePod(index, _, protected, noted):
                there.pods[index] = replace(there.pods[index], protected=protected, noted=noted)
            case UpdateNodes():
                for index in action.indexes:
                    self.update_node(there, action.verb, f"{there.name}-{index}", action.why)

    def update_node(self, there: Set, verb: Verb, name: str, why: str) -> None:
        """Apply what slurmctld does with one node."""
        if verb is Verb.RECORD:
            there.nodes[name] = SlurmNode(name, frozenset({"IDLE", "POWERED_DOWN"}))
        elif verb is Verb.SLEEP:
            assert name not in there.holders, "a node with a job is put to sleep"
            there.change(name, {"POWERING_DOWN"}, {"POWERED_DOWN", "POWERING_UP"})
            self.at(self.now + SUSPEND, "doze", (there.name, name))
        elif verb is Verb.DENY:
            if name in there.holders:
                self.requeue(there.holders[name])
            there.change(name, {"DOWN"}, {"IDLE"})
            there.nodes[name] = replace(there.nodes[name], reason=why, reason_at=self.now, reason_by="slurm")
        elif verb is Verb.ALLOW:
            there.change(name, {"IDLE"}, {"DOWN"})

    # -- Kubernetes ---------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Assign machines to pods while there are any, the oldest pod first, and start the pods."""
        for there in self.sets.values():
            waits = sorted(
                (pod for pod in there.pods.values() if not pod.machine and not pod.deleting), key=lambda pod: pod.born
            )
            room = max(0, self.machines(there) - sum(bool(pod.machine) for pod in there.pods.values()))
            for pod in waits[:room]:
                there.pods[pod.index] = replace(pod, machine="m")
                self.at(self.now + BOOT, "register", (there.name, pod.index, pod.born))

    def machines(self, there: Set) -> int:
        """Return how many machines a NodeSet can use now; a pod that has a machine keeps it."""
        hour = self.now / 3600
        limits = [most for name, start, end, most in SHORTAGES if name == there.name and start <= hour < end]
        return min([there.most, *limits])

    # -- the judge ----------------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Return whether a job waits although enough nodes of a set are idle, or powered down and allowed to start."""
        for since, job in self.queue:
            if since <= self.now and any(len(self.sets[name].usable()) >= job.nodes for name in job.sets):
                self.result.needless.append(job.number)
