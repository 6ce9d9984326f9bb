"""The policy over workers, case by case and against a simulated cluster that is interrupted anywhere."""

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from soperator.policy.drain_reasons import ROLLOUT, SCALE_IN, for_rollout
from soperator.policy.workers import policy as workers_policy
from soperator.policy.workers.types import (
    AnnotatePod,
    ChangePolicy,
    Delete,
    DeleteNodeRecord,
    DrainNode,
    Resume,
    SetPodCondition,
    WorkerPlan,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.node import SlurmNode
from tests.examples import examples
from tests.unit.policy.town import DISK, Town


def decide(seen):
    return [each for each in workers_policy.decide(seen).actions if not isinstance(each, SetPodCondition)]


def pod(index, template="new", phase="Running", **more):
    return WorkerPod(index, template, phase, more.get("deleting", False), more.get("ready", True))


def node(index, *states, reason=""):
    return SlurmNode(f"w-{index}", frozenset(states), reason)


def seen(wanted, pods=(), nodes=()):
    known = None if nodes is None else {each.name: each for each in nodes}
    return WorkerSnapshot("w", wanted, "new", {each.index: each for each in pods}, known)


def kinds(actions):
    return [(type(each).__name__, each.index) for each in actions]


class TestDecide:
    """One situation, one answer."""

    def test_all_missing_pods_are_created_at_once(self):
        """Scaling out does not wait for anything."""
        assert kinds(decide(seen(3, [pod(1)], [node(1, "IDLE")]))) == [("Create", 0), ("Create", 2)]

    def test_a_surplus_worker_is_drained_before_it_is_deleted(self):
        """Scale-in begins with a drain that says why."""
        assert decide(seen(0, [pod(0)], [node(0, "ALLOCATED")])) == [DrainNode(0, SCALE_IN)]

    def test_a_draining_worker_with_a_job_is_left_alone(self):
        """DRAIN with ALLOCATED is not drained."""
        assert decide(seen(0, [pod(0)], [node(0, "ALLOCATED", "DRAIN", reason=SCALE_IN)])) == []

    def test_a_completing_worker_is_left_alone(self):
        """DRAIN with COMPLETING is not drained: an epilog may still run."""
        assert decide(seen(0, [pod(0)], [node(0, "IDLE", "COMPLETING", "DRAIN", reason=SCALE_IN)])) == []

    def test_a_drained_worker_is_deleted(self):
        """DRAIN with IDLE is drained."""
        actions = decide(seen(0, [pod(0)], [node(0, "IDLE", "DRAIN", reason=SCALE_IN)]))
        assert [type(each) for each in actions] == [Delete]

    def test_no_answer_from_slurm_means_busy(self):
        """Without a fresh answer nothing that runs is touched, and what is missing is still created."""
        assert kinds(decide(seen(3, [pod(1), pod(2, "old")], None))) == [("Create", 0)]
        assert kinds(decide(seen(1, [pod(1), pod(2, "old")], None))) == []

    def test_a_node_that_slurm_does_not_know_means_busy(self):
        """A running pod without a Slurm node may be about to register."""
        assert decide(seen(0, [pod(0)], [])) == []

    def test_a_pod_that_never_registered_and_is_not_ready_may_go(self):
        """Slurm answered and does not know it: no job can be in it."""
        assert kinds(decide(seen(0, [pod(0, ready=False)], []))) == [("Delete", 0)]

    def test_a_missing_worker_counts_against_a_rollout(self):
        """While one worker is away for another reason, none is taken for the rollout."""
        assert kinds(decide(seen(2, [pod(1, "old")], [node(1, "IDLE")]))) == [("Create", 0)]

    def test_a_new_worker_that_is_still_drained_counts_against_a_rollout(self):
        """The next one goes only when the former takes jobs again."""
        pods = [pod(0), pod(1, "old")]
        found = decide(seen(2, pods, [node(0, "IDLE", "DRAIN", reason=ROLLOUT), node(1, "IDLE")]))
        assert kinds(found) == [("Resume", 0)]

    def test_a_pod_that_never_started_needs_no_drain(self):
        """Nothing can run in a pending pod."""
        assert kinds(decide(seen(0, [pod(0, phase="Pending")], []))) == [("Delete", 0)]

    def test_an_old_pod_is_drained_one_at_a_time_idle_first(self):
        """A rollout begins with the idle node and waits for it."""
        pods = [pod(0, "old"), pod(1, "old")]
        assert decide(seen(2, pods, [node(0, "ALLOCATED"), node(1, "IDLE")])) == [DrainNode(1, ROLLOUT)]

    def test_the_drain_and_the_status_say_what_is_new_and_the_note_does_not(self):
        """An administrator who resumes the node has decided, whichever part of the template changes next."""
        change = "image slurm:1 → slurm:2"
        drained = for_rollout(change)
        assert drained == "soperator: new pod template: image slurm:1 → slurm:2"
        old = replace(seen(1, [pod(0, "old")], [node(0, "ALLOCATED")]), change=change, now=1000.0)
        plan = workers_policy.decide(old)
        assert plan.actions == (DrainNode(0, drained),)
        assert f"rollout: 0 of 1 are new ({change})" in plan.said
        lasting = node(0, "ALLOCATED", "DRAIN", reason=drained)
        actions = workers_policy.decide(replace(old, nodes={lasting.name: lasting})).actions
        assert [each.noted for each in actions if isinstance(each, AnnotatePod)] == [ROLLOUT]
        assert not any(isinstance(each, DrainNode) for each in actions)
        resumed = replace(
            old, pods={0: replace(pod(0, "old"), noted=ROLLOUT, protected=True)}, change="image slurm:1 → slurm:3"
        )
        assert decide(resumed) == []

    def test_a_rollout_waits_for_the_new_pod_to_be_ready(self):
        """While a current pod isn't ready no further one is taken."""
        pods = [pod(0, ready=False), pod(1, "old")]
        assert decide(seen(2, pods, [node(0, "IDLE"), node(1, "IDLE")])) == []

    def test_our_drain_is_taken_back_from_a_current_ready_pod(self):
        """After a rollout, or when the person changed their mind about scale-in."""
        found = decide(seen(1, [pod(0)], [node(0, "IDLE", "DRAIN", reason=SCALE_IN)]))
        assert [type(each) for each in found] == [Resume]

    def test_an_administrators_drain_is_never_taken_back(self):
        """A reason that isn't ours is respected."""
        assert decide(seen(1, [pod(0)], [node(0, "IDLE", "DRAIN", reason="bad disk")])) == []

    def test_the_record_of_a_scaled_in_node_is_removed(self):
        """After the pod has gone the Slurm node goes too."""
        found = decide(seen(0, [], [node(0, "IDLE", "DRAIN", "NOT_RESPONDING", reason=SCALE_IN)]))
        assert [type(each) for each in found] == [DeleteNodeRecord]

    def test_the_record_of_a_replaced_node_is_removed_before_its_new_pod_registers(self):
        """Slurm would keep the features and the size of the former template."""
        found = decide(seen(1, [], [node(0, "IDLE", "DRAIN", reason=ROLLOUT)]))
        assert kinds(found) == [("Create", 0), ("DeleteNodeRecord", 0)]

    def test_the_record_of_a_worker_that_somebody_deleted_stays(self):
        """Its jobs are Slurm's to judge, and its pod comes back as it was."""
        assert kinds(decide(seen(1, [], [node(0, "ALLOCATED")]))) == [("Create", 0)]

    def test_an_administrators_record_stays(self):
        """What somebody wrote on a node without a pod is not ours to remove; that it does not respond is nobody's word."""
        assert decide(seen(0, [], [node(0, "DOWN", "DRAIN", reason="bad disk")])) == []
        assert kinds(decide(seen(0, [], [node(0, "DOWN", reason="Not responding")]))) == [("DeleteNodeRecord", 0)]

    def test_a_pod_that_ended_is_made_anew(self):
        """A failed pod is deleted, and created by the next pass."""
        assert kinds(decide(seen(1, [pod(0, phase="Failed")], [node(0, "DOWN")]))) == [("Delete", 0)]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.sampled_from([1, 2, 9, 9])),
        st.tuples(st.just("pass"), st.just(9)),
        st.tuples(st.sampled_from(["scale", "blind"]), st.integers(0, 4)),
        st.tuples(st.just("template"), st.sampled_from(["a", "b"])),
        st.tuples(st.sampled_from(["run", "submit", "suspend", "finish_on", "vanish"]), st.integers(0, 4)),
        st.tuples(st.sampled_from(["evict", "forbid", "condemn", "allow", "time_out", "forget"]), st.integers(0, 4)),
        st.tuples(
            st.sampled_from(["falter", "heal", "submit_pair", "complete_on", "clean", "lose"]), st.integers(0, 4)
        ),
        st.tuples(
            st.sampled_from(["cordon", "uncordon", "die", "recover", "pass_time", "pass_time"]), st.integers(0, 2)
        ),
    ),
    min_size=40,
    max_size=60,
)
POLICIES = st.builds(
    ChangePolicy,
    max_unavailable=st.integers(1, 3),
    wait_for_idle=st.booleans(),
    drain_timeout=st.sampled_from([None, 60.0, 120.0]),
    on_timeout=st.sampled_from(["Wait", "Cancel", "Cancel"]),
    warning_period=st.sampled_from([0.0, 60.0]),
    replace_after=st.sampled_from([None, 60.0]),
    max_replaced=st.integers(0, 2),
)


FORGOTTEN = [("cordon", 2), ("pass", 1), ("pass", 9), ("forget", 2), ("pass", 9), ("pass", 9), ("pass", 9)]


@settings(max_examples=examples(200), deadline=None)
@given(STEPS, POLICIES)
@example(
    [*[("pass", 1)] * 34, *FORGOTTEN],
    ChangePolicy(max_unavailable=1, on_timeout="Wait", warning_period=0.0, replace_after=None, max_replaced=0),
)
@example(
    [("run", 1), ("pass", 9), ("submit", 1), ("suspend", 1), ("scale", 0), ("pass", 9), ("pass", 9), ("pass", 9)],
    ChangePolicy(max_unavailable=1, on_timeout="Wait", warning_period=0.0, replace_after=None, max_replaced=0),
)
def test_no_job_dies_whatever_is_interrupted_and_it_converges(steps, policy):
    """A pass may be cut off after any action, jobs start between any two, Slurm may be silent, Nodes and administrators come and go."""
    town = Town(3, "a", policy)
    calm(town)
    for number, (step, value) in enumerate(steps):
        match step:
            case "pass" | "blind":
                town.operate(value, step == "pass", between=lambda number=number: town.submit(number % 6))
            case "scale":
                town.wanted = value
            case "template":
                town.template = value
            case _:
                getattr(town, step)(value)
        check(town)
    calm(town)
    assert len(town.pods) == town.wanted
    assert {each.template for each in town.pods.values()} <= {town.template}
    assert sorted(town.nodes) == sorted(f"w-{index}" for index in town.pods)
    assert not any(each.is_draining or each.is_down for each in town.nodes.values())
    assert all(each.protected and not each.noted for each in town.pods.values())
    assert town.plan() == WorkerPlan()


def check(town):
    """No pod is open to eviction while a job runs in it, but for the moment after an administrator resumed its node."""
    for index, pod in town.pods.items():
        assert pod.protected or index in town.exposed or not town.alive(f"w-{index}")


def calm(town):
    """All troubles end: Nodes come back, the administrator lifts his drains and his vetoes, jobs end, and passes go on."""
    for number in range(3):
        town.uncordon(number)
        town.recover(number)
    for name, node in town.nodes.items():
        if node.reason == DISK:
            town.allow(int(name[2:]))
    for index in list(town.pods):
        town.change_mind(index)
    for _ in range(100):
        for index in range(12):
            town.vanish(index)
            town.run(index)
            town.heal(index)
            town.finish_on(index)
            town.clean(index)
            town.time_out(index)
        town.operate()
        town.now += 30
        if town.plan() == WorkerPlan() and town.serves():
            break
