"""A whole Node loses its power and gets it back."""

import os
import signal
import time

import pytest

from tests.cluster.lab import OPERATOR, Lab, local
from tests.cluster.processes import processes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


def test_an_nginx_that_was_killed_begins_again(lab: Lab) -> None:
    """What it left in its folder, a socket among it, keeps no other one from listening there: the operator asks Slurm through it."""
    if not lab.target.is_local:
        pytest.skip("the processes of a foreign cluster are not in reach")
    lab.wait_available()
    (pod,) = lab.pods("rest").values()
    name = pod["metadata"]["name"]
    before = processes("/etc/nginx/operator.conf", name)
    assert before
    for pid in (*before, *processes("worker process", name)):
        os.kill(pid, signal.SIGKILL)
    lab.until("another nginx runs", lambda: set(processes("/etc/nginx/operator.conf", name)) - set(before), 30)
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
        assert words in lab.kubectl("get", "slurmcluster,nodeset")
    finally:
        began = time.monotonic()
        local("node", "start", node)
        lab.timings.note("Node started → Ready", time.monotonic() - began)
    lab.wait_available(150)
    lab.timings.note("Node started → available again", time.monotonic() - began)
    lab.until("both nodes are idle", lambda: lab.ssh(alice, "sinfo -h -t idle -o %D").strip() == "2", 60)
    assert sorted(lab.ssh(alice, "srun -N2 hostname").split()) == ["worker-0", "worker-1"]
    lab.timings.note("Node started → a job has run on both nodes", time.monotonic() - began)


def machines(lab: Lab) -> set[str]:
    """The Nodes on which workers run."""
    return {pod["spec"]["nodeName"] for pod in lab.pods("worker").values()}


def operators_machines(lab: Lab) -> set[str]:
    """The Nodes on which the operator runs: on such a one nobody would be there to tell."""
    return {pod["spec"]["nodeName"] for pod in lab.pods(namespace=OPERATOR).values()}
