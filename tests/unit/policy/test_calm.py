"""Workers about which there is nothing to decide. That the whole policy agrees is checked wherever `town` asks it for a plan."""

from dataclasses import replace

import pytest

from soperator.policy.workers.policy import decide
from soperator.policy.workers.settled import is_settled
from soperator.policy.workers.types import KubeNode, WorkerPod, WorkerSnapshot
from soperator.slurm.node import SlurmNode

POD = WorkerPod(0, "new", "Running", False, True, machine="m")
NODE, MACHINE = SlurmNode("w-0", frozenset({"ALLOCATED"})), KubeNode("m")


@pytest.mark.parametrize("state", ["IDLE", "ALLOCATED", "MIXED"])
def test_a_worker_that_takes_or_runs_jobs_is_calm(state):
    """Jobs come and go without a decision."""
    assert is_settled(POD, SlurmNode("w-0", frozenset({state})), MACHINE)


@pytest.mark.parametrize(
    ("pod", "node", "machine"),
    [
        ({"ready": False}, {}, {}),
        ({"deleting": True}, {}, {}),
        ({"phase": "Failed"}, {}, {}),
        ({"protected": False}, {}, {}),
        ({"noted": "soperator: scale-in"}, {}, {}),
        ({"leave": "jail: it hangs"}, {}, {}),
        ({"reported": "Drained: bad disk"}, {}, {}),
        ({}, {"states": frozenset({"IDLE", "DRAIN"})}, {}),
        ({}, {"states": frozenset({"DOWN"})}, {}),
        ({}, {"states": frozenset({"IDLE", "NOT_RESPONDING"})}, {}),
        ({}, {}, {"ready": False}),
        ({}, {}, {"leaving": "Node m is cordoned"}),
    ],
)
def test_whatever_may_need_a_decision_is_not_calm(pod, node, machine):
    """Each of these alone is enough."""
    assert not is_settled(replace(POD, **pod), replace(NODE, **node), replace(MACHINE, **machine))


def test_what_slurm_or_kubernetes_does_not_know_is_not_calm():
    """No record of the node, and a pod on a Node that is gone."""
    assert not is_settled(POD, None, MACHINE)
    assert not is_settled(POD, NODE, None)


def test_a_fresh_answer_ends_the_calm_of_those_whose_record_is_another():
    """A drain between two polls is not overlooked, and the others stay as they are."""
    other = SlurmNode("w-1", frozenset({"IDLE"}))
    seen = WorkerSnapshot(
        "w", 2, "new", {0: POD, 1: replace(POD, index=1)}, {"w-0": NODE, "w-1": other}, settled=frozenset({0, 1})
    )
    fresh = seen.on({"w-0": SlurmNode("w-0", frozenset({"IDLE", "DRAIN"})), "w-1": other})
    assert fresh.settled == {1}


def test_a_surplus_worker_is_taken_although_it_is_calm():
    """To be one too many is not a matter of how one is."""
    seen = WorkerSnapshot("w", 0, "new", {0: POD}, {"w-0": NODE}, {"m": MACHINE}, settled=frozenset({0}))
    assert decide(seen) == decide(replace(seen, settled=frozenset()))
    assert decide(seen).actions
