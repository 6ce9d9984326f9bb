"""Under jobs: keys are replaced, while leading operators are killed, and while a backup of slurmctld takes over.

In one module because a rotation waits 90 s for what the former key has signed to expire, and daemons may come and go meanwhile.
"""

import base64
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tests.cluster.lab import OPERATOR, Held, Lab, condition, is_ready
from tests.cluster.leaders import crash, delete, fell, freeze, is_whole, restarts
from tests.cluster.processes import processes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

TAINT = "soperator.test/full"
#: Three times as impatient as by default, so that a test of a takeover is short.
QUICK = "SlurmctldTimeout=10\nMessageTimeout=10"
#: Jobs without a pause from a user's session; none but a takeover may be felt.
STREAM = """while [ ! -e stop-stream ]; do
srun -Q -w worker-1 true && echo ran || echo failed
sbatch -Q -w worker-1 -o /dev/null --wrap "echo done >> stream.jobs" && echo sent || echo refused
sleep 0.5
done; echo ended"""


@pytest.fixture(scope="module")
def held(lab: Lab, alice: str) -> Iterator[Held]:
    """A job that runs through all of it, and ends by itself."""
    held = lab.hold("worker-0")
    yield held
    held.let_go()


@pytest.fixture(scope="module")
def two(lab: Lab) -> Iterator[Lab]:
    """The operator with a standby."""
    scaled(lab, 2)
    yield lab
    scaled(lab, 1)


def scaled(lab: Lab, replicas: int) -> None:
    """So many operators, all of them ready."""
    lab.kubectl("scale", "deployment/soperator", "-n", OPERATOR, f"--replicas={replicas}")
    lab.until(f"{replicas} operators", lambda: is_whole(lab, replicas), 60)


class TestKeys:
    """A rotation from its request until nobody signs with the former key."""

    word = f"test-{int(time.time())}"
    former: dict[str, Any] = {}  # noqa: RUF012
    began = 0.0

    def test_it_goes_on_through_five_deaths_of_the_leading_operator(self, two: Lab, alice: str, held: Held) -> None:
        """While the NodeSet grows and shrinks too: the next leader finishes what the last has begun, and every job of the time runs, once."""
        lab = two
        self.former.update({name: lab.look("secret", f"demo-{name}") for name in ("jwt-key", "ssh-host-keys")})
        lab.ssh(alice, f"rm -f stop-stream stream.out stream.jobs; nohup sh -c '{STREAM}' > stream.out 2>&1 &")
        type(self).began = time.monotonic()
        lab.patch("slurmcluster", lab.cluster, {"auth": {"rotateRequest": self.word}})
        lab.until("the new key is on its way", lambda: stage(lab) != "", 30)
        for number, kill in enumerate((crash, delete, freeze, delete, crash)):
            lab.kubectl("scale", "nodeset/worker", f"--replicas={3 - number % 2}")
            fell(lab, kill)
        lab.kubectl("scale", "nodeset/worker", "--replicas=2")
        lab.until("nobody signs with the former key", lambda: stage(lab) in ("Settling", "Alone"), 90)
        lab.timings.note(
            "auth.rotateRequest → no daemon signs with the former key; five leaders killed", since(self.began)
        )
        lab.ssh(alice, "touch stop-stream")
        lab.until("the stream has ended", lambda: "ended" in lab.ssh(alice, "cat stream.out"), 30)
        said = lab.ssh(alice, "cat stream.out")
        assert set(said.split()) == {"ran", "sent", "ended"}, said
        sent = said.split().count("sent")
        lab.until(f"{sent} batch jobs have run", lambda: lab.ssh(alice, "cat stream.jobs").split() == ["done"] * sent)
        assert (held.state(), held.show()["Restarts"]) == ("RUNNING", "0")


@pytest.fixture(scope="class")
def backup(lab: Lab) -> Iterator[None]:
    """A second slurmctld; at the end it is gone."""
    began = time.monotonic()
    lab.patch("slurmcluster", lab.cluster, {"controller": {"replicas": 2}, "config": {"extraLines": {"slurm": QUICK}}})
    try:
        lab.until("two slurmctlds", lambda: lab.status().get("controller", {}).get("summary") == "2/2", 90)
        lab.until("clients know both", lambda: pings(lab) == ["UP", "UP"], 60)
        lab.timings.note("controller.replicas 1 → 2: both answer, and clients know both", since(began))
        yield
    finally:
        lab.patch(
            "slurmcluster", lab.cluster, {"controller": {"replicas": None}, "config": {"extraLines": {"slurm": None}}}
        )
    lab.until(
        "one slurmctld",
        lambda: lab.status().get("controller", {}).get("summary") == "1/1" and len(lab.pods("controller")) == 1,
        90,
    )
    lab.until("clients know one", lambda: pings(lab) == ["UP"], 60)
    lab.wait_available()


@pytest.mark.usefixtures("backup")
class TestBackup:
    """A second slurmctld, while jobs run and wait."""

    def test_it_takes_over_and_the_first_leads_again_when_it_is_back(self, lab: Lab, alice: str, held: Held) -> None:
        """With the first gone and nowhere to come back, the running job goes on, the waiting one waits, a new one runs; no worker is replaced."""
        before, first = uids(lab), lab.pods("controller")[f"{lab.cluster}-controller-0"]["metadata"]["uid"]
        waiting = submit(lab, "--hold")
        with full(lab):
            lab.kubectl("delete", "pod", f"{lab.cluster}-controller-0", "--grace-period=1", "--wait=false")
            began = time.monotonic()
            lab.until("the backup leads", lambda: pings(lab) == ["DOWN", "UP"] and answers(lab), 120)
            assert lab.ssh(alice, "srun -Q -w worker-1 hostname") == "worker-1\n"
            lab.timings.note("slurmctld gone → its backup has run a new job (SlurmctldTimeout=10)", since(began))
            assert (held.state(), held.show()["Restarts"]) == ("RUNNING", "0")
            assert state(lab, waiting) == "PENDING"
            lab.until("the cluster says so", lambda: "slurmctld 1/2 ready" in lab.says(), 30)
        began = time.monotonic()
        lab.until("the first is back", lambda: is_back(lab, first), 60)
        lab.until("the first leads", lambda: pings(lab) == ["UP", "UP"] and answers(lab), 120)
        lab.ssh(alice, f"scontrol release {waiting}")
        lab.until("the waiting job has run", lambda: state(lab, waiting) == "COMPLETED")
        lab.timings.note("the first slurmctld may come back → it leads, and the waiting job has run", since(began))
        assert (held.state(), held.show()["Restarts"]) == ("RUNNING", "0")
        assert uids(lab) == before

    def test_a_leader_that_stood_still_is_killed_when_it_wakes(self, lab: Lab, alice: str, held: Held) -> None:
        """It begins anew and leads, and what ran before goes on; what its backup took meanwhile may be forgotten (decision 46)."""
        if not lab.target.is_local:
            pytest.skip("the processes of a container are stopped from its Node")
        pod, before = f"{lab.cluster}-controller-0", restarts(lab, f"{lab.cluster}-controller-0", lab.namespace)
        with paused(pod):
            began = time.monotonic()
            lab.until("the backup leads", lambda: leads(lab) == 1 and answers(lab), 120)
            lab.timings.note("slurmctld's machine stands still → its backup leads (SlurmctldTimeout=10)", since(began))
            # One that ran might get its number given again, which the slurmd of its node would refuse.
            meanwhile = submit(lab, "--hold")
            assert state(lab, meanwhile) == "PENDING"
        began = time.monotonic()
        lab.until("it was started anew", lambda: restarts(lab, pod, lab.namespace) > before, 30)
        lab.until("it leads", lambda: leads(lab) == 0 and answers(lab), 60)
        lab.timings.note("slurmctld wakes → it was killed, and leads anew", since(began))
        assert "stood still for" in lab.kubectl("logs", pod, "-c", "slurmctld", "--previous")
        after = submit(lab, "-w worker-1")
        lab.until("a job has run afterwards", lambda: state(lab, after) == "COMPLETED")
        lab.ssh(alice, f"scancel {meanwhile} 2>/dev/null || true")
        assert (held.state(), held.show()["Restarts"]) == ("RUNNING", "0")


class TestKeysAfterwards:
    """The same rotation at its end."""

    def test_the_former_keys_are_nowhere_any_more(self, lab: Lab, alice: str, held: Held) -> None:
        """Every daemon knows the new key alone, REST has another, host keys are untouched, and the job of before goes on."""
        word, former = TestKeys.word, TestKeys.former
        lab.until("the rotation is over", lambda: lab.status().get("keys") == word, 150)
        lab.timings.note("auth.rotateRequest → the former keys are nowhere", since(TestKeys.began))
        assert condition(lab.status(), "KeysSettled")["reason"] == "Rotated"
        for name, daemon in (("controller-0", "slurmctld"), ("login-0", "sackd"), ("worker-0", "slurmd")):
            assert known(lab, f"demo-{name}", daemon) == [word]
        assert lab.look("secret", "demo-jwt-key")["data"] != former["jwt-key"]["data"]
        assert lab.look("secret", "demo-ssh-host-keys") == former["ssh-host-keys"]
        assert sorted(lab.ssh(alice, "srun -w worker-1 hostname").split()) == ["worker-1"]
        assert (held.state(), held.show()["Restarts"]) == ("RUNNING", "0")
        lab.wait_available()


# -- keys -------------------------------------------------------------------------------------------------------------


def stage(lab: Lab) -> str:
    """How far the rotation is, as the Secret has it."""
    found = lab.look("secret", "demo-auth-key")["metadata"].get("annotations", {})
    return str(found.get("slurm.soperator.io/rotation-stage", ""))


def known(lab: Lab, pod: str, container: str) -> list[str]:
    """The ids of the keys that a daemon has."""
    said = lab.kubectl("exec", pod, "-c", container, "--", "cat", "/run/soperator/keys/slurm.jwks")
    assert base64.b64decode(json.loads(said)["keys"][0]["k"])
    return [each["kid"] for each in json.loads(said)["keys"]]


# -- slurmctld --------------------------------------------------------------------------------------------------------


def submit(lab: Lab, options: str, script: str = "hostname") -> str:
    """The number of a job of alice's."""
    return lab.ssh("alice", f"rm -f woken; sbatch --parsable {options} -o /dev/null --wrap '{script}'").strip()


def state(lab: Lab, job: str) -> str:
    """What Slurm says of a job."""
    return lab.ssh("alice", f"scontrol show job -o {job}").partition("JobState=")[2].split()[0]


def leads(lab: Lab) -> int:
    """The place of the slurmctld whose heart beats."""
    beat = "od -An -v -t u8 --endian=big -N 16 /var/spool/slurmctld/heartbeat"
    said = lab.tried("exec", f"{lab.cluster}-controller-1", "-c", "slurmctld", "--", "sh", "-c", beat).stdout.split()
    return int(said[1]) if len(said) == 2 else -1


@contextmanager
def paused(pod: str) -> Iterator[None]:
    """As with a machine that is paused: slurmctld and all around it in its container stands still, and nobody can reach it."""
    pids = processes("slurmctld", pod)
    wall = ["nsenter", "-t", str(pids[0]), "-n", "nft"]
    subprocess.run(
        [
            *wall,
            "add table inet paused; add chain inet paused wall { type filter hook input priority 0; policy drop; }",
        ],
        check=True,
    )
    signal_all(pids, signal.SIGSTOP)
    try:
        yield
    finally:
        subprocess.run([*wall, "delete table inet paused"], check=True)
        signal_all(pids, signal.SIGCONT)


def signal_all(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to processes that may be gone."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def pings(lab: Lab) -> list[str]:
    """What `scontrol ping` says of each slurmctld, in their order."""
    said = lab.ssh("alice", "timeout 20 scontrol ping || true")
    return [line.rpartition(" ")[2] for line in said.splitlines() if line.startswith("Slurmctld(")]


def answers(lab: Lab) -> bool:
    """Whether somebody tells of the nodes."""
    return "worker-1" in lab.ssh("alice", "timeout 10 sinfo -h -N -o %N || true")


def is_back(lab: Lab, before: str) -> bool:
    """Whether the first slurmctld's pod is another one, and ready."""
    found = lab.pods("controller").get(f"{lab.cluster}-controller-0")
    return found is not None and found["metadata"]["uid"] != before and is_ready(found)


@contextmanager
def full(lab: Lab) -> Iterator[None]:
    """No Node takes a new pod."""
    lab.kubectl("taint", "node", "--all", f"{TAINT}=:NoSchedule")
    try:
        yield
    finally:
        lab.kubectl("taint", "node", "--all", f"{TAINT}-")


def uids(lab: Lab) -> dict[str, str]:
    """The pods of login and workers, with their identity."""
    return {name: pod["metadata"]["uid"] for role in ("worker", "login") for name, pod in lab.pods(role).items()}


def since(began: float) -> float:
    """Seconds."""
    return time.monotonic() - began
