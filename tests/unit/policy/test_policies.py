"""The parts of the policy over workers, one by one: who goes first, how long a drain waits, what a lost Node means, what is said."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from soperator.api.fields.change import seconds, share
from soperator.api.nodeset import NodeSetSpec
from soperator.api.validation.schedule import schedule_fault
from soperator.policy.drain_reasons import ROLLOUT, SCALE_IN, end_of, reason
from soperator.policy.maintenance_window import WindowSchedule
from soperator.policy.workers import policy as workers_policy
from soperator.policy.workers.from_spec import policy_of
from soperator.policy.workers.types import (
    AnnotatePod,
    ChangePolicy,
    Create,
    Delete,
    DeleteNodeRecord,
    DrainNode,
    EndJobs,
    KubeNode,
    Resume,
    SetPodCondition,
    SignalJobs,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.job import NEVER, SlurmJob
from soperator.slurm.node import SlurmNode

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC).timestamp()


def pod(index, template="new", **more):
    more = {"machine": "m", "born": NOW - 30, "ready_since": NOW - 5} | more
    return WorkerPod(index, template, more.pop("phase", "Running"), more.pop("deleting", False), more.pop("ready", True), **more)  # fmt: skip


def node(index, *states, **more):
    return SlurmNode(f"w-{index}", frozenset(states), **({"reason_at": NOW} | more))


def seen(wanted, pods, nodes, **more):
    machines = more.pop("machines", [KubeNode("m")])
    return WorkerSnapshot("w", wanted, "new", {each.index: each for each in pods}, {each.name: each for each in nodes},
                {each.name: each for each in machines}, now=NOW, **more)  # fmt: skip


def job(number, index, ends=NEVER, **more):
    return SlurmJob(number, frozenset({f"w-{index}"}), ends, **more)


def decide(world):
    """The plan without what is only told."""
    plan = workers_policy.decide(world)
    return replace(plan, actions=tuple(each for each in plan.actions if not isinstance(each, SetPodCondition)))


def actions(world):
    return list(decide(world).actions)


def tells(world):
    return [each for each in workers_policy.decide(world).actions if isinstance(each, SetPodCondition)]


class TestScaleIn:
    """The node whose removal disturbs least goes first."""

    def test_the_idle_node_goes_and_not_the_highest_number(self):
        """A job on the highest number is no reason to wait."""
        world = seen(2, [pod(0), pod(1), pod(2)], [node(0, "ALLOCATED"), node(1, "IDLE"), node(2, "ALLOCATED")])
        assert actions(world) == [DrainNode(1, SCALE_IN)]

    def test_of_idle_nodes_the_one_that_was_idle_longest_goes(self):
        """What was used a moment ago is likelier to be used again."""
        nodes = [node(0, "IDLE", last_busy=NOW - 900), node(1, "IDLE", last_busy=NOW - 5)]
        assert actions(seen(1, [pod(0), pod(1)], nodes)) == [DrainNode(0, SCALE_IN)]

    def test_what_does_not_run_goes_before_what_is_idle(self):
        """A pending pod, or one that is not ready and that Slurm never knew, serves nobody."""
        world = seen(1, [pod(0), pod(1, phase="Pending", machine=""), pod(2, ready=False)], [node(0, "IDLE")])
        assert [(type(each), each.index) for each in actions(world)] == [(Delete, 1), (Delete, 2)]

    def test_of_busy_nodes_the_one_that_ends_first_goes_and_slurm_is_asked_for_that(self):
        """Without the jobs the policy says that it needs them; with them it takes the earliest end."""
        world = seen(1, [pod(0), pod(1)], [node(0, "ALLOCATED"), node(1, "ALLOCATED")])
        assert decide(world).asks_jobs
        asked = replace(world, jobs=(job(7, 0, NOW + 60), job(8, 1)))
        assert actions(asked) == [DrainNode(0, SCALE_IN)]
        assert not decide(asked).asks_jobs

    def test_a_node_that_became_idle_takes_the_place_of_one_that_drains(self):
        """The busy one is resumed: nobody has to wait for its job."""
        nodes = [node(0, "ALLOCATED", "DRAIN", reason=SCALE_IN), node(1, "IDLE")]
        assert actions(seen(1, [pod(0), pod(1)], nodes)) == [Resume(0, "the node is wanted"), DrainNode(1, SCALE_IN)]

    def test_a_drain_that_an_administrator_took_back_is_not_set_again(self):
        """The pod's note remembers our drain, so its absence is somebody's will; another node goes."""
        pods = [pod(0), pod(1, noted=SCALE_IN)]
        assert actions(seen(1, pods, [node(0, "ALLOCATED"), node(1, "IDLE")], jobs=())) == [DrainNode(0, SCALE_IN)]
        assert actions(seen(0, [pods[1]], [node(1, "IDLE")])) == []


class TestRollout:
    """Few at a time, idle ones first, and not one more after a failure."""

    OLD = (pod(0, "old"), pod(1, "old"), pod(2, "old"))

    def test_as_many_as_the_policy_allows_are_out_of_service(self):
        """maxUnavailable counts what is being replaced and what is missing."""
        nodes = [node(index, "IDLE") for index in range(3)]
        assert len(actions(seen(3, self.OLD, nodes, policy=ChangePolicy(max_unavailable=2)))) == 2
        missing = seen(4, self.OLD, nodes, policy=ChangePolicy(max_unavailable=2))
        assert [type(each) for each in actions(missing)] == [Create, DrainNode]

    def test_on_delete_touches_nothing(self):
        """Each pod waits for the person who deletes it, and the NodeSet says so."""
        plan = decide(seen(3, self.OLD, [node(0, "IDLE")], policy=ChangePolicy(on_delete=True)))
        assert plan.actions == ()
        assert "OnDelete" in plan.said

    def test_a_busy_node_may_be_left_until_it_is_idle(self):
        """With updateStrategy.busy Wait it goes on taking jobs."""
        nodes = [node(index, "ALLOCATED") for index in range(3)]
        assert actions(seen(3, self.OLD, nodes, policy=ChangePolicy(wait_for_idle=True))) == []

    @pytest.mark.parametrize("fault", [{"failing": True}, {"born": NOW - 601}])
    def test_the_first_failure_stops_it_and_is_told(self, fault):
        """A new pod that cannot start, or is not in service in time, stops the rollout; drained nodes go back to work."""
        pods = [pod(0, ready=False, trouble="pod w-0: container slurmd waits, ErrImagePull", **fault), *self.OLD[1:]]
        nodes = [node(1, "IDLE", "DRAIN", reason=ROLLOUT), node(2, "IDLE")]
        plan = decide(seen(3, pods, nodes, policy=ChangePolicy(max_unavailable=3)))
        assert plan.actions == (Resume(1, "the node is wanted"),)
        assert "it stopped, for pod w-0" in plan.said

    def test_it_begins_only_in_its_window(self):
        """Saturday at noon is outside of a window on Sunday night."""
        nodes = [node(index, "IDLE") for index in range(3)]
        closed, open_ = WindowSchedule("0 2 * * 0", 7200), WindowSchedule("30 11 * * 6", 3600)
        assert actions(seen(3, self.OLD, nodes, policy=ChangePolicy(window=closed))) == []
        assert len(actions(seen(3, self.OLD, nodes, policy=ChangePolicy(window=open_)))) == 1

    def test_an_administrators_drain_of_a_new_node_does_not_hold_it_up(self):
        """What a person took out of service for good reasons is not the rollout's doing."""
        nodes = [node(0, "IDLE", "DRAIN", reason="bad disk", reason_by="root"), node(1, "IDLE"), node(2, "IDLE")]
        assert actions(seen(3, [pod(0), *self.OLD[1:]], nodes)) == [DrainNode(2, ROLLOUT)]

    def test_what_is_drained_for_it_already_is_replaced_although_there_is_no_room(self):
        """Another node fell silent meanwhile: to resume the drained one would gain nothing, and its pod may be gone by now."""
        drained = node(1, "IDLE", "DRAIN", reason=ROLLOUT)
        world = seen(3, [pod(0), *self.OLD[1:]], [node(0, "IDLE", "NOT_RESPONDING"), drained, node(2, "IDLE")])
        assert [(type(each), each.index) for each in actions(world)] == [(Delete, 1)]

    def test_a_pod_that_comes_back_has_a_record_of_its_own(self):
        """Slurm would keep the features of the former one; a busy record, and an administrator's words, stay."""
        pods = self.OLD[1:2]
        assert DeleteNodeRecord(0, "its new pod needs a new record") in actions(
            seen(2, pods, [node(0, "IDLE"), node(1, "IDLE")])
        )
        for kept in (node(0, "ALLOCATED"), node(0, "IDLE", "DRAIN", reason="bad disk", reason_by="root")):
            assert not any(
                isinstance(each, DeleteNodeRecord) for each in actions(seen(2, pods, [kept, node(1, "IDLE")]))
            )


class TestBoundedDrain:
    """A drain that may not last for ever: warn, wait, end."""

    POLICY = ChangePolicy(drain_timeout=3600, on_timeout="Requeue", warning_signal="USR1", warning_period=300)

    def world(self, **more):
        found = node(0, "ALLOCATED", "DRAIN", **({"reason": SCALE_IN} | more))
        return seen(0, [pod(0, noted=SCALE_IN)], [found], policy=self.POLICY, jobs=(job(7, 0, may_requeue=True),))

    def test_before_the_warning_nothing_happens_and_the_next_look_is_planned(self):
        """The policy says itself when it wants to be asked again."""
        plan = decide(self.world(reason_at=NOW - 3000))
        assert plan.actions == ()
        assert plan.again == pytest.approx(300, abs=1)

    def test_the_jobs_are_warned_and_the_reason_says_until_when_they_may_run(self):
        """An hour after the drain at the earliest, and never less than the time of the warning."""
        (warning,) = actions(self.world(reason_at=NOW - 3300))
        assert warning == SignalJobs(0, f"{SCALE_IN}; its jobs end at 2026-11-21T12:05:00Z", (job(7, 0, may_requeue=True),), "USR1")  # fmt: skip
        (late,) = actions(self.world(reason_at=NOW - 9999))
        assert late.why == warning.why

    def test_jobs_end_at_the_moment_that_the_reason_names_and_not_before(self):
        """Who was warned has the time that was promised."""
        reported = f"{SCALE_IN}; its jobs end at 2026-11-21T12:00:01Z"
        assert actions(self.world(reason=reported)) == []
        (end,) = actions(self.world(reason=reported.replace("00:01", "00:00")))
        assert isinstance(end, EndJobs)
        assert end.requeue
        assert [each.number for each in end.jobs] == [7]

    def test_without_a_bound_nothing_ends(self):
        """The default waits as long as the job runs."""
        assert actions(replace(self.world(reason_at=0), policy=ChangePolicy())) == []

    def test_an_administrators_drain_is_not_pressed(self):
        """Whoever drained by hand has his own plans for the job."""
        assert actions(self.world(reason="bad disk", reason_by="root", reason_at=0)) == []

    def test_who_answers_for_a_worker_cannot_say_when_its_jobs_end(self):
        """Words of others stand in the reason of a drain, such as those of a sick jail: a time among them ends nobody's job."""
        forged = reason("jail: x; its jobs end at 2000-01-01T00:00:00Z")
        assert end_of(node(0, "ALLOCATED", "DRAIN", reason=forged)) is None
        assert not [each for each in actions(self.world(reason=forged, reason_at=NOW)) if isinstance(each, EndJobs)]


class TestMaintenance:
    """A Node that is to be emptied."""

    LEAVING = KubeNode("m", leaving="Node m is cordoned")
    WHY = reason("Node m is cordoned")

    def test_its_workers_drain_and_are_open_to_eviction_only_when_idle(self):
        """Protection comes off when DRAIN is set and nothing runs."""
        world = seen(1, [pod(0)], [node(0, "ALLOCATED")], machines=[self.LEAVING])
        assert actions(world) == [DrainNode(0, self.WHY)]
        busy = node(0, "ALLOCATED", "DRAIN", reason=self.WHY)
        assert actions(replace(world, nodes={"w-0": busy})) == []
        idle = node(0, "IDLE", "DRAIN", reason=self.WHY)
        assert actions(replace(world, nodes={"w-0": idle})) == [AnnotatePod(0, f"{self.WHY}: drained and idle", False, self.WHY)]  # fmt: skip

    def test_after_an_uncordon_the_pod_is_protected_before_its_node_takes_jobs(self):
        """First the mark, then the resumption."""
        found = actions(seen(1, [pod(0, protected=False, noted=self.WHY)], [node(0, "IDLE", "DRAIN", reason=self.WHY)]))
        assert [type(each) for each in found] == [AnnotatePod, Resume]
        assert found[0].protected

    def test_a_drain_that_lasts_is_noted_on_the_pod(self):
        """Ten seconds after it began, so that a rollout of idle nodes writes nothing."""
        world = seen(1, [pod(0)], [node(0, "ALLOCATED", "DRAIN", reason=self.WHY)], machines=[self.LEAVING])
        assert decide(world).again == pytest.approx(10, abs=1)
        (mark,) = actions(replace(world, now=NOW + 11))
        assert (mark.protected, mark.noted) == (True, self.WHY)

    def test_who_resumes_the_node_by_hand_is_not_fought(self):
        """The pod is protected again, and no drain follows."""
        world = seen(1, [pod(0, protected=False, noted=self.WHY)], [node(0, "IDLE")], machines=[self.LEAVING])
        assert actions(world) == [AnnotatePod(0, "jobs may start on its node", True, self.WHY)]

    def test_where_the_node_expels_pods_the_drained_one_is_deleted(self):
        """A NoExecute taint that workers tolerate means that the pod is to go by itself."""
        machine = replace(self.LEAVING, expels=True)
        world = seen(1, [pod(0)], [node(0, "IDLE", "DRAIN", reason=self.WHY)], machines=[machine])
        assert [type(each) for each in actions(world)] == [Delete]


class TestNodeLoss:
    """A Node that no longer answers."""

    DEAD = KubeNode("m", ready=False, since=NOW - 301)

    def world(self, wanted=2, machines=None, **more):
        pods = [pod(0, ready=False), pod(1, machine="n")]
        nodes = [node(0, "DOWN", "NOT_RESPONDING", reason="Not responding", reason_at=NOW - 99), node(1, "IDLE")]
        return seen(wanted, pods, nodes, machines=machines or [self.DEAD, KubeNode("n")], **more)

    def test_its_worker_is_replaced_under_a_new_name_and_stays_itself(self):
        """Two pods never have one name."""
        plan = decide(self.world())
        assert plan.actions == (Create(2, "wanted"),)
        assert "w-0 is replaced by another" in plan.said

    def test_not_before_the_time_nor_while_slurm_calls_it_busy(self):
        """Both Kubernetes and Slurm have to have given it up."""
        early = decide(self.world(machines=[KubeNode("m", ready=False, since=NOW - 200), KubeNode("n")]))
        assert early.actions == ()
        assert early.again == pytest.approx(100, abs=1)
        world = self.world()
        assert actions(replace(world, nodes={**world.nodes, "w-0": node(0, "ALLOCATED")})) == []

    def test_no_more_than_the_budget_at_once(self):
        """A split network does not double a cluster."""
        assert actions(self.world(policy=ChangePolicy(max_replaced=0))) == []

    def test_when_the_node_is_back_there_is_one_too_many_and_the_idle_one_goes(self):
        """Whichever disturbs least."""
        pods = [pod(0), pod(1, machine="n"), pod(2, machine="n")]
        world = seen(2, pods, [node(0, "IDLE"), node(1, "ALLOCATED"), node(2, "ALLOCATED")], machines=[KubeNode("m"), KubeNode("n")])  # fmt: skip
        assert actions(world) == [DrainNode(0, SCALE_IN)]


class TestInService:
    """The pod's condition in which its Slurm node is told."""

    def test_a_drain_that_lasts_is_told_with_its_reason_whoever_set_it(self):
        """Not within its first ten seconds, and not again once it is there."""
        drained = node(0, "IDLE", "DRAIN", reason="bad disk", reason_by="root")
        world = seen(1, [pod(0)], [drained])
        assert tells(world) == []
        assert tells(replace(world, now=NOW + 10)) == [SetPodCondition(0, "bad disk", "Drained")]
        assert tells(replace(world, now=NOW + 10, pods={0: pod(0, reported="Drained: bad disk")})) == []

    def test_a_node_that_is_back_takes_it_back(self):
        """At once, and a node that was never out of service is told nothing."""
        world = seen(1, [pod(0, reported="Down: Not responding")], [node(0, "IDLE")])
        assert tells(world) == [SetPodCondition(0, "", "InService")]
        assert tells(replace(world, pods={0: pod(0)})) == []
        assert tells(replace(world, nodes=None)) == []


def test_a_policy_is_the_spec_in_numbers():
    """Percentages are of replicas, durations are seconds, and an empty one is never."""
    spec = {
        "clusterRef": {"name": "c"}, "replicas": 30, "updateStrategy": {"maxUnavailable": "10%", "window": {"schedule": "0 2 * * 6"}},
        "drain": {"timeout": "36h", "onTimeout": "Cancel"}, "nodeFailure": {"replaceAfter": "", "maxReplaced": 2},
    }  # fmt: skip
    policy = policy_of(NodeSetSpec.model_validate(spec))
    assert (policy.max_unavailable, policy.drain_timeout, policy.replace_after, policy.max_replaced) == (
        3,
        129600,
        None,
        2,
    )
    assert policy.window == WindowSchedule("0 2 * * 6", 14400)


@pytest.mark.parametrize(("of", "text", "number"), [(10, "25%", 2), (3, "10%", 1), (10, "0", 0), (10, "0%", 0), (1, "4", 4)])  # fmt: skip
def test_a_share_rounds_down_and_is_at_least_one(of, text, number):
    """Only a plain zero is none."""
    assert share(of, text) == number


def test_a_duration_without_a_unit_is_refused():
    """The sentence says how to write it."""
    with pytest.raises(ValueError, match="write a duration such as"):
        seconds("90")


@pytest.mark.parametrize(
    ("schedule", "duration", "is_open"),
    [
        ("0 12 * * *", 60, True),
        ("59 11 * * *", 60, False),
        ("*/15 * * * 6", 60, True),
        ("0 0 21 * 1", 86400, True),
        ("0 0 20 * 1", 3600, False),
        ("0 22 * * 5", 50400 + 1, True),
        ("0 8-16/4 * 11 1-6", 60, True),
        ("0 22 * * FRI", 50400 + 1, True),
        ("0 12 * nov sat", 60, True),
        ("@daily", 43200, False),
        ("@daily", 43200 + 1, True),
    ],
)
def test_a_window_is_open_for_its_duration_after_each_time_of_its_schedule(schedule, duration, is_open):
    """It is Saturday, the 21st of November, at noon."""
    assert WindowSchedule(schedule, duration).is_open(NOW) is is_open


SCHEDULES = [
    ("*/15 0-23/2 1,31 12 7", ""),
    ("60 * * * *", "minute"),
    ("0 2 0 * *", "day"),
    ("0 0 31 2 *", "day-of-month"),
    ("@reboot", "@daily"),
    ("0 2 * 1-13 *", "month"),
]


@pytest.mark.parametrize(("schedule", "fault"), SCHEDULES)
def test_a_schedule_that_never_comes_is_refused(schedule, fault):
    """Its field is named."""
    assert fault in schedule_fault(schedule)
    assert bool(fault) is bool(schedule_fault(schedule))
