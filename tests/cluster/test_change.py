"""Changes under running jobs: an array through a rollout, a Node that is drained, and an operator that knows nothing while Slurm is silent."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.lab import OPERATOR, TICK, Held, Lab, is_ready

pytestmark = pytest.mark.cluster

TASKS = 20


def test_a_rollout_under_an_array_of_short_jobs_loses_none(lab: Lab, alice: str) -> None:
    """Both nodes are replaced while the array runs; each task ran once, to its end, and left its output."""
    before = uids(lab)
    script = "sleep 1.5; echo $SLURM_ARRAY_TASK_ID"
    number = lab.ssh(alice, f"rm -f array.*; sbatch --parsable --array=1-{TASKS} -o array.%a --wrap '{script}'").strip()
    lab.patch("nodeset", "worker", {"podTemplate": {"metadata": {"annotations": {"rolled": number}}}})
    lab.timed("rollout under an array: kubectl patch → both nodes are new", lambda: is_replaced(lab, before), 120)
    lab.until("the array has ended", lambda: not lab.ssh(alice, f"squeue -h -j {number}").strip(), 90)
    shown = lab.ssh(alice, f"scontrol show job -o {number}").splitlines()
    ends = [re.search(r"JobState=(\S+).* Restarts=(\d+)", line) for line in shown]
    assert [(end[1], end[2]) for end in ends if end] == [("COMPLETED", "0")] * TASKS
    assert sorted(map(int, lab.ssh(alice, "cat array.*").split())) == list(range(1, TASKS + 1))
    lab.wait_available()


def test_kubectl_drain_of_a_node_ends_when_the_job_has_ended(lab: Lab, alice: str) -> None:
    """The worker is protected while its job runs; then it is evicted, comes back elsewhere, and the Node is free."""
    held = lab.hold("worker-1")
    node, uid = lab.pods("worker")["demo-worker-1"]["spec"]["nodeName"], uids(lab)["demo-worker-1"]
    words = ["--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s"]
    with draining(lab, node, *words, "--pod-selector=slurm.soperator.io/role=worker") as drain:
        lab.until("the NodeSet says why", lambda: f"Node {node} is cordoned: worker-1 drains" in why(lab), 30)
        lab.until(
            "Slurm says why", lambda: f"Node {node} is cordoned" in lab.ssh(alice, "sinfo -h -n worker-1 -o %E"), 10
        )
        time.sleep(5)
        assert drain.poll() is None
        assert held.state() == "RUNNING"
        assert uids(lab)["demo-worker-1"] == uid
        held.let_go()
        lab.timed("kubectl drain: the job has ended → the Node is empty", lambda: drain.poll() is not None, 60)
        assert drain.returncode == 0, drain.stdout.read() if drain.stdout else ""
        lab.until("the worker is back elsewhere", lambda: uids(lab).get("demo-worker-1", uid) != uid, 60)
        assert lab.ssh(alice, "srun -w worker-1 hostname") == "worker-1\n"
    lab.kubectl("delete", "pod", "demo-worker-1")
    lab.wait_available()


def test_a_bounded_drain_warns_a_job_and_requeues_it(lab: Lab, alice: str) -> None:
    """An annotation of the Node drains its worker; after the warning the job waits for its turn again, and the node is free."""
    warn = 'trap "echo warned > warned" USR1; rm -f warned; while :; do sleep 0.2; done'
    number = lab.ssh(alice, f"sbatch --parsable --requeue -w worker-1 -o /dev/null --wrap '{warn}'").strip()
    lab.until("the job runs", lambda: lab.ssh(alice, f"squeue -h -j {number} -o %T").strip() == "RUNNING", 30)
    node, mark = lab.pods("worker")["demo-worker-1"]["spec"]["nodeName"], "slurm.soperator.io/drain"
    lab.patch(
        "nodeset",
        "worker",
        {"drain": {"timeout": "1s", "onTimeout": "Requeue", "warningSignal": "USR1", "warningPeriod": "4s"}},
    )
    lab.kubectl("annotate", "node", node, f"{mark}=true")
    try:
        lab.until("users see until when", lambda: "its jobs end at" in lab.ssh(alice, "sinfo -h -n worker-1 -o %E"), 30)
        assert lab.ssh(alice, f"squeue -h -j {number} -o %T").strip() == "RUNNING"
        lab.until("the job waits again", lambda: "PENDING" in lab.ssh(alice, f"squeue -h -j {number} -o %T"), 30)
        assert lab.ssh(alice, "cat warned") == "warned\n"
        assert "Restarts=1" in lab.ssh(alice, f"scontrol show job -o {number}")
        lab.until("the worker may be evicted", lambda: protection(lab, "demo-worker-1") == "false", 30)
    finally:
        lab.ssh(alice, f"scancel {number}")
        lab.kubectl("annotate", "node", node, f"{mark}-")
        lab.patch("nodeset", "worker", {"drain": None})
    lab.until("the worker is protected again", lambda: protection(lab, "demo-worker-1") == "true", 30)
    lab.until("its node is idle", lambda: lab.ssh(alice, "sinfo -h -n worker-1 -o %T").strip() == "idle", 30)
    lab.wait_available()


def protection(lab: Lab, name: str) -> str:
    """The label by which our PodDisruptionBudget finds a worker."""
    return str(lab.pods("worker")[name]["metadata"]["labels"]["slurm.soperator.io/protected"])


def test_a_busy_worker_stays_while_slurm_is_silent_and_the_operator_is_new(lab: Lab, alice: str) -> None:
    """It belongs to the scale-in, slurmrestd is stopped and the operator has just started: none goes; with an answer the idle one does."""
    if not lab.target.is_local:
        pytest.skip("processes of a foreign cluster cannot be stopped")
    lab.wait_available()
    held, before = lab.hold("worker-0"), uids(lab)
    with hung("slurmrestd"):
        lab.kubectl("delete", "pod", "-n", OPERATOR, "-l", "app.kubernetes.io/name=soperator", "--grace-period=1")
        lab.kubectl("scale", "nodeset/worker", "--replicas=0")
        lab.until(
            "the new operator tells what it waits for",
            lambda: why(lab) == "scale-in: worker-0 waits for Slurm's answer, worker-1 waits for Slurm's answer",
            60,
        )
        time.sleep(10)
        assert uids(lab) == before
        assert held.state() == "RUNNING"
    lab.timed("slurmrestd answers again → the idle worker goes", lambda: set(uids(lab)) == {"demo-worker-0"}, 60)
    lab.until("the busy one drains", lambda: "scale-in: worker-0 drains" in why(lab), 30)
    end(held, lab)


def end(held: Held, lab: Lab) -> None:
    """Two workers as before."""
    assert held.state() == "RUNNING"
    lab.kubectl("scale", "nodeset/worker", "--replicas=2")
    held.let_go()
    lab.wait_available()


def uids(lab: Lab) -> dict[str, str]:
    """The workers' pods that are ready, with their identity."""
    return {name: pod["metadata"]["uid"] for name, pod in lab.pods("worker").items() if is_ready(pod)}


def is_replaced(lab: Lab, before: dict[str, str]) -> bool:
    """Whether every worker is another pod, and all are settled."""
    now = uids(lab)
    return set(now) == set(before) and now.items().isdisjoint(before.items()) and lab.is_whole()


def why(lab: Lab) -> str:
    """What the NodeSet says."""
    return str(lab.look("nodeset", "worker")["status"].get("why", ""))


@contextmanager
def draining(lab: Lab, node: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """`kubectl drain` in the background, and `kubectl uncordon` at the end."""
    command = ["kubectl", "drain", node, *words]
    made = subprocess.Popen(command, env=lab.target.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield made
    finally:
        made.terminate()
        made.wait()
        lab.kubectl("uncordon", node)


@contextmanager
def hung(program: str) -> Iterator[None]:
    """Stop every process of a program of this machine's Nodes, and let them go on at the end."""
    pids = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/comm") if _reads(path) == program[:15]]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(TICK)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _reads(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
