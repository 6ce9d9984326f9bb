"""Kubernetes' scheduler takes a worker's place for a pod of a higher priority: the job on it ends first, by itself."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.lab import Lab, is_ready

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

SEAT = "example.com/seat"
LOW, HIGH = "soperator-test-guest", "soperator-test-owner"


@pytest.fixture(scope="module", autouse=True)
def guest(lab: Lab, alice: str) -> Iterator[None]:
    """A node that has the one seat that there is, and gives way."""
    assert alice
    node = json.loads(lab.kubectl("get", "nodes", "-o", "json"))["items"][0]["metadata"]["name"]
    seat = [{"op": "add", "path": "/status/capacity/example.com~1seat", "value": "1"}]
    lab.kubectl("patch", "node", node, "--subresource=status", "--type=json", "-p", json.dumps(seat))
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": policy,
        }
        for name, value, policy in ((LOW, -10, "Never"), (HIGH, 10, "PreemptLowerPriority"))
    ]
    try:
        lab.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": classes}))
        spec = {
            "clusterRef": {"name": lab.cluster},
            "resources": {"requests": {"cpu": "50m", "memory": "1Gi"}, "limits": {"cpu": "1"}},
            "rdma": {"resources": {SEAT: "1"}},
            "scheduling": {"priorityClassName": LOW},
            "preemptible": {"gracePeriod": "1h"},
        }
        done = lab.apply("NodeSet", "guest", spec)
        assert done.returncode == 0, done.stderr
        lab.wait_available()
        yield
    finally:
        lab.kubectl("delete", "pod", "owner", "--ignore-not-found", "--grace-period=0", "--force")
        lab.ssh("root", "scancel -w guest-0")
        lab.kubectl("delete", "nodeset", "guest", "--ignore-not-found", "--timeout=90s")
        lab.kubectl("delete", "priorityclass", LOW, HIGH, "--ignore-not-found")
        remove = [{"op": "remove", "path": "/status/capacity/example.com~1seat"}]
        lab.tried("patch", "node", node, "--subresource=status", "--type=json", "-p", json.dumps(remove))
        lab.wait_available()


def owner(lab: Lab) -> dict[str, object]:
    """A pod that wants the seat, of an image that is there."""
    image = lab.pods("worker")[f"{lab.cluster}-guest-0"]["spec"]["containers"][0]["image"]
    container = {
        "name": "sleep",
        "image": image,
        "command": ["sleep", "600"],
        "resources": {"limits": {SEAT: "1"}},
    }
    spec = {"priorityClassName": HIGH, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "owner"}, "spec": spec}


def guest_pod(lab: Lab) -> dict[str, dict[str, str]]:
    """The worker's pod; an empty one where there is none."""
    return lab.look("pod", f"{lab.cluster}-guest-0")


def test_a_job_ends_by_itself_before_the_place_is_given_up(lab: Lab) -> None:
    """The pod that wants the place waits, no other job begins, and the worker is back when there is room again."""
    held = lab.hold("guest-0")
    before = guest_pod(lab)["metadata"]["uid"]
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(owner(lab)))
    lab.until("the scheduler takes the place", lambda: "deletionTimestamp" in guest_pod(lab)["metadata"], 30)
    lab.timed(
        "give way: its pod is deleted → its node drains",
        lambda: "soperator: its pod gives way" in lab.ssh("root", "sinfo -h -R -n guest-0 -o '%E'"),
        30,
    )
    assert held.state() == "RUNNING"
    assert not is_ready(lab.look("pod", "owner"))
    held.let_go()
    lab.timed("give way: its job has ended → the other pod runs", lambda: is_ready(lab.look("pod", "owner")), 60)
    lab.kubectl("delete", "pod", "owner", "--wait=false")
    lab.wait_available()
    assert guest_pod(lab)["metadata"]["uid"] != before
    assert lab.ssh("alice", "srun -Q -w guest-0 hostname") == "guest-0\n"
