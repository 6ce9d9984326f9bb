"""Workers that slurmctld has forgotten: who is told to register, when, and how often."""

from dataclasses import replace

from soperator.policy import drain_reasons
from soperator.policy.workers import node_records
from soperator.policy.workers.node_records import PATIENCE
from soperator.policy.workers.policy import decide
from soperator.policy.workers.types import (
    AnnotatePod,
    DrainNode,
    OnDemand,
    Register,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.node import SlurmNode

NOW = 1e9
POD = WorkerPod(0, "new", "Running", deleting=False, ready=True, ready_since=NOW - PATIENCE)


def asked(pod, nodes=()):
    """Whether the policy has the slurmd of a pod register."""
    known = None if nodes is None else {each.name: each for each in nodes}
    plan = decide(WorkerSnapshot("w", 1, "new", {0: pod}, known, now=NOW))
    return [type(each) for each in plan.actions] == [Register]


def test_a_slurmd_that_runs_and_that_slurm_does_not_know_is_told_to_register():
    """Nothing else would ever bring it back."""
    assert asked(POD)


def test_one_that_has_just_started_is_given_its_time():
    """It is about to register by itself."""
    assert not asked(replace(POD, ready_since=NOW - PATIENCE + 1))


def test_one_that_was_told_is_given_its_time_too():
    """It reads its configuration first."""
    assert not asked(replace(POD, asked=NOW - 1))
    assert asked(replace(POD, asked=NOW - PATIENCE))


def test_nobody_is_told_what_needs_no_telling():
    """Slurm knows it, Slurm is silent, or no slurmd is there to hear it."""
    assert not asked(POD, [SlurmNode("w-0", frozenset({"IDLE"}))])
    assert not asked(POD, None)
    assert not asked(replace(POD, deleting=True))
    assert not asked(replace(POD, ready=False))


def test_the_policy_looks_again_when_a_slurmd_is_due():
    """No event would wake it."""
    world = WorkerSnapshot("w", 1, "new", {0: POD}, {}, now=NOW - 5)
    assert list(node_records.moments(world, POD)) == [NOW]
    assert decide(world).again == 5.1


def test_a_pod_that_may_be_evicted_is_protected_before_its_slurmd_is_told():
    """Its drain is forgotten with its node, and the next job would run in a pod that a drain of its Node may end."""
    open_pod = replace(POD, protected=False, noted="soperator: Node m is cordoned", leave="Node m is cordoned")
    first = decide(WorkerSnapshot("w", 1, "new", {0: open_pod}, {}, now=NOW)).actions
    assert [(type(each), each.protected, each.noted) for each in first] == [(AnnotatePod, True, "")]
    assert asked(replace(open_pod, protected=True, noted=""))


def test_a_pod_that_may_be_evicted_is_protected_also_where_no_drain_is_noted_on_it():
    """The note may be gone already; a job that Slurm gives the node would run in a pod that anybody may evict."""
    open_pod = replace(POD, protected=False)
    first = node_records.due_registrations(WorkerSnapshot("w", 1, "new", {0: open_pod}, {}, now=NOW), open_pod)
    assert [(type(each), each.protected) for each in first] == [(AnnotatePod, True)]


def test_a_drain_that_slurmctld_forgot_is_no_administrator_s_resume():
    """The note on the pod goes before the slurmd registers; with it the new record would look as if a person had resumed the node."""
    noted = WorkerPod(0, "new", "Running", False, True, noted=drain_reasons.ENDING)
    ending = WorkerSnapshot("w", 0, "new", {0: noted}, {}, ending=drain_reasons.ENDING, now=1e6)
    assert [(each.noted, each.protected) for each in decide(ending).actions if isinstance(each, AnnotatePod)] == [
        ("", True)
    ]
    wiped = replace(ending, pods={0: replace(noted, noted="")})
    assert any(isinstance(each, Register) for each in decide(wiped).actions)
    back = replace(wiped, nodes={"w-0": SlurmNode("w-0", frozenset({"IDLE"}))})
    assert [each.why for each in decide(back).actions if isinstance(each, DrainNode)] == [drain_reasons.ENDING]


def test_what_becomes_of_large_jobs_is_told_while_slurm_knows_fewer_nodes_than_wanted():
    """A node without a pod is known too; nothing is told where Slurm is silent, nodes sleep, or none is wanted any more."""
    node, gone = SlurmNode("w-0", frozenset({"IDLE"})), SlurmNode("w-7", frozenset({"DOWN"}))
    short = WorkerSnapshot("w", 3, "new", {0: POD, 1: replace(POD, index=1)}, {"w-0": node, "x-1": node}, now=NOW)
    assert node_records.shortfall(short).startswith("Slurm knows 1 of 3 nodes and refuses jobs over more")
    assert node_records.shortfall(replace(short, nodes={"w-0": node, "w-7": gone})).startswith("Slurm knows 2 of 3")
    assert node_records.shortfall(replace(short, wanted=1)) == ""
    assert node_records.shortfall(replace(short, nodes=None)) == ""
    assert node_records.shortfall(replace(short, ending=drain_reasons.ENDING)) == ""
    assert node_records.shortfall(replace(short, on_demand=OnDemand(0, 3, 1.0, 1.0, 1.0))) == ""
