"""A node that one check holds is not opened for the retest of another."""

import pytest

from soperator.checks.check_state import CheckState
from soperator.checks.report import Report
from soperator.policy.health import policy
from soperator.policy.healthcheck import single_node
from soperator.policy.healthcheck.types import (
    CheckHistory,
    CheckPolicy,
    CheckTarget,
    NodeFailure,
    ResumeNode,
    Run,
    Submit,
)
from soperator.policy.workers.types import DrainNode, WorkerPod, WorkerSnapshot
from soperator.slurm.node import SlurmNode

DISK = CheckPolicy("disk", most=2, retest=30.0, confirm=2, passes=1)


def bad(check, state="failing", on_failure="drain"):
    return CheckState(check=check, state=state, since=900.0, message="slow", on_failure=on_failure, fails=2)


def place(reason="disk", report=None, **more):
    states = frozenset({"IDLE", "DRAIN"})
    node = SlurmNode("w-0", states, reason=f"soperator: check {reason}: bad", reason_at=900.0, report=report)
    return CheckTarget("w-0", 0.0, True, node, **more)


def says(*checks):
    return Report(at=100.0, checks=checks, renewed=995.0)


def opens(where):
    """Whether a retest is submitted, and a node opened for one that waits."""
    history = CheckHistory(failures={"w-0": NodeFailure(bad("disk"), 7, 900.0)}, last_runs={"w-0": 890.0})
    begun = single_node.decide(history, DISK, [where], 1000.0).actions
    waiting = CheckHistory(failures=history.failures, runs=(Run(9, "w-0", 990.0, True),))
    opened = single_node.decide(waiting, DISK, [where], 1000.0, frozenset({9})).actions
    both = [any(isinstance(each, Submit) for each in begun), any(isinstance(each, ResumeNode) for each in opened)]
    assert both[0] == both[1]
    return both[0]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (place(), True),
        (place(report=says()), True),
        (place("gpu"), False),
        (place("gpu", says(bad("gpu"))), False),
        (place("disk", says(bad("gpu"))), False),
        (place("disk", says(bad("gpu", "recovering"))), False),
        (place("disk", says(bad("gpu", on_failure="report"))), True),
        (place("gpu", says()), True),
        (place("gpu", quick=False), True),
        (place("cpu", deep=frozenset({"cpu"}), every=frozenset({"cpu"})), False),
        (place("link", deep=frozenset({"link"}), every=frozenset({"link"})), True),
        (place("cpu", every=frozenset({"cpu"})), True),
    ],
)
def test_a_retest_opens_only_a_node_that_no_other_check_holds(where, expected):
    """A failing quick check holds it, and so does a deep one that comes before by its name; one that has passed, or only tells, does not."""
    assert opens(where) == expected


@pytest.mark.parametrize(("noted", "out"), [("disk", True), ("gpu", False), ("", True)])
def test_a_resume_protects_from_the_check_that_had_drained_the_node(noted, out):
    """After a retest has passed its note may still be there: another check that fails then drains the node all the same."""
    note = f"soperator: check {noted}: bad" if noted else ""
    node = SlurmNode("w-0", frozenset({"IDLE"}), reason=note, reason_at=900.0, report=says(bad("gpu")))
    seen = WorkerSnapshot(
        "w", 1, "new", {0: WorkerPod(0, "new", "Running", False, True, noted=note)}, {"w-0": node}, now=1000.0
    )
    verdict = policy.decide(seen, policy.HealthPolicy(True, 1, 60.0))
    assert any(isinstance(each, DrainNode) for each in verdict.actions) == out


def test_a_check_that_is_wrong_everywhere_does_not_empty_a_cluster_of_small_nodesets():
    """Ten NodeSets of one node each: at least one of each may be out, and two of all."""
    nodes = {
        f"rack{number}-0": SlurmNode(f"rack{number}-0", frozenset({"IDLE"}), report=says(bad("gpu")))
        for number in range(10)
    }
    out = 0
    for number in range(10):
        pods = {0: WorkerPod(0, "new", "Running", False, True)}
        seen = WorkerSnapshot(f"rack{number}", 1, "new", pods, nodes, now=1000.0)
        verdict = policy.decide(seen, policy.HealthPolicy(True, 1, 60.0, most_of_all=2))
        for each in verdict.actions:
            if isinstance(each, DrainNode):
                out += 1
                drained = frozenset({"IDLE", "DRAIN"})
                name = f"rack{number}-0"
                nodes[name] = SlurmNode(name, drained, reason=each.why, reason_at=1000.0, report=says(bad("gpu")))
    assert out == 2
    assert "maxUnhealthyOfCluster 2 of the cluster" in verdict.said
