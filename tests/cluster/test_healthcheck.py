"""A deep check on a real Slurm: a failure is confirmed and drains its node beside users' jobs, makes way for them, and a repaired node comes back."""

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import deeps
from tests.cluster.checked import operator_may_replace
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

GOOD, BAD = "worker-0", "worker-1"
#: A file of a node's name says that it is bad, or that a run there takes long.
SCRIPT = """#!/bin/sh
echo "on $SLURMD_NODENAME as $(id -un)"
while [ -e /home/alice/slow-$SLURMD_NODENAME ]; do sleep 0.5; done
[ ! -e /home/alice/bad-$SLURMD_NODENAME ] || { echo "there is a bad-$SLURMD_NODENAME"; exit 1; }
"""
CHECK = {
    "clusterRef": {"name": "demo"},
    "nodeSets": ["worker"],
    "script": SCRIPT,
    "maxParallel": "100%",
    "successThreshold": 1,
    "retryInterval": "20s",
    "onFailure": "DrainAndRetest",
}


@pytest.fixture
def checked(lab: Lab) -> Iterator[Lab]:
    """The demo, with one bad node and a user; the check goes at the end, and its partitions with it."""
    make_user(lab, "alice")
    lab.ssh("alice", f"rm -f slow-* bad-*; touch bad-{BAD} slow-{GOOD}")
    yield lab
    lab.ssh("alice", "rm -f slow-* bad-*; scancel -u alice")
    lab.kubectl("delete", "healthcheck", "marked", "--ignore-not-found")
    lab.ssh("root", f"scontrol update nodename={BAD} state=resume 2>/dev/null || true")
    lab.until("the partitions are gone", lambda: "soperator" not in lab.ssh("root", "sinfo -a -h -o %R"), 120)
    lab.wait_available()


def state(lab: Lab, node: str) -> str:
    """Slurm's state and reason of a node."""
    return lab.ssh("root", f"sinfo -h -N -n {node} -o '%T %E' | head -n 1").strip()


def status(lab: Lab) -> dict[str, Any]:
    """What the HealthCheck says."""
    found: dict[str, Any] = lab.look("healthcheck", "marked").get("status", {})
    return found


def runs_of(lab: Lab, node: str) -> list[str]:
    """The states of the check's jobs on a node, the oldest first, as far as Slurm still has them."""
    return lab.ssh("root", f"squeue -a -h -t all -n soperator-check-marked -w {node} -S i -o %T").split()


def test_a_bad_node_is_found_drained_and_returns_and_no_job_of_a_user_waits_for_a_check(checked: Lab) -> None:
    """The job beside it goes on, a check makes way within seconds and is repeated, and the drained node is tested until it passes."""
    lab = checked
    held = lab.hold(GOOD)
    began = time.monotonic()
    done = lab.apply("HealthCheck", "marked", CHECK)
    assert done.returncode == 0, done.stderr
    reason = f"soperator: check marked: there is a bad-{BAD}"
    lab.until(f"{BAD} is drained", lambda: state(lab, BAD) == f"drained {reason}", 180)
    lab.timings.note("a HealthCheck is made → its two runs have drained the bad node", time.monotonic() - began)
    (found,) = lab.until("the evidence is kept", lambda: status(lab).get("unhealthyNodes"), 20)
    assert (found["node"], found["state"], found["failures"]) == (BAD, "Failing", 2)
    assert found["log"] == f"on {BAD} as root\nthere is a bad-{BAD}"
    assert held.state() == "RUNNING"
    assert "soperator" not in lab.ssh("alice", "sinfo")
    assert "soperator" in lab.ssh("alice", "srun -p soperator-check true 2>&1 || echo soperator is refused")
    held.let_go()

    lab.until(f"a check runs on {GOOD}", lambda: "RUNNING" in runs_of(lab, GOOD), 90)
    waited = lab.timed(
        "a user's job takes the node from a check",
        lambda: lab.ssh("alice", f"srun -w {GOOD} hostname") == f"{GOOD}\n",
        1,
    )
    assert waited < 30
    assert "PREEMPTED" in runs_of(lab, GOOD)
    lab.ssh("alice", f"rm slow-{GOOD} bad-{BAD}")
    began = time.monotonic()
    lab.until(f"{BAD} is idle", lambda: state(lab, BAD).startswith("idle"), 180)
    lab.timings.note("a bad node is repaired → tested while drained, and in service", time.monotonic() - began)
    lab.until("all pass", lambda: status(lab).get("summary") == "2/2" and not status(lab).get("unhealthyNodes"), 120)
    assert [each["message"] for each in status(lab)["endedFailures"]] == [f"there is a bad-{BAD}"]
    assert sorted(lab.ssh("alice", "srun -N2 hostname").split()) == [GOOD, BAD]


def machine(lab: Lab, node: str) -> str:
    """The Kubernetes Node on which a worker's pod is; empty while it is on none."""
    return str(lab.look("pod", f"demo-{node}").get("spec", {}).get("nodeName", ""))


def test_a_bad_node_moves_to_another_machine_and_is_in_service_when_it_passes_there(checked: Lab) -> None:
    """The former machine is cordoned with the evidence on it, which stays when the Slurm node is idle again."""
    lab = checked
    lab.ssh("alice", f"rm slow-{GOOD}")
    lab.patch("slurmcluster", "demo", {"health": {"replace": {"after": "5s"}}})
    former, began = machine(lab, BAD), time.monotonic()
    try:
        with operator_may_replace(lab):
            done = lab.apply("HealthCheck", "marked", CHECK | {"onFailure": "Replace"})
            assert done.returncode == 0, done.stderr
            cordoned = lambda: lab.look("node", former)["spec"].get("unschedulable")  # noqa: E731
            lab.until(f"Node {former} is cordoned", cordoned, 240)
            lab.ssh("alice", f"rm bad-{BAD}")  # it was the machine
            evidence = json.loads(lab.look("node", former)["metadata"]["annotations"]["slurm.soperator.io/unhealthy"])
            assert (evidence["check"], evidence["says"], evidence["node"]) == ("marked", f"there is a bad-{BAD}", BAD)
            lab.until("the worker is on another machine", lambda: machine(lab, BAD) not in ("", former), 120)
            (ended,) = lab.until(f"{BAD} passes there", lambda: status(lab).get("endedFailures"), 240)
            lab.until(f"{BAD} is idle", lambda: state(lab, BAD).startswith("idle"), 60)
            lab.timings.note(
                "a HealthCheck is made → the bad node is tested on another machine, and in service",
                time.monotonic() - began,
            )
            assert ended["message"] == f"there is a bad-{BAD}"
            assert lab.ssh("alice", f"srun -w {BAD} hostname") == f"{BAD}\n"
            assert cordoned()
    finally:
        lab.kubectl("uncordon", former)
        lab.kubectl("annotate", "node", former, "slurm.soperator.io/unhealthy-")
        lab.patch("slurmcluster", "demo", {"health": None})


@pytest.mark.skipif(not os.environ.get("SOPERATOR_LONG"), reason="make soak plays it")
def test_a_slow_card_is_found_by_pairs_and_its_node_is_tested_with_a_partner(checked: Lab) -> None:
    """Four nodes of their own: the slow one is confirmed and drained, and is in service again when its card is well."""
    lab = checked
    if not lab.target.is_local:
        pytest.skip("the network cards of the Nodes are this machine's")
    spec = CHECK | {"check": "network", "nodeSets": ["deep"], "thresholds": {"tcp_gbps": "0.2"}}
    del spec["script"]
    with lab.pair_nodes("deep", 4, patience=120) as nodes:
        bad = nodes[1]
        with deeps.slow_card(bad):
            began = time.monotonic()
            done = lab.apply("HealthCheck", "marked", spec)
            assert done.returncode == 0, done.stderr
            drained = lambda: "drained soperator: check marked:" in state(lab, bad)  # noqa: E731
            lab.until(f"{bad} is drained", drained, 240)
            lab.timings.note(
                "a HealthCheck of pairs is made → the slow card's node is drained", time.monotonic() - began
            )
            assert "less than 0.2; the same with each of " in state(lab, bad)
            (found,) = [each for each in status(lab)["unhealthyNodes"] if each["node"] == bad]
            assert found["log"].count("gbps=") >= 2
        began = time.monotonic()
        passes = lambda: bad in [each["node"] for each in status(lab).get("endedFailures", ())]  # noqa: E731
        lab.until(f"{bad} passes", passes, 240)
        lab.until(f"{bad} is idle", lambda: state(lab, bad).startswith("idle"), 60)
        lab.timings.note("its card is well → tested with a partner, and in service", time.monotonic() - began)
        lab.kubectl("delete", "healthcheck", "marked")
        lab.until("nobody is drained for it", lambda: "drain" not in lab.ssh("root", "sinfo -h -N -o %T"), 60)
