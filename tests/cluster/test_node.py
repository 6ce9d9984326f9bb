"""A whole Node loses its power and gets it back; single processes are killed at bad moments."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress

import pytest

from tests.cluster.lab import OPERATOR, Lab, is_ready, local
from tests.cluster.processes import processes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


def test_an_nginx_that_was_killed_begins_again(lab: Lab) -> None:
    """What it left in its folder, a socket among it, keeps no other one from listening there: the operator asks Slurm through it."""
    if not lab.target.is_local:
        pytest.skip("the processes of a foreign cluster are not in reach")
    lab.wait_available()
    (pod,) = (each for each in lab.pods("rest").values() if "deletionTimestamp" not in each["metadata"])
    name = pod["metadata"]["name"]
    before = processes("/etc/nginx/operator.conf", name)
    assert before
    send((*before, *processes("worker process", name)), signal.SIGKILL)
    lab.until("another nginx runs", lambda: set(processes("/etc/nginx/operator.conf", name)) - set(before), 30)
    lab.wait_available()


def test_a_login_pod_that_is_ready_has_slurms_configuration(lab: Lab, alice: str) -> None:
    """slurmctld takes sackd's question and is killed before it answers: sackd asks again at once, and users come in only when `sbatch` works."""
    if not lab.target.is_local:
        pytest.skip("the processes of a foreign cluster are not in reach")
    lab.wait_available()
    login = f"{lab.cluster}-login-0"
    slurmctld = processes("/usr/sbin/slurmctld", f"{lab.cluster}-controller-0")
    assert slurmctld
    send(slurmctld, signal.SIGSTOP)
    try:
        lab.kubectl("delete", "pod", login, "--wait=true")
        lab.until("sackd of the new pod runs", lambda: processes("/usr/sbin/sackd", login), 30)
        time.sleep(1.0)  # its question is on its way; nothing shows it
        assert not is_ready(lab.look("pod", login))
    finally:
        send(slurmctld, signal.SIGKILL)
    began = time.monotonic()
    lab.until("login is ready", lambda: is_ready(lab.look("pod", login)), 30)
    assert lab.ssh(alice, "sbatch --parsable --wrap true").strip().isdigit()
    lab.timings.note("slurmctld killed under sackd's question → login takes jobs", time.monotonic() - began)
    assert "Retrying" in lab.kubectl("logs", login, "-c", "sackd")
    lab.wait_available()


def test_a_node_that_stops_is_told_and_comes_back(lab: Lab, alice: str) -> None:
    """While a Node is off both kinds say that it is NotReady; when it is on again everything comes back by itself and a job runs on both."""
    if not lab.target.is_local:
        pytest.skip("the Nodes of a foreign cluster cannot be switched off")
    lab.wait_available()
    node = next(each for each in machines(lab) if each not in operators_machines(lab))
    began = time.monotonic()
    local("node", "stop", node)
    try:
        words = f"its Node {node} is NotReady"
        lab.until("the cluster tells", lambda: words in lab.look("slurmcluster", lab.cluster)["status"]["why"], 90)
        lab.until("the NodeSet tells", lambda: words in lab.look("nodeset", "worker")["status"]["why"], 30)
        lab.timings.note("Node stopped → both kinds tell", time.monotonic() - began)
        assert words in lab.kubectl("get", "slurmcluster,nodeset", "-o", "wide")
    finally:
        began = time.monotonic()
        local("node", "start", node)
        lab.timings.note("Node started → Ready", time.monotonic() - began)
    lab.wait_available(150)
    lab.timings.note("Node started → available again", time.monotonic() - began)
    lab.until("both nodes are idle", lambda: lab.ssh(alice, "sinfo -h -t idle -o %D").strip() == "2", 60)
    assert sorted(lab.ssh(alice, "srun -N2 hostname").split()) == ["worker-0", "worker-1"]
    lab.timings.note("Node started → a job has run on both nodes", time.monotonic() - began)


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send each process a signal; one may end with another one before it."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def machines(lab: Lab) -> set[str]:
    """The Nodes on which workers run."""
    return {pod["spec"]["nodeName"] for pod in lab.pods("worker").values()}


def operators_machines(lab: Lab) -> set[str]:
    """The Nodes on which the operator runs: on such a one nobody would be there to tell."""
    return {pod["spec"]["nodeName"] for pod in lab.pods(namespace=OPERATOR).values()}
