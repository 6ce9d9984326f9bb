"""Kubernetes and Slurm as far as workers concern them, small and pure: pods, Nodes, Slurm nodes, jobs, an administrator, and a ledger of jobs.

Whatever the policy does is carried out here and checked: no pod goes while a job runs in it or is cleaned up after, no job ends but as the policy
asked for, and nobody undoes what an administrator did or takes his reason away. What tests/contract.py found of a real Slurm is so here.
"""

from dataclasses import dataclass, field, replace

from soperator.policy.workers.policy import decide
from soperator.policy.workers.settled import is_settled
from soperator.policy.workers.types import (
    AnnotatePod,
    ChangePolicy,
    Create,
    Delete,
    DeleteNodeRecord,
    DrainNode,
    EndJobs,
    KubeNode,
    Register,
    Resume,
    SetPodCondition,
    SignalJobs,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.job import SlurmJob
from soperator.slurm.node import SlurmNode

MACHINES = ("m0", "m1", "m2")
DISK = "bad disk"


def settled_of(seen):
    """The indexes that need no decision."""
    found = (pod for pod in seen.pods.values() if pod.template == seen.template)
    return frozenset(pod.index for pod in found if is_settled(pod, seen.node(pod.index), seen.machine(pod)))


@dataclass
class Town:
    """A NodeSet `w` and all that happens to it; time moves only by `pass_time`."""

    wanted: int
    template: str
    policy: ChangePolicy = field(default_factory=ChangePolicy)
    now: float = 1e9
    pods: dict[int, WorkerPod] = field(default_factory=dict)
    nodes: dict[str, SlurmNode] = field(default_factory=dict)
    machines: dict[str, KubeNode] = field(default_factory=lambda: {name: KubeNode(name) for name in MACHINES})
    jobs: dict[int, SlurmJob] = field(default_factory=dict)
    warned: dict[int, float] = field(default_factory=dict)
    drained_at: dict[str, float] = field(default_factory=dict)
    exposed: set[int] = field(default_factory=set)
    cleaning: set[str] = field(default_factory=set)
    doomed: set[int] = field(default_factory=set)
    submitted: int = 0

    # -- the operator -------------------------------------------------------------------------------------------------

    def look(self, jobs=None, nodes=True):
        """What the policy is given; without `nodes` Slurm is silent."""
        known = dict(self.nodes) if nodes else None
        return WorkerSnapshot("w", self.wanted, self.template, dict(self.pods), known, dict(self.machines), jobs, self.policy, self.now)  # fmt: skip

    def plan(self, nodes=True):
        """The plan of a pass, with a look at the jobs where it asks for one."""
        seen = self.look(nodes=nodes)
        plan = decide(seen)
        assert decide(replace(seen, settled=settled_of(seen))) == plan, (
            "a worker that was taken for calm makes a difference"
        )
        return decide(seen.with_jobs(self.jobs.values())) if plan.asks_jobs else plan

    def operate(self, most=1000, nodes=True, between=lambda: None):
        """A pass that is cut off after so many actions; `between` happens between any two."""
        for action in self.plan(nodes).actions[:most]:
            self.take(action)
            between()

    def take(self, action):
        """Carry out an action, and check that it may be."""
        name = f"w-{action.index}"
        node, pod = self.nodes.get(name), self.pods.get(action.index)
        match action:
            case Create(index):
                self.pods.setdefault(index, WorkerPod(index, self.template, "Pending", False, False, born=self.now))
            case Delete(index) if pod:
                assert not self.alive(name), f"{name} is deleted under a running job"
                assert name not in self.cleaning or pod.phase != "Running", f"{name} is deleted while it cleans up"
                self.pods[index] = replace(pod, deleting=True, ready=False)
            case DrainNode(_, why) if node:
                assert not node.is_administrators or (why == DISK and node.is_down), (
                    "an administrator's word is overwritten"
                )
                states = node.states | {"DRAIN"}
                self.nodes[name] = replace(node, states=states, reason=why, reason_at=self.now, reason_by="slurm")
                self.drained_at.setdefault(name, self.now)
            case Resume() if node:
                assert node.reason != DISK, "an administrator's drain is undone"
                assert pod is None or pod.protected, "a pod in service may be evicted"
                assert pod is None or not pod.deleting, "a node takes jobs whose pod goes"
                self.nodes[name] = replace(node, states=node.states - {"DRAIN"})  # Slurm keeps the reason
                self.drained_at.pop(name, None)
            case DeleteNodeRecord() if node:
                assert not self.running(name), f"the record of {name} is removed under a running job"
                assert not node.is_busy, "Slurm refuses to remove the record of a busy node"
                assert not node.is_administrators, "an administrator's word is removed with its record"
                del self.nodes[name]
            case AnnotatePod(index, _, protected, noted) if pod:
                assert protected or not self.alive(name)
                self.pods[index] = replace(pod, protected=protected, noted=noted)
                self.exposed.discard(index)
            case Register(index) if pod:
                assert pod.ready
                self.pods[index] = replace(pod, asked=self.now)
                self.nodes.setdefault(name, SlurmNode(name, frozenset({"IDLE"})))
            case SetPodCondition(index, why, reason) if pod:
                self.pods[index] = replace(pod, reported=f"{reason}: {why}")
            case SignalJobs(_, why, jobs) if node:
                assert node.reason != DISK, "jobs are warned of an administrator's drain"
                self.nodes[name] = replace(node, reason=why, reason_at=self.now)
                for job in jobs:
                    self.warned.setdefault(job.number, self.now)
            case EndJobs(_, _, jobs) if node:
                self.end(name, jobs)

    def end(self, name, jobs):
        """The policy ends jobs: they have had their time, and their warning."""
        assert self.policy.on_timeout != "Wait"
        assert node_drains(self.nodes[name])
        for job in jobs:
            assert self.now - self.drained_at[name] >= self.policy.drain_timeout - 1
            assert self.now - self.warned[job.number] >= self.policy.warning_period - 1
            self.finish(job.number)

    def serves(self):
        """Whether every wanted worker takes jobs."""
        up = [node for node in self.nodes.values() if node.is_up and not node.is_draining]
        return len(up) == len(self.nodes) == len(self.pods) == self.wanted

    # -- Kubernetes ---------------------------------------------------------------------------------------------------

    def remove(self, index):
        """A pod goes; nothing may run in it."""
        pod = self.pods.get(index)
        if pod is not None:
            assert not self.alive(f"w-{index}"), f"w-{index} goes under a running job"
            del self.pods[index]

    def vanish(self, index):
        """A pod that was deleted has ended."""
        if index in self.pods and self.pods[index].deleting:
            self.remove(index)

    def run(self, index):
        """A kubelet and a slurmd start the pod, unless its Node is dead."""
        pod = self.pods.get(index)
        if pod is None or pod.phase == "Running" or pod.deleting:
            return
        open_ones = [each for each in self.machines.values() if each.ready and not each.leaving]
        if open_ones:
            machine = open_ones[index % len(open_ones)].name
            self.pods[index] = replace(pod, phase="Running", ready=True, ready_since=self.now, machine=machine)
            self.nodes.setdefault(f"w-{index}", SlurmNode(f"w-{index}", frozenset({"IDLE"})))
            self.answer(index)

    def answer(self, index):
        """Slurmd answers slurmctld: a node that was DOWN is IDLE again, unless an administrator set it so; a drain stays."""
        node = self.nodes.get(f"w-{index}")
        if node and "DOWN" in node.states and node.reason != DISK:
            reason = node.reason if node.is_draining else ""
            self.nodes[node.name] = replace(node, states=node.states - {"DOWN"} | {"IDLE"}, reason=reason)

    def time_out(self, index):
        """Slurm notices that no slurmd answers for a node: it is DOWN, and its jobs are requeued."""
        node = self.nodes.get(f"w-{index}")
        if node and (index not in self.pods or self.pods[index].phase != "Running"):
            self.give_up(node.name)

    def falter(self, index):
        """The pod is not ready, for its jail or its network; its slurmd and its job run on."""
        if index in self.pods and self.pods[index].phase == "Running":
            self.pods[index] = replace(self.pods[index], ready=False)

    def heal(self, index):
        """It is ready again, unless its Node is dead."""
        pod = self.pods.get(index)
        if pod and pod.phase == "Running" and not pod.deleting and self.machines[pod.machine].ready:
            self.pods[index] = replace(pod, ready=True)

    def lose(self, index):
        """Somebody deletes the pod by force: Slurm still believes in its job, and notices later."""
        if self.pods.pop(index, None):
            self.doomed |= {job.number for job in self.running(f"w-{index}")}
            self.exposed.discard(index)

    def evict(self, index):
        """`kubectl drain` of the pod's Node: only what is not protected goes."""
        pod = self.pods.get(index)
        if pod and not pod.protected and index not in self.exposed:
            self.remove(index)

    def cordon(self, number):
        """A Node is to be emptied."""
        name = MACHINES[number % 3]
        self.machines[name] = replace(self.machines[name], leaving=f"Node {name} is cordoned")

    def uncordon(self, number):
        """A Node may be used again."""
        name = MACHINES[number % 3]
        self.machines[name] = replace(self.machines[name], leaving="")

    def die(self, number):
        """A Node's machine loses its power: Slurm requeues what ran there, when it notices."""
        name = MACHINES[number % 3]
        self.machines[name] = replace(self.machines[name], ready=False, since=self.now)
        for index in [index for index, pod in self.pods.items() if pod.machine == name]:
            self.pods[index] = replace(self.pods[index], ready=False)
            if f"w-{index}" in self.nodes:
                self.give_up(f"w-{index}")

    def give_up(self, name):
        """Slurm takes a node for lost: it is DOWN, and its jobs are queued again."""
        self.requeue(name)
        node = self.nodes[name]
        states = node.states - {"IDLE", "ALLOCATED"} | {"DOWN"}
        self.nodes[name] = replace(node, states=states, reason=node.reason or "Not responding")

    def recover(self, number):
        """A dead Node comes back, with the pods that it had."""
        name = MACHINES[number % 3]
        if not self.machines[name].ready:
            self.machines[name] = replace(self.machines[name], ready=True, since=self.now)
            for index in [index for index, pod in self.pods.items() if pod.machine == name and not pod.deleting]:
                self.pods[index] = replace(self.pods[index], ready=True)
                self.answer(index)

    # -- Slurm, its users and its administrator ----------------------------------------------------------------------

    def running(self, name):
        """The jobs of a node."""
        return [job for job in self.jobs.values() if name in job.nodes]

    def alive(self, name):
        """The jobs of a node, but for those that somebody killed with their pod."""
        return [job for job in self.running(name) if job.number not in self.doomed]

    def submit(self, index):
        """A job starts where Slurm would start one."""
        node, pod = self.nodes.get(f"w-{index}"), self.pods.get(index)
        if node and pod and pod.ready and node.is_up and not node.is_draining and not node.is_busy:
            self.submitted += 1
            self.jobs[self.submitted] = SlurmJob(self.submitted, frozenset({node.name}), self.now + 60 * index, True)
            self.nodes[node.name] = replace(node, states=node.states - {"IDLE"} | {"ALLOCATED"})

    def submit_pair(self, index):
        """A job over two nodes starts where Slurm would start one."""
        pair = [f"w-{index}", f"w-{index + 1}"]
        found = [(self.nodes.get(f"w-{each}"), self.pods.get(each)) for each in (index, index + 1)]
        if all(
            node and pod and pod.ready and node.is_up and not node.is_draining and not node.is_busy
            for node, pod in found
        ):
            self.submitted += 1
            self.jobs[self.submitted] = SlurmJob(self.submitted, frozenset(pair), self.now + 600, True)
            for name in pair:
                self.nodes[name] = replace(self.nodes[name], states=self.nodes[name].states - {"IDLE"} | {"ALLOCATED"})

    def complete_on(self, index):
        """What runs on a node ends, and its nodes clean up after it until `clean`."""
        for job in self.running(f"w-{index}"):
            self.finish(job.number)
            for name in job.nodes & self.nodes.keys():
                self.nodes[name] = replace(self.nodes[name], states=self.nodes[name].states | {"COMPLETING"})
                self.cleaning.add(name)

    def clean(self, index):
        """The epilog of a node has ended."""
        name = f"w-{index}"
        self.cleaning.discard(name)
        if name in self.nodes:
            self.nodes[name] = replace(self.nodes[name], states=self.nodes[name].states - {"COMPLETING"})

    def suspend(self, index):
        """An administrator suspends what runs on a node, whose memory Slurm does not count: it calls the node idle (24.11, CR_Core)."""
        if self.running(f"w-{index}"):
            node = self.nodes[f"w-{index}"]
            self.nodes[node.name] = replace(node, states=node.states - {"ALLOCATED"} | {"IDLE"})

    def forget(self, index):
        """Slurmctld is killed before it wrote a node down: it knows it no more, and no slurmd tells it again. A node with a job was written down."""
        if not self.running(f"w-{index}") and f"w-{index}" not in self.cleaning:
            self.nodes.pop(f"w-{index}", None)
            self.drained_at.pop(f"w-{index}", None)

    def finish(self, number):
        """A job ends."""
        job = self.jobs.pop(number, None)
        for name in job.nodes & self.nodes.keys() if job else ():
            node = self.nodes[name]
            if "ALLOCATED" not in node.states:
                continue
            self.nodes[name] = replace(node, states=node.states - {"ALLOCATED"} | {"IDLE"}, last_busy=self.now)

    def finish_on(self, index):
        """What runs on a node ends by itself."""
        for job in self.running(f"w-{index}"):
            self.finish(job.number)

    def forbid(self, index):
        """An administrator drains a node."""
        node = self.nodes.get(f"w-{index}")
        if node:
            self.nodes[node.name] = replace(node, states=node.states | {"DRAIN"}, reason=DISK, reason_by="root")

    def condemn(self, index):
        """An administrator sets a node DOWN: its jobs are queued again, and no slurmd that answers takes that back."""
        node = self.nodes.get(f"w-{index}")
        if node:
            self.requeue(node.name)
            states = self.nodes[node.name].states - {"IDLE", "ALLOCATED"} | {"DOWN"}
            self.nodes[node.name] = replace(node, states=states, reason=DISK, reason_by="root")

    def requeue(self, name):
        """The jobs of a node wait for their turn again; their other nodes are free."""
        for job in self.running(name):
            self.finish(job.number)

    def allow(self, index):
        """An administrator resumes a node, whoever drained it or set it DOWN; it is up if its slurmd answers."""
        node = self.nodes.get(f"w-{index}")
        if node:
            self.nodes[node.name] = replace(node, states=node.states - {"DRAIN"}, reason="", reason_by="")
            pod = self.pods.get(index)
            if pod and pod.phase == "Running" and not pod.deleting and self.machines[pod.machine].ready:
                self.answer(index)
            self.drained_at.pop(node.name, None)
            if index in self.pods and not self.pods[index].protected:
                self.exposed.add(index)

    def change_mind(self, index):
        """An administrator who took a drain of ours back removes its note from the pod."""
        self.pods[index] = replace(self.pods[index], noted="")

    def pass_time(self, minutes):
        """Time goes by."""
        self.now += 60.0 * minutes


def node_drains(node):
    """Whether a node is drained by the policy."""
    return node.is_draining and node.is_ours
