"""The policy over workers, case by case and against a simulated cluster that is interrupted anywhere."""

from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from soperator.decide.workers import (
    ROLLOUT,
    SCALE_IN,
    Create,
    Delete,
    Drain,
    Forget,
    Resume,
    Seen,
    WorkerPod,
    decide,
)
from soperator.slurm.node import SlurmNode


def pod(index, template="new", phase="Running", **more):
    return WorkerPod(index, template, phase, more.get("deleting", False), more.get("ready", True))


def node(index, *states, reason=""):
    return SlurmNode(f"w-{index}", frozenset(states), reason)


def seen(wanted, pods=(), nodes=()):
    known = None if nodes is None else {each.name: each for each in nodes}
    return Seen("w", wanted, "new", {each.index: each for each in pods}, known)


def kinds(actions):
    return [(type(each).__name__, each.index) for each in actions]


class TestDecide:
    """One situation, one answer."""

    def test_all_missing_pods_are_created_at_once(self):
        """Scaling out does not wait for anything."""
        assert kinds(decide(seen(3, [pod(1)], [node(1, "IDLE")]))) == [("Create", 0), ("Create", 2)]

    def test_a_surplus_worker_is_drained_before_it_is_deleted(self):
        """Scale-in begins with a drain that says why."""
        assert decide(seen(0, [pod(0)], [node(0, "ALLOCATED")])) == [Drain(0, SCALE_IN)]

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
        assert kinds(decide(seen(1, [pod(1), pod(2, "old")], None))) == [("Create", 0)]

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
        assert decide(seen(2, pods, [node(0, "ALLOCATED"), node(1, "IDLE")])) == [Drain(1, ROLLOUT)]

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
        assert [type(each) for each in found] == [Forget]

    def test_the_record_of_a_replaced_node_is_removed_before_its_new_pod_registers(self):
        """Slurm would keep the features and the size of the former template."""
        found = decide(seen(1, [], [node(0, "IDLE", "DRAIN", reason=ROLLOUT)]))
        assert kinds(found) == [("Create", 0), ("Forget", 0)]

    def test_the_record_of_a_worker_that_somebody_deleted_stays(self):
        """Its jobs are Slurm's to judge, and its pod comes back as it was."""
        assert kinds(decide(seen(1, [], [node(0, "ALLOCATED")]))) == [("Create", 0)]

    def test_an_administrators_record_stays(self):
        """A node of the same name that we did not scale in is not ours to remove."""
        assert decide(seen(0, [], [node(0, "DOWN", reason="Not responding")])) == []

    def test_a_pod_that_ended_is_made_anew(self):
        """A failed pod is deleted, and created by the next pass."""
        assert kinds(decide(seen(1, [pod(0, phase="Failed")], [node(0, "DOWN")]))) == [("Delete", 0)]


@dataclass
class World:
    """A cluster in which jobs start wherever Slurm would start them, and no pod may vanish under one."""

    wanted: int
    template: str
    pods: dict[int, WorkerPod] = field(default_factory=dict)
    nodes: dict[str, SlurmNode] = field(default_factory=dict)

    def look(self, answered):
        return Seen("w", self.wanted, self.template, dict(self.pods), dict(self.nodes) if answered else None)

    def take(self, action):
        name = f"w-{action.index}"
        known = self.nodes.get(name)
        match action:
            case Create(index):
                if index not in self.pods:
                    self.pods[index] = WorkerPod(index, self.template, "Pending", False, False)
            case Delete(index):
                gone = self.pods.pop(index, None)
                running = known is not None and "ALLOCATED" in known.states
                assert not (gone and running), f"{name} was deleted under a running job"
            case Drain(_, why):
                if known:
                    self.nodes[name] = replace(known, states=known.states | {"DRAIN"}, reason=why)
            case Resume():
                if known:
                    self.nodes[name] = replace(known, states=known.states - {"DRAIN"}, reason="")
            case Forget():
                assert known is None or "ALLOCATED" not in known.states
                self.nodes.pop(name, None)

    def run(self, index):
        if index in self.pods:
            self.pods[index] = replace(self.pods[index], phase="Running", ready=True)
            self.nodes.setdefault(f"w-{index}", SlurmNode(f"w-{index}", frozenset({"IDLE"})))

    def job_starts(self, index):
        at = self.nodes.get(f"w-{index}")
        if at and index in self.pods and not at.is_draining:
            self.nodes[at.name] = replace(at, states=frozenset({"ALLOCATED"}))

    def job_ends(self, index):
        at = self.nodes.get(f"w-{index}")
        if at:
            self.nodes[at.name] = replace(at, states=at.states - {"ALLOCATED"} | {"IDLE"})


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(0, 6)),
        st.tuples(st.just("blind"), st.integers(0, 6)),
        st.tuples(st.just("scale"), st.integers(0, 4)),
        st.tuples(st.just("template"), st.sampled_from(["a", "b"])),
        st.tuples(st.sampled_from(["run", "job_starts", "job_ends"]), st.integers(0, 4)),
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_no_job_dies_whatever_is_interrupted_and_it_converges(steps):
    """A pass may be cut off after any action and Slurm may be silent: no pod goes under a job, and in the end all is as wanted."""
    world = World(2, "a")
    for step, value in steps:
        match step:
            case "pass" | "blind":
                for action in decide(world.look(step == "pass"))[:value]:
                    world.take(action)
            case "scale":
                world.wanted = value
            case "template":
                world.template = value
            case _:
                getattr(world, step)(value)
    for _ in range(40):
        for index in range(6):
            world.run(index)
            world.job_ends(index)
        for action in decide(world.look(True)):
            world.take(action)
    for index in range(6):
        world.run(index)
    assert sorted(world.pods) == list(range(world.wanted))
    assert {each.template for each in world.pods.values()} <= {world.template}
    assert not any(each.is_draining for each in world.nodes.values())
