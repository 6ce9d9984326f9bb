"""A storm over the whole operator: many things happen in any order at any moment, with jobs running, and what must never be is looked for.

An edit of an object, a person's drain, a Node that fails, a pod that is killed, an API server that errs, answers late or forgets, a slurmrestd that
is away or whose answer is old when it comes, an operator that begins anew: `Storm` draws what comes next by a seed, so that a run can be made again.

What must never be, whoever asked for what: a job that loses its pod or its node to the operator; a drain of a person that is changed or lifted; a
claim or a key that goes. And when the storm is over and the jobs have ended, everything is as the specs say, without a drain of ours.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from soperator.kube import kinds
from tests.unit.fake_world import Fault
from tests.world.fake_slurm import FakeSlurm
from tests.world.harness import NS, Town, operating
from tests.world.scontrol import Scontrol

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
SETS = ("worker", "gpu", "owl")
#: The NodeSet whose nodes sleep until a job needs them.
OWL = {
    "powerSaving": {"maxNodes": 3, "suspendTime": "1h", "resumeTimeout": "10m"},
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
}
_SLEEP = {"POWERED_DOWN", "POWER_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_UP"}
MACHINES = ("node-1", "node-2", "node-3")
PERSON = "person: the fan is loud"
#: Seconds for which a look may be believed (DESIGN of `nodeset/actions.py`): Slurm takes no update on a condition, so what comes later may be lost.
HOLDS = 5.0
#: The time of day at which every storm starts: a seed is the same storm at any hour.
STARTS = 1_800_000_000.0
#: The most seconds that the API server takes for a request.
LATENCY = 2.0
_OFF = {"DRAIN", "DOWN", "FAIL", "NOT_RESPONDING", "COMPLETING", "ALLOCATED"}


@dataclass
class LateSlurm(FakeSlurm):
    """A slurmrestd whose requests take as long as it likes before slurmctld sees them, and whose answers are as old when they come."""

    dice: random.Random = field(default_factory=lambda: random.Random(0))
    slow: float = 0.0
    sent: float = 0.0
    drained: dict[str, float] = field(default_factory=dict)
    overridden: list[str] = field(default_factory=list)
    say: Callable[[str], None] = print

    def _update(self, node, body, user):
        """Also look whether a drain of a person is overridden that whoever asks could have known of."""
        self.say(f"{user} asked at {self.sent:.1f}: {node['name']} {node['state']} {body}")
        at = self.drained.get(node["name"])
        if at is not None and user != "root":
            if at < self.sent - HOLDS:
                self.overridden.append(f"a person's drain of {node['name']}, {self.sent - at:.1f} s old: {body}")
            del self.drained[node["name"]]
        super()._update(node, body, user)

    async def handle_async_request(self, request):
        """Answer late."""
        sent = asyncio.get_running_loop().time()
        await asyncio.sleep(self.dice.random() * self.slow)
        self.sent = sent
        answer = await super().handle_async_request(request)
        await asyncio.sleep(self.dice.random() * self.slow)
        return answer


class Storm:
    """One storm; `faults` is what was seen that must never be."""

    def __init__(self, seed):
        """A town in which nothing has happened yet."""
        self.dice = random.Random(seed)
        self.town = Town(slurm=LateSlurm(dice=self.dice, epilog=2.0))
        self.town.slurm.say = self.say
        self.faults: list[str] = []
        self.log: list[str] = []
        self.number = 1000
        self.held: dict[int, dict[str, str]] = {}
        self.inside = Scontrol(self.town.slurm)
        self.replicas = {"worker": 2, "gpu": 1}
        self.rounds = 0
        self.is_calm = False
        self.resumed: dict[str, float] = {}
        self.town.keep_time(STARTS)
        self._watch_deletions()

    # -- what is looked for -------------------------------------------------------------------------------------------

    def _watch_deletions(self):
        world = self.town.fake.world
        delete = world.delete

        def watched(where, uid=None, policy="Background", version=""):
            jobs = self.jobs_of(where.name) if where.plural == "pods" else []
            delete(where, uid, policy, version)  # which may refuse it
            if where.plural == "pods" and where.name:
                self.say(f"pod {where.name} is deleted")
                lately = self.now - self.resumed.get(where.name.removeprefix("demo-"), -99.0) < HOLDS + LATENCY
                for number in () if lately else jobs:
                    self.fault(f"pod {where.name} is deleted under job {number}")
            if where.plural in ("persistentvolumeclaims", "secrets") and where.name:
                self.fault(f"{where.plural} {where.name} is deleted")

        world.delete = watched
        ends = self.town.slurm.end_jobs

        def end_jobs(name):
            for number, places in list(self.held.items()):
                if places.get(name) == "":  # it waits for the node to wake, and is queued again
                    del self.held[number]
                elif name in places and "RUNNING" in self.town.slurm.jobs[number]["job_state"]:
                    self.fault(f"node {name} is set DOWN under job {number}")
            ends(name)

        self.town.slurm.end_jobs = end_jobs

    def fault(self, words):
        """Note what must not be."""
        self.faults.append(f"{self.now:.1f}: {words}")

    @property
    def now(self):
        """Seconds of the loop."""
        return asyncio.get_running_loop().time()

    def jobs_of(self, pod):
        """The jobs that run in a pod that is there."""
        found = self.town.find(kinds.POD, pod)
        uid = found["metadata"]["uid"] if found else ""
        return [number for number, places in self.held.items() if uid in places.values()]

    def look(self):
        """What can be seen at any moment."""
        for number, places in list(self.held.items()):
            job = self.town.slurm.jobs[number]
            if "RUNNING" not in job["job_state"]:
                self.fault(f"job {number} is {job['job_state']}")
                del self.held[number]
                continue
            for node in places:
                if node not in self.town.slurm.nodes:
                    self.fault(f"the record of {node} is gone under job {number}")
        while self.town.slurm.overridden:
            self.fault(self.town.slurm.overridden.pop())
        for name in self.drained():
            node = self.town.slurm.nodes.get(name)
            if node is None or self.is_ending(name.rpartition("-")[0]):
                del self.town.slurm.drained[name]
            elif "DRAIN" not in node["state"] or node.get("reason") != PERSON:
                self.fault(f"a person's drain of {name} is now {node['state']} {node.get('reason')!r}")
                del self.town.slurm.drained[name]

    def is_ending(self, nodeset):
        """Whether a NodeSet is gone, or is being deleted."""
        found = self.town.find(kinds.NODESET, nodeset)
        return found is None or "deletionTimestamp" in found["metadata"]

    def drained(self):
        """The nodes that a person has drained."""
        return sorted(self.town.slurm.drained)

    # -- what Kubernetes and Slurm do by themselves --------------------------------------------------------------------

    async def kubelets(self):
        """Place, start and register pods, each in its own time; end trials; make the pods of workloads."""
        while True:
            await asyncio.sleep(self.dice.uniform(0.2, 3.0))
            self.town.daemons_run()
            for name in self.town.names(kinds.POD):
                pod = self.town.find(kinds.POD, name)
                if pod is None or pod.get("status", {}).get("phase") or self.dice.random() < 0.4:
                    continue
                if name.startswith("demo-trial-"):
                    self.town.trial_ends()
                    continue
                host = pod["spec"].get("hostname")
                if host and not pod["spec"].get("nodeName"):
                    self.town.place(name, self.dice.choice(MACHINES))
                    continue
                ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                self.town.fake.world.change(kinds.POD, (NS, name), {"status": ready}, sub="status")
                if host:
                    self.register(host, pod)
            self.look()

    def register(self, host, pod):
        """What slurmd of a new pod does: its record is there, and answers."""
        of = pod["metadata"]["labels"].get("slurm.soperator.io/nodeset")
        if of == "owl":
            self.wakes(host, pod)
            return
        node = self.town.slurm.nodes.setdefault(host, {"name": host, "state": ["IDLE"], "features": [of]})
        if "ALLOCATED" not in node["state"]:
            self.town.slurm.change(node, add={"IDLE"}, drop={"DOWN", "NOT_RESPONDING"})

    def wakes(self, host, pod):
        """slurmd of a node that was asked for registers; its job, if it still waits for it, begins."""
        node = self.town.slurm.nodes.get(host)
        if node is None or not _SLEEP & set(node["state"]):
            return
        mine = [number for number, places in self.held.items() if host in places]
        drains = {"DRAIN"} & set(node["state"])
        self.inside.register(host, state="ALLOCATED" if mine else "IDLE")
        self.town.slurm.change(node, add=drains)
        for number in mine:
            self.held[number][host] = pod["metadata"]["uid"]

    def power(self):
        """What Slurm does with nodes that sleep: wakes one for a job, or lets one that is idle sleep, which takes its time."""
        nodes = {name: set(node["state"]) for name, node in self.town.slurm.nodes.items() if name.startswith("owl-")}
        asleep = [name for name, states in nodes.items() if "POWERED_DOWN" in states and not {"DRAIN", "DOWN"} & states]
        idle = [name for name, states in nodes.items() if "IDLE" in states and not (_SLEEP | _OFF) & states]
        falling = [name for name, states in nodes.items() if "POWERING_DOWN" in states]
        if falling and self.dice.random() < 0.5:
            self.inside.doze_off()
        elif asleep and self.dice.random() < 0.6:
            name = self.dice.choice(asleep)
            self.number += 1
            self.town.slurm.run(self.number, name, requeue=True, batch=True)
            self.town.slurm.nodes[name]["state"] = sorted(
                (nodes[name] - {"IDLE", "POWERED_DOWN"}) | {"ALLOCATED", "POWERING_UP"}
            )
            self.held[self.number] = {name: ""}
            return f"job {self.number} wakes {name}"
        elif idle:
            name = self.dice.choice(idle)
            self.town.slurm.change(self.town.slurm.nodes[name], add={"POWERING_DOWN"})
            return f"{name} falls asleep"
        return ""

    async def scheduler(self):
        """Start jobs where Slurm would, on one node or two, and end them."""
        while not self.is_calm:
            await asyncio.sleep(self.dice.expovariate(0.5))
            if self.is_calm:
                return
            free = [
                name
                for name, node in self.town.slurm.nodes.items()
                if not (_OFF | _SLEEP) & set(node["state"]) and self.pod_of(name)
            ]
            if free and self.dice.random() < 0.7:
                self.start(self.dice.sample(free, min(len(free), self.dice.choice((1, 1, 2)))))
            elif self.held:
                self.end(self.dice.choice(list(self.held)))
            self.look()

    def pod_of(self, node):
        """The pod that runs under a node's name."""
        pod = self.town.find(kinds.POD, f"demo-{node}")
        return (
            pod
            if pod and pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
            else None
        )

    def start(self, names):
        """A job begins."""
        self.number += 1
        was = {name: self.town.slurm.nodes[name] for name in names}
        self.town.slurm.run(self.number, *names, requeue=self.dice.random() < 0.5, batch=True)
        for name, node in was.items():  # a job changes nothing else of them
            states = [each for each in node["state"] if each not in ("IDLE", "MIXED")]
            self.town.slurm.nodes[name] = node | {"state": ["ALLOCATED", *states]}
        self.held[self.number] = {name: self.pod_of(name)["metadata"]["uid"] for name in names}
        self.say(f"job {self.number} on {names}")

    def end(self, number):
        """A job ends by itself."""
        del self.held[number]
        self.town.slurm.ends(number)
        self.say(f"job {number} ends")

    def say(self, words):
        """Note what happened."""
        self.log.append(f"{self.now:.1f}: {words}")

    # -- what people and bad luck do -------------------------------------------------------------------------------------

    def nodeset(self, name, **spec):
        """Apply a NodeSet."""
        if "replicas" in spec:
            self.replicas[name] = spec["replicas"]
        found = self.town.find(kinds.NODESET, name)
        if found is None or "deletionTimestamp" not in found["metadata"]:
            size = OWL if name == "owl" else {"replicas": self.replicas[name]}
            self.town.apply(kinds.NODESET, name, {"clusterRef": {"name": "demo"}, **spec, **size})

    def happen(self):
        """One thing, drawn by lot."""
        often = (self.scale, self.roll, self.err, self.power)
        seldom = (
            self.person_drains,
            self.person_resumes,
            self.slow,
            self.cut,
            self.forget,
            self.slurmrestd,
            self.node_fails,
            self.cordon,
            self.configure,
            self.rotate,
            self.pod_dies,
            self.nodeset_goes,
            self.is_unready,
        )
        what = self.dice.choice((*often, *often, *seldom))
        self.say(f"{what.__name__} {what() or ''}")

    def scale(self):
        """More or fewer nodes."""
        name = self.dice.choice(("worker", "gpu"))
        self.nodeset(name, replicas=self.dice.randrange(4))
        return f"{name} {self.replicas[name]}"

    def roll(self):
        """Another template."""
        name = self.dice.choice(SETS)
        self.rounds += 1
        busy = self.dice.choice(("Drain", "Wait"))
        most = self.dice.choice((1, "50%"))
        self.nodeset(
            name,
            podTemplate={"metadata": {"annotations": {"round": str(self.rounds)}}},
            updateStrategy={"busy": busy, "maxUnavailable": most},
        )
        return f"{name} {busy}"

    def person_drains(self):
        """`scontrol update nodename=… state=drain`."""
        free = [name for name, node in self.town.slurm.nodes.items() if "DRAIN" not in node["state"]]
        if free:
            name = self.dice.choice(free)
            self.town.slurm.administrator(name, "DRAIN", PERSON)
            self.town.slurm.drained[name] = self.now
            return name
        return ""

    def person_resumes(self):
        """And back."""
        if self.drained():
            name = self.dice.choice(self.drained())
            del self.town.slurm.drained[name]
            self.resumed[name] = self.now
            if name in self.town.slurm.nodes:
                self.town.slurm.administrator(name, "RESUME")
            return name
        return ""

    def err(self):
        """The API server errs some times."""
        verb = self.dice.choice(("*", "delete", "patch", "create", "get", "list", "watch"))
        status = self.dice.choice((0, 409, 429, 500, 503))
        self.town.fake.faults.append(
            Fault(
                verb,
                self.dice.choice(("*", "pods")),
                status,
                retry_after=1.0 if status == 429 else None,
                times=self.dice.randrange(1, 6),
            )
        )
        return f"{verb} {status}"

    def slow(self):
        """Both servers answer late, or at once again."""
        self.town.fake.latency = self.dice.choice((0.0, 0.0, 0.3, LATENCY))
        self.town.slurm.slow = self.dice.choice((0.0, 0.0, 1.0, 6.0))
        return f"{self.town.fake.latency} {self.town.slurm.slow}"

    def cut(self):
        """All watches end."""
        self.town.fake.world.cut()

    def forget(self):
        """etcd is compacted."""
        self.town.fake.world.compact()

    def slurmrestd(self):
        """It goes, or comes back."""
        self.town.slurm.down = not self.town.slurm.down
        return "down" if self.town.slurm.down else "up"

    def node_fails(self):
        """A Kubernetes Node stops answering, or answers again; what runs there runs on, for all that anybody knows."""
        name = self.dice.choice(MACHINES)
        ready = self.dice.random() < 0.5
        self.town.machine(name, ready=ready)
        return f"{name} {ready}"

    def cordon(self):
        """`kubectl cordon`, or uncordon."""
        name = self.dice.choice(MACHINES)
        off = self.dice.random() < 0.5
        self.town.machine(name, unschedulable=off)
        return f"{name} {off}"

    def configure(self):
        """A line of slurm.conf, and another key of the cluster."""
        self.rounds += 1
        lines = {"slurm": f"MaxJobCount={20000 + self.rounds}"}
        self.town.apply(kinds.SLURMCLUSTER, "demo", {**CLUSTER, "config": {"extraLines": lines}})

    def rotate(self):
        """New keys."""
        self.rounds += 1
        self.town.apply(kinds.SLURMCLUSTER, "demo", {**CLUSTER, "auth": {"rotateRequest": f"r{self.rounds}"}})

    def is_unready(self):
        """A worker's pod does not answer its kubelet's probes for a while: slurmd hangs, and its job does not."""
        pods = [name for name in self.town.names(kinds.POD) if self.town.find(kinds.POD, name)["spec"].get("hostname")]
        if pods:
            name = self.dice.choice(pods)
            status = "False" if self.dice.random() < 0.5 else "True"
            if self.town.find(kinds.POD, name).get("status", {}).get("phase"):
                said = {"phase": "Running", "conditions": [{"type": "Ready", "status": status}]}
                self.town.fake.world.change(kinds.POD, (NS, name), {"status": said}, sub="status")
            return f"{name} {status}"
        return ""

    def pod_dies(self):
        """A kubelet evicts a worker's pod, and its jobs end with it; what waits for a node that wakes goes on waiting."""
        pods = [name for name in self.town.names(kinds.POD) if self.town.find(kinds.POD, name)["spec"].get("hostname")]
        if not pods:
            return ""
        name = self.dice.choice(pods)
        for number in self.jobs_of(name):
            del self.held[number]
            self.town.slurm.ends(number, "NODE_FAIL")
        self.town.fake.world.remove(kinds.POD, NS, name)
        return name

    def nodeset_goes(self):
        """`kubectl delete nodeset`; it comes back some time."""
        name = self.dice.choice(SETS)
        found = self.town.find(kinds.NODESET, name)
        if found is None:
            self.nodeset(name)
            return f"{name} comes"
        if self.dice.random() < 0.3:
            self.town.fake.world.remove(kinds.NODESET, NS, name)
            return f"{name} goes"
        return ""

    # -- its course --------------------------------------------------------------------------------------------------------

    async def rage(self, phases=3, seconds=180.0):
        """The whole storm; an operator begins anew in each phase."""
        for each in MACHINES:
            self.town.machine(each)
        for phase in range(phases):
            async with operating(self.town, execute=self.inside):
                if phase == 0:
                    await self.town.up(CLUSTER, {})
                    for name in SETS:
                        self.nodeset(name)
                parts = [asyncio.create_task(self.kubelets()), asyncio.create_task(self.scheduler())]
                end = self.now + seconds
                while self.now < end:
                    await asyncio.sleep(self.dice.expovariate(0.25))
                    self.happen()
                    self.look()
                if phase == phases - 1:
                    await self.calm()
                for each in parts:
                    each.cancel()
                await asyncio.gather(*parts, return_exceptions=True)

    async def calm(self):
        """All is well again, nobody asks for anything more, and the jobs end: everything is to be as the specs say."""
        self.say("calm")
        self.is_calm = True
        self.town.fake.faults.clear()
        self.town.fake.latency = self.town.slurm.slow = 0.0
        self.town.slurm.down = False
        for each in MACHINES:
            self.town.machine(each, unschedulable=False)
        self.town.slurm.drained.clear()
        for name, node in self.town.slurm.nodes.items():
            if "DRAIN" in node["state"] and node.get("reason") == PERSON:
                self.resumed[name] = self.now
                self.town.slurm.administrator(name, "RESUME")
        for number in list(self.held):
            self.end(number)
        await asyncio.sleep(30)
        for name in SETS:
            self.nodeset(name)
        for name in self.town.names(kinds.POD):
            if self.town.find(kinds.POD, name).get("status", {}).get("phase"):
                ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                self.town.fake.world.change(kinds.POD, (NS, name), {"status": ready}, sub="status")
        end = self.now + 3600
        self.inside.doze_off()
        while self.now < end and self.left():  # noqa: ASYNC110
            await asyncio.sleep(10)
        for each in self.left():
            self.fault(f"an hour after the storm: {each}")
            self.say(f"{each}; nodes {self.town.slurm.nodes}")
            pods = [
                each
                for each in self.town.fake.world.objects.values()
                if each["kind"] == "Pod" and each["spec"].get("hostname")
            ]
            self.say(
                f"{[(each['metadata']['name'], each['metadata'].get('annotations'), each['status'].get('conditions')) for each in pods]}"
            )

    def left(self):
        """What is not as the specs say."""
        for name in SETS:
            if self.town.find(kinds.NODESET, name) is None:
                self.nodeset(name)
        found = []
        for name in SETS:
            status = self.town.status(kinds.NODESET, name)
            awake = [
                node
                for node, each in self.town.slurm.nodes.items()
                if not {"POWERED_DOWN", "POWERING_DOWN"} & set(each["state"])
            ]
            wanted = (
                [f"demo-{node}" for node in sorted(awake) if node.startswith("owl-")]
                if name == "owl"
                else [f"demo-{name}-{number}" for number in range(self.replicas[name])]
            )
            pods = [each for each in self.town.names(kinds.POD) if each.rpartition("-")[0] == f"demo-{name}"]
            if (pods != wanted) if name == "owl" else len(pods) != len(wanted):
                found.append(f"{name} has {pods}, not {wanted}")
            if status.get("why"):
                found.append(f"{name}: {status['why']}")
        found += [
            f"{name} is {node['state']} {node.get('reason')}"
            for name, node in self.town.slurm.nodes.items()
            if _OFF & set(node["state"]) - {"ALLOCATED"}
        ]
        if why := self.town.status(kinds.SLURMCLUSTER, "demo").get("why"):
            found.append(f"demo: {why}")
        return found
