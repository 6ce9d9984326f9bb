"""The whole operator on a fake API server and a fake slurmrestd: state in, passes, state out.

`Town` plays the parts that Kubernetes and Slurm would: `pods_run` makes pods ready as kubelets would, `fill_jail` ends the Job.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from soperator.api.base import GROUP
from soperator.kube import exec as remote
from soperator.kube import kinds
from soperator.kube.exec import Result
from soperator.reconcile.app import AppOptions, assemble
from soperator.reconcile.cache.slurm_poller import SlurmWatch
from soperator.reconcile.context import Operator
from soperator.reconcile.io.jail_watch_client import query_jail
from soperator.runtime.manager import run
from soperator.slurmrest.client import SlurmRest
from tests import statuses
from tests.golden.cases import DEFAULTS
from tests.unit.fake_api import FakeApi
from tests.world.fake_slurm import FakeSlurm

NS = "slurm"


@dataclass
class Town:
    """The fakes, and what a test does to them."""

    fake: FakeApi = field(default_factory=FakeApi)
    slurm: FakeSlurm = field(default_factory=FakeSlurm)
    watch: SlurmWatch | None = None
    operator: Operator | None = None
    controllers: list[object] = field(default_factory=list)
    running: str = ""
    handed: dict[str, str] = field(default_factory=dict)
    wall: Callable[[], float] = time.time
    later: float = 0.0
    asked_inside: int = 0
    is_mute: bool = False
    pod_exec: Callable[..., Awaitable[Result]] = remote.exec

    def __post_init__(self):
        """Let slurmctld execute itself anew when it is told to read its files."""
        self.slurm.reconfigured = self.slurmctld_starts

    def keep_time(self, start: float | None = None):
        """Let the time of day go by as the loop's own does, from `start` (now if None), for the operator, Kubernetes and Slurm alike."""
        loop = asyncio.get_running_loop()
        began = time.time() if start is None else start - loop.time()
        self.wall = self.slurm.wall = lambda: began + loop.time()
        self.fake.world.now = lambda: datetime.fromtimestamp(self.wall(), UTC)

    def slurmctld_starts(self):
        """Let slurmctld read the files that it has."""
        self.running = self.mounted()

    def mounted(self):
        """The generation of the files that slurmctld's pod sees."""
        live = self.find(kinds.CONFIGMAP, "demo-config")
        found = re.search(r"generation=(\w+)", live["data"]["slurm.conf"]) if live else None
        return found[1] if found else ""

    async def execute(self, api, target, command):
        """What a command in a container ends with: slurmctld and sackd say which configuration they have; all others are for `pod_exec`."""
        if command[:2] != ["sh", "-c"] or "generation" not in command[2]:
            return await self.pod_exec(api, target, command)
        self.asked_inside += 1
        if self.is_mute:
            raise remote.ExecFailed(f"{target}: no answer")
        if not self.running:
            self.slurmctld_starts()
        if target.container == "sackd":
            return Result(0, self.handed.get(target.pod, self.running), "")
        return Result(0, f"mounted {self.mounted()}\nrunning {self.running}\n", "")

    def trial_ends(self, refused=""):
        """Let the slurmctld that tries a generation read it, or refuse it with these last words."""
        name = next(each for each in self.names(kinds.POD) if each.startswith("demo-trial-"))
        self._ends(name, {"exitCode": 65, "message": refused} if refused else {"exitCode": 0})

    def configuration_trial_ends(self):
        """Let the slurmctld that tries a generation read it, while others try images."""
        pods = [each["metadata"] for each in self.fake.world.objects.values() if each["kind"] == "Pod"]
        name = next(each["name"] for each in pods if each["labels"][f"{GROUP}/role"] == "trial")
        self._ends(name, {"exitCode": 0})

    def image_trials_end(self, versions, refused=""):
        """Let the slurmctlds that try images say their versions, or refuse the files with these last words; returns which images were tried."""
        pods = [each for each in self.fake.world.objects.values() if each["kind"] == "Pod"]
        tried = [each["metadata"] for each in pods if each["metadata"]["labels"][f"{GROUP}/role"] == "image-trial"]
        images = {each["name"]: each["annotations"][f"{GROUP}/image"] for each in tried}
        for name, image in images.items():
            says = (
                {"exitCode": 0, "message": f"{versions[image]}\n"}
                if image in versions
                else {"exitCode": 65, "message": refused}
            )
            self._ends(name, says)
        return sorted(images.values())

    def _ends(self, name, end):
        status = {"name": "slurmctld", "state": {"terminated": end}}
        said = {"phase": "Failed" if end["exitCode"] else "Succeeded", "containerStatuses": [status]}
        self.fake.world.change(kinds.POD, (NS, name), {"status": said}, sub="status")

    async def poll_no_more(self):
        """Let the operator know of Slurm's nodes only what it asks for."""
        self.watch._period = 3600
        await asyncio.sleep(0.2)

    def apply(self, kind, name, spec):
        """What `kubectl apply` of one of our objects does."""
        if self.find(kind, name):
            self.fake.world.change(kind, (NS, name), {"spec": spec})
        else:
            self.fake.world.seed(
                {
                    "apiVersion": kind.api_version,
                    "kind": kind.kind,
                    "metadata": {"name": name, "namespace": NS},
                    "spec": spec,
                }
            )

    def find(self, kind, name):
        """An object, or None."""
        return self.fake.world.find(kind, NS, name)

    def names(self, kind):
        """The names of all objects of a kind."""
        return sorted(
            each["metadata"]["name"] for each in self.fake.world.objects.values() if each["kind"] == kind.kind
        )

    def machine(self, name, ready=True, since="2026-01-01T00:00:00Z", **spec):
        """A Kubernetes Node with this spec."""
        condition = {"type": "Ready", "status": "True" if ready else "Unknown", "lastTransitionTime": since}
        status = {"conditions": [condition]}
        if self.fake.world.find(kinds.NODE, "", name):
            self.fake.world.change(kinds.NODE, ("", name), {"spec": spec})
            self.fake.world.change(kinds.NODE, ("", name), {"status": status}, sub="status")
        else:
            made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}
            self.fake.world.seed(made)

    def place(self, pod, machine):
        """The scheduler's work."""
        self.fake.world.change(kinds.POD, (NS, pod), {"spec": {"nodeName": machine}})

    def fill_jail(self, cluster="demo"):
        """End the populate Job well."""
        self.fake.world.change(
            kinds.JOB,
            (NS, f"{cluster}-populate"),
            {"status": {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}},
            sub="status",
        )

    def populate_ends(self, name, job, cluster="demo"):
        """Let a pod of the Job with this uid succeed, before the Job itself says so."""
        self.populate_pod(name, job, {"phase": "Succeeded"}, cluster)

    def populate_pod(self, name, job, status, cluster="demo"):
        """Let the Job with this uid have a pod with this status."""
        labels = {f"{GROUP}/cluster": cluster, f"{GROUP}/role": "populate", "app.kubernetes.io/managed-by": "soperator"}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{cluster}-populate", "uid": job}
        meta = {"name": name, "namespace": NS, "labels": labels, "ownerReferences": [owner]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}}
        self.fake.world.seed(pod | {"status": status})

    def login_follows(self, cluster="demo"):
        """Do what the StatefulSet controller would: as many login pods as it is told."""
        wanted = self.find(kinds.STATEFULSET, f"{cluster}-login")["spec"]["replicas"]
        if not wanted and self.find(kinds.POD, f"{cluster}-login-0"):
            self.fake.world.remove(kinds.POD, NS, f"{cluster}-login-0")
        self.daemons_run(cluster) if wanted else None
        self.fake.world.change(
            kinds.STATEFULSET, (NS, f"{cluster}-login"), {"status": {"replicas": wanted}}, sub="status"
        )

    def pods_run(self):
        """Make every pod of ours run and be ready, and every worker register with Slurm."""
        for each in list(self.fake.world.objects.values()):
            if each["kind"] == "Pod" and not each["metadata"]["name"].startswith("demo-trial-"):
                meta = each["metadata"]
                ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                self.fake.world.change(kinds.POD, (NS, meta["name"]), {"status": ready}, sub="status")
                if each["spec"].get("hostname"):
                    name = each["spec"]["hostname"]
                    self.slurm.nodes.setdefault(name, {"name": name, "state": ["IDLE"]} | registered(each))

    def daemons_run(self, cluster="demo"):
        """Do what the StatefulSet and Deployment controllers would: pods of slurmctld, slurmrestd, login and the exporter."""
        sets = {"controller": kinds.STATEFULSET, "login": kinds.STATEFULSET}
        for role in ("controller", "rest", "login", "exporter"):
            kind = sets.get(role, kinds.DEPLOYMENT)
            workload = self.find(kind, f"{cluster}-{role}")
            if workload and not self.find(kinds.POD, f"{cluster}-{role}-0"):
                template = workload["spec"]["template"]
                meta = template["metadata"] | {"name": f"{cluster}-{role}-0", "namespace": NS}
                self.fake.world.seed({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}})
                self.fake.world.change(kind, (NS, f"{cluster}-{role}"), {"status": {"readyReplicas": 1}}, sub="status")

    def restart(self, role, cluster="demo", is_ready=True):
        """Do what a StatefulSet's or Deployment's controller does with a new template: the pod of this role comes anew, and is ready or not."""
        self.fake.world.remove(kinds.POD, NS, f"{cluster}-{role}-0")
        self.daemons_run(cluster)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}]}
        self.fake.world.change(kinds.POD, (NS, f"{cluster}-{role}-0"), {"status": ready}, sub="status")

    def jail_is(self, name, is_well):
        """Let the container that looks at the jail of a worker's pod say that it is well, or sick."""
        running = {"startedAt": "2026-01-01T00:00:00Z"}
        status = {"name": "jail", "ready": is_well, "state": {"running": running}}
        since = "2026-01-01T00:01:00Z"
        ready = {"type": "Ready", "status": "True" if is_well else "False", "lastTransitionTime": since}
        said = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [ready], "containerStatuses": [status]}
        self.fake.world.change(kinds.POD, (NS, name), {"status": said}, sub="status")

    async def settle(self, quiet=0.12, longest=8.0):
        """Return once the operator has asked for nothing for a moment."""
        until = asyncio.get_running_loop().time() + longest
        before = -1
        while asyncio.get_running_loop().time() < until and before != len(self.fake.requests) + len(self.slurm.asked):
            before = len(self.fake.requests) + len(self.slurm.asked)
            await asyncio.sleep(quiet)

    async def up(self, cluster, nodesets):
        """Bring a cluster all the way up."""
        self.apply(kinds.SLURMCLUSTER, "demo", cluster)
        for name, spec in nodesets.items():
            self.apply(kinds.NODESET, name, spec)
        await self.settle()
        self.fill_jail()
        for _ in range(3):
            self.daemons_run()
            self.pods_run()
            await self.settle()

    async def told(self, kind, name, words, longest=6.0):
        """Wait until a status says these words; it is written every few seconds where it tells of progress."""
        until = asyncio.get_running_loop().time() + longest
        while words not in self.says(kind, name):
            assert asyncio.get_running_loop().time() < until, self.status(kind, name)
            await asyncio.sleep(0.05)

    def says(self, kind, name):
        """The column WHY of an object, and the whole messages of its conditions, one on each line."""
        status = self.status(kind, name)
        return "\n".join([status.get("why", ""), *(each.get("message", "") for each in status.get("conditions", ()))])

    def status(self, kind, name):
        """The status that the operator wrote."""
        return self.find(kind, name).get("status", {})


def registered(pod):
    """The features and the weight with which slurmd of a pod registers; none for a pod that is no worker's."""
    env = {each["name"]: each.get("value") for one in pod["spec"]["containers"] for each in one.get("env", ())}
    said = dict(word.split("=", 1) for word in env.get("SOPERATOR_NODE_CONF", "").split() if "=" in word)
    return {"features": said["Feature"].split(","), "weight": int(said.get("Weight", 1))} if "Feature" in said else {}


async def until(what, longest=15.0):
    """Wait until it is so."""
    end = asyncio.get_running_loop().time() + longest
    while not (found := what()):
        assert asyncio.get_running_loop().time() < end, "never"
        await asyncio.sleep(0.05)
    return found


async def _nobody(_ip):
    return ""


@asynccontextmanager
async def operating(
    town: Town, ask=query_jail, hear=_nobody, defaults=DEFAULTS, renderer="1", execute=remote.exec
) -> AsyncIterator[Town]:
    """Run an operator over the town's fakes, and stop it in order; the time of day is the loop's unless the test has its own."""
    if town.wall is time.time:
        town.keep_time()
    for claim in ("demo-jail", "demo-state"):
        if not town.find(kinds.PVC, claim):
            town.fake.world.seed(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {"name": claim, "namespace": NS},
                    "spec": {},
                }
            )

    async def connect(_key):
        return SlurmRest("http://rest", b"key", town.slurm)

    town.pod_exec = execute
    said = AppOptions(defaults, None, None, 0, renderer)
    manager, slurm = assemble(
        town.fake.api(), said, connect, ask, hear, town.execute, wall=lambda: town.wall() + town.later
    )
    slurm._period, town.watch = 0.05, slurm
    town.controllers, town.operator = manager.controllers, manager.controllers[0].reconcile.__self__.operator
    for each in manager.controllers:
        each.rest = 0.0  # the fakes keep the same thread busy
    stop = asyncio.Event()
    task = asyncio.create_task(run(manager, stop))
    try:
        yield town
    finally:
        stop.set()
        slurm.close()
        assert await task == 0
    faults = statuses.faults(statuses_of(town))
    assert faults == [], faults


def statuses_of(town: Town) -> list[dict[str, Any]]:
    """Our objects with each status that the operator ever wrote."""
    history = [each[3] for each in town.fake.world.history]
    return [
        each for each in history if GROUP in each.get("apiVersion", "") and each.get("status", {}).get("conditions")
    ]
