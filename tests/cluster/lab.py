"""What the tests do to the cluster, and how they wait for it.

A user's acts go through SSH, an administrator's through kubectl and helm, and nothing else is used. Waiting is asking again until an answer is
good; a wait that ends without one says what was seen: the objects with their `why`, the pods, the last events and Slurm's own view.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from local import demo, slurm_release
from local.demo import Target
from tests.late import until

T = TypeVar("T")

OPERATOR = "soperator-system"
TICK = 0.2
PAIR = {"requests": {"cpu": "50m", "memory": "2Gi"}, "limits": {"cpu": "2"}}


@dataclass
class Timings:
    """What took how long, for the summary at the end of the run."""

    lines: list[str] = field(default_factory=list)

    def note(self, what: str, seconds: float) -> None:
        """Keep one figure."""
        self.lines.append(f"{seconds:7.1f} s  {what}")


@dataclass
class Lab:
    """One Slurm cluster in Kubernetes, as its users and its administrator reach it."""

    target: Target
    namespace: str
    cluster: str
    timings: Timings

    @cached_property
    def address(self) -> str:
        """The ssh command that the cluster's status gives."""
        return str(self.until("an ssh address in the status", lambda: self.status().get("address")))

    # -- administrator ------------------------------------------------------------------------------------------------

    def tried(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """A kubectl command in the cluster's namespace, whatever its end."""
        command, env = ["kubectl", "-n", self.namespace, *words], self.target.env
        return subprocess.run(command, input=stdin, capture_output=True, text=True, env=env, check=False, timeout=120)

    def kubectl(self, *words: str, stdin: str = "") -> str:
        """What kubectl printed; fails with its errors."""
        done = self.tried(*words, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def soperator(self, *words: str) -> str:
        """What our command line printed against this cluster; fails with its errors."""
        env = os.environ | {"KUBECONFIG": self.target.kubeconfig}
        command = [sys.executable, "-m", "soperator.cli", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=60)
        assert done.returncode == 0, f"soperator {' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def look(self, kind: str, name: str) -> dict[str, Any]:
        """One object; an empty one where there is none."""
        got = self.kubectl("get", kind, name, "--ignore-not-found", "-o", "json")
        found: dict[str, Any] = json.loads(got) if got.strip() else {}
        return found

    def pods(self, role: str = "", namespace: str = "") -> dict[str, dict[str, Any]]:
        """The pods by name: all of the namespace, or those of one role of this cluster."""
        chosen = ["-l", f"slurm.soperator.io/cluster={self.cluster},slurm.soperator.io/role={role}"] if role else []
        items = json.loads(self.kubectl("get", "pods", "-n", namespace or self.namespace, *chosen, "-o", "json"))
        return {each["metadata"]["name"]: each for each in items["items"]}

    def status(self, kind: str = "slurmcluster", name: str = "") -> dict[str, Any]:
        """The status of one of our objects; empty while it is of an older spec."""
        found = self.look(kind, name or self.cluster)
        status: dict[str, Any] = found.get("status", {})
        fresh = status.get("observedGeneration") == found.get("metadata", {}).get("generation")
        return status if fresh else {}

    def says(self, kind: str = "slurmcluster", name: str = "") -> str:
        """The column WHY of one of our objects and the whole messages of its conditions; empty while they are of an older spec."""
        return says(self.status(kind, name))

    def patch(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        """Merge into an object's spec; a None removes a field. What the release of Slurm needs of slurm.conf stays."""
        spec = slurm_release.with_settings(spec, is_patch=True) if kind == "slurmcluster" else spec
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def apply(self, kind: str, name: str, spec: dict[str, Any]) -> "subprocess.CompletedProcess[str]":
        """What `kubectl apply` of one of our objects ends with."""
        version = "slurm.soperator.io/v1alpha1"
        made = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        return self.tried("apply", "-f", "-", stdin=json.dumps(made))

    @contextmanager
    def pair_nodes(self, name: str, count: int, patience: int) -> Iterator[list[str]]:
        """Nodes of their own with two CPUs and 2 GiB, on which two jobs fit; at the end their jobs and they go within `patience` seconds.

        They have the same memory per CPU as the nodes of the demo: slurm.conf stays as it is.
        """
        done = self.apply("NodeSet", name, {"clusterRef": {"name": self.cluster}, "replicas": count, "resources": PAIR})
        assert done.returncode == 0, done.stderr
        self.wait_available()
        nodes = [f"{name}-{number}" for number in range(count)]
        try:
            yield nodes
        finally:
            self.ssh("root", f"scancel -w {','.join(nodes)}")
            self.kubectl("delete", "nodeset", name, "--ignore-not-found", f"--timeout={patience}s")
        self.wait_available()

    def wait_available(self, seconds: float = 120) -> float:
        """Wait until everything that is wanted is there; return how long that took."""
        began = time.monotonic()
        self.until(f"SlurmCluster {self.cluster} available with nothing to say", self.is_whole, seconds)
        return time.monotonic() - began

    def is_whole(self) -> bool:
        """Whether the cluster and all its NodeSets say that nothing is missing, and no pod of theirs is on its way out."""
        status = self.status()
        available = condition(status, "Available") if status else {}
        if available.get("status") != "True" or available.get("message"):
            return False
        sets = json.loads(self.kubectl("get", "nodeset", "-o", "json"))["items"]
        ours = [each for each in sets if each["spec"]["clusterRef"]["name"] == self.cluster]
        pods = [each["metadata"] for each in self.pods().values()]
        return all(is_settled(each) for each in ours) and not any(each.get("deletionTimestamp") for each in pods)

    # -- users --------------------------------------------------------------------------------------------------------

    def ssh(self, user: str, command: str, stdin: bytes = b"") -> str:
        """What a command printed on the login node; fails with its errors."""
        return demo.remote(self.address, user, command, stdin)

    def words(self, program: str, user: str) -> list[str]:
        """The command line of scp or sftp up to its operands, and the host's part `user@address:` as the last word."""
        *options, flag, port, host = demo.ssh(self.address, user)
        assert flag == "-p"
        return [program, *options[1:], "-P", port, f"{host}:"]

    def hold(self, node: str, user: str = "alice") -> "Held":
        """Start a job on a node that runs until it is let go, and wait until it runs."""
        script = (
            "echo began on $(hostname); "
            "while [ ! -e $HOME/go-$SLURM_CLUSTER_NAME-$SLURM_JOB_ID ]; do sleep 0.2; done; echo ended on $(hostname)"
        )
        number = self.ssh(user, f"sbatch --parsable -w {node} -o $HOME/held-%j.out --wrap '{script}'").strip()
        held = Held(self, number, node, user)
        self.until(f"job {number} runs on {node}", lambda: held.state() == "RUNNING", 60)
        return held

    # -- waiting ------------------------------------------------------------------------------------------------------

    def until(self, what: str, ask: Callable[[], T], seconds: float = 60) -> T:
        """Ask until the answer is true and return it; fail with what was seen instead."""
        return until(what, ask, seconds, self.seen, TICK)

    def timed(self, what: str, ask: Callable[[], T], seconds: float = 60) -> float:
        """Wait as `until` does, and keep and return how long it took."""
        began = time.monotonic()
        self.until(what, ask, seconds)
        took = time.monotonic() - began
        self.timings.note(what, took)
        return took

    def seen(self) -> str:
        """The state of things, for a person who reads a failure."""
        parts = [
            self._tail("get", "slurmcluster,nodeset,healthcheck", "-o", "wide"),
            self._tail("get", "healthcheck", "-o", "jsonpath={range .items[*]}{.metadata.name}: {.status}{end}"),
            self._tail("get", "pods,pvc", "-o", "wide"),
            self._tail("get", "nodes"),
            self._tail("get", "events", "--sort-by=.lastTimestamp", lines=12),
            self._slurm(),
            *(self._tail("logs", name, "-c", "sackd", "--previous", lines=8) for name in self.pods("login")),
        ]
        return "\n".join(parts)

    def _tail(self, *words: str, lines: int = 40) -> str:
        done = self.tried(*words)
        return "\n".join((done.stdout + done.stderr).splitlines()[-lines:])

    def _slurm(self) -> str:
        if "address" not in self.__dict__:
            return ""
        command = [*demo.ssh(self.address, "root"), "timeout 5 sinfo -N -l; timeout 5 squeue -a; timeout 5 sinfo -R"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
        except subprocess.TimeoutExpired:
            return "login does not answer"
        return done.stdout + done.stderr


@dataclass(frozen=True)
class Held:
    """A job that runs until it is let go."""

    lab: Lab
    number: str
    node: str
    user: str

    def show(self) -> dict[str, str]:
        """What `scontrol show job` says of it."""
        line = self.lab.ssh(self.user, f"scontrol show job -o {self.number}")
        return dict(word.split("=", 1) for word in line.split() if "=" in word)

    def state(self) -> str:
        """The job's state in Slurm's word."""
        return self.show()["JobState"]

    def let_go(self) -> None:
        """Let the job end, and check that it did so by itself, on its node, in one run."""
        self.lab.ssh(self.user, f"touch $HOME/go-{self.lab.cluster}-{self.number}")
        self.lab.until(f"job {self.number} has ended", lambda: self.state() not in ("RUNNING", "COMPLETING"), 30)
        job = self.show()
        assert (job["JobState"], job["ExitCode"], job["Restarts"], job["NodeList"]) == (
            "COMPLETED",
            "0:0",
            "0",
            self.node,
        ), job
        output = self.lab.ssh(self.user, f"cat $HOME/held-{self.number}.out")
        assert output == f"began on {self.node}\nended on {self.node}\n"


def condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    """One condition of a status; an unknown one where there is none yet."""
    found: dict[str, Any] = {"status": "Unknown", "message": "", "reason": ""}
    return next((each for each in status.get("conditions", ()) if each["type"] == kind), found)


def says(status: dict[str, Any]) -> str:
    """The column WHY and the whole messages of the conditions, one on each line."""
    return "\n".join([status.get("why", ""), *(each.get("message", "") for each in status.get("conditions", ()))])


def is_settled(nodeset: dict[str, Any]) -> bool:
    """Whether a NodeSet has what its present spec wants and nothing more; where nodes sleep, whoever is awake is ready."""
    status, spec = nodeset.get("status", {}), nodeset["spec"]
    wanted = status.get("replicas") if spec.get("powerSaving") else spec["replicas"]
    fresh = status.get("observedGeneration") == nodeset["metadata"]["generation"]
    return fresh and not status.get("why") and status.get("readyReplicas") == status.get("replicas") == wanted


def is_ready(pod: dict[str, Any]) -> bool:
    """Whether Kubernetes calls a pod ready, and it is not on its way out."""
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))
    return ready and "deletionTimestamp" not in pod["metadata"]


def local(*words: str) -> str:
    """What `python3 -m local …` printed: a Node's power switch, not an act upon Kubernetes."""
    command = ["/usr/bin/python3" if Path("/usr/bin/python3").exists() else "python3", "-m", "local", *words]
    done = subprocess.run(command, cwd=demo.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
