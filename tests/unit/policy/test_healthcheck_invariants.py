"""A decision of a deep check that would do harm is stopped before its first action, whatever made it."""

import pytest

from soperator.policy.healthcheck.invariants import violation
from soperator.policy.healthcheck.types import (
    Cancel,
    CheckHistory,
    CheckPolicy,
    CheckTarget,
    RedrainNode,
    ResumeNode,
    Run,
    Submit,
)
from soperator.slurm.node import SlurmNode

SETTINGS = CheckPolicy("disk", most=2)
BAD = SlurmNode("bad", frozenset({"IDLE", "DRAIN"}), reason="soperator: check disk: slow")
TARGETS = [
    CheckTarget("idle", node=SlurmNode("idle", frozenset({"IDLE"}))),
    CheckTarget("other", node=SlurmNode("other", frozenset({"IDLE"}))),
    CheckTarget("third", node=SlurmNode("third", frozenset({"IDLE"}))),
    CheckTarget("busy", node=SlurmNode("busy", frozenset({"ALLOCATED"}))),
    CheckTarget("bad", node=BAD),
    CheckTarget("held", node=SlurmNode("held", frozenset({"IDLE", "DRAIN"}), reason="bad cable")),
]
TEST = Run(7, "bad", 10.0, retest=True)


def found(*actions, runs=()):
    return violation(CheckHistory(runs=tuple(runs)), SETTINGS, TARGETS, actions)


def test_what_the_rules_decide_holds():
    """Two idle nodes, the retest of a node that a check drained, its resume, its drain, and the end of a run."""
    assert found(Submit("idle"), Submit("other")) == ""
    assert found(Submit("bad", retest=True)) == ""
    assert found(Submit("bad", retest=True, others=("idle",))) == ""
    assert found(ResumeNode("bad"), RedrainNode("bad", "soperator: check disk: slow"), Cancel(TEST), runs=[TEST]) == ""


@pytest.mark.parametrize(
    ("actions", "runs", "words"),
    [
        ([Submit("idle"), Submit("idle")], [], "node idle would run two jobs of the check"),
        ([Submit("idle")], [Run(7, "idle", 10.0)], "node idle would run two jobs of the check"),
        ([Submit("busy")], [], "node busy would run the check, and it is not idle"),
        ([Submit("bad")], [], "node bad would run the check, and it is not idle"),
        ([Submit("held", retest=True)], [], "node held would run the check, and it is not idle"),
        ([Submit("gone")], [], "node gone would run the check, and it is not idle"),
        ([Submit("idle"), Submit("other"), Submit("third")], [], "3 nodes would run the check, and at most 2 may"),
        ([ResumeNode("bad")], [], "node bad would be resumed, and no retest waits for it"),
        ([ResumeNode("held")], [Run(7, "held", 10.0, retest=True)], "node held would be resumed"),
        (
            [RedrainNode("bad", "soperator: rollout")],
            [TEST],
            "node bad would be drained with the reason of another cause",
        ),
        ([Cancel(Run(8, "idle", 10.0))], [TEST], "job 8 would be cancelled, and it is not a run of the check"),
    ],
)
def test_what_would_do_harm_is_named(actions, runs, words):
    """The message has the node or the job."""
    assert found(*actions, runs=runs).startswith(words)
