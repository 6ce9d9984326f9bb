"""Who leaves its machine: `policy.health.replacement`, as the policy over health takes it."""

from dataclasses import replace

import pytest

from soperator.checks.report import Report
from soperator.policy.health.policy import (
    HealthState,
    NodeHealth,
    decide,
    health,
)
from tests.unit.policy.checked import (
    NOW,
    POLICY,
    bad,
    node,
    out,
    pod,
    seen,
)


def bound(since=NOW - 700, **said):
    """A node out through a check that wants another machine, for longer than its patience."""
    return out(0, bad(on_failure="replace", since=since), at=NOW - 650, **said)


HERE = pod(0, noted=out().reason, machine="rack-7", born=NOW - 5000)


def moves(given_node, given_pod=HERE, policy=POLICY):
    return [(each.machine, each.check) for each in decide(seen(given_node, pods=[given_pod]), policy).moves]


def test_a_node_that_does_not_recover_moves_to_another_machine_when_its_check_says_so():
    """After its patience, with the check and the machine that it leaves."""
    assert moves(bound()) == [("rack-7", "disk-full")]
    assert moves(bound(), policy=replace(POLICY, replace_after=700)) == []
    assert decide(seen(bound(), pods=[HERE]), replace(POLICY, replace_after=700)).again == pytest.approx(50.1)


@pytest.mark.parametrize(
    ("given_node", "given_pod"),
    [
        (bound(base="MIXED"), HERE),
        (replace(bound(), report=bad()), HERE),
        (replace(bound(), report=bad(on_failure="replace", state="recovering")), HERE),
        (replace(bound(), report=None), HERE),
        (replace(bound(), reason="by hand", reason_by="root"), HERE),
        (node(report=bad(on_failure="replace")), HERE),
        (bound(), replace(HERE, machine="")),
        (bound(since=NOW - 6000), HERE),
        (bound(since=NOW - 300), replace(HERE, born=NOW - 400)),
    ],
    ids=[
        "a job runs",
        "drain only",
        "recovers",
        "says nothing",
        "a person's",
        "not out",
        "no machine",
        "a former pod's",
        "its second machine's",
    ],
)
def test_nothing_else_moves_a_node(given_node, given_pod):
    """A job is never moved, nor a failure of which it is not certain that it is this machine's."""
    assert moves(given_node, given_pod) == []


def test_a_pod_on_its_new_machine_is_told_as_replaced_until_it_takes_jobs():
    """Its checks have to be content for a while first."""
    fresh = out(0, Report(NOW - 30), at=NOW - 650)
    assert health(fresh, NOW, 1e9, born=NOW - 60) == NodeHealth(
        HealthState.REPLACED, NOW - 60, "disk-full", "/tmp is 97 % full"
    )
    verdict = decide(seen(fresh, pods=[replace(HERE, born=NOW - 60)]), POLICY)
    assert (verdict.actions, verdict.moves) == ((), ())
    assert "checks have drained 1 of 1 nodes: w-0 (Replaced: disk-full" in verdict.said
