"""Slurm and Kubernetes as far as nodes concern them that sleep, small and pure: each word of the operator's is carried out and checked."""

from dataclasses import dataclass, field, replace

from soperator.policy.workers import on_demand
from soperator.policy.workers.power_states import Phase, phase_of
from soperator.policy.workers.types import (
    AnnotatePod,
    Create,
    Delete,
    OnDemand,
    UpdateNodes,
    Verb,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.node import SlurmNode

RESUME = 300.0
SUSPEND = 10.0


@dataclass
class Bedroom:
    """A NodeSet `w` whose nodes sleep; time moves only by `pass_time`. Each job takes one node."""

    wish: OnDemand
    now: float = 1e6
    pods: dict[int, WorkerPod] = field(default_factory=dict)
    nodes: dict[str, SlurmNode] = field(default_factory=dict)
    falling: dict[str, float] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    waiting: int = 0
    lost: set[str] = field(default_factory=set)
    has_room: bool = True
    taken: list = field(default_factory=list)

    # -- the operator -------------------------------------------------------------------------------------------------

    def operate(self, most):
        """A pass that is cut off after so many actions."""
        seen = WorkerSnapshot("w", 0, "new", dict(self.pods), dict(self.nodes), now=self.now, on_demand=self.wish)
        for action in on_demand.decide(seen).actions[:most]:
            self.taken.append(action)
            self.take(action)

    def take(self, action):
        """Carry out an action, and check that it may be."""
        match action:
            case Create(index):
                node = self.nodes[f"w-{index}"]
                assert phase_of(node) in (Phase.WAKING, Phase.AWAKE), "a pod for a node that nobody wants awake"
                self.pods.setdefault(index, WorkerPod(index, "new", "Pending", False, False, born=self.now))
            case Delete(index) if index in self.pods:
                assert self.jobs.get(f"w-{index}") != "runs", "a pod is deleted under a running job"
                self.pods[index] = replace(self.pods[index], deleting=True, ready=False)
            case AnnotatePod(index, _, protected, noted) if index in self.pods:
                self.pods[index] = replace(self.pods[index], protected=protected, noted=noted)
            case UpdateNodes():
                for index in action.indexes:
                    self.hear(action.verb, f"w-{index}", action.why)

    def hear(self, verb, name, why):
        """What slurmctld does with one node."""
        node = self.nodes.get(name)
        if verb is Verb.RECORD:
            assert node is None, "a node is made twice"
            self.nodes[name] = SlurmNode(name, frozenset({"IDLE", "CLOUD", "POWERED_DOWN"}))
        elif verb is Verb.ERASE:
            assert name not in self.jobs, "a node with a job is forgotten"
            del self.nodes[name]
        elif verb is Verb.SLEEP:
            self.change(name, add={"POWER_DOWN"}, drop={"POWERING_UP", "POWER_UP"} if node.is_down else set())
        elif verb is Verb.WAKE:
            assert phase_of(node) is Phase.ASLEEP, "a node is woken twice"
            self.change(name, add={"POWER_UP"})
        elif verb is Verb.DENY:
            self.requeue(name)
            self.change(name, add={"DOWN"}, drop={"IDLE", "ALLOCATED"})
            self.nodes[name] = replace(self.nodes[name], reason=why, reason_at=self.now, reason_by="slurm")
        elif verb is Verb.ALLOW:
            drop = {"DOWN", "POWERING_DOWN"}
            self.change(name, add={"IDLE", "POWERED_DOWN"} if "POWERING_DOWN" in node.states else {"IDLE"}, drop=drop)

    def settle(self):
        """Let everything happen that is to happen; there is room again."""
        self.has_room = True
        for _ in range(60):
            self.operate(1000)
            for index in range(4):
                self.vanish(index)
                self.run(index)
                self.finish(index)
            self.pass_time(21)

    # -- Slurm --------------------------------------------------------------------------------------------------------

    def change(self, name, add=frozenset(), drop=frozenset()):
        """Change the states of a node."""
        node = self.nodes[name]
        self.nodes[name] = replace(node, states=node.states - drop | add)

    def submit(self, _):
        """A job is queued."""
        self.waiting += 1

    def cancel(self, number):
        """A job is taken away again, whether it waits for its node or not."""
        name = f"w-{number}"
        if self.jobs.get(name) == "waits":
            del self.jobs[name]
            self.change(name, add={"IDLE"}, drop={"ALLOCATED"})
        elif self.waiting:
            self.waiting -= 1

    def finish(self, number):
        """The job of a node ends."""
        name = f"w-{number}"
        if self.jobs.get(name) == "runs":
            del self.jobs[name]
            self.change(name, add={"IDLE"}, drop={"ALLOCATED"})
            self.nodes[name] = replace(self.nodes[name], last_busy=self.now)

    def requeue(self, name):
        """The job of a node is queued again."""
        if self.jobs.pop(name, None):
            self.waiting += 1

    def power_up(self, number):
        """`scontrol power up`."""
        name = f"w-{number}"
        if name in self.nodes and phase_of(self.nodes[name]) is Phase.ASLEEP:
            self.change(name, add={"POWER_UP"})

    def power_down(self, number):
        """`scontrol power down`."""
        name = f"w-{number}"
        if name in self.nodes and phase_of(self.nodes[name]) is Phase.AWAKE:
            self.change(name, add={"POWER_DOWN"})

    def pass_time(self, seconds):
        """Slurm does what is due, as its scheduler and its power thread would."""
        self.now += seconds
        for name in sorted(self.nodes):
            states = self.nodes[name].states
            if "POWER_UP" in states:
                self.ask(name, {"POWER_UP", "POWERED_DOWN"})
            if "POWER_DOWN" in states and name not in self.jobs and phase_of(self.nodes[name]) is not Phase.WAKING:
                self.change(name, add={"POWERING_DOWN"}, drop={"POWER_DOWN", "POWERED_DOWN"})
                self.falling[name] = self.now
            if "POWERING_DOWN" in self.nodes[name].states and self.now > self.falling.get(name, 0) + SUSPEND:
                self.change(name, add={"POWERED_DOWN"}, drop={"POWERING_DOWN"})
        self.schedule()

    def schedule(self):
        """Give waiting jobs to idle nodes, the awake ones first."""
        order = sorted(self.nodes, key=lambda name: (phase_of(self.nodes[name]) is Phase.ASLEEP, name))
        for name in order:
            node = self.nodes[name]
            usable = "IDLE" in node.states and name not in self.jobs and "POWER_DOWN" not in node.states
            if self.waiting and usable and phase_of(node) is not Phase.FALLING:
                self.waiting -= 1
                self.jobs[name] = "runs" if phase_of(node) is Phase.AWAKE else "waits"
                self.change(name, add={"ALLOCATED"}, drop={"IDLE"})
                if phase_of(self.nodes[name]) is Phase.ASLEEP:
                    self.ask(name, {"POWERED_DOWN"})

    def ask(self, name, drop):
        """Slurm asks for a node."""
        self.change(name, add={"POWERING_UP"}, drop=drop)
        self.asked[name] = self.now

    # -- Kubernetes ---------------------------------------------------------------------------------------------------

    def full(self, _):
        """There is no machine for another pod."""
        self.has_room = False

    def room(self, _):
        """There are machines again."""
        self.has_room = True

    def run(self, number):
        """A pod starts, and its slurmd registers."""
        pod, name = self.pods.get(number), f"w-{number}"
        if pod is None or pod.deleting or pod.phase != "Pending" or not self.has_room:
            return
        self.pods[number] = replace(pod, phase="Running", ready=True, ready_since=self.now, machine="m0")
        if name in self.nodes and self.now >= self.asked.get(name, 0):
            drop = {"POWERING_UP", "POWERED_DOWN", "POWERING_DOWN", "DOWN"}
            self.change(
                name, add={"IDLE"} - self.nodes[name].states if name not in self.jobs else {"ALLOCATED"}, drop=drop
            )
            self.nodes[name] = replace(self.nodes[name], last_busy=self.now)
            if name in self.jobs:
                self.jobs[name] = "runs"

    def vanish(self, number):
        """A pod that was deleted has ended."""
        if number in self.pods and self.pods[number].deleting:
            assert self.jobs.get(f"w-{number}") != "runs"
            del self.pods[number]

    def kill(self, number):
        """A pod is lost with its machine: its job begins anew when its node tells so."""
        if self.pods.pop(number, None) and self.jobs.get(f"w-{number}") == "runs":
            self.jobs[f"w-{number}"] = "waits"
