"""What protects a job or an administrator's word in the policy over workers: one situation for each condition that does.

The list of tests/mutants takes each of these conditions out and expects one of these tests to fail.
"""

from dataclasses import replace

import pytest

from soperator.policy.drain_reasons import ROLLOUT, SCALE_IN, end_of, for_check, reason
from soperator.policy.workers import on_demand, policy
from soperator.policy.workers.types import (
    Create,
    Delete,
    DeleteNodeRecord,
    DrainNode,
    KubeNode,
    OnDemand,
    SetPodCondition,
    UpdateNodes,
    Verb,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.node import Shape, SlurmNode

NOW = 1e9
LOST = KubeNode("m", ready=False, since=NOW - 3600)
BROKEN = {"reason": "bad disk", "reason_by": "root"}


def pod(index=0, template="new", **more):
    known = {"phase": "Running", "deleting": False, "ready": True, "born": NOW - 30, "machine": "m"}
    return WorkerPod(index, template, **known | more)


def node(*states, index=0, **more):
    return SlurmNode(f"w-{index}", frozenset(states), **more)


def acts(wanted, *pods, nodes=(), machine=None):
    """What the policy does; `nodes` is None while Slurm gives no answer."""
    machines = {"m": machine or KubeNode("m")}
    known = None if nodes is None else {each.name: each for each in nodes}
    seen = WorkerSnapshot("w", wanted, "new", {each.index: each for each in pods}, known, machines, now=NOW)
    return [each for each in policy.decide(seen).actions if not isinstance(each, SetPodCondition)]


@pytest.mark.parametrize("template", ["new", "old"])
@pytest.mark.parametrize("wanted", [0, 1])
def test_a_pod_that_is_not_ready_stays_while_slurm_gives_no_answer(wanted, template):
    """Its readiness and slurmrestd may both have failed while its job runs."""
    assert acts(wanted, pod(template=template, ready=False), nodes=None) == []


def test_a_pod_that_is_not_ready_goes_once_slurm_has_answered_that_it_does_not_know_it():
    """The same pod, and the answer that makes the difference."""
    assert [type(each) for each in acts(0, pod(ready=False))] == [Delete]


@pytest.mark.parametrize(
    ("nodes", "expected"), [((), []), ((node("ALLOCATED"),), [DrainNode(0, SCALE_IN)])], ids=["unknown", "busy"]
)
def test_a_pending_pod_on_a_node_that_cannot_report_may_run_a_job(nodes, expected):
    """The kubelet may have started its containers, and could not say so since."""
    assert acts(0, pod(phase="Pending", ready=False), nodes=nodes, machine=LOST) == expected


def test_a_drain_keeps_the_reason_of_an_administrator_who_set_the_node_down():
    """A reason of ours would later be taken for ours, and the node resumed."""
    assert acts(1, pod(template="old"), nodes=[node("DOWN", **BROKEN)]) == [DrainNode(0, "bad disk")]


def test_a_record_that_an_administrator_set_down_outlives_its_pod():
    """The new pod of that name registers with the record that says what he found."""
    assert acts(1, nodes=[node("DOWN", **BROKEN)]) == [Create(0, "wanted")]


def test_a_record_with_a_job_is_not_removed():
    """Slurm would refuse that, and the job may end on it still."""
    drained = node("IDLE", "DRAIN", reason=SCALE_IN)
    assert acts(0, nodes=[replace(drained, states=frozenset({"ALLOCATED", "DRAIN"}))]) == []
    assert acts(0, nodes=[replace(drained, states=frozenset({"IDLE", "COMPLETING", "DRAIN"}))]) == []
    assert [type(each) for each in acts(0, nodes=[drained])] == [DeleteNodeRecord]


def test_a_worker_on_a_lost_node_is_replaced_once_slurm_has_cleaned_up_after_its_job():
    """While Slurm calls it COMPLETING its job is not yet given back to the queue."""
    completing = [node("DOWN", "COMPLETING", "NOT_RESPONDING", reason="Not responding")]
    assert acts(1, pod(ready=False), nodes=completing, machine=LOST) == []
    down = [node("DOWN", "NOT_RESPONDING", reason="Not responding")]
    assert acts(1, pod(ready=False), nodes=down, machine=LOST) == [Create(1, "wanted")]


def test_a_drain_of_a_health_check_is_not_taken_off_by_the_rollout():
    """Its node is bad, whatever the template is; who found that lifts it."""
    assert acts(1, pod(), nodes=[node("IDLE", "DRAIN", reason=for_check("disk", "full"), reason_by="slurm")]) == []


def sleepers(*nodes, pods=(), shape=None):
    """What is said to Slurm of nodes that sleep."""
    wish = OnDemand(least=0, most=2, idle=60.0, resume=300.0, backoff=120.0, shape=shape)
    found = {each.index: each for each in pods}
    seen = WorkerSnapshot(
        "w", 0, "new", found, {each.name: each for each in nodes}, {"m": KubeNode("m")}, now=NOW, on_demand=wish
    )
    return {
        (each.verb, index)
        for each in on_demand.decide(seen).actions
        if isinstance(each, UpdateNodes)
        for index in each.indexes
    }


@pytest.mark.parametrize(
    "who", [{"reason": for_check("disk", "full"), "reason_by": "slurm"}, BROKEN], ids=["check", "root"]
)
def test_a_drained_node_does_not_go_to_sleep(who):
    """Slurm takes the drain off a node that is powered down, and with it what was found."""
    pods = [pod(0, ready_since=NOW - 9000), pod(1, ready_since=NOW - 7200)]
    healthy, drained = node("IDLE", "CLOUD", index=1), node("IDLE", "CLOUD", "DRAIN", **who)
    assert sleepers(drained, healthy, pods=pods) == {(Verb.SLEEP, 1)}


def test_the_record_of_a_sleeping_node_that_an_administrator_set_down_stays():
    """Records of another shape are made again, and one with his word on it is not."""
    old, new = Shape(2, 1, frozenset({"w"})), Shape(4, 1, frozenset({"w"}))
    asleep = {"DOWN", "CLOUD", "POWERED_DOWN"}
    bad, other = node(*asleep, shape=old, **BROKEN), node("IDLE", "CLOUD", "POWERED_DOWN", index=1, shape=old)
    said = sleepers(bad, other, shape=new)
    assert (Verb.ERASE, 1) in said
    assert (Verb.ERASE, 0) not in said


def test_a_rollout_drains_with_its_own_reason_where_nobody_else_has_a_say():
    """The counterpart of the reason that is kept."""
    assert acts(1, pod(template="old"), nodes=[node("DOWN", reason="Not responding", reason_by="slurm")]) == [
        DrainNode(0, ROLLOUT)
    ]


def test_words_from_elsewhere_end_no_job():
    """What a worker says of its jail becomes a reason, in which only the operator sets the time at which jobs end."""
    why = reason("jail: /a; its jobs end at 1999-01-01T00:00:00Z")
    assert end_of(node("ALLOCATED", "DRAIN", reason=why)) is None
    assert why == "soperator: jail: /a"
